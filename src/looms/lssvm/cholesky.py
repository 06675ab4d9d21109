"""Least-squares SVM and its exact leave-one-out outputs by one Cholesky factorization.

The lower triangle of one Fortran-ordered buffer holds in turn

    M = K + diag(λ)  →  its factor R  →  S = R⁻¹  →  M⁻¹ = SᵀS  →  P = M⁻¹ − η ηᵀ / Ση

(`potrf`, `trtri`, `lauum`). The first two steps give the fit and all leave-one-out outputs
(`solve`). P gives the outputs of large folds, and the gradient G = ∂J/∂M of any criterion of the
outputs (`Solution.contract`), which needs one more buffer of the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array
from looms.held_out import HeldOut
from looms.lssvm._folds import HeldOutBlocks, Repetition, repetitions
from looms.lssvm._system import (
    Fit,
    LeverageError,
    NotPositiveDefiniteError,
    RangeError,
    checked_system,
    ridge,
    targets_as_columns,
)
from looms.lssvm.conditioning import tie_of
from looms.lssvm.leave_one_out_models import LeaveOneOutModels

_BLOCK = 128
_HUGE = 1e150  # squares of kernel values beyond it overflow


class Projection:
    """P = M⁻¹ − η ηᵀ / Ση in the memory of the factorization, which holds S = R⁻¹ and later P.

    Attributes
    ----------
    p : (n,) diagonal of P, positive.
    share, corner : (n,) η / Ση and 1 / Ση; zero without an intercept.

    Raises
    ------
    LeverageError
        If the machine without some sample is singular in double precision.
    """

    def __init__(self, S: Array, eta: Array, mu: float) -> None:
        self._buffer, self._inverted = S, False
        self._eta = eta
        eta_sum = float(eta.sum()) or 1.0
        self.share, self.corner = eta / eta_sum, float(eta.any()) / eta_sum
        diagonal = _column_square_sums(S)
        self.p = diagonal - eta * self.share  # no square that overflows
        safe = self.p > len(S) * np.finfo(np.float64).eps * diagonal
        if not safe.all():  # the difference has cancelled: its digits are rounding
            raise LeverageError(mu, int(np.argmin(safe)))

    def matrix(self) -> Array:
        """P, valid in both triangles; n³/3 flops the first time."""
        if not self._inverted:
            self._buffer, _ = lapack.dlauum(self._buffer, lower=1, overwrite_c=1)
            _complete_projection(self._buffer, self._eta, self.share)
            self._inverted = True
        return self._buffer

    def block(self, G: AnyArray) -> Array:
        """P_GG; 2 n |G|² flops from S, and then only its lower triangle is set."""
        if self._inverted:
            return self._buffer.T[G[:, None], G]  # P is symmetric
        first = int(G[0])
        columns = np.where(
            np.arange(first, len(self.p))[:, None] >= G, self._buffer[first:, G], 0.0
        )
        return columns.T @ columns - np.outer(self._eta[G], self.share[G])


@dataclass(frozen=True, eq=False)
class Solution:
    """Solved system: the fit and its factorization, for gradients and leave-one-out models.

    Attributes
    ----------
    fit : the machine and its held-out outputs, with residuals e_i = α_i / p_i for single rows
        [C06 eq. 19] and e_G = (P_GG)⁻¹ α_G for rows held out together.
    mu : regularization.
    projection : P = M⁻¹ − η ηᵀ / Ση.
    folds : blocks of P for rows held out together.
    residuals : (n_repetitions, n, t) held-out residuals; zero for rows that are not left out.
    """

    fit: Fit
    mu: float
    projection: Projection
    folds: HeldOutBlocks
    residuals: Array

    @property
    def loo(self) -> HeldOut:
        """Leave-one-out outputs of single rows."""
        return self.fit.loo

    @property
    def p(self) -> Array:
        """Diagonal of P, (n,), positive."""
        return self.projection.p

    def contract(self, slope: Array, scratch: Array | None = None) -> tuple[Array, float]:
        """Derivative of a criterion with respect to the kernel matrix and μ.

        The derivation is in docs/references.md, Gradient. With g = ∂J/∂e, and v_G = (P_GG)⁻¹ g_G
        for rows held out together or v_i = g_i / p_i for a single row:
        G = P H P − ½ (P v αᵀ + α vᵀ P), H = ½ (e vᵀ + v eᵀ) within each fold and zero
        elsewhere, summed over targets and repetitions, and dJ = Σ_ij G_ij dM_ij.

        Parameters
        ----------
        slope : ∂J/∂f, derivative with respect to the held-out outputs, shaped like
            ``fit.held_out``, or like the targets if there is one repetition.
        scratch : (n, n) Fortran-ordered array to overwrite; allocated by default.

        Returns
        -------
        G : (n, n), valid in its lower triangle: ∂J/∂θ = Σ_ij G_ij ∂K_ij/∂θ.
        slope_mu : ∂J/∂μ.

        Notes
        -----
        4n³/3 flops for rows held out by themselves; n³/3 + 6 n² F for F folds, if that is less.
        """
        P = self.projection.matrix()
        C = np.empty(P.shape, order="F") if scratch is None else scratch
        C.fill(0.0)
        alpha = np.asfortranarray(targets_as_columns(self.fit.alpha))
        v = self.folds.solve(-slope.reshape(self.residuals.shape))
        G = self.folds.add_square(P, self.residuals, v, C)
        u = blas.dgemm(1.0, P, np.asfortranarray(v.sum(axis=0)))
        G = blas.dsyr2k(-0.5, u, alpha, beta=1.0, c=G, lower=1, overwrite_c=1)
        slope_mu = float(G.diagonal() @ ridge(1.0, self.fit.sample_weight))
        return G, slope_mu

    def models(self) -> LeaveOneOutModels:
        """Models without each row, or without the fold of each row; n³/3 flops.

        Raises
        ------
        ValueError
            If rows are held out in several repetitions, or some never.
        """
        if len(self.folds.parts) > 1:
            raise ValueError("Each row must have one model: folds must be one repetition.")
        (part,) = self.folds.parts
        return LeaveOneOutModels(
            self.fit,
            self.projection.matrix(),
            self.projection.share,
            ridge(self.mu, self.fit.sample_weight),
            self.residuals[0].reshape(self.fit.alpha.shape),
            self.projection.corner,
            part.sets,
        )


def solve(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
    folds: npt.ArrayLike | None = None,
) -> Solution:
    """Least-squares SVM and all its held-out outputs from one factorization.

    It minimizes ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)² [C06 II-A to II-F]. With
    M = K + diag(λ), λ_i = n mu / ζ_i,

        M η = 1,  M ν = y,  b = Σν / Ση,  α = ν − η b,  r_i = α_i / p_i.

    λ stays the same while a sample is left out.

    Parameters
    ----------
    K : (n, n) symmetric kernel matrix.
    y : (n,) or (n, t) targets, ±1 for classes. One factorization serves all.
    mu : regularization, positive, in units of ``K`` over n.
    sample_weight : (n,) ζ, positive; ones by default.
    fit_intercept : False for kernel ridge regression, η = 0 and b = 0.
    folds : (n,) integers, equal for rows that are held out together, e_G = (P_GG)⁻¹ α_G;
        (n_repetitions, n) for several partitions. -1 marks a row that is not held out in a
        repetition, -2 - k a row that is left out with fold k, but not tested. By default, each row
        is held out by itself.

    Raises
    ------
    ValueError
        If shapes do not agree, μ or weights are not positive, values are not finite, one fold
        holds all rows, or a row is never held out.
    NotPositiveDefiniteError
        If M is not numerically positive definite, or no longer is once a sample of
        overwhelming weight, or a fold of them, is left out.

    Notes
    -----
    2n³/3 flops, one n×n buffer; folds add Σ |G|³ / 3 and the smaller of n³/3 and 2 n Σ |G|².
    If μ is much smaller than the largest eigenvalue of K / n, digits are lost, about as many as
    the ratio of the two has.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 6.0])         # K = 0 predicts the mean of the others
    >>> solve(np.zeros((3, 3)), y, mu=1.0).loo.outputs.round(12)
    array([4. , 3.5, 1.5])
    """
    K, y, zeta = checked_system(K, y, mu, sample_weight)
    parts = repetitions(folds, len(y))
    return solve_in_place(
        np.array(K, order="F"), y, mu, zeta, fit_intercept=fit_intercept, parts=parts
    )


def solve_in_place(
    K: Array,
    y: Array,
    mu: float,
    zeta: Array,
    *,
    fit_intercept: bool = True,
    parts: Sequence[Repetition] | None = None,
) -> Solution:
    """`solve` in the memory of ``K``, Fortran-ordered; only its lower triangle is read.

    Arguments are checked only for definiteness and for squares that overflow.
    """
    n, Y = len(K), targets_as_columns(y)
    parts = repetitions(None, n) if parts is None else parts
    K[np.diag_indices(n)] += ridge(mu, zeta)
    size = np.abs(K.diagonal())  # a copy, as K is overwritten
    if not (size.max() < _HUGE and size.min() > 1 / _HUGE):  # LAPACK itself would stop at nan only
        raise RangeError(mu, float(size.max() if not size.max() < _HUGE else size.min()))
    R, failed = lapack.dpotrf(K, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise NotPositiveDefiniteError(mu)
    # A power of two for each target: α of small targets and a large ridge would vanish.
    unit = np.ldexp(1.0, np.clip(np.frexp(np.abs(Y).max(axis=0))[1], -1000, 1000))
    right_hand_sides = np.asfortranarray(np.column_stack([np.full(n, fit_intercept), Y / unit]))
    solutions, _ = lapack.dpotrs(R, right_hand_sides, lower=1, overwrite_b=1)  # M η = 1, M ν = y
    S, _ = lapack.dtrtri(R, lower=1, overwrite_c=1)  # M⁻¹ = SᵀS
    eta, nu = solutions[:, 0], solutions[:, 1:]
    projection = Projection(S, eta, mu)
    if sum(len(G) ** 2 for part in parts for G in part.sets) > n**2 / 6:
        projection.matrix()  # for n³/3 flops; the blocks from S would take 2 n Σ|G|²
    b = nu.sum(axis=0) / eta.sum() if fit_intercept else np.zeros(Y.shape[1])
    alpha = nu - np.outer(eta, b)
    folds = HeldOutBlocks(projection.p, parts, projection.block, mu)
    residuals = folds.solve(alpha) * unit
    loo = Y - alpha / projection.p[:, None] * unit
    b = b * unit
    fit = Fit(
        np.ascontiguousarray(alpha * unit).reshape(y.shape),
        float(b[0]) if y.ndim == 1 else b,
        y,
        loo.reshape(y.shape),
        zeta,
        folds.outputs(Y, residuals).reshape(len(parts), *y.shape),
        tie=tie_of(y, size, alpha * unit),
    )
    return Solution(fit, mu, projection, folds, residuals)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))


def _column_square_sums(S: Array) -> Array:
    """Σ_{i ≥ j} S_ij² for every column j: the diagonal of SᵀS for lower triangular S."""
    n = S.shape[0]
    sums = np.empty(n)
    for J in _blocks(n):
        corner, below = np.tril(S[J, J]), S[J.stop :, J]
        sums[J] = np.einsum("ij,ij->j", corner, corner) + np.einsum("ij,ij->j", below, below)
    return sums


def _complete_projection(B: Array, eta: Array, share: Array) -> None:
    """Turn M⁻¹, valid in the lower triangle, into P = M⁻¹ − η shareᵀ, valid everywhere."""
    n = B.shape[0]
    for J in _blocks(n):
        # What lies above the diagonal may be anything, signalling nan too: it is not computed with.
        corner = np.tril(B[J, J]) - np.tril(np.outer(eta[J], share[J]))
        B[J, J] = corner + np.tril(corner, -1).T
        for R in _blocks(n):
            if R.start > J.start:
                B[R, J] -= np.outer(eta[R], share[J])
                B[J, R] = B[R, J].T
