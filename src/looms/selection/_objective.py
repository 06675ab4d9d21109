"""Selection criteria as functions of all hyper-parameters, with gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.criteria import Criterion, Evaluation, as_criterion
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, contract_lower, gram_into, is_finite_lower
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._names import KernelLike, as_kernel
from looms.kernels._samples import Samples, as_matrix, check_scale, training_rows, variances
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._system import checked_weights, targets_as_columns
from looms.lssvm.dense import Dense
from looms.lssvm.features import Features, decompose_features, has_few_features
from looms.lssvm.fit import Fit
from looms.lssvm.forward import outputs_forward
from looms.lssvm.projection import Projection
from looms.lssvm.spectral import decompose
from looms.optimize._search import Point, WantsGradient
from looms.selection._subsamples import samples_of_search
from looms.selection._tuning import Tuning
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
_COLUMNS = 16  # of a kernel matrix, summed at a time
# Eigenvalues below this share of the largest are rounding; and log₂ of the least n μ over the least
# of the others, of the box and of the scan.
_ROUNDING, _BOX_BELOW, _SCAN_BELOW = 1e-24, -10.0, -8.0
#: A search by the whole kernel matrix is on so many rows, or so many for each hyper-parameter: on
#: tables of 3000 and 4500 rows a stack has 1.001 and 1.003 × the error of one with searches on all.
ROWS_OF_SEARCH, _ROWS_PER_VALUE = 2000, 100
_LN2 = float(np.log(2.0))
#: Largest target whose fourth power, and that of its inverse, are still finite numbers.
_LARGEST_TARGET = 1e70

MU_AT_LOWER = (
    "hardly any regularization: the targets look noise-free, or the kernel is too smooth for them; "
    "try another kernel, and check for duplicate samples"
)
MU_AT_UPPER = (
    "almost all regularization: these features say little about the target with this kernel; "
    "scale the features if they are not, or try another kernel"
)


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


class HeldOutCriterion(ABC):
    """Held-out criterion of a least-squares SVM in the log₂ of its hyper-parameters.

    Subclasses solve for the model, by a kernel matrix or on landmarks.

    Attributes
    ----------
    theta0 : (p + 1,) start: the kernel's free hyper-parameters, then μ; log₂.
    bounds : (p + 1, 2) the box to search, log₂.
    kernel : kernel with its values at the start.
    samples : samples that the model's coefficients belong to, with their weights.
    prior : prior of the kernel's hyper-parameters, or None.
    least_rows : smallest size of a subsample on which a search begins.
    goes_on_if_sure : False if a gain below the tolerance ends a search even if it is sure.
    known : tuning on a sample that the start comes from, or None.
    curvature : inverse Hessian near the start, or None if it is not known.
    """

    theta0: Array
    bounds: Array
    kernel: Kernel
    samples: Samples
    prior: HyperPrior | None
    least_rows: int = 0
    goes_on_if_sure: bool = True
    known: Tuning | None = None
    curvature: Array | None = None

    def __init__(
        self,
        n_samples: int,
        y: npt.ArrayLike,
        *,
        criterion: str | Criterion = "press",
        sample_weight: npt.ArrayLike | None = None,
        selection_weight: npt.ArrayLike | None = None,
        fit_intercept: bool = True,
        units: Units | None = None,
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

    def rows_of_search(self, max_samples: float | None = None) -> int:
        """Number of samples of the last search, of which ``max_samples`` may be given."""
        return samples_of_search(max_samples, self.n_samples)

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

    def evaluate(self, theta: Array, *, gradient: WantsGradient = True) -> Point:
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
            if callable(gradient):
                gradient = np.isfinite(point.value) and gradient(self.penalized(point))
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
            If a model without some unit is singular in double precision.
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

    def outputs_along_mu(self, kernel_theta: Array) -> Callable[[float], Array]:
        """Function of μ that gives the held-out outputs with one kernel; as `solver_along_mu`."""
        solve = self.solver_along_mu(kernel_theta)
        return lambda mu: solve(mu).outputs(self.units)

    def along_mu(self, kernel_theta: Array, log2_mu: Array) -> list[Point]:
        """Values, without gradient and model, at many μ of one kernel.

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
                outputs_at = self.outputs_along_mu(kernel_theta)
            except NotPositiveDefiniteError:
                return points
            for k, mu in enumerate(np.exp2(log2_mu).tolist()):
                try:
                    outputs = outputs_at(mu)
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
        """Model at ``theta``, with its leave-one-out outputs.

        Raises
        ------
        NotPositiveDefiniteError
            If the kernel matrix plus ridge is not positive definite.
        """
        with blas_threads(self.n_samples):
            return Fit.of(self.solve(theta), self.units, self.y, self.kernel_at(theta))

    def failure_at(self, theta: Array) -> str:
        """Reason why there is no model at ``theta``, or no criterion of its outputs."""
        try:
            self.fit(theta)
        except NotPositiveDefiniteError as error:
            return f"{self.kernel!r}: {error}"
        return f"{self.kernel!r}: the criterion is not finite at mu = {self.mu_at(theta):.3g}."

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

    def kernel_at(self, theta: Array) -> Kernel:
        return self.kernel.with_theta(theta[:-1])

    def mu_at(self, theta: Array) -> float:
        return float(np.exp2(theta[-1]))

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyper-parameters of the search, in the order of ``theta0``."""
        mu = Hyperparameter("mu", self.mu_at(self.theta0), None, MU_AT_LOWER, MU_AT_UPPER)
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

    Parameters are those of `Objective`.
    """

    #: n μ over the variance of the samples in feature space, log₂, that a scan tries.
    ridges: Array = np.arange(-12.0, 5.0, 2.0)

    def __init__(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        kernel: KernelLike = "rbf",
        prior: bool = False,
        **options: Any,
    ) -> None:
        self.X = as_matrix(X)
        super().__init__(int(self.X.shape[0]), y, **options)
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
        """The kernel with every open value set from ``samples``, which this sets, too."""

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


