"""Projections: the matrix P of a solved linear system, which has every model without some rows.

A model f = y − D α with D = diag(n μ / ζ) has α = P y. Without the rows G it has the residuals

    e_G = (P_GG)⁻¹ α_G,

and at all rows f⁽⁻ᴳ⁾ = f − (I − D P)_:G e_G; at a new row x, f⁽⁻ᴳ⁾(x) = f(x) − H(x, G) e_G with the
smoother H, f(x) = H(x, ·) y. The ridge D of the other rows stays the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array, Matrix
from looms.held_out import HeldOut
from looms.lssvm._system import LeverageError
from looms.lssvm.inner import InnerUnits
from looms.lssvm.left_out import LeftOut, Spread
from looms.units import Batch, Units

#: Inverse of some blocks times columns, (k, s, c) to (k, s, c).
Inverse = Callable[[Array], Array]

_NUMBERS = 1 << 22  # in the changes of some units
_ROWS = 4096  # of units of a size, whose blocks of P are inverted at once
_SMALL = 16  # rows of a unit, up to which NumPy factorizes all units of a size at once


class Expansion(NamedTuple):
    """f(x) = Σ_i c_i k(x_i, x) + b.

    Attributes
    ----------
    coefficients : (n, t) of the rows of the fit, or (m, t) of landmarks.
    intercept : (t,) b; zero without an intercept.
    landmarks : (m, n_features), or None.
    weights : (p, t) w of a linear model f(x) = w·x + b that was solved for w, or None.
    """

    coefficients: Array
    intercept: Array
    landmarks: Matrix | None = None
    weights: Array | None = None


class Projection(LeftOut):
    """P of a solved system, with its model, and that without each unit in closed form.

    Attributes
    ----------
    y, alpha : (n, t) targets, and α = P y.
    weight : (n,) positive weights ζ.
    mu : regularization.
    size : (n,) diagonal of the kernel matrix plus D, or its order of magnitude.
    """

    size: Array
    alpha: Array
    mu: float
    #: Of the targets in ``loo``, (n,) or (n, t).
    shape: tuple[int, ...] | None = None
    #: (b, n) kernel values of new rows with those of the fit, of a model that is made of them.
    cross: Callable[[Matrix], Array] | None = None
    #: (n,) ∂b/∂y of such a model; zero without an intercept.
    share: Array
    #: ∂²b/∂y∂y of the bordered system, 1 / Ση; zero without an intercept.
    corner: float = 0.0
    _solved: tuple[Units, list[tuple[Batch, Inverse]]] | None = None
    _inner: tuple[Units, InnerUnits] | None = None

    @abstractmethod
    def diagonal(self) -> Array:
        """Diagonal of P, (n,), positive."""

    @abstractmethod
    def inverse(self, batch: Batch) -> Inverse:
        """(P_GG)⁻¹ for the units of a batch, of two rows or more.

        Raises
        ------
        LeverageError
            If the model without one of them is singular in double precision.
        """

    @abstractmethod
    def matrix(self) -> Array:
        """P, (n, n), valid in both triangles; n² numbers."""

    @property
    @abstractmethod
    def expansion(self) -> Expansion:
        """Coefficients of the model of all rows."""

    def mean_square_changes(self, units: Units) -> Array:
        """Mean over rows outside of each unit, and targets, of (f⁽⁻ᴳ⁾ − f)², (n_units,)."""
        e, ridge = self.residuals(units), self.ridge[:, None]
        changes = np.empty(units.n_units)
        for batch in units.parts(_NUMBERS // self.y.size):
            change = ridge * self.columns(batch, e[batch.places])
            change[np.arange(len(change))[:, None], batch.rows] = 0.0
            rest = (len(self.y) - batch.rows.shape[1]) * self.y.shape[1]
            changes[batch.ids] = (change**2).sum(axis=(1, 2)) / rest
        return changes

    def smoother(self, X: Matrix) -> tuple[Array, Array]:
        """Outputs f(x) of new rows, (b, t), and their smoother H(x, ·), (b, n).

        By the kernel matrix H = K(X, ·) P + share, of 2 n² flops for a row.
        """
        if self.cross is None:
            raise TypeError("A projection without a kernel has no new rows.")
        K, model = self.cross(X), self.expansion
        H = blas.dgemm(1.0, self.matrix(), K.T).T
        H += self.share
        return blas.dgemm(1.0, K, model.coefficients) + model.intercept, H

    def variances(self, X: Matrix) -> Array:
        """v(x) + n μ, (b,): variances of targets of weight one at new rows, given those of the fit.

        v(x) = k(x, x) − [k_x; 1]ᵀ C⁻¹ [k_x; 1] for the bordered matrix C of the system.
        """
        raise TypeError("A projection without a kernel has no new rows.")

    def spread(self, units: Units) -> Spread:
        """s √(v(x) + n μ), and of rows without their unit s √((P_GG)⁻¹)_ii, with s of residuals."""
        e, variance = self._without_own(units)
        held_out = np.broadcast_to(np.sqrt(variance)[:, None], e.shape)
        return Spread(e, held_out, lambda X: np.sqrt(self.variances(X))[:, None]).scaled()

    def _without_own(self, units: Units) -> tuple[Array, Array]:
        """Residuals of rows without their unit, (n, t), and their variances over s², (n,)."""
        e, variance = np.empty(self.y.shape), np.empty(len(self.y))
        alpha = self.alpha
        for of_size in units.batches:
            k, s = of_size.rows.shape
            for first in range(0, k, max(1, _ROWS // s)):
                batch = of_size.some(slice(first, first + max(1, _ROWS // s)))
                inverse, G = self._inverse(batch), batch.rows
                e[G] = inverse(alpha[G])
                for place in np.array_split(np.arange(s), -(-G.size * s // _NUMBERS)):
                    columns = np.zeros((*G.shape, len(place)))
                    columns[:, place, np.arange(len(place))] = 1.0
                    own = inverse(columns)[:, place, np.arange(len(place))]
                    variance[G[:, place]] = own
        return e, variance

    def columns(self, batch: Batch, e: Array) -> Array:
        """P_:G e_G for the units of a batch and (k, s, t) numbers e, (k, n, t)."""
        P = self.matrix()
        if batch.rows.shape[1] == 1:
            return np.asarray(P.T[batch.rows[:, 0]][:, :, None] * e)
        return np.stack([P[:, G] @ v for G, v in zip(batch.rows, e, strict=True)])

    @property
    def zeta(self) -> Array:
        return self.weight

    @property
    def ridge(self) -> Array:
        """D = n μ / ζ, (n,)."""
        return len(self.zeta) * self.mu / self.zeta

    @property
    def loo_residuals(self) -> Array:
        """α_i / p_i, residuals of each row held out by itself, (n, t)."""
        return np.asarray(self.alpha / self.diagonal()[:, None])

    @property
    def loo(self) -> HeldOut:
        """Leave-one-out outputs of single rows, with targets and weights."""
        outputs, shape = self.y - self.loo_residuals, self.shape or self.y.shape
        return HeldOut(self.y.reshape(shape), outputs.reshape(shape), self.weight)

    def outputs(self, units: Units) -> Array:
        return units.only_tested(self.y - self.residuals(units))

    def fitted(self) -> Array:
        return self.y - self.ridge[:, None] * self.alpha

    def leverage(self) -> Array:
        return 1.0 - self.ridge * self.diagonal()

    def energies(self, units: Units) -> Array:
        """By P_GG e_G = α_G."""
        energies = np.zeros((units.n_units, self.y.shape[1]))
        e, alpha = self.residuals(units), len(self.y) * self.mu * self.alpha
        for batch in units.batches:
            energies[batch.ids] = (e[batch.places] * alpha[batch.rows]).sum(axis=1)
        return energies

    def quadratic(self, batch: Batch, e: Array) -> Array:
        own = self.columns(batch, e)[np.arange(len(e))[:, None], batch.rows]
        return np.asarray(len(self.y) * self.mu * (e * own).sum(axis=1))

    def of_own(self, rows: AnyArray) -> Array:
        none = np.zeros(len(rows), dtype=np.intp)
        return self.y[rows] - self.inverse(Batch(none, none, rows))(self.alpha[rows])

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        """f − (I − D P)_:G e_G."""
        if inner is not None:
            if self._inner is None or self._inner[0] is not inner:
                self._inner = inner, InnerUnits(inner, self.matrix(), self.alpha, self.mu)
            return self.y - self._inner[1].residuals(batch.rows)
        e = self.residuals(units)[batch.places]
        F = self.fitted() + self.ridge[:, None] * self.columns(batch, e)
        F[np.arange(len(F))[:, None], batch.rows] -= e
        return F

    def at(self, X: Matrix, units: Units) -> Array:
        """f(x) − H(x, G) e_G."""
        whole, H = self.smoother(X)
        e = self.residuals(units)
        F = np.empty((len(whole), units.n_units, self.y.shape[1]))
        for batch in units.batches:
            change = np.einsum("bks,kst->bkt", H[:, batch.rows], e[batch.places])
            F[:, batch.ids] = whole[:, None] - change
        return F

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        """k(x, ·) (α − P_:G e_G) + b − share_G e_G, by the kernel values of the changed rows."""
        if self.cross is None:
            raise TypeError("A projection without a kernel has no new rows.")
        whole, e, F = self.expansion, self.residuals(units), np.empty((len(rows), self.y.shape[1]))
        for batch, which, place in changed_rows(units, rows, _NUMBERS // self.y.size):
            v, K = e[batch.places], self.cross(X[which])
            alpha = whole.coefficients - self.columns(batch, v)
            b = whole.intercept - np.einsum("ks,kst->kt", self.share[batch.rows], v)
            F[which] = of_unit(K, alpha, place) + b[place]
        return F

    def solve(self, units: Units, V: Array) -> Array:
        """(P_GG)⁻¹ V_G for every unit.

        Parameters
        ----------
        units : rows that leave together.
        V : (n, c), the same in every repetition, or (n_repetitions, n, c).

        Returns
        -------
        solved : (n_repetitions, n, c); zero for rows that stay.
        """
        if self._solved is None or self._solved[0] is not units:
            self._solved = units, [(batch, self._inverse(batch)) for batch in units.batches]
        V = np.broadcast_to(V, (units.shape[0], *V.shape[-2:]))
        solved = np.zeros(V.shape)
        for batch, inverse in self._solved[1]:
            solved[batch.places] = inverse(V[batch.places])
        return solved

    def residuals(self, units: Units) -> Array:
        """e of every row without its unit, (n_repetitions, n, t); zero for rows that stay."""
        return self.solve(units, self.alpha)

    def _inverse(self, batch: Batch) -> Inverse:
        if batch.rows.shape[1] > 1:
            return self.inverse(batch)
        p = self.diagonal()[batch.rows][:, :, None]
        return lambda V: V / p


def changed_rows(
    units: Units, rows: AnyArray, most: int
) -> Iterator[tuple[Batch, AnyArray, AnyArray]]:
    """Units that test some rows, at most so many at a time, with the places of these rows.

    And the place of the unit of each in its batch.
    """
    number = units.own[rows]
    for batch in units.parts(most):
        batch = batch.some(np.isin(batch.ids, number))
        which = np.flatnonzero(np.isin(number, batch.ids))
        if len(which):
            yield batch, which, np.searchsorted(batch.ids, number[which])


def of_unit(values: Array, coefficients: Array, place: AnyArray) -> Array:
    """Rows of values, (b, m), times the coefficients (k, m, t) of their unit, (b, t)."""
    if len(coefficients) == len(place):
        return np.asarray(np.einsum("bm,bmt->bt", values, coefficients[place]))
    F = np.empty((len(place), coefficients.shape[2]))
    for k, c in enumerate(coefficients):
        F[place == k] = values[place == k] @ c
    return F


def inverses(blocks: Iterable[Array], least: Array, rows: AnyArray, mu: float) -> Inverse:
    """Inverse of symmetric positive definite blocks, by their Cholesky factors.

    Parameters
    ----------
    blocks : k of (s, s), overwritten; large ones are taken one at a time.
    least : (k, s) numbers that the squared pivots must exceed.
    rows : (k, s) rows of the fit that they belong to, for messages.
    mu : regularization, for messages.

    Raises
    ------
    LeverageError
        If a pivot is too small.
    """
    if rows.shape[1] > _SMALL:
        factors = [_factor(*each, mu) for each in zip(blocks, least, rows, strict=True)]

        def solved(V: Array) -> Array:
            columns = np.empty(V.shape)
            for R, v, own in zip(factors, V, columns, strict=True):
                own[:] = lapack.dpotrs(R, v, lower=1)[0]
            return columns

        return solved
    blocks = blocks if isinstance(blocks, np.ndarray) else np.stack(list(blocks))
    try:
        R = np.linalg.cholesky(blocks)
    except np.linalg.LinAlgError:
        for each in zip(blocks, least, rows, strict=True):
            _factor(*each, mu)
        raise
    _check(np.diagonal(R, axis1=1, axis2=2) ** 2, least, rows, mu)
    S = np.linalg.inv(R)
    return lambda V: S.swapaxes(1, 2) @ (S @ V)


def _factor(block: Array, least: Array, rows: AnyArray, mu: float) -> Array:
    R, failed = lapack.dpotrf(block.T, lower=1, overwrite_a=1)
    if failed:
        raise LeverageError(mu, int(rows[failed - 1]))
    _check(R.diagonal() ** 2, least, rows, mu)
    return np.asarray(R)


def _check(pivots: Array, least: Array, rows: AnyArray, mu: float) -> None:
    safe = pivots > least
    if not safe.all():
        raise LeverageError(mu, int(rows.ravel()[np.argmin(safe)]))
