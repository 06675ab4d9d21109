"""Removal of rows from a solved system, and addition of rows, without a new factorization.

The inverse of the bordered system,

    C⁻¹ = [[P, s], [sᵀ, −1/Ση]],    s = η / Ση,

becomes P − P_:G (P_GG)⁻¹ P_G: on the other rows if rows G are removed; adding rows uses the same
identity backwards. λ of the other rows stays the same.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError, NotPositiveDefiniteError
from looms.lssvm.projection import Expansion, Inverse, Projection, inverses
from looms.units import Batch


class Bordered(Projection):
    """P of a kernel matrix as it is, with the last column of the inverse: rows may go and come.

    Parameters
    ----------
    P : (n, n) leading block of the inverse, M⁻¹ − η ηᵀ / Ση.
    share : (n,) last column, η / Ση; zero without an intercept.
    corner : 1 / Ση; zero without an intercept.
    expansion : α and b.
    y, zeta, mu : targets, weights with mean one, and regularization.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.eye(3) - 1 / 3                # K = 0, λ = 1: the model is the mean of the targets
    >>> y = np.array([[1.0], [2.0], [6.0]])
    >>> expansion = Expansion(P @ y, y.mean(axis=0))
    >>> mean = Bordered(P, np.full(3, 1 / 3), 1 / 3, expansion, y, np.ones(3), 1 / 3)
    >>> mean.without(np.array([2])).expansion.intercept
    array([1.5])
    """

    def __init__(
        self,
        P: Array,
        share: Array,
        corner: float,
        expansion: Expansion,
        y: Array,
        zeta: Array,
        mu: float,
    ) -> None:
        self.P, self.share, self.corner, self._expansion = P, share, corner, expansion
        self.y, self.weight, self.mu, self.alpha = y, zeta, mu, expansion.coefficients

    @classmethod
    def of(cls, projection: Projection) -> Bordered:
        """The same system; n² numbers."""
        expansion, corner = projection.expansion, projection.corner
        return cls(
            projection.matrix(),
            projection.share,
            corner,
            Expansion(expansion.coefficients, expansion.intercept),
            projection.y,
            projection.zeta,
            projection.mu,
        )

    @property
    def expansion(self) -> Expansion:
        return self._expansion

    def diagonal(self) -> Array:
        return self.P.diagonal()

    def matrix(self) -> Array:
        return self.P

    def inverse(self, batch: Batch) -> Inverse:
        blocks = self.P[batch.rows[:, :, None], batch.rows[:, None, :]]
        least = len(self.P) * np.finfo(np.float64).eps * np.diagonal(blocks, axis1=1, axis2=2)
        return inverses(blocks, least, batch.rows, self.mu)

    def without(self, rows: AnyArray) -> Bordered:
        """The system of the other rows, at their ridges.

        O(n² |rows|) flops.

        Parameters
        ----------
        rows : (m,) indices of the rows to remove.

        Raises
        ------
        LeverageError
            If the system of the other rows is singular in double precision.
        """
        P_GG = self.P[np.ix_(rows, rows)]
        try:
            factor = scipy.linalg.cho_factor(P_GG, lower=True)
        except np.linalg.LinAlgError:
            raise LeverageError(self.mu, int(rows[0])) from None
        rest = np.delete(np.arange(len(self.P)), rows)
        P_GR = self.P[np.ix_(rows, rest)]
        taken = scipy.linalg.cho_solve(factor, P_GR)
        e = scipy.linalg.cho_solve(factor, self.alpha[rows])
        v = scipy.linalg.cho_solve(factor, self.share[rows])
        left = self.zeta[rest].sum()
        return _checked(
            Bordered(
                self.P[np.ix_(rest, rest)] - P_GR.T @ taken,
                self.share[rest] - P_GR.T @ v,
                self.corner + float(self.share[rows] @ v),
                Expansion(
                    self.alpha[rest] - P_GR.T @ e, self.expansion.intercept - self.share[rows] @ e
                ),
                self.y[rest],
                self.zeta[rest] * (len(rest) / left),
                self.mu * float(len(self.zeta) / left),
            )
        )

    def with_rows(self, K_new: Array, K_own: Array, Y: Array, zeta: Array) -> Bordered:
        """The system with m new rows after the others, which keep their ridges.

        O(n² m) flops.

        Parameters
        ----------
        K_new : (m, n) kernel values of the new rows with the others.
        K_own : (m, m) kernel matrix of the new rows.
        Y : (m, t) their targets.
        zeta : (m,) their weights, in units of those of the others.

        Raises
        ------
        NotPositiveDefiniteError
            If the system with the new rows is not positive definite.
        """
        K_own = K_own + np.diag(len(self.zeta) * self.mu / zeta)
        border = 1.0 if self.corner else 0.0
        # P 1 = 0 and sᵀ 1 = 1: what the values of a row have in common would only cancel.
        level = border * K_new.mean(axis=1)
        K_new = K_new - level[:, None]
        PK, sK = self.P @ K_new.T, K_new @ self.share
        T = PK + border * self.share[:, None]
        t = sK + level - self.corner
        shift = border * sK + level
        schur = K_own - shift[:, None] - shift + self.corner - K_new @ PK
        try:
            factor = scipy.linalg.cho_factor(0.5 * (schur + schur.T), lower=True)
        except np.linalg.LinAlgError:
            raise NotPositiveDefiniteError(self.mu) from None
        e = scipy.linalg.cho_solve(factor, Y - K_new @ self.alpha - self.expansion.intercept)
        W = scipy.linalg.cho_solve(factor, T.T)
        v = scipy.linalg.cho_solve(factor, t)
        own = scipy.linalg.cho_solve(factor, np.eye(len(Y)))
        weights = np.append(self.zeta, zeta)
        return _checked(
            Bordered(
                np.block([[self.P + T @ W, -W.T], [-W, own]]),
                np.append(self.share + T @ v, -v),
                self.corner - float(t @ v),
                Expansion(np.vstack([self.alpha - T @ e, e]), self.expansion.intercept - t @ e),
                np.vstack([self.y, Y]),
                weights * (len(weights) / weights.sum()),
                self.mu * float(len(self.zeta) / weights.sum()),
            )
        )


def _checked(system: Bordered) -> Bordered:
    """The system; LeverageError if that without some row is singular in double precision."""
    diagonal = system.diagonal()
    own = diagonal + (system.share**2 / system.corner if system.corner else 0.0)  # of M⁻¹
    safe = diagonal > len(system.P) * np.finfo(np.float64).eps * own
    if not safe.all():
        raise LeverageError(system.mu, int(np.argmin(safe)))
    return system
