"""Search for C and kernel of support vector machines by their leave-one-out outputs.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from looms._threads import blas_threads, one_blas_thread
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._scores import deviance_of
from looms.calibration._sigmoid import Sigmoid
from looms.criteria import DIFFERENTIABLE, Criterion
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._gram import check_finite_lower, expansion
from looms.kernels._samples import Samples, center_of, check_scale
from looms.selection._grid import Place, grid_search, pattern_search
from looms.svm._one_against_one import (
    FittedTo,
    Labels,
    Machines,
    class_log_probabilities,
    solved_pairs,
)
from looms.svm._problem import IndefiniteKernelError, Loss, NotConvergedError
from looms.units import Units

#: Solved machines and the weight of each sample in the score; smaller is better.
Scorer = Callable[[Machines, Array], float]

#: log₂ of the values of C, times the scale of the kernel, and of kernel parameters, times where
#: they start.
_COSTS = np.arange(-5.0, 16.0, 2.0)
_AROUND = np.arange(-6.0, 7.0, 2.0)
_MOST_PARAMETERS = 2
_DIGITS = 10  # of log₂: what rounding leaves of a power of two is that power


def held_out_deviance(fitted_to: FittedTo, machines: Machines, weight: Array) -> float:
    r"""Held-out deviance; with samples held out one by one, the "CV score" of [T11 section 2.2.1].

    .. math:: -2 \sum_i w_i \log {\hat p}_{(i)}(y_i)

    with the probability of the class of sample i by models and sigmoids fitted without it, or
    its fold, coupled over the pairs if there are more than two classes. The sigmoids are of the
    kind that the model will have: another kind may give good probabilities for outputs where
    these do not. Those of "single" may decrease, as in [T11].
    """
    log_odds = machines.held_out_log_odds(fitted_to, increasing=fitted_to == "loo")
    own = np.arange(len(weight)), machines.labels
    return deviance_of(class_log_probabilities(log_odds)[own], weight)


def mean_over_pairs(criterion: Criterion, machines: Machines, weight: Array) -> float:
    """Mean of a criterion over the pairs, by the weight of their samples."""
    outputs = machines.held_out_outputs
    values, masses = [], []
    for q, machine in enumerate(machines.machines):
        mass = weight[machine.samples]
        values.append(criterion.evaluate(machine.y, outputs[machine.samples, q], mass).value)
        masses.append(mass.sum())
    return float(np.average(values, weights=masses))


def of_classes(
    rate: Callable[[HeldOut, tuple[Sigmoid, ...]], float],
    fitted_to: FittedTo,
    machines: Machines,
    weight: Array,
) -> float:
    """A function of the held-out decision values of the classes, such as an error rate.

    The sigmoids of the pairs, fitted to ``fitted_to``, turn outputs into decision values.
    """
    held_out = machines.held_out(fitted_to)
    return rate(HeldOut(held_out.y, held_out.outputs, weight), machines.sigmoids(fitted_to))


def score_of(
    criterion: Any,
    rates: Mapping[str, Callable[[HeldOut, tuple[Sigmoid, ...]], float]],
    fitted_to: FittedTo,
) -> Scorer:
    """Score of solved models by a criterion; an error if it is invalid.

    Parameters
    ----------
    criterion : a name or a criterion.
    rates, fitted_to : functions by name, for `of_classes`.
    """
    if isinstance(criterion, Criterion):
        return partial(mean_over_pairs, criterion)
    if not isinstance(criterion, str):
        raise TypeError(f"A criterion is a name or a looms.criteria object, got {criterion!r}.")
    if criterion == "log_likelihood":
        return partial(held_out_deviance, fitted_to)
    if criterion in rates:
        return partial(of_classes, rates[criterion], fitted_to)
    if criterion not in DIFFERENTIABLE:
        known = ", ".join(["log_likelihood", *rates, *DIFFERENTIABLE])
        raise ValueError(f"Unknown criterion {criterion!r}; known are {known}.")
    return partial(mean_over_pairs, DIFFERENTIABLE[criterion])


@dataclass(frozen=True)
class ScoredPoint:
    """Score of the models at one C.

    Attributes
    ----------
    score : smaller is better; NaN if there is no solution.
    n_support : number of samples with a coefficient in any of the models.
    seconds : wall time.
    failure : message of the solver if there is no solution.
    """

    score: float
    n_support: int
    seconds: float
    failure: str | None = None


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


#: Call of `sweep`: the function, its arguments, no keywords.
Task = tuple[
    Callable[..., list[ScoredPoint]], tuple[Sample, Kernel, list[float], Scorer], dict[str, Any]
]
#: Runs calls, in parallel if possible, and returns their results: a `joblib.Parallel`.
Run = Callable[[Iterable[Task]], Iterable[list[ScoredPoint]]]


def kernel_matrix(kernel: Kernel, X: Matrix) -> Array:
    """(n, n) kernel matrix; ValueError unless it is finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel(X)
    check_finite_lower(K, kernel)
    return K


