"""Tuning of one machine: a scan for the start, then searches on growing subsamples.

A least-squares SVM criterion has few but real local minima (too smooth a kernel
with hardly any ridge, too narrow a one with a large ridge), and a start a few powers
of two off costs most of the evaluations of a search. Eigenvectors make the scan
cheap: all μ of one kernel for the price of a few factorizations of the subsample.

A criterion is a mean over samples and its optimum moves little with their number, so
most steps are made on subsamples, at a fraction of the cost. The last stage, on all
samples, begins near the optimum and with the curvature of the stage before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from looms._typing import AnyArray, Array
from looms.folds import left_out_with
from looms.lssvm._system import Fit
from looms.optimize import Outcome, Point, minimize
from looms.optimize._curvature import difference_inverse_hessian, secant_inverse_hessian
from looms.optimize._search import Evaluate, Search
from looms.selection._objective import (
    HeldOutCriterion,
    Objective,
    feature_space_variance,
)

#: Powers of two by which all kernel parameters with a unit are multiplied together.
KERNEL_SHIFTS = (-8.0, -5.0, -2.0, 1.0, 4.0)
#: n μ over the variance of the samples in feature space, log₂.
RIDGES = np.arange(-12.0, 5.0, 2.0)
#: Points of `grid_points` around the start, log₂: kernel parameters together, and n μ. On nine
#: real tables of 60 and 200 rows the test error of the best of these is that of a search by
#: gradients, and that of twice as many points no less.
GRID_SHIFTS = np.arange(-6.0, 4.0, 1.5)
GRID_RIDGES = np.arange(-9.0, 8.0, 2.0)
_SCAN_SAMPLES = 200
_GROWTH = 4  # of the number of samples from stage to stage
#: Groups of which a subsample has as many or more are drawn as a whole, larger ones in part.
_FEW_GROUPS = 10
_FEW = 16  # hyper-parameters whose curvature is measured by differences
# Where a start cannot be evaluated: more ridge, log₂, and how often, before a kernel is
# taken for none.
_MORE_RIDGE, _ATTEMPTS = 2.0, 5
# From n to m samples the best μ goes as (n / m)^_DECAY: 1 keeps the ridge n μ, as for
# targets that the kernel fits but for noise, 0 keeps μ, as for classes that overlap.
_DECAY = 0.5

#: Called after every iteration with the objective of the stage, the number of the
#: iteration in it and the best point so far; True ends the search.
Progress: TypeAlias = Callable[[HeldOutCriterion, int, Point], bool | None]


@dataclass(frozen=True)
class BoundMet:
    """Hyper-parameter that ended at a bound; its text is the advice.

    Attributes
    ----------
    name : of the hyper-parameter.
    side : "lower" or "upper".
    bound : the value there.
    advice : meaning of the bound, and what to do.
    """

    name: str
    side: str
    bound: float
    advice: str

    @property
    def remark(self) -> str:
        """Advice without the name."""
        return f"ended at its {self.side} bound {self.bound:.3g}: {self.advice}"

    def __str__(self) -> str:
        return f"{self.name} {self.remark}"


@dataclass(frozen=True, eq=False)
class Tuning:
    """Tuned hyper-parameters of one kernel under one criterion.

    Attributes
    ----------
    theta : (p + 1,) log₂ of the hyper-parameters, the kernel's and μ.
    value, standard_error : of the criterion there, on all samples, without the prior.
    outcome : reason why the search stopped; the value of the enum is the advice.
    stages : number of samples and record of every search; the last are on all samples.
    n_measured : evaluations between the stages, for the curvature.
    at_bounds : hyper-parameters that ended at a bound that matters.
    """

    theta: Array
    value: float
    standard_error: float
    outcome: Outcome
    stages: tuple[tuple[int, Search], ...]
    n_measured: int
    at_bounds: tuple[BoundMet, ...]

    def __repr__(self) -> str:
        return (
            f"Tuning(value={self.value:.4g}, outcome={self.outcome.name}, "
            f"n_evaluations={self.n_evaluations})"
        )

    @property
    def history(self) -> tuple[Point, ...]:
        """Points of the searches on all samples, in the order of evaluation."""
        n = self.stages[-1][0]
        return tuple(p for size, search in self.stages if size == n for p in search.history)

    @property
    def n_iterations(self) -> int:
        """Iterations of the last search."""
        return self.stages[-1][1].n_iterations

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the searches of all stages."""
        return sum(search.n_evaluations for _, search in self.stages)

    @property
    def n_failures(self) -> int:
        """Points that could not be evaluated and were stepped over, in all stages."""
        return sum(search.n_failures for _, search in self.stages)


