"""Least-squares SVM with few features and its exact leave-one-out, for one matrix and many μ.

With the linear kernel the machine is f(x) = w·x + b. With C = Σ_i ζ_i x_i x_iᵀ = U Λ Uᵀ, centered
at the weighted mean if there is an intercept, and the scores s_i = Uᵀ x_i,

    f_i = Σ_k s_ik (Λ_k + n μ)⁻¹ g_k,   g = Σ_i ζ_i s_i y_i,   B = S (Λ + n μ)⁻¹ Sᵀ + 1 1ᵀ / n,
    P = (ζ − ζ B ζ) / (n μ),            α = ζ (y − f) / (n μ),   e_G = (P_GG)⁻¹ α_G,

so after one eigendecomposition of order n_features, every μ takes O(n n_features). For many rows
held out together, with T = [S (Λ + n μ)^-½, 1 / √n],

    e_G = r_G + T_G (1 − T_Gᵀ ζ_G T_G)⁻¹ T_Gᵀ ζ_G r_G,   r = y − f.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from looms._typing import AnyArray, Array, Matrix
from looms.kernels import Kernel, Linear
from looms.kernels._samples import dense
from looms.lssvm._folds import (
    HeldOutBlocks,
    Inverse,
    Repetition,
    factorized,
    held_out_outputs,
    repetitions,
)
from looms.lssvm._system import Fit, LeverageError, RangeError, ridge, targets_as_columns
from looms.lssvm.conditioning import tie_of
from looms.lssvm.leave_one_out_models import LeaveOneOutModels, outputs_without

_HUGE = 1e150  # squares of eigenvalues beyond it overflow
_NUMBERS = 1 << 20  # in an array of new points and rows of the fit
# Eigenvalues of a sum of squares have digits down to this share of the largest; below it they are
# those of the features themselves.
_DIGITS = 1e-8


def has_few_features(kernel: Kernel, X: Matrix) -> bool:
    """True for the linear kernel with at most half as many features as rows.

    Then the eigendecomposition takes no longer than a factorization of the kernel matrix, and the
    scores take half of its memory.
    """
    return type(kernel) is Linear and 2 * X.shape[1] <= X.shape[0]


@dataclass(frozen=True, eq=False)
class Solution:
    """Solved system for one μ.

    Attributes
    ----------
    fit : the machine, with a coefficient for each row, and its held-out outputs.
    mu : regularization.
    coef : (p, t) weights of the scores.
    spectrum : spectrum of the features.
    folds : systems (1 − B ζ)_GG of rows held out together.
    residuals : (n_repetitions, n, t) e; zero for rows that are not left out.
    """

    fit: Fit
    mu: float
    coef: Array
    spectrum: FeatureSpectrum
    folds: HeldOutBlocks
    residuals: Array

    def slope_mu(self, slope: Array) -> float:
        """∂J/∂μ from the slope ∂J/∂f of a criterion, shaped like ``fit.held_out``.

        Differentiating (1 − B ζ)_GG e_G = (y − f)_G with ∂B/∂μ = −n S (Λ + n μ)⁻² Sᵀ gives

            (1 − B ζ)_GG ∂e_G/∂μ = n S_G (Λ + n μ)⁻² (g − S_Gᵀ ζ_G e_G).
        """
        D, zeta, e = self.spectrum.scores / self._shrunk, self.fit.sample_weight, self.residuals
        moved = np.broadcast_to(D @ self.coef, e.shape).copy()
        own = zeta * np.square(D).sum(axis=1)
        for r, part in enumerate(self.folds.parts):
            moved[r, part.single] -= own[part.single, None] * e[r, part.single]
            for G in part.sets:
                moved[r, G] -= D[G] @ (D[G].T @ (zeta[G, None] * e[r, G]))
        slopes = self.folds.solve(len(zeta) * moved)
        return -float(np.vdot(slope, slopes.reshape(slope.shape)))

    def models(self) -> LeaveOneOutModels:
        """Models without each row, or without the fold of each row; n² p flops, n² numbers.

        They use the kernel matrix of the features without centering; the mean enters through the
        share of each row and the corner.
        """
        (part,) = self.folds.parts
        zeta, n, spectrum = self.fit.sample_weight, len(self.fit.y), self.spectrum
        T = zeta[:, None] * spectrum.whitened(np.arange(n), self.mu)
        P = T @ T.T
        np.negative(P, out=P)
        P[np.diag_indices(n)] += zeta
        P /= n * self.mu
        mean = spectrum.vectors.T @ spectrum.mean
        share, corner = np.zeros(n), 0.0
        if spectrum.fit_intercept:
            share = zeta * (1.0 / n - spectrum.scores @ (mean / self._shrunk))
            corner = self.mu * (1.0 + n * float(mean**2 @ (1.0 / self._shrunk)))
        return LeaveOneOutModels(
            self.fit,
            P,
            share,
            ridge(self.mu, zeta),
            self.residuals[0].reshape(self.fit.y.shape),
            corner,
            part.sets,
        )

    def without(self, G: AnyArray) -> tuple[Array, Array]:
        """Weights, (p, t), and intercept, (t,), without rows that are held out together."""
        spectrum = self.spectrum
        change = self.fit.sample_weight[G, None] * self.residuals[0][G]
        moved = spectrum.vectors @ ((spectrum.scores[G] / self._shrunk).T @ change)
        own = spectrum.fit_intercept / len(self.fit.y) * change.sum(axis=0)
        w = spectrum.vectors @ self.coef - moved
        return w, self.fit.intercept + spectrum.mean @ moved - own

    def outputs_without_rows(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        """Outputs of the models without each row, or its set, for blocks of new points.

        F_ji = f⁽⁻ⁱ⁾(x_j) = f(x_j) − ζ_i e_i (s_j (Λ + n μ)⁻¹ s_iᵀ + 1 / n), or with the sum of
        these products over the set of i.

        Parameters
        ----------
        X : (n_new, p) new points.

        Yields
        ------
        rows : positions of some of the new points, so many that outputs have 2²⁰ numbers.
        outputs : (n_rows, n) or (n_rows, n, t).

        Notes
        -----
        2 n p flops per new point.
        """
        spectrum, n = self.spectrum, len(self.fit.y)
        change = -self.fit.sample_weight[:, None] * self.residuals[0]
        T = spectrum.scores / self._shrunk
        step = max(1, _NUMBERS // change.size)
        for start in range(0, X.shape[0], step):
            new = dense(X[start : start + step])
            products = ((new - spectrum.mean) @ spectrum.vectors) @ T.T + spectrum.fit_intercept / n
            whole = new @ (spectrum.vectors @ self.coef) + self.fit.intercept
            outputs = outputs_without(whole, products, change, self.folds.parts[0].sets)
            yield slice(start, start + len(new)), outputs.reshape(len(new), *self.fit.y.shape)

    @property
    def _shrunk(self) -> Array:
        """Λ + n μ."""
        return self.spectrum.eigenvalues + len(self.fit.y) * self.mu


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
    fit_intercept : whether the machine has an intercept.
    """

    eigenvalues: Array
    vectors: Array
    scores: Array
    mean: Array
    sample_weight: Array
    fit_intercept: bool

    def solve(self, y: Array, mu: float, parts: Sequence[Repetition] | None = None) -> Solution:
        """Machine at one μ, with its held-out outputs.

        Parameters
        ----------
        y : (n,) or (n, t) targets.
        mu : regularization, positive.
        parts : rows that are held out in every repetition; by default each by itself.

        Raises
        ------
        RangeError
            If Λ + n μ is out of the range in which it can be squared.
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
        coef = (S.T @ (zeta[:, None] * (Y - center))) / shrunk[:, None]
        residuals = Y - center - S @ coef
        left = 1.0 - zeta * (np.square(S) @ (1.0 / shrunk) + self.fit_intercept / n)
        safe = left > n * np.finfo(np.float64).eps
        if not safe.all():
            raise LeverageError(mu, int(np.argmin(safe)))
        folds = HeldOutBlocks(left, parts, lambda G: self._inverse(G, mu), mu)
        e = folds.solve(residuals)
        w = self.vectors @ coef
        b = center - self.mean @ w
        alpha = zeta[:, None] / (n * mu) * residuals
        fit = Fit(
            alpha.reshape(y.shape),
            float(b[0]) if y.ndim == 1 else b,
            y,
            (Y - residuals / left[:, None]).reshape(y.shape),
            zeta,
            held_out_outputs(parts, Y, e).reshape(len(parts), *y.shape),
            coef=w.reshape(-1, *y.shape[1:]),
            tie=tie_of(y, np.square(S).sum(axis=1) + ridge(mu, zeta), alpha),
        )
        return Solution(fit, mu, coef, self, folds, e)

    def whitened(self, rows: AnyArray, mu: float) -> Array:
        """T = [S (Λ + n μ)^-½, 1 / √n] for some rows, with B = T Tᵀ; 0 without an intercept."""
        n = len(self.scores)
        constant = np.full((len(rows), 1), self.fit_intercept / np.sqrt(n))
        return np.hstack([self.scores[rows] / np.sqrt(self.eigenvalues + n * mu), constant])

    def _inverse(self, G: AnyArray, mu: float) -> Inverse:
        """Inverse of (1 − B ζ)_GG; for more rows than features, by a system in the features."""
        root = np.sqrt(self.sample_weight[G])[:, None]
        T = root * self.whitened(G, mu)
        few = len(G) <= T.shape[1]
        inner = np.eye(min(T.shape)) - (T @ T.T if few else T.T @ T)
        worst = np.full(len(inner), G[np.argmax(np.square(T).sum(axis=1))])
        inverse = factorized(inner, len(self.scores) * np.finfo(np.float64).eps, worst, mu)

        def solved(columns: Array) -> Array:
            right = root * columns
            return (inverse(right) if few else right + T @ inverse(T.T @ right)) / root

        return solved


def decompose_features(X: Matrix, zeta: Array, *, fit_intercept: bool = True) -> FeatureSpectrum:
    """Eigendecomposition of the features, for `FeatureSpectrum.solve` at many μ.

    Parameters
    ----------
    X : (n, p) float64 array or CSR matrix.
    zeta : (n,) positive weights, with mean one.
    fit_intercept : whether the machine has an intercept.

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
