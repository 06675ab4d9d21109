"""Held-out criteria of rows in memory, of which a search scans many μ."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.criteria import Criterion
from looms.kernels import Kernel
from looms.kernels._names import KernelLike, as_kernel
from looms.kernels._samples import as_matrix, check_scale, training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm.projection import Projection
from looms.optimize import Point
from looms.selection._held_out_criterion import HeldOutCriterion, HyperPrior
from looms.units import Units

# Half-widths of the default search box around the start, log₂ units.
_KERNEL_WIDTH = 12.0
# n μ starts at 2^-3 of the mean variance of the samples in feature space and may go
# from 2^-30, where rounding takes over, to 2^16, where only the mean is left.
_RIDGE_START, _RIDGE_LOW, _RIDGE_HIGH = -3.0, -30.0, 16.0


class ScannedCriterion(HeldOutCriterion):
    """Held-out criterion of rows in memory, cheap at many μ of one kernel: a search scans them.

    Parameters are those of `looms.selection.Objective`.
    """

    #: n μ over the variance of the samples in feature space, log₂, that a scan tries.
    ridges: Array = np.arange(-12.0, 5.0, 2.0)

    def __init__(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        kernel: KernelLike = "rbf",
        criterion: str | Criterion = "press",
        sample_weight: npt.ArrayLike | None = None,
        selection_weight: npt.ArrayLike | None = None,
        fit_intercept: bool = True,
        units: Units | None = None,
        prior: bool = False,
    ) -> None:
        self.X = as_matrix(X)
        super().__init__(
            int(self.X.shape[0]),
            y,
            criterion,
            sample_weight,
            selection_weight,
            fit_intercept,
            units,
        )
        if not np.isfinite(self.X if isinstance(self.X, np.ndarray) else self.X.data).all():
            raise ValueError("X and y must be finite, but contain NaN or infinity.")
        opened = as_kernel(kernel)
        if opened.pairwise and self.X.shape[0] != self.X.shape[1]:
            raise ValueError(f"A precomputed kernel matrix is square, got shape {self.X.shape}.")
        if not opened.pairwise:
            check_scale(self.X)
        with blas_threads(self.n_samples), np.errstate(invalid="ignore"):
            self.kernel = self._started(opened)
            self._place(self.spread(self.kernel.theta))
        self.prior = HyperPrior(self.kernel.theta) if prior else None

    @abstractmethod
    def _started(self, kernel: Kernel) -> Kernel:
        """The kernel with every open value set from the samples, ready to be evaluated."""

    @abstractmethod
    def spread(self, kernel_theta: Array) -> float:
        """Variance of the samples in the feature space of the kernel at ``kernel_theta``."""

    @abstractmethod
    def solver_along_mu(self, kernel_theta: Array) -> Callable[[float], Projection]:
        """Function of μ that gives the solved system, from one decomposition.

        Raises
        ------
        NotPositiveDefiniteError
            If there is no decomposition; the function may raise it, too.
        """

    def along_mu(self, kernel_theta: Array, log2_mu: Array) -> list[Point]:
        """By one decomposition."""
        points = [Point(np.append(kernel_theta, one), np.inf, np.inf) for one in log2_mu]
        with blas_threads(self.n_samples):
            try:
                solve = self.solver_along_mu(kernel_theta)
            except NotPositiveDefiniteError:
                return points
            for k, mu in enumerate(np.exp2(log2_mu).tolist()):
                try:
                    outputs = solve(mu).outputs(self.units)
                except NotPositiveDefiniteError:
                    continue
                value, standard_error, *_ = self.criterion_of(outputs)
                if np.isfinite(value):
                    points[k] = self.penalized(Point(points[k].theta, value, standard_error))
        return points

    def subset(self, rows: AnyArray) -> Self:
        part = type(self)(
            training_rows(self.X, rows, self.kernel.pairwise),
            self.y[rows],
            kernel=self.kernel,
            criterion=self.criterion,
            sample_weight=self.sample_weight[rows],
            selection_weight=self.selection_weight[rows],
            fit_intercept=self.fit_intercept,
            units=self.units.among(rows),
        )
        part.prior = self.prior
        part.bounds = self.bounds.copy()
        part.bounds[-1] += np.log2(self.n_samples / part.n_samples)
        return part

    def _place(self, spread: float) -> None:
        """Start and box: the kernel's own, and a ridge in proportion to the samples' spread."""
        log_unit = np.log2(spread / self.n_samples)
        theta = self.kernel.theta
        box = [
            np.log2(h.bounds) if h.bounds else (start - _KERNEL_WIDTH, start + _KERNEL_WIDTH)
            for h, start in zip(self.kernel.hyperparameters, theta, strict=True)
        ]
        box.append((log_unit + _RIDGE_LOW, log_unit + _RIDGE_HIGH))
        self.bounds = np.array(box, dtype=np.float64)
        self.theta0 = np.clip(np.append(theta, log_unit + _RIDGE_START), *self.bounds.T)