def tune(
    objective: HeldOutCriterion,
    *,
    optimizer: str = "lbfgs",
    max_iter: int = 100,
    n_restarts: int = 0,
    tolerance: float = 0.1,
    random_state: np.random.RandomState | None = None,
    progress: Progress | None = None,
    evaluated: Callable[[HeldOutCriterion, Point], None] | None = None,
) -> tuple[Tuning, Fit | None]:
    """Hyper-parameters that minimize a leave-one-out criterion, and the machine there.

    On landmarks the search goes on from the objective's own start, without a scan.

    Parameters
    ----------
    objective : the criterion in its hyper-parameters.
    optimizer : "lbfgs", "scg" or "nelder-mead".
    max_iter : iterations of each search.
    n_restarts : starts beside the first, each the best of the scan for another kernel.
    tolerance : see `looms.optimize.minimize`.
    random_state : chooses the subsamples; a fixed seed unless given.
    progress : called after every iteration of every search.
    evaluated : called after every evaluation, of searches and between them, with the objective
        of the stage and the point.

    Returns
    -------
    tuning : the hyper-parameters, and a record of the searches.
    fit : the machine at ``tuning.theta``; None if no point could be evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> tuning, fit = tune(Objective(X, np.sin(6 * X[:, 0])))
    >>> tuning.value < 1e-6
    True
    """
    rng = np.random.RandomState(0) if random_state is None else random_state
    objectives = [objective.subset(s) for s in _nested_subsets(objective, rng)] + [objective]
    smallest, thetas = objectives[0], [objective.theta0]
    if isinstance(smallest, Objective):
        starts = starting_points(smallest, 1 + n_restarts)
        thetas = [_moved(theta, smallest, objective) for theta in starts]
        # The smallest subsample was for the scan alone, unless it is all there is.
        objectives = objectives[1:] or objectives
    stages: list[tuple[int, Search]] = []
    stopped, curvature, n_measured = False, None, 0
    for stage in objectives:
        evaluate = partial(_evaluated, stage, evaluated)
        searches = [
            _searched(
                stage,
                evaluate,
                _moved(theta, objective, stage),
                optimizer=optimizer,
                max_iter=max_iter,
                # Finely on subsamples: it costs little, and the next stage needs the curvature.
                tolerance=tolerance * stage.n_samples / objective.n_samples,
                callback=None if progress is None else partial(progress, stage),
                inverse_hessian=curvature,
            )
            for theta in thetas
        ]
        stages += [(stage.n_samples, search) for search in searches]
        best = min(searches, key=lambda search: search.best.value)
        if best.outcome is Outcome.CALLBACK:  # what is left is one fit on all samples
            max_iter, stopped = 0, True
        if best.outcome is not Outcome.NEVER_EVALUATED:
            thetas = [_moved(best.best.theta, stage, objective)]
        if stage is not objective and not stopped:
            curvature, measured = _curvature(stage, evaluate, best, tolerance)
            n_measured += len(measured)
    theta, fit = best.best.theta, best.best.model
    value, standard_error = np.inf, np.inf
    if fit is not None:
        value, standard_error, _ = objective.criterion_of(fit.held_out)
    tuning = Tuning(
        theta,
        value,
        standard_error,
        Outcome.CALLBACK if stopped else best.outcome,
        tuple((n, replace(s, best=replace(s.best, model=None))) for n, s in stages),
        n_measured,
        tuple(_bounds_met(objective, theta)),
    )
    return tuning, fit


