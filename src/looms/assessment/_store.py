"""Store of finished splits in files."""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from looms._files import FileError, remove_parts, write_whole
from looms._version import __version__
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import Split

#: Format of the files; another number means another key and another store.
FORMAT = 1

_MARK = "looms-assessments.json"
_ABOUT = "about.json"


class StoreError(FileError):
    """Store of splits that cannot be used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from looms.assessment import StoreError
    >>> error = StoreError(Path("runs"), "this is no store", "Name another folder.")
    >>> str(error), error.problem
    ('runs: this is no store. Name another folder.', 'this is no store')
    """


class Store:
    """Finished splits of one assessment, ``folder/key/split.json`` each.

    A file is written under another name and then renamed, so any number of processes may share
    a folder: the last one replaces a result by the same result. Incomplete files of killed
    processes are removed when the store is opened.

    Parameters
    ----------
    folder : Path
        Folder that holds the assessments of any number of estimators and data sets; made if it
        does not exist.
    key : str
        Digest of everything that the results depend on, except the split.
    about : dict
        Description of the assessment, for people who read the folder.
    packages : dict
        Versions of the packages that the results depend on, except looms and those it needs.

    Raises
    ------
    StoreError
        If the folder holds something else, cannot be written, or was written in another format or
        by another version of a package that the results depend on.
    """

    def __init__(
        self, folder: Path, key: str, about: dict[str, Any], packages: dict[str, str]
    ) -> None:
        self._folder = folder / key
        manifest = self._folder / _ABOUT
        now = {**versions(), **packages}
        try:
            _claim(folder)
            self._folder.mkdir(exist_ok=True)
            remove_parts(folder)
            remove_parts(self._folder)
            used = any(self._folder.glob("seed*.json"))  # before its manifest is looked for
            recorded = _json(manifest)
            if recorded is None and not used:
                python = platform.python_version()  # one that changes what runs has another key
                write_whole(manifest, _bytes({**about, "python": python, "versions": now}))
                return
        except OSError as error:
            raise StoreError(
                folder, f"the store cannot be used ({error.strerror})", "Name another folder."
            ) from error
        if recorded is None:
            raise StoreError(
                manifest,
                "the file that says what made these splits is damaged, or lost",
                "Name another folder, or delete this one.",
            )
        then = recorded.get("versions", {})
        changed = [name for name in now if then.get(name) != now[name]]
        if changed:
            before = " and ".join(f"{name} {then.get(name, 'unknown')}" for name in changed)
            after = " and ".join(f"{name} {now[name]}" for name in changed)
            raise StoreError(
                manifest,
                f"splits of this assessment were stored by {before}, and this is {after}",
                "Results of different versions do not mix: go back to that version, or name "
                "another folder.",
            )

    def load(self, splits: Iterable[Split]) -> dict[int, SplitResult]:
        """Results of stored splits by index, with a warning for damaged files."""
        results = {}
        for split in splits:
            path = self._path(split)
            try:
                content = json.loads(path.read_bytes())
                values = content["result"]
                sequences = {name: tuple(values[name]) for name in ("predictions", "warnings")}
                result = SplitResult(**{**values, **sequences})
                if content["sha256"] != _digest(values) or result.index != split.index:
                    raise ValueError
                results[split.index] = result
            except FileNotFoundError:
                pass
            except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
                problem = getattr(error, "strerror", None) or "it is damaged"
                warnings.warn(
                    f"{path}: the stored split is ignored and run again ({problem}).",
                    stacklevel=3,
                )
        return results

    def save(self, split: Split, result: SplitResult) -> None:
        """Write a finished split; it is on disk when this returns."""
        path = self._path(split)
        values = asdict(result)
        try:
            write_whole(path, _bytes({"sha256": _digest(values), "result": values}))
        except OSError as error:
            raise StoreError(
                path,
                f"the result of a split cannot be written ({error.strerror})",
                "Those stored before it are safe: make room and run it again, and only the "
                "missing splits are run.",
            ) from error

    def _path(self, split: Split) -> Path:
        return self._folder / f"{split.name}.json"


def versions() -> dict[str, str]:
    """Versions of looms, and of the packages that all results depend on."""
    return {
        "looms": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _claim(folder: Path) -> None:
    """Make a folder a store; StoreError if it has other content."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(folder, "this is a file", "Name a folder for the store.")
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / _MARK
    if not mark.exists():
        strangers = sorted(p.name for p in folder.iterdir() if not p.name.startswith(f".{_MARK}"))
        if strangers and not mark.exists():  # another process may have come between
            raise StoreError(
                folder,
                f"the folder is no store and holds other files, such as {strangers[0]!r}",
                "Name a new or an empty folder.",
            )
        write_whole(mark, _bytes({"format": FORMAT}))
    if _json(mark) != {"format": FORMAT}:
        raise StoreError(
            folder,
            f"the store is damaged, or looms {__version__} has another format, {FORMAT}",
            "Nothing was changed; name another folder.",
        )


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _bytes(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()


def _json(path: Path) -> dict[str, Any] | None:
    """Content of a file; None if there is none, or it is damaged."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None
