"""Least-squares SVM for one kernel matrix and many μ, by one eigendecomposition.

An eigendecomposition costs as much as five to six factorizations. After it, every μ
takes O(n²), so it pays off from about six values of μ on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from looms._typing import AnyArray, Array
from looms.lssvm._folds import HeldOutBlocks, repetitions
from looms.lssvm._system import (
    NotPositiveDefiniteError,
    check_finite,
    check_mu,
    checked_square,
    checked_targets,
    checked_weights,
    targets_as_columns,
)


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

    def outputs(
        self,
        y: npt.ArrayLike,
        mu: float,
        *,
        fit_intercept: bool = True,
        folds: npt.ArrayLike | None = None,
    ) -> Array:
        """Exact held-out outputs at one μ, as from `looms.lssvm.solve`.

        Parameters
        ----------
        y : (n,) or (n, t) targets.
        mu : regularization, positive.
        fit_intercept : False for kernel ridge regression.
        folds : (n,) or (n_repetitions, n) integers, as for `looms.lssvm.solve`.

        Returns
        -------
        outputs : shaped like the targets, or (n_repetitions, ...) for several partitions.

        Raises
        ------
        ValueError
            If targets do not match the kernel matrix, values are not finite, or μ is not
            positive.
        NotPositiveDefiniteError
            If the smallest eigenvalue plus n μ is zero up to rounding, or the machine without
            some fold is singular.

        Notes
        -----
        2n² (t + 1) flops; folds add Σ |G|³ / 3 and the smaller of 2n³ and 2n Σ |G|².
        """
        y = checked_targets(y, len(self.eigenvalues))
        check_mu(mu)
        shrunk = self.eigenvalues + len(y) * mu
        if not shrunk.min() > np.finfo(np.float64).eps * shrunk.max():
            raise NotPositiveDefiniteError(mu)
        Y = targets_as_columns(y)
        V = self.vectors
        nu = V @ ((V.T @ Y) / shrunk[:, None])
        p = np.square(V) @ (1.0 / shrunk)
        alpha = nu
        eta, eta_sum = np.zeros(len(Y)), 1.0
        if fit_intercept:
            eta = V @ (V.sum(axis=0) / shrunk)
            eta_sum = float(eta.sum())
            alpha = nu - np.outer(eta, nu.sum(axis=0) / eta_sum)
            p -= eta * (eta / eta_sum)

        parts = repetitions(folds, len(Y))
        inverse: Array | None = None
        if sum(len(G) ** 2 for part in parts for G in part.sets) > len(Y) ** 2:
            inverse = (V / shrunk) @ V.T

        def block(G: AnyArray) -> Array:
            within = (V[G] / shrunk) @ V[G].T if inverse is None else inverse[np.ix_(G, G)]
            return within - np.outer(eta[G], eta[G]) / eta_sum

        blocks = HeldOutBlocks(p, parts, block, mu)
        outputs = blocks.outputs(Y, blocks.solve(alpha))
        return np.asarray(
            outputs.reshape(y.shape if folds is None or np.ndim(folds) < 2 else (-1, *y.shape))
        )


def decompose(K: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None) -> Spectrum:
    """Eigendecomposition of a weighted kernel matrix, for `Spectrum.outputs` at many μ.

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
    >>> from looms.lssvm import decompose, solve
    >>> K, y = np.diag([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 1.0])
    >>> spectrum = decompose(K)
    >>> np.allclose(spectrum.outputs(y, 0.1), solve(K, y, 0.1).loo.outputs)
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
