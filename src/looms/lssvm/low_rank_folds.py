"""Least-squares SVM on landmarks without each of a few folds, from sums over cells of rows.

The machine without the fold G has A⁽⁻ᴳ⁾ and b⁽⁻ᴳ⁾, sums over the other rows. A cell consists of
rows that every repetition of the cross-validation leaves out together; its sums are computed once.
The gradient needs the machines and as many further vectors, but no product of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain

import numpy as np

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.lssvm import low_rank
from looms.lssvm._folds import Repetition
from looms.lssvm._system import Fit, targets_as_columns

_NUMBERS = 1 << 23  # in the sums of a block over several cells


@dataclass(frozen=True, eq=False)
class _CellMoments:
    """Sums Σ ζ φ φᵀ and Σ ζ φ yᵀ over the rows of a block in each of some cells."""

    landmarks: low_rank.Landmarks
    R_inverse: Array
    fit_intercept: bool
    cells: range

    def __call__(
        self, X: Matrix, y: Array, zeta: Array, cell: AnyArray
    ) -> tuple[tuple[Array, ...], tuple[()]]:
        moments = low_rank.Moments(self.landmarks, self.R_inverse, self.fit_intercept)
        of_cells = (moments(X, y, zeta, cell == k)[0] for k in self.cells)
        return tuple(chain.from_iterable(of_cells)), ()


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Residuals of the rows of a block under machines without their fold of each repetition."""

    landmarks: low_rank.Landmarks
    coef: Array
    intercept: Array

    def __call__(self, X: Matrix, y: Array, folds: AnyArray) -> tuple[tuple[()], tuple[Array]]:
        f = np.tensordot(self.landmarks.cross(X).T, self.coef, 1) + self.intercept
        e = y[:, None] - f[np.arange(len(y))[:, None], folds]
        e[folds < 0] = np.nan
        return (), (e,)


@dataclass(frozen=True, eq=False)
class _SlopeSums:
    """Sums Σ [k(x, Z), 1] uᵀ over the rows of a block in each fold."""

    landmarks: low_rank.Landmarks
    n_folds: int

    def __call__(self, X: Matrix, u: Array, folds: AnyArray) -> tuple[tuple[Array], tuple[()]]:
        spread = _spread(u, folds, self.n_folds)
        of_u = np.tensordot(self.landmarks.cross(X), spread, 1)
        return (np.concatenate([of_u, spread.sum(axis=0)[None]]),), ()


@dataclass(frozen=True, eq=False)
class _Contraction:
    """Sum over a block of Σ_ij G_ij ∂k(x_i, z_j)/∂θ, where G = ∂J/∂k(x_i, z_j)."""

    landmarks: low_rank.Landmarks
    coef: Array
    intercept: Array
    p: Array

    def __call__(
        self, X: Matrix, y: Array, zeta: Array, u: Array, folds: AnyArray
    ) -> tuple[tuple[Array], tuple[()]]:
        pairs, m = self.landmarks.pairs(X), len(self.landmarks)
        K, n_folds = self.landmarks.values(pairs), self.coef.shape[1]
        trains = 1.0 - _spread(np.ones((*folds.shape, 1)), folds, n_folds)
        trains *= zeta[:, None, None]
        residuals = y[:, None] - np.tensordot(K.T, self.coef, 1) - self.intercept
        of_p = np.tensordot(K.T, self.p[:m], 1) + self.p[m:].sum(axis=0)
        left = trains * of_p - _spread(u, folds, n_folds)
        G = left.reshape(len(y), -1) @ self.coef.reshape(m, -1).T
        G -= (trains * residuals).reshape(len(y), -1) @ self.p[:m].reshape(m, -1).T
        return (self.landmarks.kernel.values_gradient(pairs, G),), ()


