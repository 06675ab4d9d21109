"""The files of the WCCI-2006 and IJCNN-2007 challenges: ``NAME_train.data`` and its labels.

The data have one row a line, numbers between spaces, in one of three forms: dense (every row has
as many numbers), sparse (``index:value``), or sparse and binary (the indices of the ones).
Indices count from one. The labels, -1 or 1 a line, lie beside the data in ``NAME_train.labels``.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from looms._optional import require
from looms.datasets._bytes import read_text
from looms.datasets._table import Table, TableError, table_name

if TYPE_CHECKING:
    import pandas as pd


def read_challenge(path: Path) -> Table:
    """Read the data of a challenge, with the labels where they are there.

    Rows of as many numbers are read as dense. Rows of different lengths must be indices that
    increase, else the file is cut short or damaged.
    """
    lines = read_text(path).removesuffix("\n").split("\n")
    rows = [line.split() for line in lines]
    X: pd.DataFrame | sparse.csr_array
    if any(":" in line for line in lines):
        X = _sparse(rows, path)
    elif len({len(row) for row in rows}) == 1:
        X = _dense(rows, path)
    else:
        X = _sparse_binary(rows, path)
    labels = _beside(path)
    y = None if labels is None else _labels(labels, len(rows))
    return Table(X, y, table_name(path))


def _beside(path: Path) -> Path | None:
    """The file of the labels that belongs to a file of data, if it is there."""
    stem = path.with_suffix("") if path.suffix == ".gz" else path
    for suffix in (".labels", ".labels.gz"):
        labels = stem.with_suffix(suffix)
        if labels != path and labels.exists():
            return labels
    return None


def _dense(rows: list[list[str]], path: Path) -> Any:
    pandas = require("pandas", "Reading tables")
    values = _numbers(rows, path).reshape(len(rows), -1)
    return pandas.DataFrame(values, columns=[f"x{j + 1}" for j in range(values.shape[1])])


def _sparse(rows: list[list[str]], path: Path) -> sparse.csr_array:
    pairs = [[token.partition(":") for token in row] for row in rows]
    indices = _numbers([[index for index, _, _ in row] for row in pairs], path)
    values = _numbers([[value for _, _, value in row] for row in pairs], path)
    return _csr(values, indices, rows, path)


def _sparse_binary(rows: list[list[str]], path: Path) -> sparse.csr_array:
    indices = _numbers(rows, path)
    return _csr(np.ones(len(indices)), indices, rows, path)


def _csr(
    values: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], rows: list[list[str]], path: Path
) -> sparse.csr_array:
    lengths = np.array([len(row) for row in rows])
    steps = np.diff(indices, prepend=0)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[lengths > 0]
    steps[starts] = indices[starts]
    wrong = (steps < 1) | (indices != np.round(indices)) | (indices > 2**31 - 1)
    if wrong.any():
        row = int(np.repeat(np.arange(len(rows)), lengths)[wrong.argmax()]) + 1
        raise TableError(
            path,
            f"row {row} is neither as long as the other rows nor a list of increasing indices",
            "Get the whole file again; use format='csv' for cells between commas.",
        )
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = indices.astype(np.int32) - 1
    return sparse.csr_array((values, columns, pointers), shape=(len(rows), int(columns.max()) + 1))


def _labels(path: Path, n_rows: int) -> np.ndarray[Any, Any]:
    rows = [[token] for token in read_text(path).split()]
    labels = _numbers(rows, path)
    if not np.isin(labels, (-1, 1)).all():
        row = int((~np.isin(labels, (-1, 1))).argmax()) + 1
        raise TableError(
            path, f"label {row} is {rows[row - 1][0]!r}", "Labels must be -1 or 1, one a line."
        )
    if len(labels) != n_rows:
        raise TableError(
            path,
            f"there are {len(labels)} labels for {n_rows} rows of data",
            "Get both files again, whole.",
        )
    return labels.astype(np.int64)


def _numbers(rows: list[list[str]], path: Path) -> np.ndarray[Any, Any]:
    try:
        return np.array(list(chain.from_iterable(rows)), dtype=float)
    except ValueError:
        pass
    for number, row in enumerate(rows, start=1):
        for token in row:
            try:
                float(token)
            except ValueError:
                raise TableError(
                    path,
                    f"row {number} holds {token[:40]!r}, which is not a number",
                    "Numbers must have spaces between them; use format='csv' for cells between "
                    "commas.",
                ) from None
    raise AssertionError("NumPy and Python disagree on what a number is")
