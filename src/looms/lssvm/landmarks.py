"""Projections of models on landmarks, streamed over blocks of rows.

The model is f(x) = Σ_j c_j k(x, z_j) + b for m landmarks z, with the penalty n μ cᵀ K_ZZ c of
Nyström features; landmarks at every row give the model of the whole kernel matrix. With
K_ZZ + δ = RᵀR the features are φ = [k(x, Z) R⁻¹, 1], and with T of these

    A = Σ_i ζ_i φ_i φ_iᵀ + n μ diag(1, …, 1, 0) = L Lᵀ,   t_i = L⁻¹ φ_i,
    e_G = r_G + T_G (1 − T_Gᵀ ζ T_G)⁻¹ T_Gᵀ ζ r_G = (1 − T_G T_Gᵀ ζ)⁻¹ r_G,   r = y − f.

One sweep over the blocks gives A, one the residuals of rows and of small units within a block, two
those of units of any size, and two more the gradient of a criterion in every hyper-parameter. A
search keeps t of few rows in memory between the sweeps; else they are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.kernels import Kernel
from looms.kernels._samples import Pairs, Samples
from looms.lssvm._system import LeverageError, NotPositiveDefiniteError, targets_as_columns
from looms.lssvm.projection import (
    Expansion,
    Inverse,
    Projection,
    changed_rows,
    inverses,
    of_unit,
)
from looms.lssvm.thin import Thin, inverse_of_rows
from looms.units import Batch, Units

_PANEL = 64  # columns of a triangular matrix, taken as a full one
_NUMBERS = 1 << 23  # in the sums of a block over several units
#: Numbers of T that a search keeps between sweeps, at most.
KEPT = 1 << 25
#: Rows of a unit that is held out within its block.
_WITHIN_BLOCK = 256
#: Smaller units that are in several blocks; each takes a matrix of the landmarks.
_SCATTERED = 1000


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks, and kernel values with them.

    Attributes
    ----------
    kernel : kernel with all its values set.
    samples : the m landmarks, with the center that distances are computed around.
    """

    kernel: Kernel
    samples: Samples

    def __len__(self) -> int:
        return self.samples.n_samples

    def pairs(self, X: Matrix) -> Pairs:
        return Pairs(Samples(X, center=self.samples.center), self.samples)

    def cross(self, X: Matrix) -> Array:
        """k(z_j, x_i), (m, n_rows), as a new array."""
        return self.values(self.pairs(X))

    def values(self, pairs: Pairs) -> Array:
        """k(z_j, x_i), (m, n_rows), as a new array."""
        return np.ascontiguousarray(self.kernel.values(pairs).T)

    def gram(self) -> Array:
        """K_ZZ + δ, (m, m); δ, about m ε of the trace, keeps it positive definite."""
        K = self.kernel.values(Pairs(self.samples, self.samples))
        K[np.diag_indices(len(K))] += self.jitter * K.trace()
        return np.asfortranarray(K)

    def whitening(self, mu: float) -> Array:
        """R⁻¹, upper triangular, with K_ZZ + δ = Rᵀ R; may raise NotPositiveDefiniteError."""
        R, failed = lapack.dpotrf(self.gram(), lower=0, clean=1)
        if failed:
            raise NotPositiveDefiniteError(mu)
        return np.asarray(lapack.dtrtri(R, lower=0)[0])

    def gram_slopes(self, G: Array) -> tuple[Array, float]:
        """Σ_ij G_ij ∂(K_ZZ + δ)_ij/∂θ, (p,), and Σ_ij G_ij (K_ZZ + δ)_ij."""
        value = float(np.vdot(G, self.gram()))
        of_trace = self.jitter * G.trace() * np.eye(len(G))
        return self.kernel.values_gradient(Pairs(self.samples, self.samples), G + of_trace), value

    @property
    def jitter(self) -> float:
        """δ / trace K_ZZ."""
        return len(self) * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Placed:
    """Units, and blocks of the rows that hold as many of them as they can.

    Attributes
    ----------
    units : rows that leave together.
    blocks : all rows.
    large : (n_units,) numbers of the units that are not held out within a block, because they are
        large or in several; -1 for the others.
    """

    units: Units
    blocks: RowBlocks
    large: AnyArray

    @classmethod
    def of(cls, units: Units, blocks: RowBlocks) -> Placed:
        """Units of `blocks`, whose rows are sorted by unit where that is possible and helps."""
        sizes = np.array([len(rows) for rows in units])
        small = sizes <= _WITHIN_BLOCK
        if (small & (sizes > 1)).any():
            first = units.number[0]
            alone = units.n_units + np.arange(len(first))
            blocks = blocks.holding(np.where((first >= 0) & small[first], first, alone))
        block = np.empty(units.shape[1], dtype=np.intp)
        for k, rows in enumerate(blocks.places()):
            block[rows] = k
        within = np.array([block[rows].min() == block[rows].max() for rows in units])
        large, n_scattered = ~(within & small), np.count_nonzero(small & ~within)
        if n_scattered > _SCATTERED:
            raise ValueError(
                f"{n_scattered} groups or folds have rows in several blocks of the table, and each "
                "takes a matrix of all landmarks: sort the table by group, shuffle a collection by "
                "group with its method shuffle, or give fewer folds."
            )
        return cls(units, blocks, np.where(large, np.cumsum(large) - 1, -1))

    @property
    def n_large(self) -> int:
        return int(self.large.max()) + 1

    def sweep(self, work: Any, *columns: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Sweep over the blocks, with the unit of each row in each repetition as a last column."""
        return self.blocks.sweep(work, *columns, self.units.number.T)

    def some_row(self, q: int) -> AnyArray:
        """A row of each large unit, (n_large, q) times, for messages."""
        first = [rows[0] for rows, place in zip(self.units, self.large, strict=True) if place >= 0]
        return np.repeat(np.array(first, dtype=np.intp)[:, None], q, axis=1)


@dataclass(frozen=True, eq=False)
class _OfUnits:
    """Models without each unit: (1 − M_G)⁻¹ and z_G = T_Gᵀ ζ e_G of large ones, and all e."""

    placed: Placed
    inverse: Inverse
    z: Array
    e: Array


class Streamed(Projection):
    """P of a model on landmarks, with no more than (m + 1)² and (n, t) numbers in memory.

    It minimizes ½ n μ cᵀ (K_ZZ + δ) c + ½ Σ_i ζ_i (y_i − k(x_i, Z) c − b)²; landmarks and n μ stay
    the same while rows are held out.

    Parameters
    ----------
    blocks : the n rows.
    y : (n, t) targets.
    mu, zeta : regularization and weights.
    landmarks : landmarks with the kernel.
    fit_intercept : False for f without b.
    placed : the units that will be held out most often, if their places are known.
    keeps : True to keep T for `slopes`, if it has at most 2²⁵ numbers.

    Attributes
    ----------
    coef : (m, t) coefficients of the landmarks.
    V : (q, q) upper triangular, t = [k(x, Z), 1] V; q is m, or m + 1 with an intercept.

    Raises
    ------
    NotPositiveDefiniteError
        If A is not numerically positive definite.

    Notes
    -----
    3 n m² flops and two kernel values for every row and landmark, residuals included.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        y: Array,
        mu: float,
        zeta: Array,
        landmarks: Landmarks,
        *,
        fit_intercept: bool = True,
        placed: Placed | None = None,
        keeps: bool = False,
    ) -> None:
        self._placed, self._keeps = placed, keeps
        self.blocks, self.y, self.mu, self.weight, self.landmarks = blocks, y, mu, zeta, landmarks
        n, m = len(y), len(landmarks)
        with blas_threads(m):
            R_inverse = landmarks.whitening(mu)
        work = partial(moments, landmarks, R_inverse, fit_intercept)
        (A, b), _ = blocks.sweep(work, y, zeta)
        A = np.array(A, order="F")
        self.size = float(np.trace(A)) / n + self.ridge
        A[np.arange(m), np.arange(m)] += n * mu
        with blas_threads(m):
            L, failed = lapack.dpotrf(A, lower=1, clean=1)
            if failed or not np.isfinite(b).all():
                raise NotPositiveDefiniteError(mu)
            V, _ = lapack.dtrtri(np.asfortranarray(L.T), lower=0)  # L⁻ᵀ
            self._theta = V.T @ b
            theta = V @ self._theta
            theta[:m] = R_inverse @ theta[:m]
            V[:m] = blas.dtrmm(1.0, R_inverse, V[:m])
        self.V, self.coef, self._intercept = V, theta[:m], theta[m:].sum(axis=0)
        self._rows: tuple[Array, Array] | None = None  # leverages left 1 − h, and r
        self._T = np.empty((n, 0))  # (n, q) if they are kept
        self._of_units: _OfUnits | None = None
        self._in_memory: Thin | None = None

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.coef, self._intercept, self.landmarks.samples.X)

    @property
    def loo_residuals(self) -> Array:
        left, r = self._swept
        return np.asarray(r / left[:, None])

    @property
    def alpha(self) -> Array:  # type: ignore[override]
        return self._swept[1] / self.ridge[:, None]

    def fitted(self) -> Array:
        return self.y - self._swept[1]

    def diagonal(self) -> Array:
        return self._swept[0] / self.ridge

    def residuals(self, units: Units) -> Array:
        return self._without(units).e

    def solve(self, units: Units, V: Array) -> Array:
        known = self._without(units)
        V = self.ridge[:, None] * np.broadcast_to(V, (units.shape[0], *V.shape[-2:]))
        work = partial(_solved, self.landmarks, self.V, known.placed.large)
        (sums,), (solved,) = known.placed.sweep(work, V.swapaxes(0, 1), self.zeta)
        return self._with_large(known.placed, solved, known.inverse(sums))

    def columns(self, batch: Batch, e: Array) -> Array:
        k, s = batch.rows.shape
        T = triangular_product(self.V, self.landmarks.cross(self.blocks.rows(batch.rows.ravel())))
        w = np.einsum("qks,kst->qkt", T.reshape(-1, k, s), self.zeta[batch.rows][:, :, None] * e)
        P_e = -self._products(w.reshape(len(w), -1)).reshape(len(self.y), k, -1).swapaxes(0, 1)
        P_e[np.arange(k)[:, None], batch.rows] += e
        return np.asarray(P_e / self.ridge[:, None])

    def inverse(self, batch: Batch) -> Inverse:
        """Rows of T are made anew for each, q numbers a row."""
        T = triangular_product(self.V, self.landmarks.cross(self.blocks.rows(batch.rows.ravel())))
        return inverse_of_rows(T.T.reshape(*batch.rows.shape, -1), self.zeta, self.mu, batch.rows)

    def matrix(self) -> Array:
        return self.in_memory().matrix()

    def smoother(self, X: Matrix) -> tuple[Array, Array]:
        """A sweep over the rows of the fit, with 2 n m flops for each new row."""
        T = triangular_product(self.V, self.landmarks.cross(X))
        return T.T @ self._theta, self._products(T).T * self.zeta

    def variances(self, X: Matrix) -> Array:
        """n μ (1 + ‖t(x)‖²) plus the part of k(x, x) that the landmarks lack [RW06 sec. 8.3.4]."""
        T = triangular_product(self.V, self.landmarks.cross(X))
        of_features = len(self.y) * self.mu * (1.0 + np.einsum("ij,ij->j", T, T))
        return np.asarray(of_features + _lacking(self.landmarks, self._whitening, X)[1][0])

    def _without_own(self, units: Units) -> tuple[Array, Array]:
        """As for new rows, landmarks lack a part of k(x, x) of a row that is held out."""
        e, variance = super()._without_own(units)
        work = partial(_lacking, self.landmarks, self._whitening)
        return e, variance + self.blocks.sweep(work)[1][0]

    @cached_property
    def _whitening(self) -> Array:
        return self.landmarks.whitening(self.mu)

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        """t(x) (Tᵀ ζ y − T_Gᵀ ζ e_G); of a large unit the second is known from the residuals."""
        known, F = self._without(units), np.empty((len(rows), self.y.shape[1]))
        T_new = triangular_product(self.V, self.landmarks.cross(X)).T
        large, widest = known.placed.large, max(len(G) for G in units)
        for batch, which, place in changed_rows(units, rows, _NUMBERS // (len(self.V) * widest)):
            small = large[batch.ids] < 0
            w = np.empty((len(small), len(self.V), self.y.shape[1]))
            w[~small] = known.z[large[batch.ids][~small]]
            if small.any():
                G = batch.rows[small]
                K = self.landmarks.cross(self.blocks.rows(G.ravel()))
                T = triangular_product(self.V, K).T.reshape(*G.shape, len(self.V))
                e = known.e[batch.some(small).places]
                w[small] = T.swapaxes(1, 2) @ (self.zeta[G][:, :, None] * e)
            F[which] = of_unit(T_new[which], self._theta - w, place)
        return F

    def mean_square_changes(self, units: Units) -> Array:
        """By f⁽⁻ᴳ⁾ − f = −t·w with w = T_Gᵀ ζ e_G, and Σ_j (t_jᵀ w)² = wᵀ TᵀT w − ‖T_G w‖²."""
        known, q = self._without(units), len(self.V)
        (square,), _ = self.blocks.sweep(partial(_squares, self.landmarks, self.V))
        changes = np.empty(units.n_units)
        for batch in units.parts(_NUMBERS // (q * max(len(rows) for rows in units))):
            K = self.landmarks.cross(self.blocks.rows(batch.rows.ravel()))
            T = triangular_product(self.V, K).T.reshape(*batch.rows.shape, q)
            w = T.swapaxes(1, 2) @ (self.zeta[batch.rows][:, :, None] * known.e[batch.places])
            squares = (w * (square @ w)).sum(axis=(1, 2)) - ((T @ w) ** 2).sum(axis=(1, 2))
            rest = (len(self.y) - batch.rows.shape[1]) * self.y.shape[1]
            changes[batch.ids] = np.maximum(squares, 0.0) / rest
        return changes

    def in_memory(self) -> Thin:
        """The same projection with T in memory, n q numbers."""
        if self._in_memory is None:
            _, (T,) = self.blocks.sweep(partial(_rows, self.landmarks, self.V))
            self._in_memory = Thin(T, self.y, self.mu, self.weight, np.zeros(len(self.V)))
        return self._in_memory

    def slopes(self, units: Units, slope: Array) -> tuple[Array, float]:
        """Derivative of a criterion J with respect to the kernel's hyper-parameters and μ.

        With g = −∂J/∂f, u_G = (1 − ζ T_G T_Gᵀ)⁻¹ g_G, C = ½ (ζ e uᵀ + u eᵀ ζ) within each unit and
        zero elsewhere, summed over targets and repetitions, w = V Σ t uᵀ and M = V Tᵀ C T Vᵀ,

            ∂J/∂k(x_i, Z) = (ζ_i (k(x_i, Z) w + w_b) − u_i) cᵀ − ζ_i r_i wᵀ
                            + 2 Σ_j C_ij φ_j A⁻¹ − 2 ζ_i φ_i M,
            ∂J/∂K_ZZ = n μ (½ (w cᵀ + c wᵀ) − M)

        for φ = [k(x, Z), 1], restricted to the columns of the landmarks. For a large unit,
        T_Gᵀ C_GG T_G = ½ (a bᵀ + b aᵀ) with a = T_Gᵀ ζ e_G and b = T_Gᵀ u_G.

        Parameters
        ----------
        units : rows that leave together.
        slope : (n_repetitions, n, t) ∂J/∂f in the outputs without each unit; zero for rows that
            are not tested.

        Returns
        -------
        slopes : (p,) ∂J/∂θ for the free hyper-parameters of the kernel, in natural units.
        slope_mu : ∂J/∂μ.

        Notes
        -----
        6 n m² flops and two kernel values for every row and landmark, in two sweeps, or 4 n m² and
        one kernel value if T is kept; if all units are large, 4 n m² less, and 8 n m for each.
        """
        known, m, zeta, (left, r) = (
            self._without(units),
            len(self.landmarks),
            self.zeta,
            self._swept,
        )
        placed, e, g = known.placed, known.e.swapaxes(0, 1), -slope.swapaxes(0, 1)
        work = partial(_slope_moments, self.landmarks, self.V, placed.large)
        (M, of_u, of_g), (u,) = placed.sweep(work, self._T, g, e, zeta, left)
        b = known.inverse(of_g)
        of_u += b.sum(axis=0)
        w = self.V @ of_u
        Va, Vb = (np.einsum("qp,kpt->qkt", self.V, z) for z in (known.z, b))
        some = placed.n_large < placed.units.n_units
        columns = self.coef, -w[:m], Va[:m], Vb[:m]
        in_features = of_u, np.moveaxis(known.z, 0, 1), np.moveaxis(b, 0, 1)
        known_sums = self.V, M if some else None, placed.large, columns, in_features
        contraction = partial(_contraction, self.landmarks, *known_sums)
        (slopes,), _ = placed.sweep(contraction, self._T, u, e, r, zeta)
        half = w[:m] @ self.coef.T - np.einsum("ikt,jkt->ij", Va[:m], Vb[:m])
        of_gram = 0.5 * (half + half.T)
        if some:
            of_gram -= self.V[:m] @ M @ self.V[:m].T
        of_penalty, value = self.landmarks.gram_slopes(of_gram)
        n = len(self.y)
        return slopes + n * self.mu * of_penalty, n * value

    @property
    def _swept(self) -> tuple[Array, Array]:
        """1 − h and r of each row."""
        if self._rows is None:
            self._without(Units.rows(len(self.y)))
        assert self._rows is not None
        return self._rows

    def _without(self, units: Units) -> _OfUnits:
        """Residuals without the units; in one sweep, or two if some are large."""
        if self._of_units is not None and self._of_units.placed.units is units:
            return self._of_units
        placed = self._placed
        if placed is None or placed.units is not units:
            placed = Placed.of(units, self.blocks)
        q, t = len(self.V), self.y.shape[1]
        M, z = np.empty((placed.n_large, q, q)), np.empty((placed.n_large, q, t))
        step = max(1, _NUMBERS // q**2)
        for start in range(0, max(1, placed.n_large), step):
            some = range(start, min(start + step, placed.n_large))
            keeps = self._keeps and len(self.y) * q <= KEPT
            work = partial(
                _residuals, self.landmarks, self.V, self._theta, placed.large, some, keeps
            )
            sums, (left, r, e, self._T) = placed.sweep(work, self.y, self.zeta)
            M[some.start : some.stop], z[some.start : some.stop] = sums
        self._rows = left, r
        safe = left > len(left) * np.finfo(np.float64).eps
        if not safe.all():
            raise LeverageError(self.mu, int(np.argmin(safe)))
        least = np.full(M.shape[:2], len(left) * np.finfo(np.float64).eps)
        M[:, np.arange(q), np.arange(q)] -= 1.0
        inverse = inverses(-M, least, placed.some_row(q), self.mu)
        z = inverse(z)
        self._of_units = _OfUnits(placed, inverse, z, self._with_large(placed, e, z))
        return self._of_units

    def _with_large(self, placed: Placed, values: Array, z: Array) -> Array:
        """``values``, (n, n_repetitions, c), plus T_G z_G for the rows of each large unit.

        (n_repetitions, n, c).
        """
        if placed.n_large:
            work = partial(
                _large, self.landmarks, placed.large, np.einsum("qp,kpc->qkc", self.V, z)
            )
            values = values + placed.sweep(work)[1][0]
        return np.asarray(values.swapaxes(0, 1))

    def _products(self, columns: Array) -> Array:
        """T times (q, c) columns, (n, c)."""
        _, (products,) = self.blocks.sweep(partial(_products, self.landmarks, self.V @ columns))
        return products


def moments(
    landmarks: Landmarks, R_inverse: Array, fit_intercept: bool, X: Matrix, y: Array, zeta: Array
) -> tuple[tuple[Array, ...], tuple[()]]:
    """Sums Σ ζ φ φᵀ and Σ ζ φ yᵀ over a block."""
    root = zeta**0.5
    K = landmarks.cross(X)
    K *= root
    phi = triangular_product(R_inverse, K, root if fit_intercept else None)
    return (phi @ phi.T, phi @ (root[:, None] * y)), ()


def _rows(landmarks: Landmarks, V: Array, X: Matrix) -> tuple[tuple[()], tuple[Array]]:
    """Rows of T."""
    return (), (triangular_product(V, landmarks.cross(X)).T,)


def _lacking(landmarks: Landmarks, R_inverse: Array, X: Matrix) -> tuple[tuple[()], tuple[Array]]:
    """k(x, x) − k_Zᵀ (K_ZZ + δ)⁻¹ k_Z of the rows of a block."""
    pairs = landmarks.pairs(X)
    phi = triangular_product(R_inverse, landmarks.values(pairs))
    own = landmarks.kernel.self_values(pairs.rows) - np.einsum("ij,ij->j", phi, phi)
    return (), (np.maximum(own, 0.0),)


def _squares(landmarks: Landmarks, V: Array, X: Matrix) -> tuple[tuple[Array], tuple[()]]:
    """Sum T Tᵀ over a block."""
    T = triangular_product(V, landmarks.cross(X))
    return (T @ T.T,), ()


def _products(landmarks: Landmarks, columns: Array, X: Matrix) -> tuple[tuple[()], tuple[Array]]:
    """Products of [k(x_i, Z), 1] with some columns, for the rows of a block."""
    return (), (_times(landmarks.cross(X), columns),)


def _residuals(
    landmarks: Landmarks,
    V: Array,
    theta: Array,
    large: AnyArray,
    some: range,
    keeps: bool,
    X: Matrix,
    y: Array,
    zeta: Array,
    ids: AnyArray,
) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
    """1 − h, r = y − f, e and, if it is kept, T of a block; sums T_Gᵀ ζ [T_G, r_G] of some units.

    e of large units is r: T_G z_G is still to be added.
    """
    T = triangular_product(V, landmarks.cross(X))
    left = 1.0 - zeta * np.einsum("ij,ij->j", T, T)
    r = y - T.T @ theta
    e = _within_block(T, left, zeta, ids, large, np.repeat(r[:, None], ids.shape[1], 1))
    q = len(T)
    M, of_r = np.zeros((len(some), q, q)), np.zeros((len(some), q, y.shape[1]))
    for _, place, rows in _large_units(ids, large):
        if place in some:
            own, root, at = T.take(rows, axis=1), np.sqrt(zeta[rows]), place - some.start
            own *= root
            np.matmul(own, own.T, out=M[at])
            of_r[at] = own @ (root[:, None] * r[rows])
    return (M, of_r), (left, r, e, T.T if keeps else np.empty((len(y), 0)))


def _solved(
    landmarks: Landmarks, V: Array, large: AnyArray, X: Matrix, v: Array, zeta: Array, ids: AnyArray
) -> tuple[tuple[Array], tuple[Array]]:
    """(1 − T_G T_Gᵀ ζ)⁻¹ v_G of a block, and sums T_Gᵀ ζ v_G of large units, for which it is v."""
    T = triangular_product(V, landmarks.cross(X))
    left = 1.0 - zeta * np.einsum("ij,ij->j", T, T)
    sums = np.zeros((int(large.max()) + 1, len(T), v.shape[2]))
    for k, place, rows in _large_units(ids, large):
        sums[place] += (zeta[rows] * T[:, rows]) @ v[rows, k]
    return (sums,), (_within_block(T, left, zeta, ids, large, v),)


def _large(
    landmarks: Landmarks, large: AnyArray, Vz: Array, X: Matrix, ids: AnyArray
) -> tuple[tuple[()], tuple[Array]]:
    """t_iᵀ z_G for the rows of large units, zero for others, (n_rows, n_repetitions, c).

    By [k(x_i, Z), 1] and V z_G, (q, n_large, c).
    """
    K = landmarks.cross(X)
    added = np.zeros((*ids.shape, Vz.shape[2]))
    for k, place, rows in _large_units(ids, large):
        added[rows, k] = _times(K[:, rows], Vz[:, place])
    return (), (added,)


def _slope_moments(
    landmarks: Landmarks,
    V: Array,
    large: AnyArray,
    X: Matrix,
    T: Array,
    g: Array,
    e: Array,
    zeta: Array,
    left: Array,
    ids: AnyArray,
) -> tuple[tuple[Array, Array, Array], tuple[Array]]:
    """Sums Σ t_i C_ij t_jᵀ and Σ t uᵀ over small units, Σ t gᵀ over each large one, u of the rows.

    u of large units is g: ζ T_G b_G is still to be added.
    """
    T, q = _features(landmarks, V, X, T), len(V)
    of_g = np.zeros((int(large.max()) + 1, q, g.shape[2]))
    small = (ids >= 0)[:, :, None]
    for k, place, rows in _large_units(ids, large):
        of_g[place] += T[:, rows] @ g[rows, k]
        small[rows, k] = False
    if not small.any():
        return (np.zeros((q, q)), np.zeros((q, g.shape[2])), of_g), (g,)
    own = zeta[:, None, None]
    u = own * _within_block(T, left, zeta, ids, large, g / own)
    of_u = T @ (u * small).sum(axis=1)
    sets = _small_units(ids, large)
    if sets:
        return (T @ _times_C(T, e, u, zeta, small, sets).T, of_u, of_g), (u,)
    d = zeta * (small * e * u).sum(axis=(1, 2))
    T = T * np.sqrt(np.abs(d))
    square = T @ T.T
    if (d < 0).any():
        below = T[:, d < 0]
        square -= 2.0 * (below @ below.T)
    return (square, of_u, of_g), (u,)


def _contraction(
    landmarks: Landmarks,
    V: Array,
    M: Array | None,
    large: AnyArray,
    columns: tuple[Array, ...],
    in_features: tuple[Array, Array, Array],
    X: Matrix,
    T: Array,
    u: Array,
    e: Array,
    r: Array,
    zeta: Array,
    ids: AnyArray,
) -> tuple[tuple[Array], tuple[()]]:
    """Sum over a block of Σ_ij G_ij ∂k(x_i, z_j)/∂θ, where G = ∂J/∂k(x_i, z_j).

    M is Tᵀ C T of small units, None if there are none; ``columns`` are c, −w, V a and V b of the
    landmarks, ``in_features`` V⁻¹ w, a and b.
    """
    T = _features(landmarks, V, X, T)
    own, small, u = zeta[:, None, None], (ids >= 0)[:, :, None], u.copy()
    of_w, of_a, of_b = (np.tensordot(T, each, (0, 0)) for each in in_features)
    with_a, with_b = -own * of_b, -own * of_a
    for k, place, rows in _large_units(ids, large):
        u[rows, k] += zeta[rows, None] * of_b[rows, place]
        with_a[rows, place] += u[rows, k]
        with_b[rows, place] += zeta[rows, None] * e[rows, k]
        small[rows, k] = False
    left = zeta[:, None] * of_w - u.sum(axis=1)
    factors = (left, zeta[:, None] * r, with_a, with_b)
    G = _side_by_side(columns) @ _side_by_side(factors).T
    if M is not None:
        square = _times_C(T, e, u, zeta, small, _small_units(ids, large))
        removed = M @ T
        removed *= zeta
        square -= removed
        square *= 2.0
        G += upper_product(V, square)[: len(G)]
    return (landmarks.kernel.values_gradient(landmarks.pairs(X), G.T),), ()


def _features(landmarks: Landmarks, V: Array, X: Matrix, T: Array) -> Array:
    """t of the rows of a block, (q, n_rows): those kept in ``T``, (n_rows, q), or made anew.

    In the same order in memory, so that products have the same bits.
    """
    if T.size:
        return np.ascontiguousarray(T.T)
    return triangular_product(V, landmarks.cross(X))


def _side_by_side(arrays: tuple[Array, ...]) -> Array:
    return np.hstack([a.reshape(len(a), -1) for a in arrays])


def outputs_on(blocks: RowBlocks, landmarks: Landmarks, coef: Array, intercept: Any) -> Array:
    """f(x) = Σ_j c_j k(x, z_j) + b for rows in blocks: (n,), or (n, t) if ``coef`` is (m, t)."""
    theta = np.vstack([targets_as_columns(coef), np.atleast_1d(intercept)])
    _, (f,) = blocks.sweep(partial(_products, landmarks, theta))
    return np.reshape(f, (len(f), *coef.shape[1:]))


def _times(K: Array, columns: Array) -> Array:
    """[k(x_i, Z), 1] times columns, (m + 1, c), or times (m, c) without an intercept."""
    return np.asarray(K.T @ columns[: len(K)] + columns[len(K) :].sum(axis=0))


def triangular_product(V: Array, K: Array, last: Array | None = None) -> Array:
    """Vᵀ K, or Vᵀ [K; 1], for upper triangular ``V``, by panels; ``last`` is appended as a row.

    SciPy calls the BLAS routine for this with Python's lock held, so threads would wait.
    """
    m = len(K)
    product = np.empty((len(V) + (last is not None), K.shape[1]))
    for start in range(0, m, _PANEL):
        stop = min(start + _PANEL, m)
        np.matmul(V[:stop, start:stop].T, K[:stop], out=product[start:stop])
    if len(V) > m:
        product[m] = V[:m, m] @ K + V[m, m]
    if last is not None:
        product[-1] = last
    return product


def upper_product(V: Array, S: Array) -> Array:
    """V S for upper triangular ``V``, by panels, in the place of S."""
    for start in range(0, len(S), _PANEL):
        stop = min(start + _PANEL, len(S))
        np.matmul(V[start:stop, start:], S[start:], out=S[start:stop])
    return S


def _large_units(ids: AnyArray, large: AnyArray) -> Iterator[tuple[int, int, AnyArray]]:
    """Repetition, number and rows of each large unit with rows in a block."""
    place = np.where(ids >= 0, large[ids], -1)
    for k in np.flatnonzero((place >= 0).any(axis=0)):
        for number in np.unique(place[place[:, k] >= 0, k]):
            yield int(k), int(number), np.flatnonzero(place[:, k] == number)


def _small_units(ids: AnyArray, large: AnyArray) -> list[tuple[int, AnyArray]]:
    """Repetition, and (n_units, size) rows, of the units of two rows or more in a block."""
    units = []
    for k, of_rows in enumerate(ids.T):
        rows = np.flatnonzero((of_rows >= 0) & (large[of_rows] < 0))
        _, number, counts = np.unique(of_rows[rows], return_inverse=True, return_counts=True)
        order, ends = rows[np.argsort(number, kind="stable")], np.cumsum(counts)
        for size in np.unique(counts[counts > 1]):
            starts = (ends - counts)[counts == size][:, None]
            units.append((k, order[starts + np.arange(size)]))
    return units


def _within_block(
    T: Array, left: Array, zeta: Array, ids: AnyArray, large: AnyArray, v: Array
) -> Array:
    """(1 − T_G T_Gᵀ ζ)⁻¹ v_G for (n_rows, n_repetitions, c) columns.

    v itself for rows of large units, zero for rows that stay.
    """
    alone = (ids >= 0) & (large[ids] < 0)
    solved = np.where(alone[:, :, None], v / left[:, None, None], v) * (ids >= 0)[:, :, None]
    for k, G in _small_units(ids, large):
        root = np.sqrt(zeta[G])[:, :, None]
        U = root * np.moveaxis(T[:, G], 0, 2)
        inner = np.eye(G.shape[1]) - U @ U.swapaxes(1, 2)
        solved[G, k] = np.linalg.solve(inner, root * v[G, k]) / root
    return solved


def _times_C(
    T: Array, e: Array, u: Array, zeta: Array, small: AnyArray, sets: list[tuple[int, AnyArray]]
) -> Array:
    """T C with C = ½ (ζ e uᵀ + u eᵀ ζ) within each small unit, summed over repetitions."""
    e, alone = zeta[:, None, None] * e, small.copy()
    for k, G in sets:
        alone[G, k] = False
    product: Array = T * (alone * e * u).sum(axis=(1, 2))
    for k, G in sets:
        half = 0.5 * e[G, k] @ u[G, k].swapaxes(1, 2)
        C = half + half.swapaxes(1, 2)
        product[:, G] += (T[:, G].swapaxes(0, 1) @ C).swapaxes(0, 1)
    return product
