"""File errors, and files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

#: End of the name of a file that is not complete yet.
_PART = ".part"


class FileError(ValueError):
    """File that cannot be used: its path, the problem, and advice.

    Parameters
    ----------
    path : path
        The file or folder.
    problem : str
        What is wrong with it, without a full stop.
    advice : str
        What to do about it, as a sentence.
    """

    def __init__(self, path: Path, problem: str, advice: str) -> None:
        super().__init__(path, problem, advice)
        self.path = path
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        name = str(self.path) if str(self.path).isprintable() else repr(str(self.path))
        return f"{name}: {self.problem}. {self.advice}"


@contextmanager
def reading(path: Path, error_type: type[FileError]) -> Iterator[None]:
    """Context that turns system errors while reading a file into ``error_type``."""
    try:
        yield
    except FileNotFoundError:
        raise error_type(path, "there is no such file", "Check the name and the folder.") from None
    except IsADirectoryError:
        raise error_type(path, "this is a folder", "Name one file in it.") from None
    except FileError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with the character NUL
        problem = f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        raise error_type(path, problem, "Check its name and its permissions.") from None


def advice_on(error: OSError, otherwise: str) -> str:
    """Advice on a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on the disk, or name a file on another one"
    return otherwise


class PartRemovedError(OSError):
    """Error if another process removed a file before it was complete, as `remove_parts` may."""


def _part_of(path: Path) -> Path:
    """Path of an unfinished file in the folder of a file."""
    # Process numbers come again, in another container or after a kill; this name does not.
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{_PART}")


def try_writing(path: Path) -> None:
    """Begin a `whole_file` and remove it; OSError if it cannot be begun."""
    beside = _part_of(path.resolve())  # at the end of links
    beside.touch(exist_ok=False)
    beside.unlink()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Context of a new file that is renamed at the end: readers get the complete old or new file.

    Parameters
    ----------
    path : Path
        The file; an existing one is replaced. A symbolic link is followed to its file.

    Yields
    ------
    file : binary file to write to; if an error ends the context, nothing of it remains.

    Raises
    ------
    OSError
        If it cannot be written, for instance if the path is not a regular file; what was there
        stays.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    beside = _part_of(path)
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.replace(beside, path)
        except FileNotFoundError:
            problem = "it was removed while being written"
            raise PartRemovedError(errno.ENOENT, problem, str(path)) from None
        if os.name == "posix":
            with suppress(OSError):  # a folder that may not be listed, or some network file systems
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write data as a `whole_file`, and once more if `remove_parts` removed it."""
    while True:
        with suppress(PartRemovedError):
            with whole_file(path) as file:
                file.write(data)
            return


def remove_parts(folder: Path) -> None:
    """Remove files that killed processes had begun to write in a folder.

    It is unknown whether a process still runs, as it may be on another computer. So a
    file that is being written may be removed too; `write_whole` then writes it again.
    """
    for part in folder.glob(f".*{_PART}"):
        with suppress(OSError):  # gone already, on Windows still open, or the disk is read-only
            part.unlink()
