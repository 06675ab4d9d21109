"""Least-squares SVM and its exact leave-one-out by one Cholesky factorization.

The lower triangle of one Fortran-ordered buffer holds one after the other

    M = K + diag(λ)  →  its factor R  →  S = R⁻¹  →  M⁻¹ = SᵀS  →  G = ∂J/∂M

(`potrf`, `trtri`, `lauum`, `syrk`). The first two steps give the fit and all
leave-one-out outputs (`solve`), the rest the gradient of any criterion on them
(`Solution.contract`), which needs one more buffer of the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array
from looms.held_out import HeldOut
from looms.lssvm._held_out_sets import HeldOutBlocks, held_out_sets
from looms.lssvm._system import (
    Fit,
    LeverageError,
    NotPositiveDefiniteError,
    RangeError,
    checked_system,
    ridge,
    targets_as_columns,
)
from looms.lssvm.leave_one_out_models import LeaveOneOutModels

_BLOCK = 512
_HUGE = 1e150  # squares of kernel values beyond it overflow


@dataclass(eq=False)
class Solution:
    """Solved system: the fit and its factorization, for gradients and leave-one-out models.

    Attributes
    ----------
    fit : the machine and its leave-one-out outputs.
    p : (n,) diagonal of P = M⁻¹ − η ηᵀ / Ση, positive.
    residuals : (n, t) r = y − f⁽⁻ⁱ⁾, a column a target.
    ridge : (n,) λ.
    eta, share : (n,) η and η / Ση; zero without an intercept.
    """

    fit: Fit
    p: Array
    residuals: Array
    ridge: Array
    eta: Array
    share: Array
    _held_out: HeldOutBlocks
    _S: Array | None

    @property
    def loo(self) -> HeldOut:
        return self.fit.loo

    def contract(self, slope: Array, scratch: Array | None = None) -> tuple[Array, float]:
        """Derivative of a criterion with respect to the kernel matrix and μ.

        The derivation is in docs/references.md, Gradient. With g = ∂J/∂r and v = g / p, or
        v_G = (P_GG)⁻¹ g_G for rows held out together, summed over targets:
        G = P H P − ½ (P v αᵀ + α vᵀ P), H = ½ (r vᵀ + v rᵀ) within each set of rows and zero
        elsewhere, and dJ = Σ_ij G_ij dM_ij.

        Parameters
        ----------
        slope : ∂J/∂f, derivative with respect to the leave-one-out outputs, shaped
            like the targets.
        scratch : (n, n) Fortran-ordered array to overwrite; one is made unless given.

        Returns
        -------
        G : (n, n), valid in its lower triangle: ∂J/∂θ = Σ_ij G_ij ∂K_ij/∂θ.
        slope_mu : ∂J/∂μ.

        Notes
        -----
        4n³/3 flops; for F sets of rows that take all n, n³/3 + 4 n² F if that is less. The
        factorization is used up: a second call raises RuntimeError.
        """
        P = self._projection()
        C = np.empty(P.shape, order="F") if scratch is None else scratch
        g, alpha = -targets_as_columns(slope), targets_as_columns(self.fit.alpha)
        v = self._held_out.solve(g)
        u = blas.dgemm(1.0, P, np.asfortranarray(v))
        h, vectors = self._held_out.eigen(self.residuals, v)
        G = _weighted_square(P, h, self._held_out.sets, vectors, C)
        G = blas.dsyr2k(-0.5, u, np.asfortranarray(alpha), beta=1.0, c=G, lower=1, overwrite_c=1)
        return G, float(G.diagonal() @ ridge(1.0, self.fit.sample_weight))

    def models(self) -> LeaveOneOutModels:
        """Leave-one-out models, each at any new point.

        n³/3 flops. The factorization is used up, as by `contract`.
        """
        residuals = self.residuals.reshape(self.fit.alpha.shape)
        sets = tuple(self._held_out.sets)
        P = self._projection()
        return LeaveOneOutModels(self.fit, P, self.share, self.ridge, residuals, sets)

    def _projection(self) -> Array:
        """P = SᵀS − η ηᵀ / Ση in the memory of S, valid in both triangles."""
        if self._S is None:
            raise RuntimeError(
                "This factorization was used up by an earlier contract() or models()."
            )
        S, self._S = self._S, None
        B, _ = lapack.dlauum(S, lower=1, overwrite_c=1)
        for J in _blocks(len(B)):
            # What lies above the diagonal may be anything, signalling nan too: it is not
            # computed with.
            corner = np.tril(B[J, J]) - np.tril(np.outer(self.eta[J], self.share[J]))
            B[J, J] = corner + np.tril(corner, -1).T
            for R in _blocks(len(B)):
                if R.start > J.start:
                    B[R, J] -= np.outer(self.eta[R], self.share[J])
                    B[J, R] = B[R, J].T
        return np.asarray(B)


def solve(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
    groups: npt.ArrayLike | None = None,
) -> Solution:
    """Least-squares SVM and all its leave-one-out outputs from one factorization.

    Minimizes ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)² [C06 II-A to II-F]: with
    M = K + diag(λ), λ_i = n mu / ζ_i,

        M η = 1,  M ν = y,  b = Σν / Ση,  α = ν − η b,  r_i = α_i / p_i.

    λ stays as it is while a sample is left out.

    Parameters
    ----------
    K : (n, n) symmetric kernel matrix.
    y : (n,) or (n, t) targets, ±1 for classes. One factorization serves all.
    mu : regularization, positive, in units of ``K`` over n.
    sample_weight : (n,) ζ, positive; ones unless given.
    fit_intercept : False for kernel ridge regression, η = 0 and b = 0.
    groups : (n,) labels; rows of one group G are held out together, r_G = (P_GG)⁻¹ α_G.
        Each row by itself unless given.

    Raises
    ------
    ValueError
        For shapes that do not agree, μ or weights that are not positive, values
        that are not finite, one group that holds all rows.
    NotPositiveDefiniteError
        If M is not numerically positive definite, or no longer is once a sample of
        overwhelming weight, or a group of them, is left out.

    Notes
    -----
    2n³/3 flops, one n×n buffer; groups add Σ |G|² (n + |G| / 3). Digits are lost as μ becomes
    small beside the largest eigenvalue of K / n: about as many as their ratio has.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 6.0])         # K = 0 predicts the mean of the others
    >>> solve(np.zeros((3, 3)), y, mu=1.0).loo.outputs.round(12)
    array([4. , 3.5, 1.5])
    """
    K, y, zeta = checked_system(K, y, mu, sample_weight)
    sets = held_out_sets(groups, len(y))
    return solve_in_place(
        np.array(K, order="F"), y, mu, zeta, fit_intercept=fit_intercept, sets=sets
    )


def solve_in_place(
    K: Array,
    y: Array,
    mu: float,
    zeta: Array,
    *,
    fit_intercept: bool = True,
    sets: Sequence[AnyArray] = (),
) -> Solution:
    """`solve` in the memory of ``K``, Fortran-ordered, of which it reads the lower triangle.

    ``sets`` are the rows of each group of two or more. Arguments are not checked, but for
    definiteness and for squares that overflow.
    """
    n, Y, lam = len(K), targets_as_columns(y), ridge(mu, zeta)
    K[np.diag_indices(n)] += lam
    size = np.abs(K.diagonal())
    if not (size.max() < _HUGE and size.min() > 1 / _HUGE):  # LAPACK itself would stop at nan only
        raise RangeError(mu, float(size.max() if not size.max() < _HUGE else size.min()))
    R, failed = lapack.dpotrf(K, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise NotPositiveDefiniteError(mu)
    # A power of two for each target: α of small targets and a large ridge would vanish.
    unit = np.ldexp(1.0, np.clip(np.frexp(np.abs(Y).max(axis=0))[1], -1000, 1000))
    right_hand_sides = np.asfortranarray(np.column_stack([np.full(n, fit_intercept), Y / unit]))
    solutions, _ = lapack.dpotrs(R, right_hand_sides, lower=1, overwrite_b=1)  # M η = 1, M ν = y
    eta, nu = solutions[:, 0], solutions[:, 1:]
    eta_sum = float(eta.sum()) or 1.0
    share = eta / eta_sum
    b = nu.sum(axis=0) / eta_sum if fit_intercept else np.zeros(Y.shape[1])
    alpha = nu - np.outer(eta, b)
    S, _ = lapack.dtrtri(R, lower=1, overwrite_c=1)  # M⁻¹ = SᵀS
    diagonal = _column_square_sums(S)
    p = diagonal - eta * share
    safe = p > n * np.finfo(np.float64).eps * diagonal
    if not safe.all():  # the difference has cancelled: its digits are rounding
        raise LeverageError(mu, int(np.argmin(safe)))

    def block(G: AnyArray) -> Array:
        below = np.arange(G[0], n)[:, None] >= G  # only the lower triangle of S is set
        columns = np.where(below, S[G[0] :, G], 0.0)
        return columns.T @ columns - np.outer(eta[G], share[G])

    held_out = HeldOutBlocks(p, sets, block, mu)
    residuals = held_out.solve(alpha) * unit  # α_i / p_i [C06 eq. 19], or (P_GG)⁻¹ α_G
    b = b * unit
    fit = Fit(
        np.ascontiguousarray(alpha * unit).reshape(y.shape),
        float(b[0]) if y.ndim == 1 else b,
        y,
        (Y - residuals).reshape(y.shape),
        zeta,
    )
    return Solution(fit, p, residuals, lam, eta, share, held_out, S)


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


def _weighted_square(
    P: Array, h: Array, sets: Sequence[AnyArray], vectors: Sequence[Array], C: Array
) -> Array:
    """P H P in the lower triangle of ``P``'s own memory; overwrites ``C``.

    H has eigenvalues ``h`` and the unit vectors as eigenvectors, but for those of each set of
    rows. Two symmetric rank-k updates, over the columns with h > 0 and with h < 0; together
    they cost no more than one over all columns.
    """
    n = len(h)
    order = np.argsort(-h, kind="stable")
    n_positive, n_negative = int((h > 0).sum()), int((h < 0).sum())
    for K in _blocks(n):
        np.take(P.T, order[K], axis=0, out=C.T[K])
        C.T[K] *= np.sqrt(np.abs(h[order[K], None]))
    place = np.argsort(order)
    for rows, V in zip(sets, vectors, strict=True):
        first = rows[: V.shape[1]]
        C.T[place[first]] = np.sqrt(np.abs(h[first, None])) * (V.T @ P[rows])
    G = blas.dsyrk(1.0, C[:, :n_positive], c=P, lower=1, overwrite_c=1) if n_positive else None
    if G is None:
        P.fill(0.0)
        G = P
    if n_negative:
        negative = C[:, n - n_negative :]
        G = blas.dsyrk(-1.0, negative, beta=1.0, c=G, lower=1, overwrite_c=1)
    return G
