"""Sparse files: svmlight, and SciPy matrices with a file of labels.

A row of an svmlight (libsvm) file is a target, then ``index:value`` for each nonzero value.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from looms._typing import AnyArray, Matrix
from looms.datasets._bytes import chunks, read_bytes, read_text, too_large
from looms.datasets._columns import text_types
from looms.datasets._numbers import EXACT, RoundedError, bad_token, number, pair
from looms.datasets._rows import Block, RowReader
from looms.datasets._table import (
    Table,
    TableError,
    check_target,
    labels_beside,
    no_rows,
    table_name,
)

_TOKEN = re.compile(r"[^ \t]+")
#: An underscore before any comment: scikit-learn reads 1_000 as Python does.
_UNDERSCORE = re.compile(rb"^[^#\n]*_", re.MULTILINE)


def read_svmlight(path: Path, max_bytes: int) -> Table:
    """Read an svmlight file; column ``j`` of ``X`` is index ``j`` of the file.

    Indices are taken as written, so files that belong together have the same columns, whether
    they count from zero or from one (column 0 is then empty). Targets that are all whole numbers
    become integers.
    """
    X, y = _rows(read_bytes(path, max_bytes, text=True), path)
    if not X.shape[0]:
        raise no_rows(path)
    if not X.nnz:
        raise TableError(
            path, "no row has a feature", "Every row must be a target and index:value pairs."
        )
    check_target(y, path)
    return Table(X, whole_target(y), table_name(path))


def open_svmlight(path: Path) -> RowReader:
    """Reader of the rows of an svmlight file in blocks."""

    def table(content: bytes, n_lines: int) -> Table:
        return Table(*_rows(content, path, n_lines), table_name(path))

    def blocks(size: int) -> Iterator[Block]:
        n_rows, n_lines, lines, in_block = 0, 0, [], 0
        for line in chain(_lines(path), [None]):
            if line is not None:
                lines.append(line)
                in_block += bool(line.partition(b"#")[0].strip())
            if in_block == size or (line is None and in_block):
                yield Block(n_rows, partial(table, b"\n".join(lines), n_lines))
                n_rows, n_lines = n_rows + in_block, n_lines + len(lines)
                lines, in_block = [], 0

    return RowReader(path, blocks)


def _lines(path: Path) -> Iterator[bytes]:
    """Lines of a file."""
    rest = b""
    for chunk in chunks(path, text=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    yield rest


def whole_target(y: AnyArray) -> AnyArray:
    """Target, as integers if all are whole numbers."""
    whole = np.all(y == np.round(y)) and np.all(np.abs(y) < EXACT)
    return y.astype(np.int64) if whole else y


def _rows(content: bytes, path: Path, n_lines: int = 0) -> tuple[Matrix, AnyArray]:
    """Features and targets of lines; ``n_lines`` lines precede them."""
    try:
        X, y = load_svmlight_file(BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        _check_rows(content, path, n_lines)
        raise TableError(
            path,
            f"it is not an svmlight file ({error})",
            "Every row must be a target followed by index:value pairs in increasing order.",
        ) from None
    large = any((np.abs(values) >= EXACT).any() for values in (X.data, y))
    if large or X.shape[1] > 2**31 - 1 or _UNDERSCORE.search(content):
        _check_rows(content, path, n_lines)
    return _narrow(X), y


def _check_rows(content: bytes, path: Path, n_lines: int) -> None:
    """Raise TableError for the first token that is not valid at its place in a row."""
    for where, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=n_lines + 1):
        before = -1
        for k, token in enumerate(_TOKEN.finditer(line.rstrip("\r").partition("#")[0])):
            try:
                if k == 0:
                    number(token[0])
                elif not token[0].startswith("qid:"):
                    index, _ = pair(token[0])
                    if index <= before:
                        raise ValueError("does not have a greater index than the one before")
                    before = index
            except ValueError as error:
                raise bad_token(path, where, token.start() + 1, token[0], str(error)) from None


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
    except (
        ValueError,
        TypeError,
        LookupError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        MemoryError,
    ):
        raise TableError(
            path,
            "it is not a sparse matrix of SciPy",
            "Write it with scipy.sparse.save_npz, or get the file again.",
        ) from None
    if not X.shape[0]:
        raise no_rows(path)
    if not np.isfinite(X.data).all():
        raise TableError(path, "a number is missing or infinite", "Leave out its row or column.")
    X = _narrow(X)
    labels = labels_beside(path)
    if labels is None:
        return Table(X, None, table_name(path))
    y, notes = _labels(labels, X.shape[0], max_bytes)
    return Table(X, y, table_name(path), notes)


def _narrow(X: sparse.csr_array) -> sparse.csr_array:
    """The matrix with 32-bit indices, which scikit-learn takes."""
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array(parts, shape=X.shape)


def _check_size(X: Matrix, path: Path, max_bytes: int) -> None:
    """Raise TableError for a matrix that cannot become a CSR matrix of floats."""
    kind = X.data.dtype.kind
    if kind not in "biuf":
        raise TableError(
            path, f"its values are of the type {X.data.dtype}", "Write it with real numbers."
        )
    if len(X.shape) != 2 or X.shape[1] > 2**31 - 1:
        raise TableError(
            path,
            f"its shape is {X.shape}",
            "It must have rows, and at most 2147483647 columns: leave out those without a value.",
        )
    if 8 * X.shape[0] > max_bytes:  # of which a file by columns says nothing
        raise too_large(path, max_bytes)
    for value in X.data[np.abs(X.data.astype(float)) >= EXACT] if kind in "iu" else ():
        try:
            number(str(value))
        except RoundedError as error:
            problem = f"{value} {error}"
            raise TableError(path, problem, "Leave out columns of identifiers.") from None


def _labels(path: Path, n_rows: int, max_bytes: int) -> tuple[pandas.Series, tuple[str, ...]]:
    """Labels as numbers or as text, with notes."""
    labels = [line.strip() for line in read_text(path, max_bytes).splitlines()]
    if len(labels) != n_rows or not all(labels):
        n_labels = sum(map(bool, labels))
        raise TableError(
            path,
            f"there are {n_labels} labels for {n_rows} rows of data",
            "Give one label per line, without empty lines.",
        )
    cells = pa.table({"labels": pa.array(labels)})
    types = text_types([cells], ".")
    y = types.columns(cells).frame["labels"]
    check_target(y, path)
    return y, types.notes
