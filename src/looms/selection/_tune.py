"""Tuning of one model: a scan for the start, then searches on growing subsamples.

A criterion is a mean over samples and its optimum moves little with their number, so
most steps are made on subsamples, at a fraction of the cost. The last stage, on all
samples, begins near the optimum and with the curvature of the stage before. If landmarks suffice,
it is a search on landmarks and one evaluation by the whole kernel matrix; otherwise a search by the
kernel matrix. Of many samples the last search is on some; the point where it ended and one
extrapolated from the last two searches are evaluated on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from looms._typing import Array
from looms.lssvm.fit import Fit
from looms.optimize._curvature import difference_inverse_hessian, secant_inverse_hessian
from looms.optimize._minimize import minimize
from looms.optimize._search import Evaluate, Point, Search, StopReason, WantsGradient
from looms.selection._low_rank import LowRankObjective, on_landmarks
from looms.selection._objective import HeldOutCriterion, Objective, ScannedCriterion
from looms.selection._scan import starting_points
from looms.selection._subsamples import log2_mu_shift, nested_subsets
from looms.selection._tuning import BoundMet, Tuning

_FEW = 16  # hyper-parameters whose curvature is measured by differences
# Rows for each landmark of the search that replaces one by the whole kernel matrix, and least and
# largest number of landmarks: how many suffice hardly grows with the number of rows.
_ROWS_PER_LANDMARK, _FEWEST_LANDMARKS, _MOST_LANDMARKS = 8, 200, 800
# A search on the subsample of the scan has so many rows for each hyper-parameter, and there are so
# many times as many rows.
_ROWS_PER_VALUE, _TIMES_LARGER = 50, 4
# Landmarks suffice if half of them give the same criterion to within so many times the tolerance,
# in standard errors, as do all samples in the end. Half as many have several times the error: on
# tables of 1500 to 5000 rows the difference was less than one standard error where that of the
# landmarks themselves was at most 0.3, and more than three elsewhere.
_LANDMARK_ERROR = 10.0
#: Rows from which a search begins at the mean of tunings on parts of them; with 300 rows stacks of
#: such searches had 1.006 × the error of those of scans.
ROWS_OF_STARTS = 800
#: Samples up to which hyper-parameters extrapolated from the last two searches are evaluated, too,
#: if they moved by so much, log₂: a stack then has 0.997 × the error, on tables of 3000 to 8000
#: rows, but a fit takes 1.4 × the time at 8000.
ROWS_OF_EXTRAPOLATION, _MOVED = 5000, 0.01
# Samples from which the last evaluation of a search may have no gradient, which takes two thirds of
# its time; smaller searches are cheap, and their ends start larger ones.
_LARGE = 1600
# Where a start cannot be evaluated: more ridge, log₂, and how often, before a kernel is
# taken for none.
_MORE_RIDGE, _ATTEMPTS = 2.0, 5

#: Called after every iteration with the objective of the stage, the number of the
#: iteration in it and the best point so far; True ends the search.
Progress: TypeAlias = Callable[[HeldOutCriterion, int, Point], bool | None]


def tune(
    objective: HeldOutCriterion,
    *,
    max_iter: int = 100,
    n_restarts: int = 0,
    tolerance: float = 0.1,
    max_samples: float | None = None,
    random_state: np.random.RandomState | None = None,
    progress: Progress | None = None,
    evaluated: Callable[[HeldOutCriterion, Point], None] | None = None,
    begun: Callable[[HeldOutCriterion], None] | None = None,
    starts: Sequence[Tuning] = (),
    minimizer: Callable[..., Search] = minimize,
) -> tuple[Tuning, Fit | None]:
    """Hyper-parameters that minimize a leave-one-out criterion, and the model there.

    The last search is on ``objective.rows_of_search(max_samples)`` samples. On landmarks it begins
    at the objective's own start, without a scan, and is over if a sample of as many gave the start.
    A search that begins at tunings of parts of the samples ends at the first gain that is within
    the tolerance.

    Parameters
    ----------
    objective : the criterion as a function of its hyper-parameters.
    max_iter : maximum number of iterations of each search.
    n_restarts : number of starts beside the first, each the best of the scan for another kernel.
    tolerance : see `looms.optimize._minimize.minimize`.
    max_samples : see `looms.selection._subsamples.samples_of_search`; if they are not all, one
        evaluation on all samples follows.
    random_state : chooses the subsamples; a fixed seed by default.
    progress : called after every iteration of every search.
    evaluated : called after every evaluation, in searches and between them, with the objective
        of the stage and the point.
    begun : called before the evaluations of every stage, with its objective.
    starts : tunings on parts of the samples, at whose mean the search of many samples begins.
    minimizer : runs each search.

    Returns
    -------
    tuning : the hyper-parameters, and a record of the searches.
    fit : the model at ``tuning.theta``; None if no point could be evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> tuning, fit = tune(Objective(X, np.sin(6 * X[:, 0])))
    >>> tuning.value < 1e-6
    True
    """
    rng = np.random.RandomState(0) if random_state is None else random_state
    size = objective.rows_of_search(max_samples)
    subsets = nested_subsets(objective, rng, size)
    callbacks = evaluated, begun, progress
    options = minimizer, max_iter, tolerance
    if starts and subsets and objective.n_samples >= ROWS_OF_STARTS:
        mean = [_mean_of(starts, objective)]
        staged = _StagedSearch(objective, *callbacks, *options, objective.n_samples, mean, False)
        if size < objective.n_samples:
            reasons = [one.stop_reason for one in starts]
            staged.stop_reason = max(reasons, key=lambda one: one is StopReason.MAX_ITER)
        elif max_iter > 0:
            staged.measure_curvature(objective.subset(subsets[-1]))
        search = staged.search(objective)
        return staged.tuning(search), search.best.model
    objectives = [objective.subset(rows) for rows in subsets]
    if size == objective.n_samples or not objectives:
        objectives.append(objective)
    smallest, thetas = objectives[0], [objective.theta0]
    if isinstance(smallest, ScannedCriterion):
        scanned = starting_points(smallest, 1 + n_restarts)
        thetas = [_moved(theta, smallest, objective) for theta in scanned]
        if len(objectives) > 1 and not _worth_a_search(smallest, objective):
            objectives = objectives[1:]  # it was for the scan alone
    most, sure = objectives[-1].n_samples, objective.goes_on_if_sure
    staged = _StagedSearch(objective, *callbacks, *options, most, thetas, sure)
    known, staged.curvature = objective.known, objective.curvature
    if (
        known is not None
        and known.stop_reason is not StopReason.NEVER_EVALUATED
        and size < objective.n_samples
        and size <= objective.least_rows
    ):
        staged.stop_reason = known.stop_reason
    while len(objectives) > 1:  # those of subsamples go as they are done, with their matrices
        staged.search(objectives.pop(0))
    if most < objective.n_samples:
        stop_reason = staged.search(objectives.pop()).stop_reason
        if staged.stop_reason is None and stop_reason is not StopReason.NEVER_EVALUATED:
            staged.stop_reason = stop_reason
            if max_samples is None and objective.n_samples <= ROWS_OF_EXTRAPOLATION:
                staged.extrapolate()
    best, n_landmarks = None, None
    if (
        isinstance(objective, Objective)
        and staged.stop_reason is None
        and max_iter > 0
        and _takes_landmarks(objective)
    ):
        n = min(objective.n_samples // _ROWS_PER_LANDMARK, _MOST_LANDMARKS)
        half, whole = on_landmarks(objective, staged.thetas[0], (n // 2, n), rng)
        few, more = (staged.value(stage) for stage in (half, whole))
        if _agree(few, more, tolerance):
            search = staged.search(whole)
            staged.stop_reason, n_landmarks = search.stop_reason, whole.samples.n_samples
            best = staged.search(objective)
            if staged.stop_reason is not StopReason.CALLBACK and not _agree(
                search.best, best.best, tolerance
            ):
                staged.stop_reason = n_landmarks = best = None
    if best is None:
        best = staged.search(objective)
    return staged.tuning(best, n_landmarks), best.best.model


@dataclass
class _StagedSearch:
    """Searches on one stage after the other, each beginning where the one before ended.

    Attributes
    ----------
    objective : that of all samples.
    evaluated, begun, progress, minimizer, max_iter, tolerance : as for `tune`.
    most : number of samples of the last search.
    thetas : starts of the next stage, for the number of all samples.
    goes_on_if_sure : as of `HeldOutCriterion`.
    curvature : inverse Hessian where the last stage ended, if it was measured.
    stop_reason : that of the search, once it is over; then one evaluation on all samples remains.
    stages : number of samples and record of every search.
    n_measured : number of evaluations between the stages.
    ends : number of samples of every stage, and where it ended, for the number of all samples.
    """

    objective: HeldOutCriterion
    evaluated: Callable[[HeldOutCriterion, Point], None] | None
    begun: Callable[[HeldOutCriterion], None] | None
    progress: Progress | None
    minimizer: Callable[..., Search]
    max_iter: int
    tolerance: float
    most: int
    thetas: list[Array]
    goes_on_if_sure: bool
    curvature: Array | None = None
    stop_reason: StopReason | None = None
    stages: list[tuple[int, Search]] = field(default_factory=list)
    n_measured: int = 0
    ends: list[tuple[int, Array]] = field(default_factory=list)

    def search(self, stage: HeldOutCriterion) -> Search:
        """Best of the searches on a stage from all starts; the next stage starts there."""
        if self.begun is not None:
            self.begun(stage)
        evaluate = partial(_evaluated, stage, self.evaluated, paired=self.goes_on_if_sure)
        searches = [
            _search_from(
                stage,
                evaluate,
                _moved(theta, self.objective, stage),
                self.minimizer,
                max_iter=0 if self.stop_reason else self.max_iter,
                tolerance=self._tolerance_on(stage),
                callback=None if self.progress is None else partial(self.progress, stage),
                inverse_hessian=self.curvature,
                last_gradient=stage.n_samples < max(self.most, _LARGE),
            )
            for theta in self.thetas
        ]
        self.stages.extend((stage.n_samples, search) for search in searches)
        best = min(searches, key=lambda search: search.best.value)
        if best.stop_reason is not StopReason.NEVER_EVALUATED:
            self.thetas = [_moved(best.best.theta, stage, self.objective)]
            self.ends.append((stage.n_samples, self.thetas[0]))
        if best.stop_reason is StopReason.CALLBACK:
            self.stop_reason = best.stop_reason
        elif stage.n_samples < self.most:
            self.curvature, measured = _curvature(stage, evaluate, best, self.tolerance)
            self.n_measured += len(measured)
        return best

    def extrapolate(self) -> None:
        """Add a start as far beyond the last stage as that is beyond the one before, in log n."""
        if len(self.ends) > 1:
            (n_before, before), (n, last) = self.ends[-2:]
            share = np.log(self.objective.n_samples / n) / np.log(n / n_before)
            beyond = last + min(share, 1.0) * (last - before)
            if np.abs(beyond - last).max() > _MOVED:
                self.thetas.append(np.clip(beyond, *self.objective.bounds.T))

    def measure_curvature(self, stage: HeldOutCriterion) -> None:
        """Curvature at the start, on some of the samples, of a few hyper-parameters."""
        if len(self.thetas[0]) > _FEW:
            return
        if self.begun is not None:
            self.begun(stage)
        evaluate = partial(_evaluated, stage, self.evaluated)
        start = evaluate(_moved(self.thetas[0], self.objective, stage))
        options = start, stage.bounds, self.tolerance
        self.curvature, measured = difference_inverse_hessian(evaluate, *options)
        self.n_measured += 1 + len(measured)

    def tuning(self, best: Search, n_landmarks: int | None = None) -> Tuning:
        """Record of the searches, of which ``best`` ended on all samples."""
        objective, theta, fit = self.objective, best.best.theta, best.best.model
        value, standard_error = np.inf, np.inf
        if fit is not None:
            value, standard_error, *_ = objective.criterion_of(fit.held_out)
        return Tuning(
            theta,
            value,
            standard_error,
            self.stop_reason if self.stop_reason and fit is not None else best.stop_reason,
            tuple((n, replace(s, best=replace(s.best, model=None))) for n, s in self.stages),
            self.n_measured,
            tuple(_bounds_met(objective, theta)),
            n_landmarks,
            objective.gain_of_landmarks if isinstance(objective, LowRankObjective) else 0.0,
        )

    def _tolerance_on(self, stage: HeldOutCriterion) -> float:
        """Finer on subsamples: it costs little, and gives the curvature.

        On landmarks it costs more, and is for many hyper-parameters only, whose steps gain less.
        """
        if isinstance(stage, LowRankObjective) and len(stage.theta0) <= _FEW:
            return self.tolerance
        return self.tolerance * stage.n_samples / self.objective.n_samples

    def value(self, stage: HeldOutCriterion) -> Point:
        """Criterion of a stage at the point where the next search would start."""
        self.n_measured += 1
        if self.begun is not None:
            self.begun(stage)
        return _evaluated(stage, self.evaluated, self.thetas[0], gradient=False)


def _evaluated(
    stage: HeldOutCriterion,
    evaluated: Callable[[HeldOutCriterion, Point], None] | None,
    theta: Array,
    gradient: WantsGradient = True,
    paired: bool = True,
) -> Point:
    """Point of the stage, which can be compared row by row if ``paired``.

    ``evaluated`` is called with it.
    """
    point = stage.evaluate(theta, gradient=gradient)
    if evaluated is not None:
        evaluated(stage, point)
    return point if paired else replace(point, deviations=None)


def _search_from(
    stage: HeldOutCriterion,
    evaluate: Evaluate,
    theta: Array,
    minimizer: Callable[..., Search] = minimize,
    **options: Any,
) -> Search:
    """Search, repeated at larger μ if the start cannot be evaluated, with all attempts."""
    failed: list[Point] = []
    for _ in range(_ATTEMPTS):
        search = minimizer(evaluate, theta, stage.bounds, **options)
        if search.stop_reason is not StopReason.NEVER_EVALUATED:
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


def _moved(theta: Array, source: HeldOutCriterion, target: HeldOutCriterion) -> Array:
    """Hyper-parameters for another number of samples: the same kernel, shifted μ."""
    moved = theta.copy()
    moved[-1] += log2_mu_shift(source.n_samples, target.n_samples)
    return moved


def _mean_of(tunings: Sequence[Tuning], objective: HeldOutCriterion) -> Array:
    """Mean of the hyper-parameters of tunings on other numbers of samples, with μ for these."""
    theta = np.mean([one.theta for one in tunings], axis=0)
    sizes = [one.stages[-1][0] for one in tunings]
    theta[-1] += np.mean([log2_mu_shift(n, objective.n_samples) for n in sizes])
    return np.asarray(np.clip(theta, *objective.bounds.T))


def _worth_a_search(scanned: HeldOutCriterion, whole: HeldOutCriterion) -> bool:
    """True if a search on the subsample of the scan costs little, and has enough rows.

    On 18 problems of 1000 rows and 18 of 2000 it saves 0.3 of the time, with the same criterion.
    """
    n, n_values = scanned.n_samples, len(scanned.theta0)
    return n >= _ROWS_PER_VALUE * n_values and _TIMES_LARGER * n <= whole.n_samples


def _takes_landmarks(objective: Objective) -> bool:
    """True for many rows with a kernel that is a function of them."""
    return (
        objective.n_samples >= _ROWS_PER_LANDMARK * _FEWEST_LANDMARKS
        and objective.units.alone
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
                met.append(BoundMet(h.name, end, float(2.0**bound), advice, h.feature, h.word))
    return met
