"""Outputs of the least-squares SVM by refits with LU: the oracle for every other route."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, blocks_of
from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._samples import Samples, dense
from looms.lssvm._system import checked_system, ridge, targets_as_columns
from looms.lssvm.conditioning import condition_of
from looms.lssvm.landmarks import Landmarks, moments

#: Solver of the refits.
SOLVER = "LU with partial pivoting"


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
    """Refits of a model on all rows, by LU with partial pivoting of the bordered system.

    Attributes
    ----------
    K, y, mu, zeta : kernel matrix, targets, regularization and weights of the rows.
    fit_intercept : bool
    errors : (n, n) of the kernel values, or a number for all.
    """

    K: Array
    y: Array
    mu: float
    zeta: Array
    fit_intercept: bool
    errors: Array | float = 0.0
    solver = SOLVER

    @cached_property
    def condition(self) -> float:
        """Condition number of the kernel matrix plus ridge."""
        M = self.K.copy()
        M[np.diag_indices(len(M))] += ridge(self.mu, self.zeta)
        return condition_of(M)

    def held_out(self, labels: AnyArray) -> Array:
        """Outputs, shaped like the targets, by models without the rows of each number."""
        return self.refitted(labels)[0]

    def refitted(self, labels: AnyArray, *_: Any) -> tuple[Array, Array]:
        """`held_out`, and the differences from it that errors of kernel values explain, alike."""
        outputs, bounds = np.full((2, *targets_as_columns(self.y).shape), np.nan)
        for label in np.unique(labels[labels >= 0]):
            out, tested = left_out_with(labels) == label, np.flatnonzero(labels == label)
            outputs[tested], bounds[tested] = self._solved(np.flatnonzero(~out), tested)
        return outputs.reshape(self.y.shape), bounds.reshape(self.y.shape)

    def outputs(self, rows: AnyArray) -> tuple[Array, Array]:
        """Outputs of the model of all rows at some of them, and the same differences."""
        outputs, bounds = self._solved(np.arange(len(self.y)), rows)
        shape = (len(rows), *self.y.shape[1:])
        return outputs.reshape(shape), bounds.reshape(shape)

    def _solved(self, rest: AnyArray, rows: AnyArray) -> tuple[Array, Array]:
        """Outputs at ``rows`` of the model of the rows ``rest``, and what errors of K explain.

        An error ΔM of M = K + diag(λ), |ΔM_jk| ≤ δ √(M_jj M_kk), moves the output at row i, to
        first order, by at most δ (√M_ii + Σ_j |w_j| √M_jj) Σ_k √M_kk |α_k|, where α are the
        coefficients of its model, and w the weights of the targets in it.
        """
        Y, m, lam = targets_as_columns(self.y), len(rest), ridge(self.mu, self.zeta)
        C = np.ones((m + self.fit_intercept,) * 2)
        C[:m, :m] = self.K[np.ix_(rest, rest)]
        C[np.arange(m), np.arange(m)] += lam[rest]
        C[m:, m:] = 0.0
        right, new = np.zeros((len(C), Y.shape[1])), np.ones((len(C), len(rows)))
        right[:m], new[:m] = Y[rest], self.K[np.ix_(rest, rows)]
        solved = np.linalg.solve(C, np.hstack([right, new]))
        parameters, weights = solved[:, : Y.shape[1]], solved[:m, Y.shape[1] :]
        root = np.sqrt(self.K.diagonal() + lam)
        delta = float((self.errors / root / root[:, None]).max())
        moved = root[rows] + root[rest] @ np.abs(weights)
        return new.T @ parameters, np.outer(delta * moved, root[rest] @ np.abs(parameters[:m]))

    def expanded(self, dual_coef: Array, intercept: Any, rows: AnyArray) -> Array:
        """Outputs of given coefficients at some rows."""
        return np.asarray(self.K[rows] @ dual_coef + intercept)


class SystemOnLandmarks:
    """Refits of a model on landmarks, by sums over all rows that are not held out.

    Parameters
    ----------
    landmarks : landmarks with the kernel.
    blocks, y, mu, zeta : rows, targets, regularization and weights.
    fit_intercept : bool

    Attributes
    ----------
    condition : largest condition number of the normal equations solved until now. Without a row
        that alone is near its landmark it can be far larger than with all.
    """

    solver = SOLVER
    #: (m,) sizes of what was subtracted from the kernel values; zero if nothing was.
    _taken: Array | float = 0.0

    def __init__(
        self,
        landmarks: Landmarks,
        blocks: RowBlocks,
        y: Array,
        mu: float,
        zeta: Array,
        fit_intercept: bool,
    ) -> None:
        self._landmarks, self._R_inverse = landmarks, landmarks.whitening(mu)
        self._moments = partial(moments, landmarks, self._R_inverse, fit_intercept)
        self._blocks, self._y, self._zeta = blocks, y, zeta
        self._ridge, self.condition = len(y) * mu, 0.0

    def refitted(self, labels: AnyArray, *_: Any) -> tuple[Array, Array]:
        """Outputs, shaped like the targets, by models without the rows of each number.

        With them come the differences that rounding of kernel values explains.
        """
        outputs, bounds = np.full((2, *targets_as_columns(self._y).shape), np.nan)
        for number in np.unique(labels[labels >= 0]):
            out, tested = left_out_with(labels) == number, np.flatnonzero(labels == number)
            zeta = np.where(out, 0.0, self._zeta)
            outputs[tested], bounds[tested] = self._solved(zeta, tested)
        return outputs.reshape(self._y.shape), bounds.reshape(self._y.shape)

    def outputs(self, rows: AnyArray) -> tuple[Array, Array]:
        """Outputs of the model of all rows at some of them, and the same differences."""
        outputs, bounds = self._solved(self._zeta, rows)
        shape = (len(rows), *self._y.shape[1:])
        return outputs.reshape(shape), bounds.reshape(shape)

    def expanded(self, dual_coef: Array, intercept: Any, rows: AnyArray) -> Array:
        """Outputs of given coefficients at some rows."""
        K = self._landmarks.cross(self._blocks.rows(rows))
        return np.asarray(K.T @ dual_coef + intercept)

    def _solved(self, zeta: Array, rows: AnyArray) -> tuple[Array, Array]:
        """Outputs at ``rows`` of the model of weights ``zeta``, and what rounding of K explains.

        To first order that is m ε (1 + Σ_l |w_l|) Σ_j |k(x, z_j)| |c_j| for the coefficients c of
        the m landmarks and the weights w of the targets, Σ_l |w_l| ≤ √(Σ_l ζ_l · φᵢᵀ A⁻¹ φᵢ).
        Beside it stand 4 ε cond(A) times the largest target or output, for the fit and the refit
        each solve normal equations.
        """
        (A, b), m, eps = self._sums(zeta), len(self._R_inverse), float(np.finfo(np.float64).eps)
        condition = condition_of(A)
        self.condition = max(self.condition, condition)
        K = self._landmarks.cross(self._blocks.rows(rows)).T
        phi = np.ones((len(rows), len(A)))
        phi[:, :m] = K @ self._R_inverse
        solved = np.linalg.solve(A, np.hstack([b, phi.T]))
        theta, of_rows = solved[:, : b.shape[1]], solved[:, b.shape[1] :]
        leverage = np.maximum(np.einsum("ij,ji->i", phi, of_rows), 0.0)
        sizes = (np.abs(K).max(axis=0) + self._taken) @ np.abs(self._R_inverse @ theta[:m])
        error = m * eps * np.outer(1.0 + np.sqrt(zeta.sum() * leverage), sizes)
        outputs, largest = phi @ theta, np.abs(targets_as_columns(self._y)).max(axis=0)
        return outputs, error + 4.0 * eps * condition * np.maximum(np.abs(outputs), largest)

    def _sums(self, zeta: Array) -> tuple[Array, Array]:
        (A, b), _ = self._blocks.sweep(self._moments, targets_as_columns(self._y), zeta)
        m = len(self._R_inverse)
        A[np.arange(m), np.arange(m)] += self._ridge
        return A, b


class SystemOfFeatures(SystemOnLandmarks):
    """Refits of a linear model of few features, which are on landmarks: k(x, e_j) = x_j.

    The features are centered, if an intercept makes up for that, and of the order of one.

    Parameters
    ----------
    kernel : the linear kernel.
    X : (n, p) rows.
    y, mu, zeta, fit_intercept : as for `SystemOnLandmarks`.
    """

    def __init__(
        self, kernel: Kernel, X: Matrix, y: Array, mu: float, zeta: Array, fit_intercept: bool
    ) -> None:
        features = dense(X)
        mean = features.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
        features = features - mean
        unit = float(np.sqrt(np.square(features).mean())) or 1.0
        features /= unit
        axes = _Axes(kernel, Samples(np.eye(X.shape[1])))
        super().__init__(axes, blocks_of(features), y, mu / unit**2, zeta, fit_intercept)
        self._taken, self._strength = np.abs(mean) / unit, len(y) * mu

    def expanded(self, dual_coef: Array, intercept: Any, rows: AnyArray) -> Array:
        """Outputs y_i − n μ α_i / ζ_i of some rows, by their coefficients α.

        Sums over the coefficients of all rows would lose the digits that n μ is smaller by.
        """
        residuals = targets_as_columns(dual_coef)[rows] / self._zeta[rows, None]
        own = self._y[rows]
        return np.asarray(own - self._strength * residuals.reshape(own.shape))


class _Axes(Landmarks):
    """Unit vectors, whose K_ZZ is one."""

    @property
    def jitter(self) -> float:
        return 0.0
