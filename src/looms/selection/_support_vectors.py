"""Search for C and kernel of support vector machines by their leave-one-out outputs.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from looms._advice import setting
from looms._checks import check_known
from looms._classes import class_indices
from looms._threads import blas_threads, one_blas_thread
from looms._typing import Array, Matrix
from looms.calibration._scores import deviance_of
from looms.criteria import Criterion, as_criterion
from looms.criteria._differentiable import DIFFERENTIABLE
from looms.kernels import Kernel
from looms.kernels._gram import expansion
from looms.kernels._samples import Samples, center_of, check_scale
from looms.lssvm.fit import Fit
from looms.optimize._search import Point, Search, StopReason
from looms.selection._grid import Place, Searched, grid_search, pattern_search
from looms.selection._objective import MU_AT_LOWER, MU_AT_UPPER
from looms.selection._problem import Problem, Tuned
from looms.selection._tuning import BoundMet, Tuning
from looms.svm._one_against_one import (
    Labels,
    Machines,
    class_log_probabilities,
    solved_pairs,
)
from looms.svm._problem import IndefiniteKernelError, Loss, NotConvergedError
from looms.svm.member import SupportVectorMember, kernel_matrix
from looms.units import Units

#: Name of the criterion that is not one of outputs alone.
DEVIANCE = "deviance"
#: A call of `sweep`: the function, its arguments, no keywords.
Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
#: Runs calls, perhaps in parallel, and returns their results: a `joblib.Parallel`.
Run = Callable[[Iterable[Task]], Iterable[Any]]
#: Solved machines and the weight of each sample in the score; smaller is better.
Scorer = Callable[[Machines, Array], float]

#: log₂ of the values of C, times the scale of the kernel, and of kernel parameters, times where
#: they start.
_COSTS = np.arange(-5.0, 16.0, 2.0)
_AROUND = np.arange(-6.0, 7.0, 2.0)
_MOST_PARAMETERS = 2
_DIGITS = 10  # of log₂: what rounding leaves of a power of two is that power


def held_out_deviance(machines: Machines, weight: Array) -> float:
    r"""Held-out deviance; with samples held out one by one, the "CV score" of [T11 section 2.2.1].

    .. math:: -2 \sum_i w_i \log {\hat p}_{(i)}(y_i)

    with the probability of the class of sample i by models and sigmoids fitted without it, or
    its fold, coupled over the pairs if there are more than two classes. The sigmoids are of the
    kind that the model will have: another kind may give good probabilities for outputs where
    these do not.
    """
    own = np.arange(len(weight)), machines.labels
    return deviance_of(class_log_probabilities(machines.held_out_log_odds())[own], weight)


def mean_over_pairs(criterion: Criterion, machines: Machines, weight: Array) -> float:
    """Mean of a criterion over the pairs, by the weight of their samples."""
    outputs = machines.held_out_outputs
    values, masses = [], []
    for q, machine in enumerate(machines.machines):
        mass = weight[machine.samples]
        values.append(criterion.evaluate(machine.y, outputs[machine.samples, q], mass).value)
        masses.append(mass.sum())
    return float(np.average(values, weights=masses))


def score_of(criterion: Any) -> Scorer:
    """Score of solved models by a criterion, a name or an object; an error if it is invalid."""
    if isinstance(criterion, str):
        check_known(criterion, "criterion", [*DIFFERENTIABLE, DEVIANCE])
        if criterion == DEVIANCE:
            return held_out_deviance
    return partial(mean_over_pairs, as_criterion(criterion))


@dataclass(frozen=True, eq=False)
class Sample:
    """The samples by which hyper-parameters are selected.

    Attributes
    ----------
    X : (n, n_features) samples.
    labels : (n,) classes 0 to k - 1, each with a sample.
    weight : (n,) positive factors of C, and weights in sigmoids.
    selection_weight : (n,) positive weights in the score.
    units : samples that are held out together.
    loss : loss of the models.
    """

    X: Matrix
    labels: Labels
    weight: Array
    selection_weight: Array
    units: Units
    loss: Loss

    def scored(self, machines: Machines, score: Scorer) -> float:
        """Score of held-out outputs, a mean over passes by the weight of what they test."""
        values, masses = [], []
        for one, rows in machines.passes(self.units):
            weight = np.zeros(len(self.labels))
            weight[rows] = self.selection_weight[rows]
            values.append(score(one, weight))
            masses.append(weight.sum())
        return float(np.average(values, weights=masses))


def sweep(
    sample: Sample, kernel: Kernel, costs: Sequence[float], score: Scorer
) -> list[tuple[float, str | None]]:
    """Scores at several C for one kernel matrix, each solution starting from the one before.

    Parameters
    ----------
    sample, score : the samples, and the score.
    kernel : kernel with all its values.
    costs : values of C; they are solved in increasing order.

    Returns
    -------
    scored : score of each, in the order of ``costs``; NaN and the message of the solver if there is
        no solution.
    """
    by_cost: dict[int, tuple[float, str | None]] = {}
    machines = None
    with one_blas_thread():
        K, folds = kernel_matrix(kernel, sample.X), sample.units.number[0]
        for k in np.argsort(costs, kind="stable").tolist():
            try:
                machines = solved_pairs(
                    K, sample.labels, costs[k], sample.weight, folds, machines, sample.loss
                )
                by_cost[k] = sample.scored(machines, score), None
            except (IndefiniteKernelError, NotConvergedError) as error:
                by_cost[k] = np.nan, str(error)
    return [by_cost[k] for k in range(len(costs))]


@dataclass(frozen=True, eq=False)
class Axis:
    """Values of one hyper-parameter.

    Attributes
    ----------
    name : as in ``param_grid``.
    values : (v,) increasing, natural units.
    at_lower, at_upper : what the first and the last value mean and what to do about them.
    """

    name: str
    values: Array
    at_lower: str = ""
    at_upper: str = ""

    @property
    def log2(self) -> Array:
        return np.asarray(np.round(np.log2(self.values), _DIGITS))

    def natural(self, log2: float) -> float:
        """The value at a coordinate; exactly one of ``values`` if it is one of them."""
        place = np.flatnonzero(self.log2 == log2)
        return float(self.values[place[0]] if len(place) else np.exp2(log2))

    def bound_met(self, value: float) -> BoundMet | None:
        """What a selected value at an end of several values says."""
        if len(self.values) == 1 or self.values[0] < value < self.values[-1]:
            return None
        if value == self.values[0]:
            return BoundMet(self.name, "lower", value, self.at_lower)
        return BoundMet(self.name, "upper", value, self.at_upper)


@dataclass(frozen=True, eq=False)
class Space:
    """A kernel, and the values of C and of its hyper-parameters, in this order."""

    kernel: Kernel
    axes: tuple[Axis, ...]

    def params(self, point: Sequence[float]) -> dict[str, float]:
        return {axis.name: axis.natural(log2) for axis, log2 in zip(self.axes, point, strict=True)}

    def kernel_at(self, point: Sequence[float]) -> Kernel:
        return self.kernel.with_values(list(self.params(point).values())[1:])


def space_of(kernel: Kernel, grid: Mapping[str, Array], samples: Samples) -> Space:
    """Search space of a kernel; ValueError for what cannot be searched.

    Parameters
    ----------
    kernel : with values that it leaves open.
    grid : increasing positive values of the hyper-parameters to search, by name; C and those of the
        kernel have a range of their own.
    samples : with their weights, by which the kernel starts.
    """
    kernel = kernel.started(samples)
    free = kernel.hyperparameters
    if len(free) > _MOST_PARAMETERS:
        raise ValueError(
            f"{type(kernel).__name__} has {len(free)} hyper-parameters here, and a search without "
            f"gradient takes {_MOST_PARAMETERS} at most: hold some by bounds='fixed', or use "
            f"{setting('loss', 'squared')}, which tunes any number."
        )
    costs = grid["C"] if "C" in grid else np.exp2(_COSTS) / _scale(kernel, samples)
    axes = [Axis("C", costs)]
    for h in free:
        values = grid.get(h.name)
        if values is None:
            values = np.exp2(np.round(np.log2(float(h.value or 1.0))) + _AROUND)
            if h.bounds is not None:
                values = np.unique(np.clip(values, *h.bounds))
        lower, upper = (advice or "the best may lie beyond" for advice in (h.at_lower, h.at_upper))
        axes.append(Axis(h.name, values, lower, upper))
    return Space(kernel, tuple(axes))


def _scale(kernel: Kernel, samples: Samples) -> float:
    """The mean squared distance of the samples from their mean in feature space.

    As the power of two not below it: C of the kernel divided by it times it is the same
    model. One for an RBF kernel at its start.
    """
    n = samples.n_samples
    with np.errstate(over="ignore", invalid="ignore"), blas_threads(n):
        mean = expansion(kernel, samples.X, samples, np.full(n, 1.0 / n)).mean()
        spread = float(np.mean(kernel.self_values(samples)) - mean)
    return float(np.exp2(np.ceil(np.log2(spread)))) if 1e-12 < spread < np.inf else 1.0


def in_order(tasks: Iterable[Task]) -> Iterable[Any]:
    """Results of calls, one after the other."""
    return (function(*values, **options) for function, values, options in tasks)


class NoScoreError(ValueError):
    """Error for a search whose first points all have no solution."""


def searched(
    space: Space,
    sample: Sample,
    score: Scorer,
    *,
    method: str = "pattern",
    resolution: float = 0.5,
    run: Run = in_order,
    evaluated: Callable[[Place, float], None] | None = None,
) -> Searched:
    """Points of a space, their scores, and the place of the best one.

    Parameters
    ----------
    method, resolution : as of `grid_search` or `pattern_search`.
    run : makes the calls for models of different kernel parameters.
    evaluated : called with every point and its score.

    Raises
    ------
    NoScoreError
        If the solver fails wherever the search begins.
    """
    failures: list[str | None] = []

    def score_points(points: list[Place]) -> list[float]:
        by_kernel: dict[Place, list[Place]] = {}
        for point in points:
            by_kernel.setdefault(point[1:], []).append(point)
        tasks: list[Task] = []
        for column in by_kernel.values():
            costs = [space.params(point)["C"] for point in column]
            tasks.append((sweep, (sample, space.kernel_at(column[0]), costs, score), {}))
        known: dict[Place, float] = {}
        for column, scored in zip(by_kernel.values(), run(tasks), strict=True):
            for point, (value, failure) in zip(column, scored, strict=True):
                known[point] = value
                failures.append(failure)
                if evaluated is not None:
                    evaluated(point, value)
        if None not in failures:
            raise NoScoreError(
                f"No setting of {len(failures)} has a score; of the first: {failures[0]}"
            )
        return [known[point] for point in points]

    axes = [axis.log2 for axis in space.axes]
    if method == "grid":
        return grid_search(score_points, axes)
    return pattern_search(score_points, axes, resolution)


class SupportVectorCriterion:
    """Held-out criterion of a support vector machine as a function of its hyper-parameters.

    Parameters
    ----------
    problem : with samples and their targets ±1.
    kernel : with values that it leaves open.
    mu : regularization, C = 1 / (n mu); with a number nothing is searched.
    loss : of the model.
    criterion : "deviance", or as for `looms.criteria.as_criterion`.
    """

    def __init__(
        self, problem: Problem, *, kernel: Kernel, mu: float | None, loss: Loss, criterion: Any
    ) -> None:
        X, y, zeta = problem.X, problem.y, problem.zeta
        self.X, self.y, self.loss, self.given = X, y, loss, mu is not None
        self.n_samples, self.score = len(y), score_of(criterion)
        self.samples = Samples(X, center=center_of(X), weight=zeta)
        self.sample = Sample(
            X, class_indices(y), zeta, problem.selection_weight, problem.units, loss
        )
        if not kernel.pairwise:
            check_scale(X)
        if mu is None:
            self.space = space_of(kernel, {}, self.samples)
        else:
            kernel = kernel.started(self.samples)
            own = {h.name: float(h.value or 1.0) for h in kernel.hyperparameters}
            values = {"C": 1.0 / (self.n_samples * mu)} | own
            axes = [Axis(name, np.array([value])) for name, value in values.items()]
            self.space = Space(kernel, tuple(axes))
        self.kernel = self.space.kernel

    def kernel_at(self, theta: Array) -> Kernel:
        return self.kernel.with_values(np.exp2(theta[:-1]).tolist())

    def mu_at(self, theta: Array) -> float:
        return float(np.exp2(theta[-1]))

    def theta_at(self, place: Place) -> Array:
        """log₂ hyper-parameters of the kernel, and mu."""
        return np.array([*place[1:], -np.log2(self.n_samples) - place[0]])

    def fit_at(self, place: Place) -> Fit:
        """The model at a place, with its held-out outputs."""
        member = SupportVectorMember(
            1.0,
            self.space.kernel_at(place),
            1.0 / (self.n_samples * self.space.params(place)["C"]),
            loss=self.loss,
        )
        left_out = member.left_out(self.X, self.y, self.sample.weight, True)
        return member.fit(left_out, self.sample.units, self.y)

    def tuning(self, search: Search, at_bounds: tuple[BoundMet, ...] = ()) -> Tuning:
        """Record of a search."""
        best, stop_reason = search.best, search.stop_reason
        stages = ((self.n_samples, search),)
        return Tuning(best.theta, best.value, np.nan, stop_reason, stages, 0, at_bounds)

    def bounds_met(self, place: Place) -> tuple[BoundMet, ...]:
        """Hyper-parameters that ended at an edge of the space."""
        pairs = zip(self.space.axes, self.space.params(place).values(), strict=True)
        met = [axis.bound_met(value) for axis, value in pairs]
        if met[0] is not None:  # a small C is a large mu
            side, advice = (
                ("lower", MU_AT_LOWER) if met[0].side == "upper" else ("upper", MU_AT_UPPER)
            )
            met[0] = BoundMet("mu", side, 1.0 / (self.n_samples * met[0].bound), advice)
        return tuple(one for one in met if one is not None)


def search_paths(
    objective: SupportVectorCriterion,
    *,
    method: str,
    resolution: float,
    run: Run = in_order,
    evaluated: Callable[[Any, Point], None] | None = None,
    begun: Callable[[Any], None] | None = None,
    **_: Any,
) -> Tuned:
    """Hyper-parameters of the least criterion of a support vector machine, and the model there.

    Parameters
    ----------
    objective : the criterion as a function of its hyper-parameters.
    method, resolution, run : as for `searched`.
    evaluated, begun : called with the objective, and the point after every evaluation. Other
        callbacks of `looms.selection._tune.tune` have no meaning here.
    """

    def point_at(place: Place, score: float) -> Point:
        return Point(objective.theta_at(place), np.inf if np.isnan(score) else score, np.nan)

    def told(place: Place, score: float) -> None:
        if evaluated is not None:
            evaluated(objective, point_at(place, score))

    if begun is not None:
        begun(objective)
    options: dict[str, Any] = {"method": method, "resolution": resolution, "run": run}
    problem = objective.space, objective.sample, objective.score
    try:
        places, scores, best = searched(*problem, **options, evaluated=told)
    except NoScoreError as error:
        first = point_at(tuple(float(axis.log2[0]) for axis in objective.space.axes), np.nan)
        search = Search(first, StopReason.NEVER_EVALUATED, (first,), 0)
        failure = f"{objective.kernel!r}: {error}"
        return Tuned.of(objective, objective.tuning(search), None, failure)
    stop_reason = StopReason.GRID if method == "grid" else StopReason.CONVERGED
    stop_reason = StopReason.GIVEN if objective.given else stop_reason
    history = tuple(point_at(*pair) for pair in zip(places, scores, strict=True))
    search = Search(history[best], stop_reason, history, len(history))
    met = () if objective.given else objective.bounds_met(places[best])
    return Tuned.of(objective, objective.tuning(search, met), objective.fit_at(places[best]))
