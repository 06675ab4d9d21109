"""svmlight (libsvm) files: a target, then ``index:value`` for values other than zero."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from looms.datasets._bytes import read_bytes
from looms.datasets._numbers import EXACT, bad_token, must_be_checked, number, pair
from looms.datasets._table import Table, TableError, check_target, table_name

_TOKEN = re.compile(r"[^ \t]+")
#: An underscore before any comment: scikit-learn reads 1_000 as Python does.
_UNDERSCORE = re.compile(rb"^[^#\n]*_", re.MULTILINE)


def read_svmlight(path: Path, max_bytes: int) -> Table:
    """Read an svmlight file; column ``j`` of ``X`` is index ``j`` of the file.

    The indices are taken as written, so files that belong together have the same columns whether
    they count from zero or from one (column 0 is then empty). Targets that are all whole numbers
    become integers.
    """
    content = read_bytes(path, max_bytes, text=True)
    try:
        X, y = load_svmlight_file(BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        _check_tokens(content, path)
        raise TableError(
            path,
            f"it is not an svmlight file ({error})",
            "Every row must be a target followed by index:value pairs in increasing order.",
        ) from None
    wide = X.shape[1] > 2**31 - 1
    if wide or must_be_checked(X.data) or must_be_checked(y) or _UNDERSCORE.search(content):
        _check_tokens(content, path)
    if not X.shape[0]:
        raise TableError(path, "there are no rows of data", "Give a file with rows of data.")
    if not X.nnz:
        raise TableError(
            path, "no row has a feature", "Every row must be a target and index:value pairs."
        )
    check_target(y, path)
    whole = np.all(y == np.round(y)) and np.all(np.abs(y) < EXACT)
    indices, pointers = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X = sparse.csr_array((X.data, indices, pointers), shape=X.shape)
    return Table(X, y.astype(np.int64) if whole else y, table_name(path))


def _check_tokens(content: bytes, path: Path) -> None:
    """Raise TableError for the first token that is not valid at its place in a row."""
    for where, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=1):
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
