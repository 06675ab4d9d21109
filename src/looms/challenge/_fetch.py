"""Sets of the challenge: files in a folder, or OpenML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.datasets import fetch_openml

DATASETS = ("ada", "gina", "hiva", "nova", "sylva")

#: Data ids of the agnostic-track sets, ``NAME_agnostic``.
OPENML = {"ada": 1043, "gina": 1038, "hiva": 1039, "sylva": 1040}


class ChallengeDataError(ValueError):
    """Error for a data set that is not available or has not two classes, with advice."""


def local_file(name: str, folder: Path) -> Path | None:
    """File of a set in a folder, with labels in it or beside it, or None.

    Raises
    ------
    ChallengeDataError
        If there is no such folder, or it has only some of the challenge's files.
    """
    if not folder.is_dir():
        raise ChallengeDataError(f"{folder}: there is no such folder; name the one of the data.")
    for stem in (f"{name}_train", name):
        data, labels = (_there(folder, f"{stem}.{kind}") for kind in ("data", "labels"))
        if data is not None and labels is not None:
            return data
    table = _there(folder, f"{name}.csv")
    if table is not None:
        return table
    present = sorted(
        path.name
        for stem in (f"{name}_*", f"{name}.*")
        for path in folder.glob(stem)
        if {".data", ".labels"} & {*path.suffixes}
    )
    if present:
        stem = name if f"{name}." in "".join(present) else f"{name}_train"
        absent = [f"{stem}.{k}" for k in ("data", "labels") if not _there(folder, f"{stem}.{k}")]
        raise ChallengeDataError(
            f"{folder} has {', '.join(present)} and not {' nor '.join(absent)}: put the missing "
            "file there too, or name another folder."
        )
    return None


def openml(name: str, folder: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    """Samples and labels of an agnostic-track set from OpenML.

    Raises
    ------
    ChallengeDataError
        If the set is not on OpenML, or the download fails or has another name.
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
        bunch = fetch_openml(data_id=OPENML[name], as_frame=False)
    except (OSError, ValueError) as error:  # OSError: all that networks and caches raise
        raise ChallengeDataError(
            f"{name} is not{looked or ' in a folder'}, and could not be downloaded from "
            f"OpenML (data id {OPENML[name]}: {error}). Connect to the network, or {by_hand}."
        ) from error
    called = str(bunch.details.get("name", ""))
    if not called.lower().startswith(name):
        raise ChallengeDataError(
            f"OpenML's set {OPENML[name]} is {called!r} and not {name}: {by_hand}."
        )
    return bunch.data, bunch.target


def _there(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    return None
