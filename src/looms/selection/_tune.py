"""Tuning of one machine: a scan for the start, then searches on growing subsamples.

A criterion is a mean over samples and its optimum moves little with their number, so
most steps are made on subsamples, at a fraction of the cost. The last stage, on all
samples, begins near the optimum and with the curvature of the stage before. It is a search on
landmarks and one evaluation by the whole kernel matrix, where landmarks suffice, and otherwise a
search by the kernel matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from looms._typing import AnyArray, Array
from looms.folds import left_out_with
from looms.lssvm._system import Fit
from looms.optimize import Outcome, Point, minimize
from looms.optimize._curvature import difference_inverse_hessian, secant_inverse_hessian
from looms.optimize._search import Evaluate, Search
from looms.selection._low_rank import on_landmarks
from looms.selection._objective import HeldOutCriterion, Objective
from looms.selection._starts import starting_points

_SCAN_SAMPLES = 200
_GROWTH = 4  # of the number of samples from stage to stage
#: Groups of which a subsample has as many or more are drawn as a whole, larger ones in part.
_FEW_GROUPS = 10
_FEW = 16  # hyper-parameters whose curvature is measured by differences
# Rows for each landmark of the search that replaces one by the whole kernel matrix, and least and
# largest number of landmarks: how many suffice hardly grows with the number of rows.
_ROWS_PER_LANDMARK, _FEWEST_LANDMARKS, _MOST_LANDMARKS = 8, 200, 800
# Landmarks suffice if half of them give the same criterion to within so many times the tolerance,
# in standard errors, as do all samples in the end. Half as many have several times the error: on
# tables of 1500 to 5000 rows the difference was less than one standard error where that of the
# landmarks themselves was at most 0.3, and more than three elsewhere.
_LANDMARK_ERROR = 10.0
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
    n_measured : evaluations between the stages, for the curvature and for whether landmarks
        suffice.
    at_bounds : hyper-parameters that ended at a bound that matters.
    n_landmarks : number of landmarks of the search before the last evaluation, which is then the
        only one by the whole kernel matrix; None if the last search is by the kernel matrix.
    """

    theta: Array
    value: float
    standard_error: float
    outcome: Outcome
    stages: tuple[tuple[int, Search], ...]
    n_measured: int
    at_bounds: tuple[BoundMet, ...]
    n_landmarks: int | None = None

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
        """Iterations of the last search, before the one evaluation if that was on landmarks."""
        return self.stages[-1 if self.n_landmarks is None else -2][1].n_iterations

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
    curvature, n_measured, n_landmarks = None, 0, None
    outcome: Outcome | None = None  # of the search, once it is over

    def searched(stage: HeldOutCriterion) -> Search:
        """Best of the searches on a stage from every start; it is the start of the next."""
        nonlocal thetas, outcome, curvature, n_measured
        evaluate = partial(_evaluated, stage, evaluated)
        searches = [
            _searched(
                stage,
                evaluate,
                _moved(theta, objective, stage),
                optimizer=optimizer,
                max_iter=0 if outcome else max_iter,
                # Finely on subsamples: it costs little, and the next stage needs the curvature.
                tolerance=tolerance * stage.n_samples / objective.n_samples,
                callback=None if progress is None else partial(progress, stage),
                inverse_hessian=curvature,
            )
            for theta in thetas
        ]
        stages.extend((stage.n_samples, search) for search in searches)
        best = min(searches, key=lambda search: search.best.value)
        if best.outcome is not Outcome.NEVER_EVALUATED:
            thetas = [_moved(best.best.theta, stage, objective)]
        if best.outcome is Outcome.CALLBACK:  # what is left is one fit on all samples
            outcome = best.outcome
        elif stage.n_samples < objective.n_samples and outcome is None:
            curvature, measured = _curvature(stage, evaluate, best, tolerance)
            n_measured += len(measured)
        return best

    while len(objectives) > 1:  # those of subsamples go as they are done, with their matrices
        searched(objectives.pop(0))
    if (
        isinstance(objective, Objective)
        and outcome is None
        and max_iter > 0
        and _takes_landmarks(objective)
    ):
        n = min(objective.n_samples // _ROWS_PER_LANDMARK, _MOST_LANDMARKS)
        half, whole = on_landmarks(objective, thetas[0], (n // 2, n), rng)
        values = [_evaluated(of, evaluated, thetas[0], gradient=False) for of in (half, whole)]
        n_measured += len(values)
        if _agree(values[0], values[1], tolerance):
            search = searched(whole)
            outcome, n_landmarks = search.outcome, whole.samples.n_samples
            best = searched(objective)
            if outcome is not Outcome.CALLBACK and not _agree(search.best, best.best, tolerance):
                outcome = n_landmarks = None
    if n_landmarks is None:
        best = searched(objective)
    theta, fit = best.best.theta, best.best.model
    value, standard_error = np.inf, np.inf
    if fit is not None:
        value, standard_error, _ = objective.criterion_of(fit.held_out)
    tuning = Tuning(
        theta,
        value,
        standard_error,
        outcome if outcome and fit is not None else best.outcome,
        tuple((n, replace(s, best=replace(s.best, model=None))) for n, s in stages),
        n_measured,
        tuple(_bounds_met(objective, theta)),
        n_landmarks,
    )
    return tuning, fit


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


def _takes_landmarks(objective: Objective) -> bool:
    """True for many rows, each held out by itself, with a kernel that is a function of them."""
    return (
        objective.n_samples >= _ROWS_PER_LANDMARK * _FEWEST_LANDMARKS
        and objective.folds is None
        and not objective.kernel.pairwise
    )


def _agree(few: Point, more: Point, tolerance: float) -> bool:
    """True if two numbers of landmarks, or landmarks and all samples, give the same criterion."""
    return abs(few.value - more.value) < _LANDMARK_ERROR * tolerance * more.standard_error


def _bounds_met(objective: HeldOutCriterion, theta: Array) -> list[BoundMet]:
    met = []
    for h, value, (low, high) in zip(
        objective.hyperparameters, theta, objective.bounds, strict=True
    ):
        for end, bound, advice in (("lower", low, h.at_lower), ("upper", high, h.at_upper)):
            if advice and low < high and abs(value - bound) < 1e-3:
                met.append(BoundMet(h.name, end, float(2.0**bound), advice))
    return met
