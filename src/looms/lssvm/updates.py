"""Removal of rows from a solved system, and addition of rows, without a new factorization.

The inverse of the bordered system,

    C⁻¹ = [[P, s], [sᵀ, −1/Ση]],    s = η / Ση,

becomes P − P_:G (P_GG)⁻¹ P_G: on the other rows if rows G are removed; adding rows uses the same
identity backwards. λ of the other rows stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError, NotPositiveDefiniteError


@dataclass(frozen=True, eq=False)
class Inverse:
    """Inverse of the bordered system of a least-squares SVM, with its machine.

    Attributes
    ----------
    P : (n, n) leading block, M⁻¹ − η ηᵀ / Ση.
    share : (n,) last column, η / Ση; zero without an intercept.
    corner : 1 / Ση; zero without an intercept.
    alpha : (n, t) dual coefficients.
    intercept : (t,) b.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.eye(3) - 1 / 3                # K = 0, λ = 1: the machine is the mean of the targets
    >>> y = np.array([[1.0], [2.0], [6.0]])
    >>> mean = Inverse(P, np.full(3, 1 / 3), 1 / 3, P @ y, y.mean(axis=0))
    >>> mean.without(np.array([2]), mu=1 / 3).intercept
    array([1.5])
    """

    P: Array
    share: Array
    corner: float
    alpha: Array
    intercept: Array

    @property
    def loo_residuals(self) -> Array:
        """Leave-one-out residuals α_i / p_i, (n, t)."""
        return np.asarray(self.alpha / self.P.diagonal()[:, None])

    def without(self, rows: AnyArray, mu: float) -> Inverse:
        """Inverse and machine of the other rows.

        O(n² |rows|) flops.

        Parameters
        ----------
        rows : (m,) indices of the rows to remove.
        mu : regularization, for messages.

        Raises
        ------
        LeverageError
            If the system of the other rows is singular in double precision.
        """
        P_GG = self.P[np.ix_(rows, rows)]
        try:
            factor = scipy.linalg.cho_factor(P_GG, lower=True)
        except np.linalg.LinAlgError:
            raise LeverageError(mu, int(rows[0])) from None
        rest = np.delete(np.arange(len(self.P)), rows)
        P_GR = self.P[np.ix_(rows, rest)]
        taken = scipy.linalg.cho_solve(factor, P_GR)
        e = scipy.linalg.cho_solve(factor, self.alpha[rows])
        v = scipy.linalg.cho_solve(factor, self.share[rows])
        return Inverse(
            self.P[np.ix_(rest, rest)] - P_GR.T @ taken,
            self.share[rest] - P_GR.T @ v,
            self.corner + float(self.share[rows] @ v),
            self.alpha[rest] - P_GR.T @ e,
            self.intercept - self.share[rows] @ e,
        )

    def with_rows(self, K_new: Array, K_own: Array, Y: Array, mu: float) -> Inverse:
        """Inverse and machine with m new rows after the others.

        O(n² m) flops.

        Parameters
        ----------
        K_new : (m, n) kernel values of the new rows with the others.
        K_own : (m, m) kernel matrix of the new rows, with their ridge on its diagonal.
        Y : (m, t) their targets.
        mu : regularization, for messages.

        Raises
        ------
        NotPositiveDefiniteError
            If the system with the new rows is not positive definite.
        """
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
            raise NotPositiveDefiniteError(mu) from None
        e = scipy.linalg.cho_solve(factor, Y - K_new @ self.alpha - self.intercept)
        W = scipy.linalg.cho_solve(factor, T.T)
        v = scipy.linalg.cho_solve(factor, t)
        own = scipy.linalg.cho_solve(factor, np.eye(len(Y)))
        return Inverse(
            np.block([[self.P + T @ W, -W.T], [-W, own]]),
            np.append(self.share + T @ v, -v),
            self.corner - float(t @ v),
            np.vstack([self.alpha - T @ e, e]),
            self.intercept - t @ e,
        )