@dataclass(frozen=True, eq=False)
class Solution:
    """Solved systems without each fold.

    Attributes
    ----------
    fit : the machine of all rows, with its leave-one-out outputs and those of the folds.
    mu : regularization.
    landmarks : landmarks with the kernel.
    V : (n_folds, q, q) with A⁻¹ = V Vᵀ without each fold, in terms of [k(x, Z), 1].
    coef, intercept : (m, n_folds, t) and (n_folds, t) for the machines without each fold.
    folds : (n, n_repetitions) fold of each row, numbered across repetitions; -1 for none.
    tested : (n, n_repetitions) false for rows in the gap of a fold.
    """

    fit: Fit
    mu: float
    landmarks: low_rank.Landmarks
    V: Array
    coef: Array
    intercept: Array
    folds: AnyArray
    tested: AnyArray

    def contract(self, slope: Array, blocks: RowBlocks) -> tuple[Array, float]:
        """Derivative of a criterion with respect to the kernel's hyper-parameters and μ.

        With g = ∂J/∂e, p_G = A_G⁻¹ Σ_{i in G} φ_i g_i and c_G, the machine without the fold G,

            ∂J/∂k(x_i, Z) = −g_i c_G(i)ᵀ + Σ_{G without i} ζ_i (φ_iᵀ p_G) c_Gᵀ − ζ_i e_i^G p_Gᵀ,
            ∂J/∂K_ZZ = n μ Σ_G ½ (p_G c_Gᵀ + c_G p_Gᵀ).

        Parameters
        ----------
        slope : ∂J/∂f, (n_repetitions, n) or (n_repetitions, n, t).
        blocks : rows of the fit.

        Returns
        -------
        slopes : (p,) ∂J/∂θ for the free hyper-parameters of the kernel, in natural units.
        slope_mu : ∂J/∂μ.

        Notes
        -----
        Two kernel values for every row and landmark, in two sweeps, and 10 n m flops per fold.
        """
        zeta, Y = self.fit.sample_weight, targets_as_columns(self.fit.y)
        n, m, n_folds = len(Y), len(self.landmarks), self.coef.shape[1]
        u = -slope.reshape(len(slope), n, -1).swapaxes(0, 1)
        u = np.where(self.tested[:, :, None], u, 0.0)
        (of_u,), _ = blocks.sweep(_SlopeSums(self.landmarks, n_folds), u, self.folds)
        of_u = of_u[: self.V.shape[1]]
        p = np.stack([V @ (V.T @ of_u[:, k]) for k, V in enumerate(self.V)], axis=1)
        work = _Contraction(self.landmarks, self.coef, self.intercept, p)
        (slopes,), _ = blocks.sweep(work, Y, zeta, u, self.folds)
        of_gram = p[:m].reshape(m, -1) @ self.coef.reshape(m, -1).T
        of_penalty, value = self.landmarks.gram_slopes(0.5 * (of_gram + of_gram.T))
        return slopes + n * self.mu * of_penalty, n * value


def solve(
    blocks: RowBlocks,
    y: Array,
    mu: float,
    zeta: Array,
    landmarks: low_rank.Landmarks,
    parts: Sequence[Repetition],
    *,
    fit_intercept: bool = True,
) -> Solution:
    """Least-squares SVM on landmarks, with held-out outputs for every fold.

    Parameters
    ----------
    blocks, y, mu, zeta, landmarks, fit_intercept : as for `low_rank.solve`.
    parts : sets of rows that are held out in every repetition; there should be few.

    Raises
    ------
    NotPositiveDefiniteError
        If the system of all rows, or without some fold, is not numerically positive definite.

    Notes
    -----
    3 n m² flops and three kernel values for every row and landmark; an (m + 1)² matrix for each
    fold and each cell of rows that all repetitions leave out together.
    """
    n, Y = len(y), targets_as_columns(y)
    folds, tested, n_folds = np.full((n, len(parts)), -1), np.zeros((n, len(parts)), dtype=bool), 0
    for r, part in enumerate(parts):
        for G in (*part.single[:, None], *part.sets):
            folds[G, r], n_folds = n_folds, n_folds + 1
        tested[:, r] = part.tested
    sums, V, coef, intercept = _machines(
        blocks, Y, mu, zeta, landmarks, folds, n_folds, fit_intercept
    )
    fit = low_rank.solve(
        blocks, y, mu, zeta, landmarks, fit_intercept=fit_intercept, moments=_added(sums)
    ).fit
    _, (e,) = blocks.sweep(_Residuals(landmarks, coef, intercept), Y, folds)
    e[~tested] = np.nan
    held_out = (Y[:, None] - e).swapaxes(0, 1).reshape(len(parts), *y.shape)
    whole = Fit(fit.alpha, fit.intercept, y, fit.outputs, zeta, held_out, landmarks.samples.X)
    return Solution(whole, mu, landmarks, V, coef, intercept, folds, tested)


