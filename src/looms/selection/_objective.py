"""Selection criterion as a function of all hyper-parameters, with its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from looms._classes import class_indices
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.criteria import Criterion, Evaluation, as_criterion
from looms.folds import fold_numbers, group_numbers
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, contract_lower, gram_into, is_finite_lower
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._names import KernelLike, as_kernel
from looms.kernels._samples import Samples, as_matrix, check_scale, training_rows
from looms.lssvm import NotPositiveDefiniteError, decompose
from looms.lssvm._folds import repetitions, whole_repetitions
from looms.lssvm._system import Fit, checked_weights
from looms.lssvm.cholesky import Solution, solve_in_place
from looms.optimize import Point
from looms.selection._prior import HyperPrior

_LN2 = float(np.log(2.0))
# Half-widths of the default search box around the start, log₂ units.
_KERNEL_WIDTH = 12.0
# n μ starts at 2^-3 of the mean variance of the samples in feature space and may go
# from 2^-30, where rounding takes over, to 2^16, where only the mean is left.
_RIDGE_START, _RIDGE_LOW, _RIDGE_HIGH = -3.0, -30.0, 16.0

#: Targets of whose residuals, and of whose inverses, the fourth powers are still numbers.
_LARGEST_TARGET = 1e70

_MU_AT_LOWER = (
    "hardly any regularization: the targets look noise-free or the kernel too smooth for them; "
    "try another kernel, and check for duplicates of samples"
)
_MU_AT_UPPER = (
    "almost all regularization: these features say little about the target with this kernel; "
    "scale the features, or try another kernel"
)


class Solved(Protocol):
    """Solution of a system, of which the machine and its held-out outputs are known."""

    @property
    def fit(self) -> Fit: ...


class HeldOutCriterion(ABC):
    """Held-out criterion of a least-squares SVM in the log₂ of its hyper-parameters.

    Subclasses solve for the machine, by a kernel matrix or on landmarks.

    Attributes
    ----------
    theta0 : (p + 1,) start: the kernel's free hyper-parameters, then μ; log₂.
    bounds : (p + 1, 2) the box to search, log₂.
    kernel : with the values of the start.
    prior : of the kernel's hyper-parameters, or None.
    least_rows : of a subsample on which a search begins.
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
        cv: Any,
        groups: npt.ArrayLike | None,
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
        self.groups = None if groups is None else group_numbers(groups, self.n_samples)
        self.folds = fold_numbers(
            cv, self.y, self.groups, labels=class_indices(self.y) if self.labeled else None
        )
        self.parts = repetitions(self.folds, self.n_samples)

    @property
    @abstractmethod
    def samples(self) -> Samples:
        """Samples of the coefficients of the machine, with their weights."""

    @abstractmethod
    def solve(self, theta: Array) -> Solved:
        """Solved system at ``theta``.

        Raises
        ------
        NotPositiveDefiniteError
            If the kernel matrix plus ridge is not positive definite.
        """

    @abstractmethod
    def subset(self, rows: AnyArray) -> HeldOutCriterion:
        """The same on a subset of the samples, with the same kernel and box.

        The box moves with the number of samples, so that it holds the same ridges n μ.
        """

    @abstractmethod
    def slopes(self, theta: Array, solution: Any, slope: Array) -> Array:
        """∂J/∂θ, (p + 1,), natural units, from the slope ∂J/∂f of a criterion."""

    def __call__(self, theta: npt.ArrayLike) -> tuple[float, Array]:
        """Value and gradient at ``theta``, (p + 1,) log₂ of the hyper-parameters.

        The value is infinite, and the gradient nan, where the kernel matrix plus
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
                solution = self.solve(theta)
            except NotPositiveDefiniteError:
                return Point(theta, np.inf, np.inf)
            value, standard_error, slope = self.criterion_of(solution.fit.held_out)
            if not np.isfinite(value):
                return Point(theta, np.inf, np.inf)
            dJ = None
            if gradient:
                dJ = np.asarray(_LN2 * np.exp2(theta) * self.slopes(theta, solution, slope))
            return self.penalized(Point(theta, value, standard_error, dJ, solution.fit))

    def penalized(self, point: Point) -> Point:
        """Point of the criterion with the prior, if there is one."""
        return point if self.prior is None else self.prior.penalized(point, self.n_samples)

    def fit(self, theta: Array) -> Fit:
        """Machine at ``theta``, with its leave-one-out outputs.

        Raises
        ------
        NotPositiveDefiniteError
            If the kernel matrix plus ridge is not positive definite.
        """
        with blas_threads(self.n_samples):
            return self.solve(theta).fit

    def criterion_of(self, held_out: Array) -> Evaluation:
        """Criterion of held-out outputs under the selection weights.

        Parameters
        ----------
        held_out : (n_repetitions, n) or (n_repetitions, n, t). Repetitions count by the weight of
            the rows that they hold out. Their standard errors are averaged as if the
            repetitions told nothing new.
        """
        whole = whole_repetitions(self.parts)
        weights = np.array([self.selection_weight[rows].sum() for _, rows in whole])
        value, error, slope = 0.0, 0.0, np.zeros(held_out.shape)
        for (r, rows), share in zip(whole, weights / weights.sum(), strict=True):
            groups = None if self.groups is None else self.groups[rows]
            part = self.criterion.evaluate(
                self.y[rows], held_out[r, rows], self.selection_weight[rows], groups
            )
            value, error = value + share * part.value, error + share * part.standard_error
            slope[r, rows] = share * part.slope
        return Evaluation(float(value), float(error), slope)

    def with_criterion(self, criterion: str | Criterion) -> Self:
        """Objective of another criterion; kernel caches and buffers are shared."""
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
        """True where all targets are labels ±1."""
        return bool(np.isin(self.y, (-1.0, 1.0)).all())

    def _check(self) -> None:
        n = self.n_samples
        if self.y.ndim not in (1, 2) or len(self.y) != n:
            raise ValueError(f"{n} samples need as many targets, got shape {self.y.shape}.")
        if n < 2:
            raise ValueError("Leave-one-out needs two samples or more, but there is one.")
        if not np.isfinite(self.y).all():
            raise ValueError("X and y must be finite, but hold NaN or infinity.")
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


class Objective(HeldOutCriterion):
    """Held-out criterion of a machine of a whole kernel matrix.

    Calling it returns the value and the gradient for all of them at once
    [docs/references.md, Gradient]: about twice the flops of a factorization with inverse, however
    many hyper-parameters the kernel has.

    Parameters
    ----------
    X : (n, n_features) dense or sparse samples, or the matrix of a precomputed kernel.
    y : (n,) or (n, t) targets; ±1 for criteria of classification.
    kernel : name, `looms.kernels.Kernel` or function; values that are None are set
        from the data.
    criterion : name or `looms.criteria.Criterion`.
    sample_weight : (n,) positive weights ζ of the fit; ones unless given. Rescaled
        to mean one, so that λ_i = μ Σζ / ζ_i.
    selection_weight : (n,) nonnegative weights of the criterion; ``sample_weight``
        unless given.
    fit_intercept : whether the machine has an intercept.
    cv : rows that are held out together, as for `looms.folds.fold_numbers`: None for each row, or
        each group, by itself; a number of folds; "5x2"; a splitter or its splits. The criterion is
        the mean over repetitions.
    groups : (n,) labels; rows of one group are held out together.
    prior : whether to regularize the kernel's hyper-parameters: the value is then
        that of `HyperPrior`, centered at the start.

    Attributes
    ----------
    theta0 : (p + 1,) start: the kernel's free hyper-parameters, then μ; log₂.
    bounds : (p + 1, 2) the box to search, log₂.
    names : of the hyper-parameters, in the order of ``theta0``.

    Raises
    ------
    ValueError
        For shapes that do not agree, labels other than ±1 under a criterion that
        needs them, weights that are not positive, targets or features so large or small that
        squares overflow or vanish.

    Notes
    -----
    A value takes one n×n array, a gradient one more; from the third kernel matrix on one is kept
    for each kind of inner products and distances that the kernel uses.

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
        cv: Any = None,
        groups: npt.ArrayLike | None = None,
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
            cv,
            groups,
        )
        if not np.isfinite(self.X if isinstance(self.X, np.ndarray) else self.X.data).all():
            raise ValueError("X and y must be finite, but hold NaN or infinity.")
        opened = as_kernel(kernel)
        if opened.pairwise and self.X.shape[0] != self.X.shape[1]:
            raise ValueError(f"A precomputed kernel matrix is square, got shape {self.X.shape}.")
        if not opened.pairwise:
            check_scale(self.X)
        self._work: Array | None = None
        self._scratch: Array | None = None
        with blas_threads(self.n_samples):
            self._blocks = GramBlocks(self.X, opened.uses, self.sample_weight)
            self.kernel = opened.started(self._blocks.samples)
            self._place_start()
        self._work = None  # not kept while subsamples are searched
        self.prior = HyperPrior(self.kernel.theta) if prior else None

    @property
    def samples(self) -> Samples:
        """Samples with their weights in the fit."""
        return self._blocks.samples

    def along_mu(self, kernel_theta: Array, log2_mu: Array) -> list[Point]:
        """Values without gradient at many μ of one kernel, by one eigendecomposition.

        Parameters
        ----------
        kernel_theta : (p,) log₂ of the kernel's hyper-parameters.
        log2_mu : log₂ of the values of μ.

        Returns
        -------
        points : one for each μ, infinite where the criterion cannot be evaluated.
        """
        thetas = [np.append(kernel_theta, log_mu) for log_mu in log2_mu]
        points = [Point(theta, np.inf, np.inf) for theta in thetas]
        with blas_threads(self.n_samples):
            K = self.gram(self.kernel.with_theta(kernel_theta))
            if not is_finite_lower(K):
                return points
            spectrum = decompose(K, sample_weight=self.sample_weight)
            for k, theta in enumerate(thetas):
                try:
                    outputs = spectrum.outputs(
                        self.y,
                        self.mu_at(theta),
                        fit_intercept=self.fit_intercept,
                        folds=np.arange(self.n_samples)[None] if self.folds is None else self.folds,
                    )
                except NotPositiveDefiniteError:
                    continue
                value, standard_error, _ = self.criterion_of(outputs)
                if np.isfinite(value):
                    points[k] = self.penalized(Point(theta, value, standard_error))
        return points

    def solve(self, theta: Array) -> Solution:
        """Solved system at ``theta``, in the buffer of the objective: until the next call."""
        return solve_in_place(
            self.gram(self.kernel_at(theta)),
            self.y,
            self.mu_at(theta),
            self.sample_weight,
            fit_intercept=self.fit_intercept,
            parts=self.parts,
        )

    def slopes(self, theta: Array, solution: Solution, slope: Array) -> Array:
        """`Solution.contract` gives G = ∂J/∂K and ∂J/∂μ, and the ``values_gradient`` of the kernel,
        block by block, Σ_ij G_ij ∂K_ij/∂θ."""
        if self._scratch is None:
            self._scratch = np.empty((self.n_samples, self.n_samples), order="F")
        G, slope_mu = solution.contract(slope, self._scratch)
        return np.append(contract_lower(G, self.kernel_at(theta), self._blocks), slope_mu)

    def gram(self, kernel: Kernel) -> Array:
        """Lower triangle of the Gram matrix of ``kernel``, in the buffer of the objective."""
        if self._work is None:
            self._work = np.empty((self.n_samples, self.n_samples), order="F")
        with np.errstate(over="ignore", invalid="ignore"):  # a point that cannot be evaluated
            gram_into(self._work, kernel, self._blocks)
        return self._work

    def subset(self, rows: AnyArray) -> Objective:
        X = training_rows(self.X, rows, self.kernel.pairwise)
        part = Objective(
            X,
            self.y[rows],
            kernel=self.kernel,
            criterion=self.criterion,
            sample_weight=self.sample_weight[rows],
            selection_weight=self.selection_weight[rows],
            fit_intercept=self.fit_intercept,
        )
        if self.folds is not None:
            part.folds = self.folds[:, rows]
            part.parts = repetitions(part.folds, part.n_samples)
        part.groups = None if self.groups is None else self.groups[rows]
        part.prior = self.prior
        part.bounds = self.bounds.copy()
        part.bounds[-1] += np.log2(self.n_samples / part.n_samples)
        return part

    def _place_start(self) -> None:
        """Start and box: the kernel's own, and a ridge in proportion to the samples' spread."""
        K = self.gram(self.kernel)
        spread = feature_space_variance(K, self.fit_intercept)
        log_unit = np.log2(spread / self.n_samples)
        theta = self.kernel.theta
        box = [
            np.log2(h.bounds) if h.bounds else (start - _KERNEL_WIDTH, start + _KERNEL_WIDTH)
            for h, start in zip(self.kernel.hyperparameters, theta, strict=True)
        ]
        box.append((log_unit + _RIDGE_LOW, log_unit + _RIDGE_HIGH))
        self.bounds = np.array(box, dtype=np.float64)
        self.theta0 = np.clip(np.append(theta, log_unit + _RIDGE_START), *self.bounds.T)


def feature_space_variance(K: Array, centered: bool) -> float:
    """Mean of k(x, x), less the mean of k(x, x') if ``centered``; from the lower triangle."""
    n = len(K)
    diagonal = K.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(diagonal.mean())
        below = sum(float(K[j + 1 :, j].sum()) for j in range(n)) if centered else 0.0
    if not (0 < total < np.inf and np.isfinite(below)):
        return 1.0
    if centered:
        total = max(1e-8 * total, total - (2.0 * below + float(diagonal.sum())) / n**2)
    return total