def starting_points(objective: Objective, n_points: int) -> list[Array]:
    """Best ``n_points`` points of the scan, at most one for each kernel, best first.

    Points that cannot be evaluated are left out; if none can, the objective's own
    start is the only one.
    """
    best = []
    for theta in _moved_kernels(objective, KERNEL_SHIFTS):
        K = objective.gram(objective.kernel.with_theta(theta))
        with np.errstate(invalid="ignore"):  # of a kernel matrix that is not finite
            spread = feature_space_variance(K, objective.fit_intercept)
        log2_mu = np.log2(spread / objective.n_samples) + RIDGES
        points = objective.along_mu(theta, np.clip(log2_mu, *objective.bounds[-1]))
        best.append(min(points, key=lambda point: point.value))
    ranked = sorted((p for p in best if np.isfinite(p.value)), key=lambda point: point.value)
    starts = [np.clip(point.theta, *objective.bounds.T) for point in ranked[:n_points]]
    return starts or [objective.theta0]


def grid_points(objective: Objective) -> list[Array]:
    """Points of a grid around the start, (p + 1,) each: kernel parameters as in a scan, and μ.

    It depends on the features only, by the start, and not on the targets.
    """
    kernels = _moved_kernels(objective, GRID_SHIFTS)
    ridges = GRID_RIDGES
    if len(kernels) == 1:
        ridges = np.arange(GRID_RIDGES[0], GRID_RIDGES[-1] + 1)
    points = [
        np.clip(np.append(theta, objective.theta0[-1] + ridge), *objective.bounds.T)
        for theta in kernels
        for ridge in ridges
    ]
    return list(np.unique(points, axis=0))


def _moved_kernels(objective: Objective, shifts: Iterable[float]) -> list[Array]:
    """log₂ parameters of the kernel, numbers with a unit moved together, others as they try."""
    free = objective.kernel.hyperparameters
    moves = np.array([0.0 if h.tried else 1.0 for h in free])
    tried = [dict.fromkeys([h.log2, *map(float, np.log2(h.tried))]) for h in free]
    thetas = [
        np.clip(np.array(values) + shift * moves, *objective.bounds[:-1].T)
        for values in product(*tried)
        for shift in (shifts if moves.any() else (0.0,))
    ]
    return list(np.unique(thetas, axis=0))


def _evaluated(
    stage: HeldOutCriterion,
    evaluated: Callable[[HeldOutCriterion, Point], None] | None,
    theta: Array,
    gradient: bool = True,
) -> Point:
    """Point of the stage; ``evaluated`` is called with it."""
    point = stage.evaluate(theta, gradient=gradient)
    if evaluated is not None:
        evaluated(stage, point)
    return point


def _searched(stage: HeldOutCriterion, evaluate: Evaluate, theta: Array, **options: Any) -> Search:
    """Search, repeated at larger μ if the start cannot be evaluated, with all attempts."""
    failed: list[Point] = []
    for _ in range(_ATTEMPTS):
        search = minimize(evaluate, theta, stage.bounds, **options)
        if search.outcome is not Outcome.NEVER_EVALUATED:
            break
        failed += search.history
        theta = np.append(theta[:-1], theta[-1] + _MORE_RIDGE)
    else:
        return replace(search, history=tuple(failed))
    return replace(search, history=(*failed, *search.history))


