"""Projections of models with few features: the whole algebra in terms of n × q numbers.

With features φ, A = Σ_i ζ_i φ_i φ_iᵀ + n μ diag(1, …, 1, 0) = (V Vᵀ)⁻¹ and T of rows t_i = Vᵀ φ_i,

    f = T Tᵀ ζ y,    n μ α = ζ (y − f),    n μ P = ζ − ζ T Tᵀ ζ.

So a model on landmarks is the one of the whole kernel matrix K_nZ K_ZZ⁻¹ K_Zn, and everything
that holds rows out needs T alone [docs/references.md, Landmarks].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from looms._typing import AnyArray, Array, Matrix
from looms.lssvm._system import LeverageError
from looms.lssvm.projection import (
    Expansion,
    Inverse,
    Projection,
    changed_rows,
    inverses,
    of_unit,
)
from looms.units import Batch, Units

_NUMBERS = 1 << 22  # in the features of some units


class Thin(Projection):
    """P of few features, with T in memory.

    Parameters
    ----------
    T : (n, q).
    y : (n, t) targets.
    mu, zeta : regularization and weights.
    scale : (q,) t_k = scale_k φ_k for the features φ with a penalty; zero for the intercept.
    of_new : T of new rows, (b, q).

    Raises
    ------
    LeverageError
        If the model without some row is singular in double precision.

    Notes
    -----
    O(n q t); units of s rows add s min(s, q) (s + q) flops each.
    """

    def __init__(
        self,
        T: Array,
        y: Array,
        mu: float,
        zeta: Array,
        scale: Array,
        *,
        of_new: Callable[[Matrix], Array] | None = None,
    ) -> None:
        self.T, self.y, self.mu, self.weight = T, y, mu, zeta
        self.scale, self._of_new = scale, of_new
        self.coef = T.T @ (zeta[:, None] * y)
        self._residuals = y - T @ self.coef
        self.alpha = self._residuals / self.ridge[:, None]
        self._left = 1.0 - zeta * np.einsum("iq,iq->i", T, T)
        safe = self._left > len(y) * np.finfo(np.float64).eps
        if not safe.all():
            raise LeverageError(mu, int(np.argmin(safe)))

    def fitted(self) -> Array:
        return self.y - self._residuals

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.alpha, np.zeros(self.y.shape[1]))

    def diagonal(self) -> Array:
        return np.asarray(self._left / self.ridge)

    def columns(self, batch: Batch, e: Array) -> Array:
        own = self.zeta[batch.rows][:, :, None] * e
        P_e = -(self.T @ (self.T[batch.rows].swapaxes(1, 2) @ own))
        P_e[np.arange(len(e))[:, None], batch.rows] += e
        return np.asarray(P_e / self.ridge[:, None])

    def inverse(self, batch: Batch) -> Inverse:
        return inverse_of_rows(self.T[batch.rows], self.zeta, self.mu, batch.rows)

    def matrix(self) -> Array:
        left = self.zeta[:, None] * self.T
        P = left @ left.T
        np.negative(P, out=P)
        P[np.diag_indices(len(P))] += self.zeta
        P /= len(P) * self.mu
        return P

    def smoother(self, X: Matrix) -> tuple[Array, Array]:
        assert self._of_new is not None
        T = self._of_new(X)
        return T @ self.coef, T @ (self.zeta[:, None] * self.T).T

    def variances(self, X: Matrix) -> Array:
        """n μ (1 + ‖t(x)‖²), without a difference."""
        assert self._of_new is not None
        T = self._of_new(X)
        return np.asarray(len(self.y) * self.mu * (1.0 + np.einsum("ij,ij->i", T, T)))

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        """t(x) (Tᵀ ζ y − T_Gᵀ ζ e_G)."""
        assert self._of_new is not None
        T, e, F = self._of_new(X), self.residuals(units), np.empty((len(rows), self.y.shape[1]))
        for batch, which, place in changed_rows(units, rows, _NUMBERS // self.T.size):
            v = self.zeta[batch.rows][:, :, None] * e[batch.places]
            theta = self.coef - np.einsum("ksq,kst->kqt", self.T[batch.rows], v)
            F[which] = of_unit(T[which], theta, place)
        return F

    def slope_mu(self, units: Units, slope: Array) -> float:
        """∂J/∂μ for a criterion J of the outputs without each unit.

        With u = −(1 − ζ T_G T_Gᵀ)⁻¹ ∂J/∂f_G, a_G = T_Gᵀ ζ e_G and b_G = T_Gᵀ u_G,

            ∂J/∂μ = n Σ_k scale_k² (Σ_G b_Gk f_k − Σ_G a_Gk b_Gk),    f = Tᵀ ζ y.

        Parameters
        ----------
        units : rows that leave together.
        slope : (n_repetitions, n, t) ∂J/∂f; zero for rows that are not tested.
        """
        e, v = self.residuals(units), self.solve(units, -slope)
        total = 0.0
        for batch in units.batches:
            T, own = self.T[batch.rows], self.zeta[batch.rows][:, :, None]
            a = np.einsum("ksq,kst->kqt", T, own * e[batch.places])
            b = np.einsum("ksq,kst->kqt", T, own * v[batch.places])
            total += float(self.scale**2 @ ((self.coef - a) * b).sum(axis=(0, 2)))
        return total / self.mu


def inverse_of_rows(T: Array, zeta: Array, mu: float, rows: AnyArray) -> Inverse:
    """(P_GG)⁻¹ of some units, from their rows of T, (k, s, q).

    By √ζ (1 − U Uᵀ) √ζ = n μ P_GG with U = √ζ T_G, or by 1 − Uᵀ U if that is smaller.
    """
    root = np.sqrt(zeta[rows])[:, :, None]
    U = root * T
    few = U.shape[1] <= U.shape[2]
    inner = np.eye(min(U.shape[1:])) - (U @ U.swapaxes(1, 2) if few else U.swapaxes(1, 2) @ U)
    least = np.full(inner.shape[:2], len(zeta) * np.finfo(np.float64).eps)
    worst = rows[np.arange(len(U)), np.square(U).sum(axis=2).argmax(axis=1)]
    inverse = inverses(inner, least, np.repeat(worst[:, None], len(inner[0]), 1), mu)
    scale = len(zeta) * mu / root

    def solved(V: Array) -> Array:
        V = V / root
        return np.asarray(scale * (inverse(V) if few else V + U @ inverse(U.swapaxes(1, 2) @ V)))

    return solved
