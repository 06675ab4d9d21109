"""Gram matrix of one set of samples, block by block.

Only the lower triangle is computed, since LAPACK reads no more. Blocks are small, so
temporaries stay in cache. Inner products and distances that do not depend on the
hyper-parameters are kept between evaluations, unless there are only a few evaluations.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from looms._typing import Array, Matrix
from looms.kernels._base import Kernel
from looms.kernels._samples import Pairs, Samples, center_of, check_range

_BLOCK = 256
_CHECKED = 16  # columns at a time
#: Passes over the pairs that keep nothing: the start of a search and one evaluation, which
#: together need the memory of one matrix. If the rows have as many numbers as there are pairs,
#: quantities are kept from the first pass.
_PASSING = 2


class GramBlocks:
    """Blocks (R, C) of rows and columns, R ≥ C, which cover all pairs of rows of ``X``.

    Parameters
    ----------
    X : (n, n_features) float64 array or CSR matrix; neither copied nor changed.
    uses : quantities of `Pairs` to keep, such as ``kernel.uses``; each takes n² numbers. They are
        kept from the third pass on, or from the first if ``X`` itself has n² numbers.
    weight : (n,) how often each sample counts when a kernel takes a value from the data.
    """

    def __init__(self, X: Matrix, uses: frozenset[str], weight: Array | None = None) -> None:
        check_range(X)
        self.samples = Samples(X, center=center_of(X), weight=weight)
        n = self.samples.n_samples
        self._parts = [self.samples.rows(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)]
        self._uses, self._n_passes = uses, 0
        self._passing = _PASSING if (X.size if isinstance(X, np.ndarray) else X.nnz) < n**2 else 0
        self._kept: dict[str, Array] = {}

    def __iter__(self) -> Iterator[tuple[slice, slice, Pairs]]:
        self._n_passes += 1
        if self._n_passes > self._passing and not self._kept:
            self._kept = {name: self._computed(name) for name in sorted(self._uses)}
        for b, cols in enumerate(self._parts):
            for rows in self._parts[b:]:
                R, C = slice(rows.start, rows.stop), slice(cols.start, cols.stop)
                kept = {name: values[R, C] for name, values in self._kept.items()}
                yield R, C, Pairs(rows, cols, **kept)

    def _computed(self, name: str) -> Array:
        n = self.samples.n_samples
        values = np.empty((n, n), order="F")
        for b, cols in enumerate(self._parts):
            for rows in self._parts[b:]:
                block = getattr(Pairs(rows, cols), name)
                values[rows.start : rows.stop, cols.start : cols.stop] = block
        return values


def gram_into(K: Array, kernel: Kernel, blocks: GramBlocks) -> None:
    """Write the lower triangle of the Gram matrix to ``K``; the upper triangle is undefined.

    Values that overflow become infinity or NaN without a warning; the factorization that
    follows reports them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for R, C, pairs in blocks:
            K[R, C] = kernel.values(pairs)


def is_finite_lower(K: Array) -> bool:
    """True if the lower triangle of a kernel matrix is free of NaN and infinity."""
    starts = range(0, len(K), _CHECKED)
    return all(np.isfinite(np.tril(K[j:, j : j + _CHECKED])).all() for j in starts)


def check_finite_lower(K: Array, kernel: Kernel) -> None:
    """ValueError unless the lower triangle of a kernel matrix is finite."""
    if not is_finite_lower(K):
        raise ValueError(
            f"The kernel matrix of {kernel!r} contains NaN or infinity: scale the features, or "
            "use smaller values of its parameters."
        )


def contract_lower(G: Array, kernel: Kernel, blocks: GramBlocks) -> Array:
    """Σ_ij G_ij ∂K_ij/∂θ for symmetric ``G`` given by its lower triangle, (p,), natural units.

    It sums ``kernel.values_gradient`` over the blocks.
    """
    gradient = np.zeros(len(kernel.hyperparameters))
    if gradient.size == 0:
        return gradient
    with np.errstate(over="ignore", invalid="ignore"):  # a point that cannot be evaluated
        for R, C, pairs in blocks:
            if pairs.diagonal:
                lower = np.tril(G[R, C])
                gradient += kernel.values_gradient(pairs, lower + np.tril(lower, -1).T)
            else:
                gradient += 2.0 * kernel.values_gradient(pairs, G[R, C])
    return gradient


def finite_values(kernel: Kernel, pairs: Pairs) -> Array:
    """Kernel values of rows that the model may not have seen; ValueError if some overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.values(pairs)
    _check_in_range(K, kernel)
    return K


def _check_in_range(values: Array, kernel: Kernel) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"Some samples are so far from the others that {kernel!r} overflows there: scale the "
            "features, or leave out such samples."
        )


def expansion(kernel: Kernel, X: Matrix, basis: Samples, alpha: Array) -> Array:
    """Σ_j k(x_i, x_j) α_j over the samples of ``basis``, (n,) or (n, t), in blocks of rows.

    The size of a block is limited, so memory beside the result does not grow with the number
    of rows. ValueError if values overflow at some row.
    """
    weights = kernel.feature_weights(basis, alpha)
    if weights is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(X @ weights)
        _check_in_range(values, kernel)
        return values
    n = X.shape[0]
    step = max(1, _BLOCK * _BLOCK * 16 // max(basis.n_samples, 1))
    values = np.empty((n, *alpha.shape[1:]))
    for start in range(0, n, step):
        rows = Samples(X[start : start + step], start=start, center=basis.center)
        values[start : start + step] = finite_values(kernel, Pairs(rows, basis)) @ alpha
    return values
