"""Sparse matrices of SciPy, with labels beside them."""

from __future__ import annotations

import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from looms._optional import require
from looms.datasets._bytes import read_bytes, read_text, too_large
from looms.datasets._columns import numbers_of
from looms.datasets._numbers import EXACT
from looms.datasets._table import Table, TableError, check_target, labels_beside, table_name


def read_npz(path: Path, max_bytes: int) -> Table:
    """Read what ``scipy.sparse.save_npz`` writes, with the labels of ``NAME.labels``, if any.

    The labels are numbers or words, one a line. Nothing in the file is unpickled.
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
            "it is no sparse matrix of SciPy",
            "Write it by scipy.sparse.save_npz, or get the file again.",
        ) from None
    if not X.shape[0]:
        raise TableError(path, "there are no rows of data", "Give a file with rows of data.")
    if not np.isfinite(X.data).all():
        raise TableError(path, "a number is missing or infinite", "Leave out its row or column.")
    indices, pointers = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X = sparse.csr_array((X.data, indices, pointers), shape=X.shape)
    labels = labels_beside(path)
    if labels is None:
        return Table(X, None, table_name(path))
    y, notes = _labels(labels, X.shape[0], max_bytes)
    return Table(X, y, table_name(path), notes)


def _check_size(X: Any, path: Path, max_bytes: int) -> None:
    """Raise TableError for a matrix that does not fit in CSR format of floats."""
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
    large = X.data[np.abs(X.data.astype(float)) >= EXACT] if kind in "iu" else []
    rounded = [value for value in map(int, large) if float(value) != value]
    if rounded:
        raise TableError(
            path,
            f"{rounded[0]} has more digits than a float holds",
            "Leave out columns of identifiers.",
        )


def _labels(path: Path, n_rows: int, max_bytes: int) -> tuple[Any, tuple[str, ...]]:
    """Labels as numbers or as text, with notes."""
    labels = [line.strip() for line in read_text(path, max_bytes).splitlines()]
    if len(labels) != n_rows or not all(labels):
        n_labels = sum(map(bool, labels))
        raise TableError(
            path,
            f"there are {n_labels} labels for {n_rows} rows of data",
            "Give one label a line, with no line empty.",
        )
    pandas = require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading labels")
    made = numbers_of({"labels": pa.array(labels)}, ".")
    if "labels" not in made.numbers:
        return pandas.Series(labels, dtype=object), made.notes
    y = made.numbers["labels"].to_pandas()
    check_target(y, path)
    return y, ()