class Objective(ScannedCriterion):
    """Held-out criterion of a model with a whole kernel matrix.

    Calling it returns the value and the gradient in all hyper-parameters at once
    [docs/references.md, Gradient], for about twice the flops of a factorization with inverse,
    however many hyper-parameters the kernel has.

    Parameters
    ----------
    X : (n, n_features) dense or sparse samples, or the matrix of a precomputed kernel.
    y : (n,) or (n, t) targets; ±1 for criteria of classification.
    kernel : name, `looms.kernels.Kernel` or function; values that are None are set
        from the data.
    criterion : name or `looms.criteria.Criterion`.
    sample_weight : (n,) positive weights ζ of the fit, default ones. They are rescaled
        to mean one, so that λ_i = μ Σζ / ζ_i.
    selection_weight : (n,) nonnegative weights of the criterion; default ``sample_weight``.
    fit_intercept : whether the model has an intercept.
    units : rows that are held out together; by default each by itself. The criterion is the mean
        over passes over the rows.
    prior : whether to regularize the kernel's hyper-parameters: the value is then
        that of `HyperPrior`, centered at the start.

    Attributes
    ----------
    theta0 : (p + 1,) start: the kernel's free hyper-parameters, then μ; log₂.
    bounds : (p + 1, 2) the box to search, log₂.
    names : names of the hyper-parameters, in the order of ``theta0``.

    Raises
    ------
    ValueError
        For shapes that do not agree, labels other than ±1 under a criterion that
        needs them, weights that are not positive, targets or features so large or small that
        squares overflow or vanish.

    Notes
    -----
    A value takes one n×n array, and a gradient one more. From the third kernel matrix on, one more
    is kept for each kind of inner products and distances that the kernel uses.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> objective = Objective(X, np.sign(X[:, 0]), kernel="ard", criterion="press")
    >>> objective.names
    ['gammas[0]', 'gammas[1]', 'gammas[2]', 'mu']
    >>> value, gradient = objective(objective.theta0)
    >>> gradient.shape
    (4,)
    """

    def rows_of_search(self, max_samples: float | None = None) -> int:
        usual = max(ROWS_OF_SEARCH, _ROWS_PER_VALUE * len(self.theta0))
        return samples_of_search(max_samples, self.n_samples, usual)

    def _started(self, kernel: Kernel) -> Kernel:
        self._work: Array | None = None
        self._scratch: Array | None = None
        self._blocks = GramBlocks(self.X, kernel.uses, self.sample_weight)
        self.samples = self._blocks.samples
        return kernel.started(self.samples)

    def spread(self, kernel_theta: Array) -> float:
        """As of every criterion; of many samples, that of some of them, drawn at random."""
        kernel, blocks = self.kernel.with_theta(kernel_theta), self._blocks
        if self.n_samples > ROWS_OF_SEARCH:
            drawn = np.random.RandomState(0).permutation(self.n_samples)
            rows = np.sort(drawn[:ROWS_OF_SEARCH])
            X = training_rows(self.X, rows, kernel.pairwise)
            blocks = GramBlocks(X, kernel.uses, self.sample_weight[rows])
        n = blocks.samples.n_samples
        K = np.empty((n, n), order="F")
        gram_into(K, kernel, blocks)
        return feature_space_variance(K, self.fit_intercept)

    def solver_along_mu(self, kernel_theta: Array) -> Callable[[float], Projection]:
        spectrum = decompose(self._finite_gram(kernel_theta), sample_weight=self.sample_weight)
        return spectrum.solver(self.y, fit_intercept=self.fit_intercept)

    def outputs_along_mu(self, kernel_theta: Array) -> Callable[[float], Array]:
        """By one Cholesky factor for each μ if earlier rows test the units."""
        outputs = None
        if self.units.forward:
            K, Y = self._finite_gram(kernel_theta), targets_as_columns(self.y)
            outputs = outputs_forward(K, Y, self.sample_weight, self.fit_intercept, self.units)
        return outputs or super().outputs_along_mu(kernel_theta)

    def _finite_gram(self, kernel_theta: Array) -> Array:
        K = self.gram(self.kernel.with_theta(kernel_theta))
        if not is_finite_lower(K):
            raise NotPositiveDefiniteError(np.nan)
        return K

    def solve(self, theta: Array) -> Dense:
        """Solved system at ``theta``, in the buffer of the objective; valid until the next call."""
        return Dense(
            self.gram(self.kernel_at(theta)),
            targets_as_columns(self.y),
            self.mu_at(theta),
            self.sample_weight,
            fit_intercept=self.fit_intercept,
        )

    def slopes(self, theta: Array, projection: Dense, slope: Array) -> Array:
        """`Dense.contract` gives G = ∂J/∂K and ∂J/∂μ, and the ``values_gradient`` of the kernel,
        block by block, Σ_ij G_ij ∂K_ij/∂θ."""
        if self._scratch is None:
            self._scratch = np.empty((self.n_samples, self.n_samples), order="F")
        G, slope_mu = projection.contract(self.units, slope, self._scratch)
        return np.append(contract_lower(G, self.kernel_at(theta), self._blocks), slope_mu)

    def gram(self, kernel: Kernel) -> Array:
        """Lower triangle of the Gram matrix of ``kernel``, in the buffer of the objective."""
        if self._work is None:
            self._work = np.empty((self.n_samples, self.n_samples), order="F")
        with np.errstate(over="ignore", invalid="ignore"):  # a point that cannot be evaluated
            gram_into(self._work, kernel, self._blocks)
        return self._work