def held_out_outputs(
    blocks: RowBlocks,
    y: Array,
    mu: float,
    zeta: Array,
    landmarks: low_rank.Landmarks,
    folds: AnyArray,
    *,
    fit_intercept: bool = True,
) -> Array:
    """Output for each row of the machine without its fold, shaped like ``y``.

    Parameters
    ----------
    blocks, y, mu, zeta, landmarks, fit_intercept : as for `low_rank.solve`.
    folds : (n,) number of the fold of each row, from 0.

    Raises
    ------
    NotPositiveDefiniteError
        If the system without some fold is not numerically positive definite.

    Notes
    -----
    n m² flops and two kernel values for every row and landmark, in two sweeps, or in more if the
    sums over the folds exceed 64 MB.
    """
    Y, numbers = targets_as_columns(y), folds[:, None]
    n_folds = int(folds.max()) + 1
    _, _, coef, intercept = _machines(
        blocks, Y, mu, zeta, landmarks, numbers, n_folds, fit_intercept
    )
    _, (e,) = blocks.sweep(_Residuals(landmarks, coef, intercept), Y, numbers)
    return np.asarray((Y - e[:, 0]).reshape(y.shape))


def _machines(
    blocks: RowBlocks,
    Y: Array,
    mu: float,
    zeta: Array,
    landmarks: low_rank.Landmarks,
    folds: AnyArray,
    n_folds: int,
    fit_intercept: bool,
) -> tuple[list[tuple[Array, ...]], Array, Array, Array]:
    """Sums over each cell, and V, coefficients and intercept of the machine without each fold."""
    m, q = len(landmarks), len(landmarks) + fit_intercept
    cells, number = np.unique(folds, axis=0, return_inverse=True)
    cell: AnyArray = number.ravel()
    R_inverse = landmarks.whitening(mu)
    sums: list[tuple[Array, ...]] = []
    step = max(1, _NUMBERS // q**2)
    for start in range(0, len(cells), step):
        some = range(start, min(start + step, len(cells)))
        work = _CellMoments(landmarks, R_inverse, fit_intercept, some)
        flat, _ = blocks.sweep(work, Y, zeta, cell)
        sums += zip(flat[::2], flat[1::2], strict=True)
    V, theta = np.empty((n_folds, q, q)), np.empty((q, n_folds, Y.shape[1]))
    for k in range(n_folds):
        rest = [one for one, of in zip(sums, cells, strict=True) if k not in of]
        V[k], theta[:, k] = low_rank.factorized(_added(rest), len(Y), mu, R_inverse)
    return sums, V, theta[:m], theta[m:].sum(axis=0)


def _added(sums: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    return tuple(reduce(np.add, each) for each in zip(*sums, strict=True))


def _spread(values: Array, folds: AnyArray, n_folds: int) -> Array:
    """Values (n, n_repetitions, t) placed at their folds, (n, n_folds, t), with zero elsewhere."""
    spread = np.zeros((len(values), n_folds, values.shape[2]))
    rows, repetition = np.nonzero(folds >= 0)
    spread[rows, folds[rows, repetition]] = values[rows, repetition]
    return spread