def sweep(
    sample: Sample, kernel: Kernel, costs: Sequence[float], score: Scorer
) -> list[ScoredPoint]:
    """Scores at several C for one kernel matrix, each solution starting from the one before.

    Parameters
    ----------
    sample, score : the samples, and the score.
    kernel : kernel with all its values.
    costs : values of C; they are solved in increasing order.

    Returns
    -------
    scored : in the order of ``costs``.
    """
    by_cost: dict[int, ScoredPoint] = {}
    machines = None
    with one_blas_thread():
        K, folds = kernel_matrix(kernel, sample.X), sample.units.number[0]
        for k in np.argsort(costs, kind="stable").tolist():
            began = time.perf_counter()
            value, n_support, failure = np.nan, 0, None
            try:
                machines = solved_pairs(
                    K, sample.labels, costs[k], sample.weight, folds, machines, sample.loss
                )
                n_support = int(machines.coefficients.any(axis=1).sum())
                value = sample.scored(machines, score)
            except (IndefiniteKernelError, NotConvergedError) as error:
                failure = str(error)
            by_cost[k] = ScoredPoint(value, n_support, time.perf_counter() - began, failure)
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

    def at_edge(self, value: float) -> str | None:
        """Message for a selected value at an end of several values."""
        if len(self.values) == 1 or self.values[0] < value < self.values[-1]:
            return None
        lower = value == self.values[0]
        which, advice = ("smallest", self.at_lower) if lower else ("largest", self.at_upper)
        return f"{self.name} = {value:.4g} is the {which} value searched: {advice}"


@dataclass(frozen=True, eq=False)
class Space:
    """A kernel, and the values of C and of its hyper-parameters, in this order."""

    kernel: Kernel
    axes: tuple[Axis, ...]

    def params(self, point: Sequence[float]) -> dict[str, float]:
        return {axis.name: axis.natural(log2) for axis, log2 in zip(self.axes, point, strict=True)}

    def kernel_at(self, point: Sequence[float]) -> Kernel:
        return self.kernel.with_values(list(self.params(point).values())[1:])

    def edges(self, point: Sequence[float]) -> list[str]:
        """Messages for a selected point at an edge of the space."""
        values = self.params(point).values()
        messages = (axis.at_edge(value) for axis, value in zip(self.axes, values, strict=True))
        return [message for message in messages if message is not None]


@dataclass(frozen=True, eq=False)
class SpaceSearched:
    """Points of a space with their scores.

    Attributes
    ----------
    space : the space searched.
    points : coordinates of all points, in the order in which they were tried.
    scored : the score of each.
    best : index of the selected one.
    """

    space: Space
    points: list[Place]
    scored: list[ScoredPoint]
    best: int

    @property
    def score(self) -> float:
        """The smallest score."""
        return self.scored[self.best].score

    @property
    def point(self) -> Place:
        """Coordinates of the selected point."""
        return self.points[self.best]


def spaces_of(kernels: Sequence[Kernel], grid: Mapping[str, Array], X: Matrix) -> list[Space]:
    """Search space of each kernel; ValueError for what cannot be searched.

    Parameters
    ----------
    kernels : kernels to try.
    grid : increasing positive values of the hyper-parameters to search, by name.
    X : (n, n_features) samples.
    """
    if not kernels[0].pairwise:
        check_scale(X)
    samples = Samples(X, center=center_of(X))
    spaces = [_space(kernel.started(samples), grid, samples) for kernel in kernels]
    known = list(dict.fromkeys(axis.name for space in spaces for axis in space.axes))
    unknown = [name for name in grid if name not in known]
    if unknown:
        raise ValueError(
            f"param_grid names {unknown}, which the kernel does not have or holds; "
            f"known are {known}."
        )
    return spaces


