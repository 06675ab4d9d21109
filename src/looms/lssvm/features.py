"""Least-squares SVM with few features and its exact leave-one-out, for one matrix and many μ.

With the linear kernel the model is f(x) = w·x + b. With C = Σ_i ζ_i x_i x_iᵀ = U Λ Uᵀ, centered
at the weighted mean if there is an intercept, and the scores s_i = Uᵀ x_i,

    f_i = Σ_k s_ik (Λ_k + n μ)⁻¹ g_k,   g = Σ_i ζ_i s_i y_i,   B = S (Λ + n μ)⁻¹ Sᵀ + 1 1ᵀ / n,
    P = (ζ − ζ B ζ) / (n μ),            α = ζ (y − f) / (n μ),

so after one eigendecomposition of order n_features, every μ takes O(n n_features), by
T = [S (Λ + n μ)^-½, 1 / √n].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from looms._typing import Array, Matrix
from looms.kernels import Kernel, Linear
from looms.kernels._samples import dense
from looms.lssvm._system import RangeError
from looms.lssvm.projection import Expansion
from looms.lssvm.thin import Thin

_HUGE = 1e150  # squares of eigenvalues beyond it overflow
# Eigenvalues of a sum of squares have digits down to this share of the largest; below it they are
# those of the features themselves.
_DIGITS = 1e-8


def has_few_features(kernel: Kernel, shape: tuple[int, int]) -> bool:
    """True for the linear kernel, of rows with at most half as many features.

    Then the eigendecomposition takes no longer than a factorization of the kernel matrix, and the
    scores take half of its memory.
    """
    n_rows, n_features = shape
    return type(kernel) is Linear and 2 * n_features <= n_rows


@dataclass(frozen=True, eq=False)
class FeatureSpectrum:
    """Eigendecomposition C = U Λ Uᵀ of the weighted sum of squares of the features.

    Attributes
    ----------
    eigenvalues : (p,) Λ.
    vectors : (p, p) U.
    scores : (n, p) S, the features minus their mean, times U.
    mean : (p,) weighted mean of the features; zero without an intercept.
    sample_weight : (n,) ζ, with mean one.
    fit_intercept : whether the model has an intercept.
    """

    eigenvalues: Array
    vectors: Array
    scores: Array
    mean: Array
    sample_weight: Array
    fit_intercept: bool

    def solve(self, y: Array, mu: float) -> Features:
        """Model at one μ; arguments as for `Thin`.

        Raises
        ------
        RangeError
            If Λ + n μ is out of the range in which it can be squared.
        LeverageError
            If the model without some row is singular in double precision.

        Notes
        -----
        About 4 n p (t + 1) flops.
        """
        return Features(self, y, mu)


class Features(Thin):
    """P of a linear model of few features.

    Parameters
    ----------
    spectrum : spectrum of the features.
    y : (n, t) targets.
    mu : regularization.
    """

    def __init__(self, spectrum: FeatureSpectrum, y: Array, mu: float) -> None:
        n = len(y)
        shrunk = spectrum.eigenvalues + n * mu
        for size in (shrunk.max(initial=n * mu), shrunk.min(initial=n * mu)):
            if not 1 / _HUGE < size < _HUGE:
                raise RangeError(mu, float(size))
        root, constant = np.sqrt(shrunk), spectrum.fit_intercept / np.sqrt(n)

        def of_scores(S: Array) -> Array:
            return np.hstack([S / root, np.full((len(S), 1), constant)])

        def of_new(X: Matrix) -> Array:
            return of_scores((dense(X) - spectrum.mean) @ spectrum.vectors)

        scale = np.append(1.0 / root, 0.0)
        super().__init__(
            of_scores(spectrum.scores), y, mu, spectrum.sample_weight, scale, of_new=of_new
        )
        self.weights = spectrum.vectors @ (self.coef[:-1] / root[:, None])
        self._intercept = constant * self.coef[-1] - spectrum.mean @ self.weights
        self._spectrum, self._root, self._constant = spectrum, root, constant
        self.size = np.square(spectrum.scores).sum(axis=1) + self.ridge

    @property
    def share(self) -> Array:  # type: ignore[override]
        mean = self._spectrum.vectors.T @ self._spectrum.mean / self._root
        return np.asarray(self.zeta * (self._constant**2 - self.T[:, :-1] @ mean))

    @property
    def corner(self) -> float:  # type: ignore[override]
        mean = self._spectrum.vectors.T @ self._spectrum.mean / self._root
        own = len(self.y) * self.mu * (self._constant**2 + mean @ mean)
        return float(own) if self._constant else 0.0

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.alpha, self._intercept, weights=self.weights)


def decompose_features(X: Matrix, zeta: Array, *, fit_intercept: bool = True) -> FeatureSpectrum:
    """Eigendecomposition of the features, for `FeatureSpectrum.solve` at many μ.

    Parameters
    ----------
    X : (n, p) float64 array or CSR matrix.
    zeta : (n,) positive weights, with mean one.
    fit_intercept : whether the model has an intercept.

    Notes
    -----
    4 n p² + 9 p³ flops, or three times as many if eigenvalues differ by a factor of 1e8 or more;
    n p numbers in addition to ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.lssvm import solve
    >>> from looms.lssvm.features import decompose_features
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, -1.0, 1.0])
    >>> spectrum = decompose_features(X, np.ones(3))
    >>> np.allclose(spectrum.solve(y[:, None], 0.1).alpha, solve(X @ X.T, y, 0.1).alpha)
    True
    """
    rows = dense(X)
    mean = zeta @ rows / len(zeta) if fit_intercept else np.zeros(rows.shape[1])
    around = rows - mean
    if fit_intercept:  # the rounding of a large mean
        around -= zeta @ around / len(zeta)
    root = np.sqrt(zeta)[:, None] * around
    eigenvalues, U = np.linalg.eigh(root.T @ root)
    if eigenvalues[0] < _DIGITS * eigenvalues[-1] and len(root) >= root.shape[1]:
        _, singular, Vt = np.linalg.svd(root, full_matrices=False)
        eigenvalues, U = singular**2, Vt.T
    return FeatureSpectrum(np.maximum(eigenvalues, 0.0), U, around @ U, mean, zeta, fit_intercept)
