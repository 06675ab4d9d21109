"""Files of the WCCI-2006 and IJCNN-2007 challenges: ``NAME_train.data`` and its labels.

The data have one row per line, with spaces between the numbers, in one of three forms: dense
(every row has the same number of values), sparse (``index:value``), or sparse and binary (the
indices of the ones). Indices count from one. The labels, -1 or 1 on each line, are in
``NAME_train.labels`` in the same folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from looms._optional import require
from looms._typing import AnyArray, Array
from looms.datasets._bytes import read_text
from looms.datasets._numbers import bad_token, must_be_checked, number, pair
from looms.datasets._table import Table, TableError, labels_beside, table_name

if TYPE_CHECKING:
    import pandas as pd


#: Characters found in no number and no pair. Only space and tab separate.
_FOREIGN = re.compile(r"[^0-9+\-.:einfatyEINFATY \t]")
_TOKEN = re.compile(r"[^ \t]+")


def read_challenge(path: Path, max_bytes: int) -> Table:
    """Read the data of a challenge, and the labels if their file is in the same folder.

    Rows of equal length are read as dense. Rows of different lengths must be increasing indices,
    else the file is cut short or damaged.
    """
    lines = _lines(path, max_bytes)
    rows = [line.split() for line in lines]
    lengths = {len(row) for row in rows}
    tokens = list(chain.from_iterable(rows))
    X: pd.DataFrame | sparse.csr_array
    if any(":" in line for line in lines):
        pairs = [token.partition(":") for token in tokens]
        values = _floats([value for _, _, value in pairs], pair, lines, path)
        X = _csr(values, [index for index, _, _ in pairs], pair, rows, lines, path)
    elif len(lengths) == 1:
        values = _floats(tokens, number, lines, path).reshape(len(rows), -1)
        names = [f"x{j + 1}" for j in range(values.shape[1])]
        X = require("pandas", "Reading tables").DataFrame(values, columns=names)
    elif len(lengths - {0}) == 1:
        raise TableError(
            path,
            f"line {rows.index([]) + 1} is blank, and all others have as many numbers",
            "Remove blank lines if the rows are dense; if they are the indices of ones, write "
            "them as index:1.",
        )
    else:
        X = _csr(np.ones(len(tokens)), tokens, number, rows, lines, path)
    labels = labels_beside(path)
    y = None if labels is None else _labels(labels, len(rows), max_bytes)
    return Table(X, y, table_name(path))


def _lines(path: Path, max_bytes: int) -> list[str]:
    """Lines of a file of numbers or pairs; TableError for other characters."""
    lines = read_text(path, max_bytes).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if any(map(_FOREIGN.search, lines)):
        _check_tokens(lines, pair if any(":" in line for line in lines) else number, path)
    return lines


def _check_tokens(lines: list[str], check: Callable[[str], object], path: Path) -> None:
    """Raise TableError for the first token that fails ``check``."""
    for where, line in enumerate(lines, start=1):
        for token in _TOKEN.finditer(line):
            try:
                check(token[0])
            except ValueError as error:
                raise bad_token(path, where, token.start() + 1, token[0], str(error)) from None


def _csr(
    values: Array,
    tokens: list[str],
    check: Callable[[str], object],
    rows: list[list[str]],
    lines: list[str],
    path: Path,
) -> sparse.csr_array:
    """Sparse rows from values and the tokens of their indices."""
    indices = _floats(tokens, check, lines, path)
    lengths = np.array([len(row) for row in rows])
    steps = np.diff(indices, prepend=0)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[lengths > 0]
    steps[starts] = indices[starts]
    whole = np.fromiter(map(str.isdecimal, tokens), bool, len(tokens))
    wrong = ~whole | ~(steps >= 1) | (indices > 2**31 - 1)
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


def _labels(path: Path, n_rows: int, max_bytes: int) -> AnyArray:
    lines = _lines(path, max_bytes)
    tokens = list(chain.from_iterable(line.split() for line in lines))
    labels = _floats(tokens, number, lines, path)
    if not np.isin(labels, (-1, 1)).all():
        row = int((~np.isin(labels, (-1, 1))).argmax()) + 1
        raise TableError(
            path, f"label {row} is {tokens[row - 1]!r}", "Labels must be -1 or 1, one per line."
        )
    if len(labels) != n_rows:
        raise TableError(
            path,
            f"there are {len(labels)} labels for {n_rows} rows of data",
            "Get both files again, whole.",
        )
    return labels.astype(np.int64)


def _floats(
    tokens: list[str], check: Callable[[str], object], lines: list[str], path: Path
) -> Array:
    """Values of tokens; all tokens of a line are checked if some may be invalid."""
    try:
        values = np.array(tokens, dtype=float)
        if must_be_checked(values):
            _check_tokens(lines, check, path)
    except ValueError:
        _check_tokens(lines, check, path)
        raise
    return values
