"""From a file's name to its reader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

from looms.datasets._arff import read_arff
from looms.datasets._bytes import MAX_BYTES
from looms.datasets._challenge import read_challenge
from looms.datasets._delimited import read_delimited
from looms.datasets._parquet import read_parquet
from looms.datasets._svmlight import read_svmlight
from looms.datasets._table import Table, TableError, refuse_target, split_target

Format = Literal["csv", "tsv", "parquet", "arff", "svmlight", "challenge"]

#: The format that each suffix stands for; ``.gz`` may follow any of them.
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".data": "challenge",
}


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    format: Format | None = None,
    max_bytes: int = MAX_BYTES,
) -> Table:
    """Read a file into features and target.

    Parameters
    ----------
    path : path
        A file in a format below; with ``.gz`` at its end it is unpacked.
    target : str, optional
        Name of the column to predict. Not for svmlight and challenge files, which say themselves
        what their target is. Without it all columns are features.
    format : {"csv", "tsv", "parquet", "arff", "svmlight", "challenge"}, optional
        The format, when the file's name does not tell: ``.csv``; ``.tsv``, ``.tab``;
        ``.parquet``, ``.pq``; ``.arff``; ``.svm``, ``.svmlight``, ``.libsvm``; ``.data``.
    max_bytes : int, default=2**30
        Bytes of the file, unpacked, beyond which it is refused. While it is read a table takes
        up to fourteen times as much memory.

    Returns
    -------
    table : Table
        Features, target and name.

    Raises
    ------
    TableError
        If the file is not a whole and plain table; the message says what is wrong, and what to do.
    ImportError
        If pandas or pyarrow is needed and not installed.

    Notes
    -----
    In CSV, TSV and ARFF files an empty cell (not in ARFF) and ``?`` are missing values; in CSV and
    TSV files also ``NA``, ``N/A``, ``NaN`` and ``NULL``.
    """
    path = Path(path)
    if os.path.isdir(path):  # unlike Path.is_dir() not an error for names that cannot be
        raise TableError(path, "this is a folder", "Name one file in it.")
    format = format or _guess(path)
    if format == "svmlight":
        refuse_target(target, path, "an svmlight file begins every row with it")
        return read_svmlight(path, max_bytes)
    if format == "challenge":
        refuse_target(target, path, "it is in the file of the labels")
        return read_challenge(path, max_bytes)
    if format == "parquet":
        frame = read_parquet(path, max_bytes)
    elif format == "arff":
        frame = read_arff(path, max_bytes)
    else:
        frame = read_delimited(path, "\t" if format == "tsv" else ",", max_bytes)
    return split_target(frame, target, path)


def _guess(path: Path) -> Format:
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix == ".labels":
        raise TableError(
            path, "these are labels without data", "Name the file of the data, which ends in .data."
        )
    if suffix not in SUFFIXES:
        raise TableError(
            path,
            f"the suffix {suffix!r} is of no known format" if suffix else "its name has no suffix",
            f"Known are {', '.join(SUFFIXES)}; or give the format: {', '.join(get_args(Format))}.",
        )
    return SUFFIXES[suffix]
