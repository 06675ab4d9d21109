"""Samples and pairs of samples, the arguments of kernels.

A kernel is evaluated on one rectangular block of pairs at a time. The block holds the
inner products or distances of its pairs, computed once for all kernels of a sum or
product.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances as sparse_manhattan_distances

from looms._threads import openmp_threads
from looms._typing import AnyArray, Array, Matrix

#: A squared distance below this fraction of the squared norms is computed from the difference.
_CLOSE = 1e-4
_NUMBERS = 1 << 20  # of differences at a time
_CLUSTERS = 8  # of so many or fewer in a block, each is seen from one of its samples
#: Range of features whose sums of squares neither overflow nor vanish, and nor do their inverses.
LARGEST, _SMALLEST = 1e150, 1e-140


class Samples:
    """Rows of a design matrix and their position in it.

    Parameters
    ----------
    X : (n_samples, n_features) float64 array or CSR matrix.
        For a precomputed kernel: rows of the kernel matrix.
    start : position of the first row in the set that these rows belong to.
    center : (n_features,) point that squared distances are computed around.
        It affects rounding only. For sparse ``X`` it is zero in columns that it would fill.
    weight : (n_samples,) how often each sample counts when a kernel takes a value from
        the data; once by default.

    Attributes
    ----------
    mapped : a map of the features, and these samples by it: the last that a kernel asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Samples
    >>> Samples(np.array([[3.0, 4.0], [0.0, 1.0]])).square_norms
    array([25.,  1.])
    """

    def __init__(
        self,
        X: Matrix,
        *,
        start: int = 0,
        center: Array | None = None,
        weight: Array | None = None,
    ) -> None:
        self.X = X
        self.start = start
        self.center = center
        self.weight = np.ones(X.shape[0]) if weight is None else weight
        self.mapped: tuple[tuple[Any, ...], Samples] | None = None

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def stop(self) -> int:
        return self.start + self.n_samples

    def rows(self, start: int, stop: int) -> Samples:
        """Samples ``start:stop``."""
        return Samples(self.X[start:stop], start=self.start + start, center=self.center)

    @cached_property
    def square_norms(self) -> Array:
        """Inner products x·x, (n_samples,)."""
        return square_norms(self.X)

    @cached_property
    def centered(self) -> Matrix:
        """``X`` minus the center; ``X`` itself if the center is None or zero."""
        if self.center is None or not self.center.any():
            return self.X
        if not sp.issparse(self.X):
            return self.X - self.center
        moved = np.flatnonzero(self.center)
        filled = (np.tile(self.center[moved], self.n_samples), np.tile(moved, self.n_samples))
        rows = np.arange(self.n_samples + 1) * len(moved)
        return self.X - sp.csr_array((filled[0], filled[1], rows), shape=self.X.shape)

    @cached_property
    def centered_square_norms(self) -> Array:
        return square_norms(self.centered)


class Pairs:
    """Rectangular block of pairs (row sample, column sample).

    Its quantities, ``dot`` and distances, are computed on first use unless ``given``. Kernels
    share them, and must not write to them.

    Parameters
    ----------
    rows, cols : samples of the rows and of the columns.
    given : quantities that are known already, by name.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Pairs, Samples
    >>> samples = Samples(np.array([[3.0, 4.0], [0.0, 0.0]]))
    >>> Pairs(samples, samples).squared_distances
    array([[ 0., 25.],
           [25.,  0.]])
    """

    def __init__(self, rows: Samples, cols: Samples, **given: Array) -> None:
        self.rows = rows
        self.cols = cols
        vars(self).update(given)  # where a cached property looks first

    @property
    def diagonal(self) -> bool:
        """True if rows and columns are the same samples, so ``[i, i]`` is a self-pair."""
        return self.rows is self.cols

    @cached_property
    def dot(self) -> Array:
        """Inner products x_i·x_j."""
        return inner_products(self.rows.X, self.cols.X)

    @cached_property
    def squared_distances(self) -> Array:
        """‖x_i − x_j‖², never negative and exactly zero for a sample with itself."""
        return squared_distances(
            self.rows.centered,
            self.cols.centered,
            self.rows.centered_square_norms,
            self.cols.centered_square_norms,
            diagonal=self.diagonal,
        )

    @cached_property
    def manhattan_distances(self) -> Array:
        """Σ_k |x_ik − x_jk|."""
        return manhattan_distances(self.rows.X, self.cols.X)


def square_norms(X: Matrix, scale: Array | None = None) -> Array:
    """Σ_k scale_k x_ik² for every row i; ``scale`` defaults to one."""
    if sp.issparse(X):
        squares = X.multiply(X)
        return np.asarray(squares.sum(axis=1) if scale is None else squares @ scale).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X) if scale is None else np.square(X) @ scale)


def square_sums(X: Matrix, weight: Array) -> Array:
    """Σ_i weight_i x_ik² for every column k."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).T @ weight).ravel()
    return np.asarray(weight @ np.square(X))


