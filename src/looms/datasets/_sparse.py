"""Sparse files: svmlight, and SciPy matrices with a file of labels.

A row of an svmlight (libsvm) file is a target, then ``index:value`` for each nonzero value.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from looms._typing import AnyArray, Matrix
from looms.datasets._bytes import read_bytes, read_text, text_content, too_large
from looms.datasets._rows import RowReader
from looms.datasets._table import WRITTEN, Table, TableError, number, shown, table_name
from looms.tables._cells import EXACT, is_rounded

_PIECE = 2**20
_INDEX = re.compile(r"[0-9]{1,10}")
#: Greatest number of columns, whose indices have 32 bits.
_COLUMNS = 2**31 - 1
_ROUNDED = "has more digits than a float holds"
#: Errors of SciPy and NumPy for a file that is no matrix.
_BROKEN = (
    *(ValueError, TypeError, LookupError, OSError, MemoryError, EOFError),
    *(BadZipFile, zlib.error),
)
#: An underscore before any comment: scikit-learn reads 1_000 as Python does.
_UNDERSCORE = re.compile(rb"^[^#\n]*_", re.MULTILINE)


def svmlight_reader(path: Path, max_bytes: int | None = None) -> RowReader:
    """Reader of the rows of an svmlight file; column ``j`` of ``X`` is index ``j`` of the file.

    Indices are taken as written, so files that belong together have the same columns, whether
    they count from zero or from one (column 0 is then empty). With ``max_bytes`` the file is read
    once, into memory.
    """
    content = text_content(path, _PIECE, max_bytes)

    def rows() -> Iterator[bytes]:
        rest = b""
        for chunk in chain(content(), [b"\n"]):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line for line in lines if line.partition(b"#")[0].strip())

    def parts(size: int) -> Iterator[bytes]:
        lines = rows()
        while piece := list(islice(lines, size)):
            yield b"\n".join(piece)

    def table_of(first: int, content: bytes) -> Table:
        return Table(*_rows(content, path, first), table_name(path))

    return RowReader(path, parts, table_of)


def _rows(content: bytes, path: Path, first: int) -> tuple[Matrix, AnyArray]:
    """Features and targets of rows, before which there are ``first`` others."""
    try:
        X, y = load_svmlight_file(BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        _check_rows(content, path, first)
        advice = "Every row must be a target and then index:value pairs in increasing order."
        raise TableError(path, f"it is not an svmlight file ({error})", advice) from None
    large = any((np.abs(values) >= EXACT).any() for values in (X.data, y))
    if large or X.shape[1] > _COLUMNS or _UNDERSCORE.search(content):
        _check_rows(content, path, first)
    return _narrow(X), y


def _check_rows(content: bytes, path: Path, first: int) -> None:
    """Raise TableError for the first token that is not valid at its place in a row."""
    for row, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=first + 1):
        before = -1
        for k, token in enumerate(line.partition("#")[0].split()):
            index, _, value = token.rpartition(":") if k else ("", "", token)
            try:
                if index == "qid":
                    continue
                if k and not (_INDEX.fullmatch(index) and int(index) < _COLUMNS):
                    raise ValueError(f"is not a pair index:value, with an index below {_COLUMNS}")
                if k and int(index) <= before:
                    raise ValueError("does not have a greater index than the one before")
                before = int(index or -1)
                number(value)
                if is_rounded(value):
                    raise ValueError(_ROUNDED)
            except ValueError as error:
                problem = f"data row {row}: {shown(token)} {error}"
                advice = "Correct the line, or get the file again."
                raise TableError(path, problem, advice) from None


def read_npz(path: Path, max_bytes: int) -> Table:
    """Read what ``scipy.sparse.save_npz`` writes, with the labels in ``NAME.labels``, if any.

    The labels are numbers or words, one per line. Nothing in the file is unpickled.
    """
    content = read_bytes(path, max_bytes)
    try:
        X = sparse.load_npz(BytesIO(content))
        _check_size(X, path, max_bytes)
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)  # before conversion, which trusts the indices
        # First to floats, for sums of duplicates may be beyond small integers.
        with np.errstate(over="ignore"):
            X = sparse.csr_array(X.astype(float))
        X.check_format(full_check=True)
        X.sum_duplicates()
    except TableError:
        raise
    except _BROKEN:
        advice = "Write it with scipy.sparse.save_npz, or get the file again."
        raise TableError(path, "it is not a sparse matrix of SciPy", advice) from None
    if not np.isfinite(X.data).all():
        raise TableError(path, "a number is missing or infinite", "Leave out its row or column.")
    labels = _labels_beside(path)
    y = None if labels is None else _labels(labels, X.shape[0], max_bytes)
    return Table(_narrow(X), y, table_name(path))


def _narrow(X: sparse.csr_array) -> sparse.csr_array:
    """The matrix with 32-bit indices, which scikit-learn takes."""
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array(parts, shape=X.shape)


def _check_size(X: Matrix, path: Path, max_bytes: int) -> None:
    """Raise TableError for a matrix that cannot become a CSR matrix of floats."""
    kind = X.data.dtype.kind
    if kind not in "biuf":
        problem = f"its values are of the type {X.data.dtype}"
        raise TableError(path, problem, "Write it with real numbers.")
    if len(X.shape) != 2 or X.shape[1] > _COLUMNS:
        advice = f"It must have rows, and at most {_COLUMNS} columns: leave out empty ones."
        raise TableError(path, f"its shape is {X.shape}", advice)
    if 8 * X.shape[0] > max_bytes:  # of which a file by columns says nothing
        raise too_large(path, max_bytes)
    rounded = [*filter(is_rounded, X.data)] if kind in "iu" else []
    if rounded:
        problem = f"{rounded[0]} {_ROUNDED}"
        raise TableError(path, problem, "Leave out columns of identifiers.")


def _labels_beside(path: Path) -> Path | None:
    """File of the labels in the folder of a file of data, if it exists."""
    stem = path.with_suffix("") if path.suffix == ".gz" else path
    beside = [stem.with_suffix(suffix) for suffix in (".labels", ".labels.gz")]
    return next((labels for labels in beside if labels != path and os.path.exists(labels)), None)


def _labels(path: Path, n_rows: int, max_bytes: int) -> pandas.Series:
    """Labels as they are written."""
    labels = [line.strip() for line in read_text(path, max_bytes).splitlines()]
    if len(labels) != n_rows or not all(labels):
        n_labels = sum(map(bool, labels))
        problem = f"there are {n_labels} labels for {n_rows} rows of data"
        raise TableError(path, problem, "Give one label per line, without empty lines.")
    return pandas.Series(labels, dtype=WRITTEN)
