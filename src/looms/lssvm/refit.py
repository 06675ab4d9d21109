"""Outputs of the least-squares SVM by refits with LU: the oracle for every other route."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._typing import AnyArray, Array
from looms.blocks import RowBlocks
from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.lssvm import low_rank
from looms.lssvm._system import checked_system, ridge, targets_as_columns
from looms.lssvm.conditioning import condition_of


def refit_loo(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
    folds: npt.ArrayLike | None = None,
) -> HeldOut:
    """Held-out outputs from solving the system again without each sample, or each fold.

    Arguments are as for `looms.lssvm.solve`, but ``folds`` must be one repetition, and ``K`` is
    read as a whole. λ_i = n mu / ζ_i keeps the full n. O(n⁴): for checking, not for use.

    Raises
    ------
    ValueError
        If shapes do not agree, the kernel matrix is asymmetric, weights or μ are not
        positive, values are not finite, or there are fewer than two samples.
    numpy.linalg.LinAlgError
        If a system without one sample is singular.

    Examples
    --------
    >>> import numpy as np
    >>> refit_loo(np.zeros((3, 3)), [1.0, 2.0, 6.0], mu=1.0).outputs
    array([4. , 3.5, 1.5])
    """
    K, y, zeta = checked_system(K, y, mu, sample_weight)
    labels = np.arange(len(y)) if folds is None else np.asarray(folds)
    return HeldOut(y, WholeSystem(K, y, mu, zeta, fit_intercept).held_out(labels), zeta)


@dataclass(frozen=True, eq=False)
class WholeSystem:
    """Refits of a machine on all rows, by LU with partial pivoting of the bordered system.

    Attributes
    ----------
    K, y, mu, zeta : kernel matrix, targets, regularization and weights of the rows.
    fit_intercept : bool
    """

    K: Array
    y: Array
    mu: float
    zeta: Array
    fit_intercept: bool

    @cached_property
    def condition(self) -> float:
        """Condition number of the kernel matrix plus ridge."""
        M = self.K.copy()
        M[np.diag_indices(len(M))] += ridge(self.mu, self.zeta)
        return condition_of(M)

    def held_out(self, labels: AnyArray) -> Array:
        """Outputs, shaped like the targets, by machines without the rows of each number."""
        C, right = self._bordered()
        outputs = np.full_like(targets_as_columns(self.y), np.nan)
        for label in np.unique(labels[labels >= 0]):
            out = np.flatnonzero(left_out_with(labels) == label)
            others = np.delete(np.arange(len(C)), out)
            parameters = np.linalg.solve(C[np.ix_(others, others)], right[others])
            # Row i of C holds k(x_i, x_j) and the 1 that multiplies the intercept.
            tested = np.flatnonzero(labels == label)
            outputs[tested] = C[np.ix_(tested, others)] @ parameters
        return outputs.reshape(self.y.shape)

    def outputs(self, rows: AnyArray) -> Array:
        """Outputs of the machine of all rows at some of them."""
        C, right = self._bordered()
        parameters = np.linalg.solve(C, right)
        C[np.diag_indices(len(self.y))] = self.K.diagonal()
        return np.reshape(C[rows] @ parameters, (len(rows), *self.y.shape[1:]))

    def expanded(self, dual_coef: Array, intercept: Any, rows: AnyArray) -> Array:
        """Outputs of given coefficients at some rows."""
        return np.asarray(self.K[rows] @ dual_coef + intercept)

    def _bordered(self) -> tuple[Array, Array]:
        n, Y = len(self.y), targets_as_columns(self.y)
        size = n + 1 if self.fit_intercept else n
        C = np.zeros((size, size))
        C[:n, n:] = C[n:, :n] = 1.0
        C[:n, :n] = self.K
        C[np.diag_indices(n)] += ridge(self.mu, self.zeta)
        return C, np.vstack([Y, np.zeros((size - n, Y.shape[1]))])


class SystemOnLandmarks:
    """Refits of a machine on landmarks, by sums over all rows that are not left out.

    Parameters
    ----------
    landmarks : landmarks with the kernel.
    blocks, y, mu, zeta : rows, targets, regularization and weights.
    fit_intercept : bool
    """

    def __init__(
        self,
        landmarks: low_rank.Landmarks,
        blocks: RowBlocks,
        y: Array,
        mu: float,
        zeta: Array,
        fit_intercept: bool,
    ) -> None:
        self._R_inverse = landmarks.whitening(mu)
        self._moments = low_rank.Moments(landmarks, self._R_inverse, fit_intercept)
        self._blocks, self._y, self._zeta = blocks, y, zeta
        self._ridge = len(y) * mu

    @cached_property
    def condition(self) -> float:
        """Condition number of the normal equations."""
        return condition_of(self._sums(self._zeta)[0])

    def held_out(self, labels: AnyArray) -> Array:
        """Outputs, shaped like the targets, by machines without the rows of each number."""
        outputs = np.full(targets_as_columns(self._y).shape, np.nan)
        for number in np.unique(labels[labels >= 0]):
            out, tested = left_out_with(labels) == number, np.flatnonzero(labels == number)
            outputs[tested] = self._refitted(np.where(out, 0.0, self._zeta), tested)
        return outputs.reshape(self._y.shape)

    def outputs(self, rows: AnyArray) -> Array:
        """Outputs of the machine of all rows at some of them."""
        return self._refitted(self._zeta, rows).reshape(len(rows), *self._y.shape[1:])

    def expanded(self, dual_coef: Array, intercept: Any, rows: AnyArray) -> Array:
        """Outputs of given coefficients at some rows."""
        K = self._moments.landmarks.cross(self._blocks.rows(rows))
        return np.asarray(K.T @ dual_coef + intercept)

    def _refitted(self, zeta: Array, rows: AnyArray) -> Array:
        theta, m = np.linalg.solve(*self._sums(zeta)), len(self._R_inverse)
        phi = self._moments.landmarks.cross(self._blocks.rows(rows)).T @ self._R_inverse
        return np.asarray(phi @ theta[:m] + theta[m:].sum(axis=0))

    def _sums(self, zeta: Array) -> tuple[Array, Array]:
        (A, b), _ = self._blocks.sweep(self._moments, targets_as_columns(self._y), zeta)
        m = len(self._R_inverse)
        A[np.arange(m), np.arange(m)] += self._ridge
        return A, b
