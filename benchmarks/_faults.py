"""A disk that fails, or a process that dies, at the k-th operation that changes the disk.

What changes the disk is counted: making a folder or a file, each write, putting it on the disk,
renaming, removing. A process that was killed does nothing more: after that operation every other
raises too, so that cleaning up is not done either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock


class Killed(BaseException):
    """Stands for SIGKILL: no handler of errors catches it."""


class Disk:
    """Counts operations; the one of number ``fails_at``, from 1, raises ``error``.

    Of a write half is done before.
    """

    def __init__(self, fails_at: int = 0, error: BaseException | None = None) -> None:
        self.fails_at, self.error = fails_at, error
        self.operations: list[str] = []

    def step(self, name: str, path: Any) -> None:
        """One operation; raises if it is to fail."""
        self.operations.append(f"{name} {Path(str(path)).name}")
        n, dead = len(self.operations), isinstance(self.error, Killed)
        if self.error is not None and (n == self.fails_at or (dead and n > self.fails_at)):
            raise self.error

    @contextmanager
    def in_use(self) -> Iterator[Disk]:
        """Context in which files are written through this disk."""
        real_open = Path.open

        def opened(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
            if not set(mode) & set("wxa+"):
                return real_open(path, mode, *args, **options)
            self.step("open", path)
            return _File(real_open(path, mode, *args, **options), self)

        def stepping(name: str) -> Any:
            real = getattr(os, name)

            def operation(path: Any, *args: Any, **options: Any) -> Any:
                self.step(name, path)
                return real(path, *args, **options)

            return mock.patch.object(os, name, operation)

        names = ("replace", "fsync", "mkdir", "unlink")
        with mock.patch.object(Path, "open", opened):
            patches = [stepping(name) for name in names]
            for patch in patches:
                patch.start()
            try:
                yield self
            finally:
                for patch in patches:
                    patch.stop()


class _File:
    """A file whose writes are steps."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file, self._disk = file, disk

    def write(self, data: bytes) -> None:
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._disk.step("write", self._file.name)
        self._file.write(data[len(data) // 2 :])

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *args: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
