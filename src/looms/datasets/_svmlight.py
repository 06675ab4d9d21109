"""svmlight (libsvm) files: a target, then ``index:value`` for what is not zero."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from looms.datasets._bytes import read_bytes
from looms.datasets._table import Table, TableError, table_name


def read_svmlight(path: Path) -> Table:
    """Read an svmlight file; column ``j`` of ``X`` is index ``j`` of the file.

    The indices are taken as written, so files that belong together have the same columns whether
    they count from zero or from one (column 0 is then empty). Targets that are all whole numbers
    become integers.
    """
    try:
        X, y = load_svmlight_file(BytesIO(read_bytes(path)), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        raise TableError(
            path,
            f"it is not an svmlight file ({error})",
            "Every row must be a target followed by index:value pairs in increasing order.",
        ) from None
    if not X.shape[0]:
        raise TableError(path, "there are no rows of data", "Give a file with rows of data.")
    if not X.nnz:
        raise TableError(
            path, "no row has a feature", "Every row must be a target and index:value pairs."
        )
    missing = np.isnan(y)
    if missing.any():
        raise TableError(
            path,
            f"the target is missing in {missing.sum()} of {len(y)} rows",
            "Remove the rows whose target is not known.",
        )
    whole = np.all(y == np.round(y)) and np.all(np.abs(y) < 2**53)
    indices, pointers = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X = sparse.csr_array((X.data, indices, pointers), shape=X.shape)
    return Table(X, y.astype(np.int64) if whole else y, table_name(path))
