"""Files of the WCCI-2006 and IJCNN-2007 challenges: ``NAME.data`` with ``NAME.labels``.

The data have one row per line, with spaces between the numbers, in one of three forms: dense
(every row has the same number of values), sparse (``index:value``), or sparse and binary (the
indices of the ones). Indices count from one. The labels are -1 or 1, one per line.
"""

from __future__ import annotations

import gzip
import re
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from looms._typing import AnyArray, Matrix
from looms.datasets import TableError


def read_challenge(data: Path, labels: Path) -> tuple[Matrix, AnyArray]:
    """Samples and labels of a set; ``.gz`` may follow the names of its files.

    Raises
    ------
    TableError
        If a file is damaged or does not belong to the other.
    """
    try:
        with (gzip.open if data.suffix == ".gz" else open)(data, "rb") as file:
            rows = file.read().splitlines()
        pairs = any(b":" in row for row in rows)
        y = np.loadtxt(labels, ndmin=1)
        if y.shape != (len(rows),):
            raise ValueError(f"there are {len(y)} labels for {len(rows)} rows")
        if not np.isin(y, (-1, 1)).all():
            raise ValueError(f"{labels.name} has labels other than -1 and 1")
        if not pairs and len({len(row.split()) for row in rows}) == 1:
            return np.loadtxt(rows, ndmin=2), y.astype(np.int64)
        if not pairs:
            rows = [re.sub(rb"\S+", rb"\g<0>:1", row) for row in rows]
        svmlight = b"\n".join(b"0 " + row for row in rows)
        X, _ = load_svmlight_file(BytesIO(svmlight), zero_based=False)
    except (ValueError, OverflowError, OSError, EOFError) as error:
        raise TableError(data, str(error).rstrip("."), "Get both files again, whole.") from error
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as scikit-learn takes
    return sparse.csr_array(parts, shape=X.shape), y.astype(np.int64)