def _space(kernel: Kernel, grid: Mapping[str, Array], samples: Samples) -> Space:
    free = kernel.hyperparameters
    if len(free) > _MOST_PARAMETERS:
        raise ValueError(
            f"{type(kernel).__name__} has {len(free)} hyper-parameters here, and a search without "
            f"gradient takes {_MOST_PARAMETERS} at most: hold some by bounds='fixed', or use "
            "KernelClassifier, which tunes any number."
        )
    costs = grid["C"] if "C" in grid else np.exp2(_COSTS) / _scale(kernel, samples)
    axes = [
        Axis("C", costs, "give smaller values in param_grid", "give larger values in param_grid")
    ]
    for h in free:
        values = grid.get(h.name)
        if values is None:
            values = np.exp2(np.round(np.log2(float(h.value or 1.0))) + _AROUND)
            if h.bounds is not None:
                values = np.unique(np.clip(values, *h.bounds))
        lower, upper = (
            f"{advice or 'the best may lie beyond'}, or give other values in param_grid"
            for advice in (h.at_lower, h.at_upper)
        )
        axes.append(Axis(h.name, values, lower, upper))
    return Space(kernel, tuple(axes))


def _scale(kernel: Kernel, samples: Samples) -> float:
    """The mean squared distance of the samples from their mean in feature space.

    As the power of two not below it: C of the kernel divided by it times it is the same
    machine. One for an RBF kernel at its start.
    """
    n = samples.n_samples
    with np.errstate(over="ignore", invalid="ignore"), blas_threads(n):
        mean = expansion(kernel, samples.X, samples, np.full(n, 1.0 / n)).mean()
        spread = float(np.mean(kernel.self_values(samples)) - mean)
    return float(np.exp2(np.ceil(np.log2(spread)))) if 1e-12 < spread < np.inf else 1.0


def search_space(
    space: Space,
    sample: Sample,
    score: Scorer,
    how: str,
    resolution: float,
    run: Run,
    evaluated: Callable[[float], None],
) -> SpaceSearched:
    """Search of a space, "grid" or "pattern" as `grid_search` and `pattern_search`.

    ``run`` makes the calls for models of different kernel parameters, and ``evaluated`` is
    called with each score. ValueError if the solver fails wherever the search begins.
    """
    known: dict[Place, ScoredPoint] = {}

    def score_points(points: list[Place]) -> list[float]:
        by_kernel: dict[Place, list[Place]] = {}
        for point in points:
            by_kernel.setdefault(point[1:], []).append(point)
        tasks: list[Task] = []
        for column in by_kernel.values():
            costs = [space.params(point)["C"] for point in column]
            tasks.append((sweep, (sample, space.kernel_at(column[0]), costs, score), {}))
        for column, scored in zip(by_kernel.values(), run(tasks), strict=True):
            known.update(zip(column, scored, strict=True))
            for one in scored:
                evaluated(one.score)
        if all(scored.failure is not None for scored in known.values()):
            first = next(iter(known.values()))
            raise ValueError(
                f"No setting of {len(known)} has a score; of the first: {first.failure}"
            )
        return [known[point].score for point in points]

    axes = [axis.log2 for axis in space.axes]
    if how == "grid":
        result = grid_search(score_points, axes)
    else:
        result = pattern_search(score_points, axes, resolution)
    return SpaceSearched(space, result.points, [known[p] for p in result.points], result.best)


def ranks(searched: Sequence[SpaceSearched]) -> AnyArray:
    """Ranks of all points from 1, the selected one alone first; those without a score come last."""
    scores = np.array([scored.score for one in searched for scored in one.scored])
    bests, first = [], 0
    for one in searched:
        bests.append(first + one.best)
        first += len(one.points)
    chosen = min(bests, key=lambda k: scores[k])
    place = rankdata(np.where(np.isnan(scores), np.inf, scores), method="min").astype(int)
    place[(place <= place[chosen]) & (np.arange(len(place)) != chosen)] += 1
    place[chosen] = 1
    return np.asarray(place)
