"""Duplicates: rows that are equal in every feature.

When a row is left out, its duplicates stay in the training set, with its target. In tables of
coarse values, duplicates are ordinary samples, among others that are nearly equal. Duplicates
without such neighbors are repeated entries, and make leave-one-out selection drift towards a
nearest-neighbor rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from looms._checks import gaps_in, label_array, readable_table, value_numbers
from looms._typing import AnyArray, Array, Matrix

__all__ = ["duplicate_groups"]

_NUMBERS, _TEXT = "biuf", "USO"  # kinds of dtypes
_BLOCK = 1 << 20  # values hashed at a time
#: Columns that are compared first.
_FIRST = 32
#: Share of rows from which duplicates matter. On four real tables with a tenth of the rows copied,
#: the width of an RBF kernel moved up to fortyfold and the test error by less than its standard
#: error; with a fifth, the error of one rose from 0.20 to 0.28.
_SHARE = 0.05
#: Parts of the columns that are left out in turn when rows are compared.
_PARTS = 4
#: Number of columns up to which redundant ones are left out. With more, hardly any rows differ in
#: nothing else.
_NARROW = 50


def duplicate_groups(X: Any) -> AnyArray:
    """Group number of each row; rows of a group are equal in every feature.

    Parameters
    ----------
    X : table of shape (n, n_features)
        What ``fit`` takes: an array, lists, a sparse matrix, or a table of pandas, polars or
        pyarrow with numbers, text and dates. Gaps are equal to each other. Of text by itself, such
        as documents, each is a row.

    Returns
    -------
    groups : (n,) integers from 0 in the order of the first rows, equal for rows that are equal in
        every feature. Rows are compared by 64-bit hashes.

    Raises
    ------
    TypeError
        If ``X`` is no table, or holds lists and the like.

    Notes
    -----
    O(n n_features), or the number of stored entries for sparse rows. Numeric columns after the
    first 32 are read only for rows that agree in these.

    Examples
    --------
    >>> import numpy as np
    >>> duplicate_groups(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    array([0, 1, 0])
    """
    X = numbered(X)
    groups = np.zeros(X.shape[0], dtype=np.intp)
    for n_columns in sorted({min(_FIRST, X.shape[1]), X.shape[1]}):
        alike = np.flatnonzero(np.bincount(groups)[groups] > 1)
        hashes = _row_hashes(X[:, :n_columns][alike], np.arange(n_columns))
        groups[alike] = len(groups) + np.unique(hashes, return_inverse=True)[1]
        groups = np.unique(groups, return_inverse=True)[1]
    first = np.unique(groups, return_index=True)[1]
    return np.asarray(np.argsort(np.argsort(first))[groups])


def numbered(X: Any) -> Matrix:
    """Columns with a number for every distinct value; numeric columns are unchanged.

    Returns
    -------
    X : (n, n_columns) array or CSR matrix, with equal rows where ``X`` has equal rows.

    Raises
    ------
    TypeError
        If ``X`` is no table, or holds lists and the like.
    """
    if sp.issparse(X) and X.ndim == 2:
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X
    X = readable_table(X)
    try:
        if hasattr(X, "columns"):
            n, d = X.shape
            columns = [_column(X, k) for k in range(d)]
        else:
            values = np.asarray(X)
            if isinstance(X, list | tuple) and (values.dtype.kind in _TEXT or _rounded(values)):
                values = np.asarray(X, dtype=object)  # in which 1 and "1" are two
            n = len(values)
            values = values.reshape(n, math.prod(values.shape[1:]))
            if values.dtype.kind in _NUMBERS:
                return values
            columns = list(values.T)
        return np.column_stack([np.empty((n, 0)), *map(_numbers, columns)])
    except (TypeError, ValueError) as error:
        raise TypeError(
            "X must be a table of numbers, text and dates: an array, lists of equal length, a "
            f"sparse matrix or a data frame, got {type(X).__name__}: {error}."
        ) from error


def _column(frame: Any, k: int) -> AnyArray:
    """Column of a frame of pandas or polars, whose integers numpy rounds if there are gaps."""
    if hasattr(frame, "iloc"):
        column = frame.iloc[:, k]
        gaps = not isinstance(column.dtype, np.dtype) and column.isna().any()
    else:
        column = frame.to_series(k)
        gaps = column.null_count()
    return label_array(column.to_list() if gaps else column)


def _rounded(values: AnyArray) -> bool:
    """True if some numbers are so large that floats stand for several whole numbers."""
    return values.dtype.kind in "iuf" and bool((np.abs(values.astype(np.float64)) >= 2**53).any())


def _numbers(column: AnyArray) -> Array:
    """A column of numbers, or the numbers of its values, from 0, and -1 for gaps."""
    if column.dtype.kind in "bf" or (column.dtype.kind in "iu" and not _rounded(column)):
        return column.astype(np.float64)
    gaps = gaps_in(column)
    numbers = np.full(len(column), -1.0)
    # In the order of the values, not of the rows, by which columns are told apart.
    numbers[~gaps] = value_numbers(column[~gaps])
    return numbers


def n_unexpected_duplicates(X: Matrix, groups: AnyArray) -> int:
    r"""Number of rows that repeat another one not just by chance; 0 if few do.

    If values are so coarse, or depend so much on each other, that rows are equal by accident, then
    nearly equal rows abound. A duplicate has no such neighbors. The number is

    .. math:: \sum_g (n_g - 1) \,[\text{no distinct } h, P: \; g = h \text{ outside } P]

    over the distinct rows g, each of which occurs n_g times, or 0 if that is below a twentieth of
    the rows. The P are runs of a quarter of the columns with more than two values, and of a
    quarter of those with two values. The latter have at least two columns, since one-hot encoded
    categories differ in two.

    Parameters
    ----------
    X : (n, n_features) finite array or CSR matrix.
    groups : (n,) from `duplicate_groups`.

    Notes
    -----
    Nothing is counted if duplicates cannot be recognized: in a single column, and in designed
    tables whose rows share all but one factor. With 50 columns or fewer, constant columns and those
    that order the rows as another one does are dropped first.

    O(n n_features + n log n), with the number of stored entries for sparse rows, if a twentieth of
    the rows equal others, and O(n log n) if not.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> twice = np.repeat(rng.integers(0, 5, (100, 20)), 2, axis=0)
    >>> coarse = rng.integers(0, 2, (200, 3))
    >>> [n_unexpected_duplicates(X, duplicate_groups(X)) for X in (twice, coarse)]
    [100, 0]
    """
    n = len(groups)
    _, first, counts = np.unique(groups, return_index=True, return_counts=True)
    if n - len(first) < _SHARE * n:
        return 0
    distinct = numbered(X[first])
    if X.shape[1] <= _NARROW:
        distinct = _distinct_columns(distinct)
    d = distinct.shape[1]
    if d < 2:
        return 0
    whole = _row_hashes(distinct, np.arange(d))
    alone = counts > 1
    for part in _parts(distinct):
        outside = whole - _row_hashes(distinct[:, part], part)
        _, number, n_equal = np.unique(outside, return_inverse=True, return_counts=True)
        alone &= n_equal[number] == 1
    unexpected = int((counts[alone] - 1).sum())
    return unexpected if unexpected >= _SHARE * n else 0


def _parts(X: Matrix) -> Iterator[AnyArray]:
    """Runs of columns with two values, or with more; each column is in two runs if longer."""
    low, high = (_dense(end(axis=0)).ravel() for end in (X.min, X.max))
    if sp.issparse(X):
        between = (X.data > low[X.indices]) & (X.data < high[X.indices])
        stored = np.bincount(X.indices[between], minlength=X.shape[1])
        many = (stored > 0) | ((low < 0) & (high > 0))
    else:
        many = ((low < X) & (high > X)).any(axis=0)
    for columns, least in ((np.flatnonzero(many), 1), (np.flatnonzero(~many), 2)):
        size = max(least, -(-len(columns) // _PARTS))
        for offset in {0, size // 2}:
            for start in range(offset, offset + len(columns), size):
                run = np.arange(start, start + min(size, len(columns)))
                yield columns.take(run, mode="wrap")


def _distinct_columns(X: Matrix) -> Array:
    """Dense columns, without constant ones and those that order the rows as another does."""
    dense = _dense(X)
    first_of: dict[bytes, int] = {}
    for k, column in enumerate(dense.T):
        values, rank = np.unique(column, return_inverse=True)
        if len(values) > 1:
            first_of.setdefault(min(rank.tobytes(), (len(values) - 1 - rank).tobytes()), k)
    return np.asarray(dense[:, list(first_of.values())])


def _dense(X: Matrix) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _row_hashes(X: Matrix, columns: AnyArray) -> AnyArray:
    """64-bit hash of each row: the sum modulo 2⁶⁴ of the hashes of its values in ``columns``."""
    if sp.issparse(X):
        sums = np.cumsum(_hashes(X.data, columns[X.indices]), dtype=np.uint64)
        ends = np.append(np.uint64(0), sums)
        return np.asarray(ends[X.indptr[1:]] - ends[X.indptr[:-1]])
    step = max(1, _BLOCK // max(1, X.shape[1]))
    return np.concatenate(
        [_hashes(X[i : i + step], columns).sum(axis=1) for i in range(0, max(1, len(X)), step)]
    )


def _hashes(values: Array, columns: AnyArray) -> AnyArray:
    """64-bit hash of each value in its column; zero for zeros, which sparse rows do not store."""
    bits = values
    if values.dtype.kind not in "iu":
        floats = np.ascontiguousarray(values, dtype=np.float64)
        bits = np.where(floats == floats, floats, np.nan).view(np.uint64)  # one NaN of many
    return np.where(values == 0.0, np.uint64(0), _mixed(_mixed(bits) + _mixed(columns)))


def _mixed(bits: AnyArray) -> AnyArray:
    """Bijection of 64-bit integers that spreads every bit (SplitMix64, Steele et al. 2014)."""
    bits = bits.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
