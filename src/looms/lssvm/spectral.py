"""Least-squares SVM for one kernel matrix and many μ, by one eigendecomposition.

An eigendecomposition costs as much as five to six factorizations. After it, every μ
takes O(n²), so it pays off from about six values of μ on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from looms._typing import AnyArray, Array
from looms.lssvm._system import (
    LeverageError,
    NotPositiveDefiniteError,
    check_finite,
    check_mu,
    checked_square,
    checked_targets,
    checked_weights,
    targets_as_columns,
)
from looms.lssvm.projection import Expansion, Inverse, Projection, inverses
from looms.units import Batch


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigendecomposition Z^½ K Z^½ = Q Λ Qᵀ of a weighted kernel matrix, Z = diag(ζ).

    It gives M⁻¹ = Z^½ Q (Λ + n μ)⁻¹ Qᵀ Z^½ for every μ.

    Attributes
    ----------
    eigenvalues : (n,) Λ; zero if negative by rounding.
    vectors : (n, n) Z^½ Q.
    sample_weight : (n,) ζ.
    """

    eigenvalues: Array
    vectors: Array
    sample_weight: Array

    def solve(self, y: npt.ArrayLike, mu: float, *, fit_intercept: bool = True) -> Spectral:
        """Model at one μ.

        Parameters
        ----------
        y : (n,) or (n, t) targets.
        mu : regularization, positive.
        fit_intercept : False for kernel ridge regression.

        Raises
        ------
        ValueError
            If the shape is wrong, μ is not positive, or values are not finite.
        NotPositiveDefiniteError
            If the smallest eigenvalue plus n μ is zero up to rounding, or the model without
            some row is singular.

        Notes
        -----
        2n² (t + 1) flops.
        """
        return self.solver(y, fit_intercept=fit_intercept)(mu)

    def solver(
        self, y: npt.ArrayLike, *, fit_intercept: bool = True
    ) -> Callable[[float], Spectral]:
        """`solve` for these targets, a function of μ: 2n² t flops now, and as many for each μ."""
        y = targets_as_columns(checked_targets(y, len(self.vectors)))
        rotated = self.vectors.T @ y
        return lambda mu: Spectral(self, y, mu, rotated, fit_intercept=fit_intercept)


class Spectral(Projection):
    """P from the eigendecomposition of a kernel matrix.

    Parameters
    ----------
    spectrum : eigendecomposition.
    y, mu, fit_intercept : as for `Spectrum.solve`; y is (n, t).
    rotated : (n, t) targets in the basis of the vectors.
    """

    def __init__(
        self,
        spectrum: Spectrum,
        y: Array,
        mu: float,
        rotated: Array,
        *,
        fit_intercept: bool = True,
    ) -> None:
        check_mu(mu)
        self.y, self.mu, self.weight = y, mu, spectrum.sample_weight
        self._vectors = V = spectrum.vectors
        self._shrunk = shrunk = spectrum.eigenvalues + len(y) * mu
        if not shrunk.min() > np.finfo(np.float64).eps * shrunk.max():
            raise NotPositiveDefiniteError(mu)
        nu = V @ (rotated / shrunk[:, None])
        eta = V @ (V.sum(axis=0) / shrunk) if fit_intercept else np.zeros(len(y))
        self._eta, self.share = eta, eta / (float(eta.sum()) or 1.0)
        self.corner = fit_intercept / (float(eta.sum()) or 1.0)
        self._intercept = nu.sum(axis=0) / (float(eta.sum()) or 1.0) * fit_intercept
        self.alpha = nu - np.outer(eta, self._intercept)
        diagonal = np.square(V) @ (1.0 / shrunk)
        self._p: Array = diagonal - eta * self.share
        safe = self._p > len(y) * np.finfo(np.float64).eps * diagonal
        if not safe.all():
            raise LeverageError(mu, int(np.argmin(safe)))
        self._matrix: Array | None = None
        self._eigenvalues = spectrum.eigenvalues

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.alpha, self._intercept)

    @property
    def size(self) -> Array:  # type: ignore[override]
        weights = self._vectors / self.zeta[:, None]
        return np.asarray(np.square(weights) @ self._eigenvalues + self.ridge)

    def diagonal(self) -> Array:
        return self._p

    def inverse(self, batch: Batch) -> Inverse:
        if batch.rows.size * batch.rows.shape[1] > len(self.y) ** 2:
            self.matrix()  # for 2n³ flops; the blocks would take 2 n Σ|G|²
        least = len(self.y) * np.finfo(np.float64).eps * self._p[batch.rows]
        return inverses(map(self._block, batch.rows), least, batch.rows, self.mu)

    def matrix(self) -> Array:
        if self._matrix is None:
            P = (self._vectors / self._shrunk) @ self._vectors.T
            self._matrix = np.asarray(P - np.outer(self._eta, self.share))
        return np.asarray(self._matrix)

    def _block(self, G: AnyArray) -> Array:
        if self._matrix is not None:
            return np.asarray(self._matrix[np.ix_(G, G)])
        own = self._vectors[G]
        return np.asarray((own / self._shrunk) @ own.T - np.outer(self._eta[G], self.share[G]))


def decompose(K: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None) -> Spectrum:
    """Eigendecomposition of a weighted kernel matrix, for `Spectrum.solve` at many μ.

    Parameters
    ----------
    K : (n, n) symmetric kernel matrix; only its lower triangle is read. It may
        be indefinite: a large μ makes the system definite.
    sample_weight : (n,) ζ, positive; ones by default.

    Raises
    ------
    ValueError
        If shapes do not agree, there is only one sample, weights are not positive, or values
        are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.lssvm import solve
    >>> from looms.lssvm.spectral import decompose
    >>> K, y = np.diag([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 1.0])
    >>> spectrum = decompose(K)
    >>> np.allclose(spectrum.solve(y, 0.1).alpha, solve(K, y, 0.1).alpha)
    True
    """
    weighted = np.asfortranarray(np.tril(checked_square(K)))
    check_finite("K", weighted)
    zeta = checked_weights(sample_weight, len(weighted))
    root = np.sqrt(zeta)
    weighted *= root[:, None]
    weighted *= root
    eigenvalues, Q = scipy.linalg.eigh(
        weighted, lower=True, overwrite_a=True, check_finite=False, driver="evd"
    )
    rounding = len(Q) * np.finfo(np.float64).eps * np.abs(eigenvalues).max(initial=0.0)
    eigenvalues[np.abs(eigenvalues) <= rounding] = 0.0
    return Spectrum(eigenvalues, root[:, None] * Q, zeta)
