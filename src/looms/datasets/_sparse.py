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
from looms.datasets._bytes import MAX_BYTES, read_bytes, read_text
from looms.datasets._table import Table, TableError, table_name


def read_npz(path: Path, max_bytes: int = MAX_BYTES) -> Table:
    """Read what ``scipy.sparse.save_npz`` writes, with the labels of ``NAME.labels``, if any.

    The labels are numbers or words, one a line. Nothing in the file is unpickled.
    """
    content = read_bytes(path, max_bytes)
    try:
        X = sparse.csr_array(sparse.load_npz(BytesIO(content)))
        X.check_format(full_check=True)
        X.sum_duplicates()
        values = X.data.astype(float)
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
    if not np.isfinite(values).all():
        raise TableError(path, "a number is missing or infinite", "Leave out its row or column.")
    indices, pointers = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X = sparse.csr_array((values, indices, pointers), shape=X.shape)
    labels = path.with_suffix(".labels")
    y = _labels(labels, X.shape[0]) if labels.exists() else None
    return Table(X, y, table_name(path))


def _labels(path: Path, n_rows: int) -> Any:
    labels = [line.strip() for line in read_text(path).splitlines()]
    if len(labels) != n_rows or not all(labels):
        n_labels = sum(map(bool, labels))
        raise TableError(
            path,
            f"there are {n_labels} labels for {n_rows} rows of data",
            "Give one label a line, with no line empty.",
        )
    pandas = require("pandas", "Reading tables")
    try:
        return pandas.to_numeric(pandas.Series(labels))
    except ValueError:
        return pandas.Series(labels, dtype=object)
