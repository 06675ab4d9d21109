"""Least-squares SVM of few features and its exact leave-one-out, for one matrix and many μ.

With the linear kernel the machine is f(x) = w·x + b, and with C = Σ_i ζ_i x_i x_iᵀ = U Λ Uᵀ, around
the weighted mean where there is an intercept, and the scores s_i = Uᵀ x_i

    f_i = Σ_k s_ik (Λ_k + n μ)⁻¹ g_k,   g = Σ_i ζ_i s_i y_i,   B = S (Λ + n μ)⁻¹ Sᵀ + 1 1ᵀ / n,
    P = (ζ − ζ B ζ) / (n μ),            α = ζ (y − f) / (n μ),   e_G = (P_GG)⁻¹ α_G,

so that after one eigendecomposition of n_features numbers every μ takes O(n n_features). Of many
rows held out together, T = [S (Λ + n μ)^-½, 1 / √n],

    e_G = r_G + T_G (1 − T_Gᵀ ζ_G T_G)⁻¹ T_Gᵀ ζ_G r_G,   r = y − f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from looms._typing import AnyArray, Array, Matrix
from looms.kernels import Kernel, Linear
from looms.kernels._samples import dense
from looms.lssvm._folds import Repetition, held_out_outputs, repetitions
from looms.lssvm._system import Fit, LeverageError, RangeError, targets_as_columns

_HUGE = 1e150  # squares of eigenvalues beyond it overflow
# Eigenvalues of a sum of squares have digits down to this share of the largest; below it they are
# those of the features themselves.
_DIGITS = 1e-8


def has_few_features(kernel: Kernel, X: Matrix) -> bool:
    """True for the linear kernel and half as many features as rows, or fewer.

    An eigendecomposition of so many takes no longer than a factorization of the kernel matrix, and
    scores take half of its memory.
    """
    return type(kernel) is Linear and 2 * X.shape[1] <= X.shape[0]


@dataclass(frozen=True, eq=False)
class Solution:
    """Solved system of one μ.

    Attributes
    ----------
    fit : the machine, with a coefficient for each row, and its held-out outputs.
    slope : (n_repetitions, n, t) ∂e/∂μ of the held-out residuals.
    """

    fit: Fit
    slope: Array

    def slope_mu(self, slope: Array) -> float:
        """∂J/∂μ from the slope ∂J/∂f of a criterion, shaped like ``fit.held_out``."""
        return -float(np.vdot(slope, self.slope.reshape(slope.shape)))


@dataclass(frozen=True, eq=False)
class FeatureSpectrum:
    """Eigendecomposition C = U Λ Uᵀ of the weighted sum of squares of the features.

    Attributes
    ----------
    eigenvalues : (p,) Λ.
    vectors : (p, p) U.
    scores : (n, p) S, the features around their mean times U.
    mean : (p,) weighted mean of the features; zero without an intercept.
    sample_weight : (n,) ζ, of mean one.
    fit_intercept : whether the machine has an intercept.
    """

    eigenvalues: Array
    vectors: Array
    scores: Array
    mean: Array
    sample_weight: Array
    fit_intercept: bool

    def solve(self, y: Array, mu: float, parts: Sequence[Repetition] | None = None) -> Solution:
        """Machine at one μ, its held-out outputs and their slopes in μ.

        Parameters
        ----------
        y : (n,) or (n, t) targets.
        mu : regularization, positive.
        parts : rows that are held out in every repetition; each by itself unless given.

        Raises
        ------
        RangeError
            If Λ + n μ is beyond the range in which it can be squared.
        LeverageError
            If the machine without some row or fold is singular in double precision.

        Notes
        -----
        About 4 n p (t + 1) flops; folds add Σ |G| m (|G| + m) with m the smaller of |G| and p.
        """
        S, zeta, Y, n = self.scores, self.sample_weight, targets_as_columns(y), len(y)
        parts = repetitions(None, n) if parts is None else parts
        shrunk = self.eigenvalues + n * mu
        for size in (shrunk.max(initial=n * mu), shrunk.min(initial=n * mu)):
            if not 1 / _HUGE < size < _HUGE:
                raise RangeError(mu, float(size))
        center = zeta @ Y / n if self.fit_intercept else np.zeros(Y.shape[1])
        g = S.T @ (zeta[:, None] * (Y - center))
        coef = g / shrunk[:, None]
        residuals = Y - center - S @ coef
        squares = np.square(S)
        left = 1.0 - zeta * (squares @ (1.0 / shrunk) + self.fit_intercept / n)
        safe = left > n * np.finfo(np.float64).eps
        if not safe.all():
            raise LeverageError(mu, int(np.argmin(safe)))
        folds = _Folds(self, shrunk, left, parts, mu)
        e = folds.solve(residuals)
        # (1 − B ζ)_GG e_G = (y − f)_G, differentiated: ∂B/∂μ = −n S (Λ + n μ)⁻² Sᵀ.
        moved = np.broadcast_to(S @ (coef / shrunk[:, None]), e.shape).copy()
        own = zeta * (squares @ shrunk**-2.0)
        for r, part in enumerate(parts):
            moved[r, part.single] -= own[part.single, None] * e[r, part.single]
            for G in part.sets:
                moved[r, G] -= (S[G] / shrunk**2) @ (S[G].T @ (zeta[G, None] * e[r, G]))
        w = self.vectors @ coef
        b = center - self.mean @ w
        return Solution(
            Fit(
                (zeta[:, None] / (n * mu) * residuals).reshape(y.shape),
                float(b[0]) if y.ndim == 1 else b,
                y,
                (Y - residuals / left[:, None]).reshape(y.shape),
                zeta,
                held_out_outputs(parts, Y, e).reshape(len(parts), *y.shape),
                coef=w.reshape(-1, *y.shape[1:]),
            ),
            folds.solve(n * moved),
        )

    def projection(self, mu: float) -> Array:
        """P, (n, n), of one μ: the inverse that pairs of held-out rows take; 2 n² p flops."""
        weighted = self.sample_weight[:, None] * np.column_stack(
            [
                self.scores / np.sqrt(self.eigenvalues + len(self.scores) * mu),
                np.full(len(self.scores), self.fit_intercept / np.sqrt(len(self.scores))),
            ]
        )
        P = weighted @ weighted.T
        np.negative(P, out=P)
        P[np.diag_indices(len(P))] += self.sample_weight
        P /= len(P) * mu
        return np.asarray(P)


class _Folds:
    """Systems (1 − B ζ)_GG of rows that are held out together, factorized.

    Those of more rows than features by 1 − T_Gᵀ ζ_G T_G, of as many features and an intercept.
    """

    def __init__(
        self,
        spectrum: FeatureSpectrum,
        shrunk: Array,
        left: Array,
        parts: Sequence[Repetition],
        mu: float,
    ) -> None:
        self.left, self.parts = left, parts
        self.root = np.sqrt(spectrum.sample_weight)[:, None]
        if any(part.sets for part in parts):  # √ζ T, so that the systems are symmetric
            self.T = self.root * np.column_stack(
                [
                    spectrum.scores / np.sqrt(shrunk),
                    np.full(len(left), spectrum.fit_intercept / np.sqrt(len(left))),
                ]
            )
        self.factors = []
        for part in parts:
            self.factors.append([self._factor(G, mu) for G in part.sets])

    def _factor(self, G: AnyArray, mu: float) -> Array:
        T = self.T[G]
        inner = T.T @ T if len(G) > T.shape[1] else T @ T.T
        np.negative(inner, out=inner)
        inner[np.diag_indices(len(inner))] += 1.0
        R, failed = lapack.dpotrf(np.asfortranarray(inner), lower=1, overwrite_a=1)
        if failed or not (R.diagonal() ** 2 > len(self.left) * np.finfo(np.float64).eps).all():
            raise LeverageError(mu, int(G[np.argmin(self.left[G])]))
        return np.asarray(R)

    def solve(self, columns: Array) -> Array:
        """Inverses times columns, (n, t) or (n_repetitions, n, t); zero for rows not left out."""
        columns = np.broadcast_to(columns, (len(self.parts), *columns.shape[-2:]))
        solved = np.zeros(columns.shape)
        for r, (part, factors) in enumerate(zip(self.parts, self.factors, strict=True)):
            solved[r, part.single] = columns[r, part.single] / self.left[part.single, None]
            for G, R in zip(part.sets, factors, strict=True):
                T, right = self.T[G], self.root[G] * columns[r, G]
                if len(G) > T.shape[1]:
                    inner, _ = lapack.dpotrs(R, np.asfortranarray(T.T @ right), lower=1)
                    own = right + T @ inner
                else:
                    own, _ = lapack.dpotrs(R, np.asfortranarray(right), lower=1)
                solved[r, G] = own / self.root[G]
        return solved


def decompose_features(X: Matrix, zeta: Array, *, fit_intercept: bool = True) -> FeatureSpectrum:
    """Eigendecomposition of the features, for `FeatureSpectrum.solve` at many μ.

    Parameters
    ----------
    X : (n, p) float64 array or CSR matrix.
    zeta : (n,) positive weights, of mean one.
    fit_intercept : whether the machine has an intercept.

    Notes
    -----
    4 n p² + 9 p³ flops, three times as many where eigenvalues differ by 1e8 or more; n p numbers
    beside ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.lssvm import solve
    >>> from looms.lssvm.features import decompose_features
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, -1.0, 1.0])
    >>> spectrum = decompose_features(X, np.ones(3))
    >>> np.allclose(spectrum.solve(y, 0.1).fit.outputs, solve(X @ X.T, y, 0.1).loo.outputs)
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