def _curvature(
    stage: HeldOutCriterion, evaluate: Evaluate, search: Search, tolerance: float
) -> tuple[Array | None, list[Point]]:
    """Inverse Hessian where a search on a subsample ended, and the points evaluated for it.

    An evaluation there costs a `_GROWTH`³-th of one in the next stage, so for a few
    hyper-parameters differences are cheap and save steps that secants send astray.
    """
    if not search.accepted:
        return None, []
    if len(search.best.theta) > _FEW:
        return secant_inverse_hessian(search.accepted), []
    end = search.accepted[-1]
    return difference_inverse_hessian(evaluate, end, stage.bounds, tolerance)


def _nested_subsets(objective: HeldOutCriterion, rng: np.random.RandomState) -> list[AnyArray]:
    """Indices of growing subsamples, each in the next, classes in proportion."""
    n, unit = objective.n_samples, objective.groups
    sizes = [size for size in stage_sizes(n) if size >= objective.least_rows]
    if unit is None or (sizes and _FEW_GROUPS * np.bincount(unit).max() > sizes[0]):
        unit = np.arange(n)
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    place = (
        _stratified_place(objective.y[first], rng)
        if objective.labeled
        else np.argsort(rng.permutation(len(first)))
    )
    order = np.argsort(place[unit], kind="stable")  # rows of a group one after the other
    subsets = [np.sort(order[:size]) for size in sizes]
    if objective.folds is None:
        return subsets
    folds = left_out_with(objective.folds)
    return [s for s in subsets if all(len(np.unique(row[s])) > 1 for row in folds)]


def sampled_rows(y: Array, size: int, rng: np.random.RandomState) -> AnyArray:
    """Indices of a random sample of rows, increasing; labels ±1 in proportion."""
    labeled = bool(np.isin(y, (-1.0, 1.0)).all())
    place = _stratified_place(y, rng) if labeled else rng.permutation(len(y))
    return np.sort(np.argsort(place, kind="stable")[:size])


def stage_sizes(n_samples: int) -> list[int]:
    """Sizes of the subsamples before all samples: the scan's first, then growing by `_GROWTH`.

    Examples
    --------
    >>> stage_sizes(150), stage_sizes(400), stage_sizes(15000)
    ([], [200], [234, 937, 3750])
    """
    sizes: list[int] = []
    size = n_samples // _GROWTH
    while size >= _SCAN_SAMPLES:
        sizes.insert(0, size)
        size //= _GROWTH
    smallest = sizes[0] if sizes else n_samples
    if smallest > (2 if sizes else 1) * _SCAN_SAMPLES:
        sizes.insert(0, _SCAN_SAMPLES)
    return sizes


def _stratified_place(y: Array, rng: np.random.RandomState) -> AnyArray:
    """Random places of samples, of which the first m have the classes in proportion."""
    labels = np.unique(y.reshape(len(y), -1), axis=0, return_inverse=True)[1].ravel()
    rank = np.empty(len(y))
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        rank[rng.permutation(members)] = np.arange(len(members)) / len(members)
    return rank


def _moved(theta: Array, source: HeldOutCriterion, target: HeldOutCriterion) -> Array:
    """Hyper-parameters for another number of samples: the same kernel, shifted μ."""
    moved = theta.copy()
    moved[-1] += log2_mu_shift(source.n_samples, target.n_samples)
    return moved


def log2_mu_shift(n_source: int, n_target: int) -> float:
    """Expected shift of the best log₂ μ from ``n_source`` to ``n_target`` samples."""
    return float(_DECAY * np.log2(n_source / n_target))


def _bounds_met(objective: HeldOutCriterion, theta: Array) -> list[BoundMet]:
    met = []
    for h, value, (low, high) in zip(
        objective.hyperparameters, theta, objective.bounds, strict=True
    ):
        for end, bound, advice in (("lower", low, h.at_lower), ("upper", high, h.at_upper)):
            if advice and low < high and abs(value - bound) < 1e-3:
                met.append(BoundMet(h.name, end, float(2.0**bound), advice))
    return met
