"""Kernels that are functions of a squared distance: RBF and ARD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from looms._typing import Array, Matrix
from looms.kernels._base import Kernel, ScalarKernel
from looms.kernels._hyperparameters import Bounds, Hyperparameter, checked_bounds, is_fixed
from looms.kernels._samples import (
    Pairs,
    Samples,
    is_tiny,
    square_norms,
    square_sums,
    squared_distances,
    variances,
)


class RBF(ScalarKernel):
    """Isotropic Gaussian kernel, k(x, x') = exp(−gamma ‖x − x'‖²).

    Parameters
    ----------
    gamma : positive, scikit-learn's ``gamma``. None takes one over the mean squared
        distance between training samples.
    gamma_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF
    >>> RBF(gamma=0.5)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    uses = frozenset({"squared_distances"})
    _parameter = "gamma"
    _at_lower = "the kernel is close to linear: add 'linear' to the candidate kernels"
    _at_upper = "every sample resembles only itself: scale the features, or try another kernel"

    def __init__(self, gamma: float | None = None, gamma_bounds: Bounds = None) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    def start(self, samples: Samples) -> float:
        mean_squared_distance = 2.0 * float(variances(samples.X, samples.weight).sum())
        return 1.0 / mean_squared_distance if mean_squared_distance > 0 else 1.0

    def values(self, pairs: Pairs) -> Array:
        K: Array = pairs.squared_distances * -self.number
        return np.exp(K, out=K)

    def self_values(self, samples: Samples) -> Array:
        return np.ones(samples.n_samples)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        if self.fixed:
            return np.zeros(0)
        W = self.values(pairs)
        W *= G
        W *= pairs.squared_distances
        return np.array([-W.sum()])

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.zeros(0 if self.fixed else 1)


class ARD(Kernel):
    """Anisotropic Gaussian kernel, k(x, x') = exp(−Σ_k gammas_k (x_k − x'_k)²).

    Automatic relevance determination: a feature whose gamma tends to zero no longer
    matters.

    Parameters
    ----------
    gammas : (n_features,) positive, a number for all features alike, or None for
        1 / (2 n_features variance_k), which makes the start independent of the
        units of the features.
    gammas_bounds : (low, high) for every feature, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import ARD, RBF
    >>> X = np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 4.0]])
    >>> bool(np.allclose(ARD(gammas=[0.5, 0.5])(X), RBF(gamma=0.5)(X)))
    True
    """

    def __init__(
        self, gammas: Sequence[float] | Array | float | None = None, gammas_bounds: Bounds = None
    ) -> None:
        self.gammas = gammas
        self.gammas_bounds = gammas_bounds

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        if is_fixed(self.gammas_bounds):
            return []
        if self.gammas is None:
            raise ValueError(
                "ARD: gammas are None: they are set from the training samples in fit. Pass numbers."
            )
        bounds = checked_bounds(self, "gammas_bounds")
        # At the lower bound a feature is switched off: that is what ARD is for.
        return [
            Hyperparameter(
                f"gammas[{k}]",
                float(gamma),
                bounds,
                at_upper="only exact matches of this feature count: look at its scale",
            )
            for k, gamma in enumerate(np.atleast_1d(self.gammas))
        ]

    def started(self, samples: Samples) -> ARD:
        n_features = samples.X.shape[1]
        if self.gammas is None:
            largest = abs(samples.X).max(axis=0)
            largest = largest.toarray().ravel() if sp.issparse(largest) else largest
            tiny = np.flatnonzero(is_tiny(largest))
            if tiny.size:
                raise ValueError(
                    f"ARD: feature {tiny[0]} goes only up to {largest[tiny[0]]:.3g} in absolute "
                    "value, and its squares vanish: scale it, or leave it out."
                )
            variance = variances(samples.X, samples.weight)
            variance[variance == 0] = 1.0  # of a constant feature any gamma changes nothing
            return self._replaced(1.0 / (2.0 * n_features * variance))
        try:
            gammas = np.array(self.gammas, dtype=np.float64, ndmin=1)
        except (TypeError, ValueError):
            raise ValueError(
                f"ARD: gammas must be positive numbers, got {self.gammas!r}."
            ) from None
        if gammas.shape == (1,):
            gammas = np.full(n_features, gammas[0])
        if gammas.shape != (n_features,):
            raise ValueError(
                f"ARD: gammas must hold one number for each of the {n_features} features, "
                f"got shape {gammas.shape}."
            )
        if not (np.isfinite(gammas).all() and (gammas > 0).all()):
            raise ValueError("ARD: gammas must be positive numbers.")
        return self._replaced(gammas)

    def with_values(self, values: Sequence[float] | Array) -> ARD:
        return self if is_fixed(self.gammas_bounds) else self._replaced(np.array(values))

    def values(self, pairs: Pairs) -> Array:
        scale = np.sqrt(np.asarray(self.gammas))
        rows = _scaled(pairs.rows.centered, scale)
        cols = rows if pairs.diagonal else _scaled(pairs.cols.centered, scale)
        norms = square_norms(rows), square_norms(cols)
        K = squared_distances(rows, cols, *norms, diagonal=pairs.diagonal)
        np.negative(K, out=K)
        return np.exp(K, out=K)

    def self_values(self, samples: Samples) -> Array:
        return np.ones(samples.n_samples)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        """−Σ_ij W_ij (x_ik − x_jk)² with W = G∘K, for all features k by one product of matrices."""
        if is_fixed(self.gammas_bounds):
            return np.zeros(0)
        rows, cols = pairs.rows.centered, pairs.cols.centered
        W = self.values(pairs)
        W *= G
        squares = square_sums(rows, W.sum(axis=1)) + square_sums(cols, W.sum(axis=0))
        return 2.0 * _column_dots(rows, W @ cols) - squares

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.zeros(0 if is_fixed(self.gammas_bounds) else samples.X.shape[1])

    def _replaced(self, gammas: Array) -> ARD:
        return self._with_arguments(gammas=gammas)


def _column_dots(A: Matrix, B: Array) -> Array:
    """Σ_i A_ik B_ik for every column k."""
    if sp.issparse(A):
        return np.asarray(A.multiply(B).sum(axis=0)).ravel()
    return np.asarray(np.einsum("ik,ik->k", A, B))


def _scaled(X: Matrix, scale: Array) -> Matrix:
    return X @ sp.diags_array(scale).tocsr() if sp.issparse(X) else X * scale
