"""Where the sets of the challenge come from: files in a folder, or OpenML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.datasets import fetch_openml

DATASETS = ("ada", "gina", "hiva", "nova", "sylva")

#: Data ids of the agnostic-track sets, ``NAME_agnostic``.
OPENML = {"ada": 1043, "gina": 1038, "hiva": 1039, "sylva": 1040}


class ChallengeDataError(ValueError):
    """A data set that cannot be had, or has not two classes; the message says what to do."""


def local_files(name: str, folder: Path) -> list[Path]:
    """The files of a set in a folder, in the order of their rows; none if it is not there.

    Raises
    ------
    ChallengeDataError
        If there is no such folder, or it has a part of the challenge's files only.
    """
    if not folder.is_dir():
        raise ChallengeDataError(f"{folder}: there is no such folder; name the one of the data.")
    train = _there(folder, f"{name}_train.data"), _there(folder, f"{name}_train.labels")
    if all(train):
        valid = _there(folder, f"{name}_valid.data")
        labelled = _there(folder, f"{name}_valid.labels") is not None
        return [path for path in (train[0], valid if labelled else None) if path is not None]
    table = _there(folder, f"{name}.csv")
    if table is not None:
        return [table]
    found = sorted(p.name for p in folder.glob(f"{name}_*") if {".data", ".labels"} & {*p.suffixes})
    if found:
        wanted = (f"{name}_train.data", f"{name}_train.labels")
        absent = [w for w, path in zip(wanted, train, strict=True) if path is None]
        raise ChallengeDataError(
            f"{folder} has {', '.join(found)} and not {' nor '.join(absent)}: put the missing "
            "files there too, or name another folder."
        )
    return []


def openml(name: str, folder: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    """Samples and labels of an agnostic-track set from OpenML.

    Raises
    ------
    ChallengeDataError
        If the set is not known to be there, the network gave nothing, or another set came.
    """
    looked = "" if folder is None else f" in {folder}"
    by_hand = (
        f"put {name}_train.data and {name}_train.labels, or {name}.csv with a column target, into "
        "a folder, and name it (--folder or LOOMS_DATA)"
    )
    if name not in OPENML:
        raise ChallengeDataError(
            f"There is no set {name!r}{looked}, and OpenML is known to have only "
            f"{', '.join(OPENML)}: {by_hand}."
        )
    try:
        found = fetch_openml(data_id=OPENML[name], as_frame=False)
    except (OSError, ValueError) as error:  # OSError: all that networks and caches raise
        raise ChallengeDataError(
            f"{name} is not{looked or ' in a folder'}, and could not be had from OpenML (data id "
            f"{OPENML[name]}: {error}). Connect to the network, or {by_hand}."
        ) from error
    called = str(found.details.get("name", ""))
    if not called.lower().startswith(name):
        raise ChallengeDataError(
            f"OpenML's set {OPENML[name]} is {called!r} and not {name}: {by_hand}."
        )
    return found.data, found.target


def _there(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    return None
