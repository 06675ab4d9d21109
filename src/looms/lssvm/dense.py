"""Projection of a model with a whole kernel matrix, by one Cholesky factorization.

The lower triangle of one Fortran-ordered buffer holds in turn

    M = K + D  →  its factor R  →  S = R⁻¹  →  M⁻¹ = SᵀS  →  P = M⁻¹ − η ηᵀ / Ση

(`potrf`, `trtri`, `lauum`). The first two steps give the model and all outputs of single rows and
small units. P, which comes when it is needed, gives those of large units, and the gradient
G = ∂J/∂M of any criterion of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array, Matrix
from looms.lssvm._system import LeverageError, NotPositiveDefiniteError, RangeError, ridge
from looms.lssvm.projection import Expansion, Inverse, Projection, inverses
from looms.units import Batch, Units

_BLOCK = 128
_HUGE = 1e150  # squares of kernel values beyond it overflow
_COLUMNS = 512  # of P, taken at a time
_DENSE = 1 / 16  # of a sparse matrix is not zero: times P it takes as long as a full one


class Dense(Projection):
    """P in the memory of the kernel matrix.

    It minimizes ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)² [C06 II-A to II-F]. With
    M = K + D, D_i = n mu / ζ_i,

        M η = 1,  M ν = y,  b = Σν / Ση,  α = ν − η b.

    Parameters
    ----------
    K : (n, n) Fortran-ordered kernel matrix, overwritten; only its lower triangle is read.
    y : (n, t) targets.
    mu, zeta : regularization and weights.
    fit_intercept : False for kernel ridge regression, η = 0 and b = 0.
    cross : (b, n) kernel values of new rows with those of the fit.
    self_values : (b,) those of new rows with themselves.

    Attributes
    ----------
    share, corner : (n,) η / Ση and 1 / Ση; zero without an intercept.

    Raises
    ------
    NotPositiveDefiniteError
        If M is not numerically positive definite, or no longer is without some row.

    Notes
    -----
    2n³/3 flops; P takes n³/3 more.
    """

    def __init__(
        self,
        K: Array,
        y: Array,
        mu: float,
        zeta: Array,
        *,
        fit_intercept: bool = True,
        cross: Callable[[Matrix], Array] | None = None,
        self_values: Callable[[Matrix], Array] | None = None,
    ) -> None:
        n = len(K)
        self.y, self.mu, self.weight, self.cross = y, mu, zeta, cross
        self._self_values = self_values
        K[np.diag_indices(n)] += ridge(mu, zeta)
        size = self.size = np.abs(K.diagonal())  # a copy, as K is overwritten
        if not (size.max() < _HUGE and size.min() > 1 / _HUGE):  # LAPACK would stop at nan only
            raise RangeError(mu, float(size.max() if not size.max() < _HUGE else size.min()))
        R, failed = lapack.dpotrf(K, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise NotPositiveDefiniteError(mu)
        # A power of two for each target: α of small targets and a large ridge would vanish.
        self._unit = np.ldexp(1.0, np.clip(np.frexp(np.abs(y).max(axis=0))[1], -1000, 1000))
        right = np.asfortranarray(np.column_stack([np.full(n, fit_intercept), y / self._unit]))
        solutions, _ = lapack.dpotrs(R, right, lower=1, overwrite_b=1)  # M η = 1, M ν = y
        eta, nu = solutions[:, 0], solutions[:, 1:]
        total = float(eta.sum()) or 1.0
        self.share, self.corner = eta / total, fit_intercept / total
        b = nu.sum(axis=0) / total if fit_intercept else np.zeros(y.shape[1])
        self._alpha = nu - np.outer(eta, b)
        self.alpha, self._intercept = self._alpha * self._unit, b * self._unit
        self._buffer: Array = lapack.dtrtri(R, lower=1, overwrite_c=1)[0]  # S, M⁻¹ = SᵀS
        self._inverted, self._eta = False, eta
        diagonal = _column_square_sums(self._buffer)
        self._p: Array = diagonal - eta * self.share  # no square that overflows
        safe = self._p > n * np.finfo(np.float64).eps * diagonal
        if not safe.all():  # the difference has cancelled: its digits are rounding
            raise LeverageError(mu, int(np.argmin(safe)))

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.alpha, self._intercept)

    def diagonal(self) -> Array:
        return self._p

    @property
    def loo_residuals(self) -> Array:
        return np.asarray(self._alpha / self._p[:, None] * self._unit)

    def solve(self, units: Units, V: Array) -> Array:
        if 6 * sum(b.rows.size * b.rows.shape[1] for b in units.batches) > len(self._p) ** 2:
            self.matrix()  # for n³/3 flops; the blocks from S would take 2 n Σ|G|²
        return super().solve(units, V)

    def residuals(self, units: Units) -> Array:
        return np.asarray(self.solve(units, self._alpha) * self._unit)

    def inverse(self, batch: Batch) -> Inverse:
        least = len(self.y) * np.finfo(np.float64).eps * self._p[batch.rows]
        return inverses(map(self._block, batch.rows), least, batch.rows, self.mu)

    def variances(self, X: Matrix) -> Array:
        """k(x, x) − ‖S k_x‖² + (1 − η·k_x)² / Ση + n μ, of n² flops for a row.

        P would lose the digits of a small ridge, and it takes the place of S: not after `matrix`.
        """
        assert not self._inverted, "P has taken the place of the factor."
        if self.cross is None or self._self_values is None:
            return super().variances(X)
        K = np.asfortranarray(self.cross(X).T)
        border = (1.0 - self._eta @ K) ** 2 * self.corner
        K = blas.dtrmm(1.0, self._buffer, K, lower=1, overwrite_b=1)
        v = self._self_values(X) - np.einsum("ib,ib->b", K, K) + border
        return np.asarray(np.maximum(v, 0.0) + len(self.y) * self.mu)

    def matrix(self) -> Array:
        """P, valid in both triangles; n³/3 flops the first time."""
        if not self._inverted:
            self._buffer = lapack.dlauum(self._buffer, lower=1, overwrite_c=1)[0]
            _complete_projection(self._buffer, self._eta, self.share)
            self._inverted = True
        return self._buffer

    def contract(
        self, units: Units, slope: Array, scratch: Array | None = None
    ) -> tuple[Array, float]:
        """Derivative of a criterion J with respect to the kernel matrix and μ.

        The derivation is in docs/references.md, Gradient. With v_G = −(P_GG)⁻¹ ∂J/∂f_G:
        G = P B P − ½ (P v αᵀ + α vᵀ P), B = ½ (e vᵀ + v eᵀ) within each unit and zero elsewhere,
        summed over targets and repetitions, and dJ = Σ_ij G_ij dM_ij.

        Parameters
        ----------
        units : rows that leave together.
        slope : (n_repetitions, n, t) ∂J/∂f in the outputs without each unit; zero for rows that
            are not tested.
        scratch : (n, n) Fortran-ordered array to overwrite; allocated by default.

        Returns
        -------
        G : (n, n), valid in its lower triangle: ∂J/∂θ = Σ_ij G_ij ∂K_ij/∂θ.
        slope_mu : ∂J/∂μ.

        Notes
        -----
        4n³/3 flops for single rows; n³/3 + 6 n² F for F units, if that is less.
        """
        P = self.matrix()
        C = np.empty(P.shape, order="F") if scratch is None else scratch
        C.fill(0.0)
        e, v = self.residuals(units), self.solve(units, -slope)
        G = _add_square(P, units, e, v, C)
        u = blas.dgemm(1.0, P, np.asfortranarray(v.sum(axis=0)))
        G = blas.dsyr2k(
            -0.5, u, np.asfortranarray(self.alpha), beta=1.0, c=G, lower=1, overwrite_c=1
        )
        return G, float(G.diagonal() @ ridge(1.0, self.zeta))

    def _block(self, G: AnyArray) -> Array:
        """P_GG; 2 n |G|² flops from S."""
        if self._inverted:
            return np.asarray(self._buffer.T[G[:, None], G])  # P is symmetric
        first = int(G.min())
        columns = np.where(
            np.arange(first, len(self._p))[:, None] >= G, self._buffer[first:, G], 0.0
        )
        return np.asarray(columns.T @ columns - np.outer(self._eta[G], self.share[G]))


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


def _add_square(P: Array, units: Units, e: Array, v: Array, C: Array) -> Array:
    """C + P B P in the lower triangle of ``C``, B = ½ Σ (e vᵀ + v eᵀ) within each unit.

    Parameters
    ----------
    P : (n, n), valid in both triangles.
    e, v : (n_repetitions, n, t) columns; the sum is over repetitions and targets.
    C : (n, n) Fortran-ordered, overwritten.

    Notes
    -----
    B is a sum of ± x xᵀ, at most 2t for each unit. Each takes n² flops, so single rows take n³.
    """
    alone, vectors = np.zeros(len(P)), []
    for batch in units.batches:
        if batch.rows.shape[1] == 1:
            products = (e[batch.places] * v[batch.places]).sum(axis=(1, 2))
            np.add.at(alone, batch.rows[:, 0], products)
        else:
            vectors.append((batch.rows, *_squares(e[batch.places], v[batch.places])))
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * alone > 0)
        for start in range(0, len(rows), _COLUMNS):
            some = rows[start : start + _COLUMNS]
            Z = P.T[some]  # as P lies in memory
            Z *= np.sqrt(np.abs(alone[some]))[:, None]
            C = blas.dsyrk(sign, Z.T, beta=1.0, c=C, lower=1, overwrite_c=1)
        if not vectors:
            continue
        X = _sparse_rows(len(P), [(G, x, signs == sign) for G, x, signs in vectors])
        for start in range(0, X.shape[0], _COLUMNS):
            some = X[start : start + _COLUMNS]
            full = some.nnz > some.shape[0] * len(P) * _DENSE
            Z = (some.toarray() if full else some) @ P.T  # as P, symmetric, lies in memory
            C = blas.dsyrk(sign, Z.T, beta=1.0, c=C, lower=1, overwrite_c=1)
    return C


def _squares(e: Array, v: Array) -> tuple[Array, Array]:
    """Vectors x, (F, k, s), and signs, (F, k), of ½ (e vᵀ + v eᵀ) = Σ ± x xᵀ for (F, s, t) e and v.

    These are sums and differences of columns scaled to one length, or eigenvectors if these are
    no more.
    """
    if e.shape[1] <= 2 * e.shape[2]:
        half = 0.5 * e @ v.swapaxes(1, 2)
        values, Q = np.linalg.eigh(half + half.swapaxes(1, 2))
        return (Q * np.sqrt(np.abs(values))[:, None]).swapaxes(1, 2), np.sign(values)
    lengths = [np.linalg.norm(columns, axis=1, keepdims=True) for columns in (e, v)]
    mean = 0.5 * np.sqrt(lengths[0]) * np.sqrt(lengths[1])
    e, v = (
        columns * (mean / np.where(length > 0, length, 1.0))
        for columns, length in zip((e, v), lengths, strict=True)
    )
    x = np.concatenate([e + v, e - v], axis=2).swapaxes(1, 2)
    return x, np.broadcast_to(np.repeat([1.0, -1.0], e.shape[2]), x.shape[:2])


def _sparse_rows(n: int, vectors: list[tuple[AnyArray, Array, AnyArray]]) -> sp.csr_array:
    """Rows of n numbers: the vectors x, (F, k, s), on sets (F, s), that a mask (F, k) selects."""
    values = [x[mask] for _, x, mask in vectors]
    places = [G[np.nonzero(mask)[0]] for G, _, mask in vectors]
    lengths = np.concatenate([np.full(len(x), x.shape[1]) for x in values])
    return sp.csr_array(
        (
            np.concatenate([x.ravel() for x in values]),
            np.concatenate([G.ravel() for G in places]),
            np.append(0, np.cumsum(lengths)),
        ),
        shape=(len(lengths), n),
    )
