"""Held-out criteria as functions of all hyper-parameters, with gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.criteria import Criterion, Evaluation, as_criterion
from looms.kernels import Kernel
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._names import KernelLike, as_kernel
from looms.kernels._samples import Samples, as_matrix, check_scale, training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._system import checked_weights, targets_as_columns
from looms.lssvm.fit import Fit
from looms.lssvm.projection import Projection
from looms.optimize import Point
from looms.units import Units

# How far, in powers of two, hyper-parameters may lie from the center before the prior
# counts for much. Mean test error of "ard" on 8 made problems of 20 features of which 5
# matter, at n = 60, 100 and 400: 0.33, 0.25, 0.13 without prior, 0.31, 0.24, 0.12 with
# this; 0.41, 0.31, 0.12 with a quarter of it, which holds to the center.
_SPREAD = 2.0
# A hinge loss can be zero, of which there is no logarithm.
_LEAST = 1e-300
# Half-widths of the default search box around the start, log₂ units.
_KERNEL_WIDTH = 12.0
# n μ starts at 2^-3 of the mean variance of the samples in feature space and may go
# from 2^-30, where rounding takes over, to 2^16, where only the mean is left.
_RIDGE_START, _RIDGE_LOW, _RIDGE_HIGH = -3.0, -30.0, 16.0


@dataclass(frozen=True, eq=False)
class HyperPrior:
    """Bayesian regularization of the hyper-parameters, its weight integrated out.

    A Gaussian prior on the kernel's d log₂ hyper-parameters adds ζ Ω with
    Ω = ½ Σ_k (θ̃_k − center_k)² to the criterion; integrating over the unknown ζ and over
    the unknown noise level of the criterion leaves, over n/2,

        log J + (d / n) log(Ω + 2d)

    Source: Cawley & Talbot (2007), JMLR 8, 841-861. Without 2d, as there, it falls
    to −∞ at the center, which is then always the optimum; 2d is the scale of a proper prior on
    ζ, the Ω of hyper-parameters that all lie two powers of two from the center. Their
    center is θ̃ = 0, which depends on the units of the features; ours is the kernel's
    start, which does not.

    Attributes
    ----------
    center : (d,) log₂ hyper-parameters of the kernel, without μ.
    """

    center: Array

    def penalized(self, point: Point, n_samples: int) -> Point:
        """Point of the regularized criterion, from a point of the criterion J.

        The standard error becomes that of log J.
        """
        d = point.theta[:-1] - self.center
        omega = 0.5 * (float(d @ d) + len(d) * _SPREAD**2)
        if omega == 0:  # no hyper-parameter but μ
            return point
        rate = len(d) / n_samples
        level = max(point.value, _LEAST)
        gradient = point.gradient
        if gradient is not None:
            gradient = gradient / level
            gradient[:-1] += rate * d / omega
        return replace(
            point,
            value=float(np.log(level)) + rate * float(np.log(omega)),
            standard_error=point.standard_error / level,
            gradient=gradient,
            deviations=None if point.deviations is None else point.deviations / level,
        )


_LN2 = float(np.log(2.0))
#: Largest target whose fourth power, and that of its inverse, are still finite numbers.
_LARGEST_TARGET = 1e70

_MU_AT_LOWER = (
    "hardly any regularization: the targets look noise-free, or the kernel is too smooth for them; "
    "try another kernel, and check for duplicate samples"
)
_MU_AT_UPPER = (
    "almost all regularization: these features say little about the target with this kernel; "
    "scale the features, or try another kernel"
)


class HeldOutCriterion(ABC):
    """Held-out criterion of a least-squares SVM in the log₂ of its hyper-parameters.

    Subclasses solve for the machine, by a kernel matrix or on landmarks.

    Attributes
    ----------
    theta0 : (p + 1,) start: the kernel's free hyper-parameters, then μ; log₂.
    bounds : (p + 1, 2) the box to search, log₂.
    kernel : kernel with its values at the start.
    prior : prior of the kernel's hyper-parameters, or None.
    least_rows : smallest size of a subsample on which a search begins.
    """

    theta0: Array
    bounds: Array
    kernel: Kernel
    prior: HyperPrior | None
    least_rows: int = 0

    def __init__(
        self,
        n_samples: int,
        y: npt.ArrayLike,
        criterion: str | Criterion,
        sample_weight: npt.ArrayLike | None,
        selection_weight: npt.ArrayLike | None,
        fit_intercept: bool,
        units: Units | None,
    ) -> None:
        self.n_samples = n_samples
        self.y = np.asarray(y, dtype=np.float64)
        self.criterion: Criterion = as_criterion(criterion)
        self.fit_intercept = fit_intercept
        self._check()
        zeta = checked_weights(sample_weight, self.n_samples)
        self.sample_weight = np.asarray(zeta * (self.n_samples / zeta.sum()))
        self.selection_weight = self.sample_weight
        if selection_weight is not None:
            self.selection_weight = checked_weights(
                selection_weight, self.n_samples, "selection_weight", zeros=True
            )
            if not self.selection_weight.any():
                raise ValueError("selection_weight is zero for every sample.")
        self.units = Units.rows(n_samples) if units is None else units

    @property
    @abstractmethod
    def samples(self) -> Samples:
        """Samples that the machine's coefficients belong to, with their weights."""

    @abstractmethod
    def solve(self, theta: Array) -> Projection:
        """Solved system at ``theta``.

        Raises
        ------
        NotPositiveDefiniteError
            If the kernel matrix plus ridge is not positive definite.
        """

    @abstractmethod
    def subset(self, rows: AnyArray) -> HeldOutCriterion:
        """The criterion on a subset of the samples, with the same kernel and box.

        The box moves with the number of samples, so that it contains the same ridges n μ.
        """

    @abstractmethod
    def slopes(self, theta: Array, projection: Any, slope: Array) -> Array:
        """∂J/∂θ, (p + 1,), natural units, from the slope ∂J/∂f, (n_repetitions, n, t)."""

    def __call__(self, theta: npt.ArrayLike) -> tuple[float, Array]:
        """Value and gradient at ``theta``, (p + 1,) log₂ of the hyper-parameters.

        The value is infinite, and the gradient nan, if the kernel matrix plus
        ridge is not positive definite.
        """
        point = self.evaluate(np.asarray(theta, dtype=np.float64))
        if point.gradient is None:
            return point.value, np.full(len(self.theta0), np.nan)
        return point.value, point.gradient

    def evaluate(self, theta: Array, *, gradient: bool = True) -> Point:
        """Value with its standard error and, optionally, gradient at ``theta``.

        The criterion J of `looms.criteria` takes the held-out outputs of a solution of
        `looms.lssvm`, and gives its slope in them; `slopes` turns that into ∂J/∂θ, here in log₂
        units.
        """
        with blas_threads(self.n_samples):
            try:
                projection = self.solve(theta)
                point, slope = self.judged(theta, projection)
            except NotPositiveDefiniteError:
                return Point(theta, np.inf, np.inf)
            if gradient and np.isfinite(point.value):
                dJ = np.asarray(_LN2 * np.exp2(theta) * self.slopes(theta, projection, slope))
                if not np.isfinite(dJ).all():  # values that just do not overflow
                    return Point(theta, np.inf, np.inf)
                point = replace(point, gradient=dJ)
            return self.penalized(point)

    def judged(self, theta: Array, projection: Projection) -> tuple[Point, Array]:
        """Point of a solved system, without gradient and prior, and the slope ∂J/∂f.

        Raises
        ------
        NotPositiveDefiniteError
            If a machine without some unit is singular in double precision.
        """
        fit = Fit.of(projection, self.units, self.y, self.kernel_at(theta))
        value, standard_error, slope, deviations = self.criterion_of(fit.held_out)
        if not np.isfinite(value):
            return Point(theta, np.inf, np.inf), slope
        return Point(theta, value, standard_error, None, fit, deviations), slope

    def solver_along_mu(self, kernel_theta: Array) -> Callable[[float], Projection]:
        """Function of μ that gives the solved system of one kernel, by one decomposition if it can.

        Raises
        ------
        NotPositiveDefiniteError
            If there is no decomposition; the function may raise it, too.
        """
        return lambda mu: self.solve(np.append(kernel_theta, np.log2(mu)))

    def along_mu(self, kernel_theta: Array, log2_mu: Array) -> list[Point]:
        """Values, without gradient and machine, at many μ of one kernel.

        Parameters
        ----------
        kernel_theta : (p,) log₂ of the kernel's hyper-parameters.
        log2_mu : log₂ of the values of μ.

        Returns
        -------
        points : one for each μ, infinite where the criterion cannot be evaluated.
        """
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

    def penalized(self, point: Point) -> Point:
        """The point, with the prior added to the criterion if there is one."""
        if self.prior is None or not np.isfinite(point.value):
            return point
        return self.prior.penalized(point, self.n_samples)

    def fit(self, theta: Array) -> Fit:
        """Machine at ``theta``, with its leave-one-out outputs.

        Raises
        ------
        NotPositiveDefiniteError
            If the kernel matrix plus ridge is not positive definite.
        """
        with blas_threads(self.n_samples):
            return Fit.of(self.solve(theta), self.units, self.y, self.kernel_at(theta))

    def criterion_of(self, held_out: Array) -> Evaluation:
        """Criterion of held-out outputs under the selection weights.

        Parameters
        ----------
        held_out : (n_repetitions, n) or (n_repetitions, n, t). Passes over the rows count by the
            weight of the rows that they hold out. Their standard errors are averaged as if further
            passes added no information.

        Returns
        -------
        evaluation : value, standard error, and slope, (n_repetitions, n, t).
        """
        held_out = held_out.reshape(*self.units.shape, -1)
        weights = np.array([self.selection_weight[rows].sum() for _, rows in self.units.passes])
        value, error, slope = 0.0, 0.0, np.zeros(held_out.shape)
        deviations: Array | None = np.zeros(self.n_samples)
        for (r, rows), share in zip(self.units.passes, weights / weights.sum(), strict=True):
            y = self.y[rows]
            part = self.criterion.evaluate(
                y,
                held_out[r, rows].reshape(y.shape),
                self.selection_weight[rows],
                self.units.clusters[rows],
            )
            value, error = value + share * part.value, error + share * part.standard_error
            slope[r, rows] = share * targets_as_columns(part.slope)
            if deviations is not None and part.deviations is not None:
                deviations[rows] += share * part.deviations
            else:
                deviations = None
        if deviations is not None:
            deviations = np.bincount(self.units.clusters, weights=deviations).astype(np.float64)
        return Evaluation(float(value), float(error), slope, deviations)

    def tuned(self, search: Callable[[Self], Any]) -> Any:
        """Values that a search finds, and the machine there."""
        return search(self)

    def with_criterion(self, criterion: str | Criterion) -> Self:
        """The objective with another criterion; kernel caches and buffers are shared."""
        other = copy(self)
        other.criterion = as_criterion(criterion)
        other._check()
        return other

    def kernel_at(self, theta: Array) -> Kernel:
        return self.kernel.with_theta(theta[:-1])

    def mu_at(self, theta: Array) -> float:
        return float(np.exp2(theta[-1]))

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyper-parameters of the search, in the order of ``theta0``."""
        mu = Hyperparameter("mu", self.mu_at(self.theta0), None, _MU_AT_LOWER, _MU_AT_UPPER)
        return [*self.kernel.hyperparameters, mu]

    @property
    def names(self) -> list[str]:
        return [h.name for h in self.hyperparameters]

    @property
    def labeled(self) -> bool:
        """True if all targets are labels ±1."""
        return bool(np.isin(self.y, (-1.0, 1.0)).all())

    def _check(self) -> None:
        n = self.n_samples
        if self.y.ndim not in (1, 2) or len(self.y) != n:
            raise ValueError(f"{n} samples need as many targets, got shape {self.y.shape}.")
        if n < 2:
            raise ValueError("Leave-one-out needs two samples or more, but there is one.")
        if not np.isfinite(self.y).all():
            raise ValueError("X and y must be finite, but contain NaN or infinity.")
        largest = float(np.abs(self.y).max(initial=0.0))
        if not (largest == 0 or 1 / _LARGEST_TARGET <= largest <= _LARGEST_TARGET):
            raise ValueError(
                f"The targets go {'only ' * (largest < 1)}up to {largest:.3g} in absolute value, "
                "and the spread of their squared residuals is beyond the range of numbers: scale "
                "the targets."
            )
        if self.criterion.needs_labels and not self.labeled:
            raise ValueError(
                f"Criterion {type(self.criterion).__name__} needs labels -1 and +1; for other "
                "targets use 'press'."
            )


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