def feature_space_variance(K: Array, centered: bool) -> float:
    """Mean of k(x, x), less the mean of k(x, x') if ``centered``; from the lower triangle."""
    n = len(K)
    diagonal = K.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(diagonal.mean())
        starts = range(0, n, _COLUMNS) if centered else ()
        below = sum(float(np.tril(K[j:, j : j + _COLUMNS], -1).sum()) for j in starts)
    if not (0 < total < np.inf and np.isfinite(below)):
        return 1.0
    if centered:
        total = max(1e-8 * total, total - (2.0 * below + float(diagonal.sum())) / n**2)
    return total


class FeaturesObjective(ScannedCriterion):
    """Held-out criterion of a linear model with fewer features than rows.

    Parameters
    ----------
    As for `Objective`; the kernel is linear, and μ the only hyper-parameter.

    Notes
    -----
    One eigendecomposition of p features, 4 n p² flops; then 6 n p for value and gradient.
    """

    def _started(self, kernel: Kernel) -> Kernel:
        self.least_rows = self.n_samples  # all rows cost hardly more than some
        self.samples = Samples(self.X, weight=self.sample_weight)
        self._spectrum = decompose_features(
            self.X, self.sample_weight, fit_intercept=self.fit_intercept
        )
        return kernel.started(self.samples)

    def _place(self, spread: float) -> None:
        """Places the box as for a kernel matrix; deeper if some features have other units.

        The scan goes down to the smallest eigenvalue, and the box far below it.
        """
        super()._place(spread)
        eigenvalues = self._spectrum.eigenvalues
        positive = eigenvalues[eigenvalues > _ROUNDING * eigenvalues.max(initial=0.0)]
        if len(positive):
            least, unit = np.log2(positive.min()), np.log2(self.n_samples)
            self.bounds[-1, 0] = min(self.bounds[-1, 0], least - unit + _BOX_BELOW)
            usual, deepest = ScannedCriterion.ridges, least - np.log2(spread) + _SCAN_BELOW
            self.ridges = np.append(np.arange(usual[0] - 2.0, deepest, -2.0)[::-1], usual)

    def spread(self, kernel_theta: Array) -> float:
        mean_square = float(self.samples.square_norms.mean())
        if not 0 < mean_square < np.inf:
            return 1.0
        if self.fit_intercept:
            return max(1e-8 * mean_square, float(variances(self.X).sum()))
        return mean_square

    def solver_along_mu(self, kernel_theta: Array) -> Callable[[float], Projection]:
        return partial(self._spectrum.solve, targets_as_columns(self.y))

    def solve(self, theta: Array) -> Features:
        return self._spectrum.solve(targets_as_columns(self.y), self.mu_at(theta))

    def slopes(self, theta: Array, projection: Features, slope: Array) -> Array:
        return np.array([projection.slope_mu(self.units, slope)])


def objective_of(
    X: Matrix, y: npt.ArrayLike, *, kernel: KernelLike, **options: Any
) -> Objective | FeaturesObjective:
    """The criterion of the whole kernel matrix, computed by the features if these are few.

    Parameters
    ----------
    X, y, kernel, options : as for `Objective`.
    """
    by_features = has_few_features(as_kernel(kernel), as_matrix(X).shape)
    return (FeaturesObjective if by_features else Objective)(X, y, kernel=kernel, **options)