def column_dots(A: Matrix, B: Array) -> Array:
    """Σ_i A_ik B_ik for every column k."""
    if sp.issparse(A):
        return np.asarray(A.multiply(B).sum(axis=0)).ravel()
    return np.asarray(np.einsum("ik,ik->k", A, B))


def variances(X: Matrix, weight: Array | None = None) -> Array:
    """Variance of every column, weighted if ``weight`` is given; exactly zero if it is constant."""
    n, d = X.shape
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    mean = np.asarray(share @ X).ravel()
    if sp.issparse(X):
        shares = np.repeat(share, np.diff(X.indptr))  # of the stored entries
        squares = shares * np.square(X.data - mean[X.indices])
        share_of_zeros = 1.0 - np.bincount(X.indices, weights=shares, minlength=d)
        share_of_zeros[np.bincount(X.indices, minlength=d) == n] = 0.0
        variances = np.bincount(X.indices, weights=squares, minlength=d) + share_of_zeros * mean**2
    else:
        variances = np.asarray(share @ np.square(X - mean))
    # A constant is told from its own rounding, whatever the units of the other columns.
    return np.where(variances > 1e-28 * square_sums(X, share), variances, 0.0)


def inner_products(A: Matrix, B: Matrix) -> Array:
    """Inner products A Bᵀ, a dense array in Fortran order."""
    product = B @ A.T
    if sp.issparse(product):
        product = product.toarray()
    return np.asarray(product).T


def squared_distances(
    A: Matrix, B: Matrix, norms_a: Array, norms_b: Array, *, diagonal: bool
) -> Array:
    """‖a_i − b_j‖² from inner products and norms, as a new array.

    Where two samples are so close, relative to their norms, that digits would cancel, it is
    computed from differences; in clusters of such samples, from norms around one of them.
    """
    D = inner_products(A, B)
    D *= -2.0
    D += norms_a[:, None]
    D += norms_b
    np.maximum(D, 0.0, out=D)
    if diagonal:
        np.fill_diagonal(D, np.inf)
    bounds = _CLOSE * norms_a, _CLOSE * norms_b
    if D.min(initial=np.inf) < bounds[0].max(initial=0.0) + bounds[1].max(initial=0.0):
        columns, step = max(1, _NUMBERS // len(D)), max(1, _NUMBERS // A.shape[1])
        for start in range(0, D.shape[1], columns):  # in the order of memory
            block = slice(start, start + columns)
            close = D.T[block] < bounds[0].max() + bounds[1][block].max()
            if np.count_nonzero(close) > close.size / _CLUSTERS**2:  # a few are looked at below
                close = D.T[block] < np.add.outer(bounds[1][block], bounds[0])
                while (counts := np.count_nonzero(close, axis=1)).max() > len(D) / _CLUSTERS:
                    # Many samples close to one, and those close to them: seen from that one.
                    center = B[[start + counts.argmax()]]
                    center = np.ravel(center.toarray() if sp.issparse(center) else center)
                    p = np.flatnonzero(close[counts.argmax()])
                    q = np.flatnonzero(close[:, p].any(axis=1))
                    near = Samples(A[p], center=center), Samples(B[start + q], center=center)
                    D[np.ix_(p, start + q)] = Pairs(*near).squared_distances
                    close[np.ix_(q, p)] = False
            rest = np.flatnonzero(close)
            for first in range(0, len(rest), step):
                q, p = np.divmod(rest[first : first + step], len(D))
                near_pairs = D[p, start + q] < bounds[0][p] + bounds[1][start + q]
                p, q = p[near_pairs], start + q[near_pairs]
                D[p, q] = square_norms(A[p] - B[q])
    if diagonal:
        np.fill_diagonal(D, 0.0)
    return D


def manhattan_distances(A: Matrix, B: Matrix) -> Array:
    """Σ_k |a_ik − b_jk|, as a new array in Fortran order."""
    if not (sp.issparse(A) or sp.issparse(B)):
        return np.asarray(cdist(B, A, "cityblock").T)
    S, T = sp.csr_array(B), sp.csr_array(A)
    for M in (S, T):  # views, which take indices of 32 bits; blocks of rows have no need of more
        M.indices, M.indptr = M.indices.astype(np.int32), M.indptr.astype(np.int32)
    with openmp_threads(max(S.shape[0], T.shape[0])):
        return np.asarray(sparse_manhattan_distances(S, T).T)


def samples_of(X: Matrix, Y: Matrix | None) -> tuple[Samples, Samples]:
    """Row and column samples of two matrices; the same object if ``Y`` is None."""
    X = as_matrix(X)
    check_range(X)
    if Y is None:
        samples = Samples(X, center=center_of(X))
        return samples, samples
    Y = as_matrix(Y)
    check_range(Y)
    center = center_of(Y)
    return Samples(X, center=center), Samples(Y, center=center)


def center_of(X: Matrix) -> Array:
    """Mean of the rows; zero in columns of a sparse matrix that have zeros."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    if not sp.issparse(X):
        return mean
    return np.where(np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0], mean, 0.0)


def check_range(X: Matrix) -> None:
    """ValueError for values whose squares overflow."""
    largest = largest_value(X)
    if LARGEST < largest < np.inf:
        raise ValueError(
            f"The features go up to {largest:.3g} in absolute value, beyond {LARGEST:g}, so "
            "their squares overflow: scale the features."
        )


def check_scale(X: Matrix) -> None:
    """ValueError if squares of the training features overflow, or all of them vanish."""
    check_range(X)
    largest = largest_value(X)
    if is_tiny(largest):
        raise ValueError(
            f"The features go only up to {largest:.3g} in absolute value, below {_SMALLEST:g}, so "
            "their squares vanish: scale the features."
        )


def is_tiny(largest: Any) -> Any:
    """True if squares of values up to ``largest`` vanish, although the values do not."""
    return (largest > 0) & (largest < _SMALLEST)


def largest_value(X: Matrix) -> float:
    """Largest absolute value; zero if empty."""
    values = X.data if sp.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def as_matrix(X: Matrix) -> Matrix:
    """``X`` as a two-dimensional float64 array or CSR matrix, each entry stored once, in order."""
    if hasattr(X, "tocsr"):
        X = X.tocsr().astype(np.float64, copy=False)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"Samples must be rows of a matrix, got an array of {X.ndim} dimensions.")
    return X


def dense(X: Matrix) -> Array:
    """``X`` as an array; not a copy if it is one."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def training_rows(X: Any, rows: AnyArray, pairwise: bool) -> Any:
    """Samples ``rows`` of a training set; for a kernel matrix, these rows and columns.

    Of rows in blocks they are in blocks, too.

    Returns ``X`` itself, not a copy, if these are all of its rows in order.
    """
    if np.array_equal(rows, np.arange(X.shape[0])):
        return X
    return X[rows][:, rows] if pairwise else X[rows]
