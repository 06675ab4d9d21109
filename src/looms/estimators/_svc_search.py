"""The search for C and kernel parameters of support vector machines, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata

from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._sigmoid import Sigmoid
from looms.criteria import DIFFERENTIABLE, Criterion, balanced_error_rate, error_rate
from looms.estimators._base import check_finite_lower, outputs
from looms.estimators._encoding import number_or_rule, threshold_and_loss
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._samples import Samples, center_of, check_scale
from looms.selection import grid_search, pattern_search
from looms.svm._one_against_one import FittedTo, Machines
from looms.svm._scores import (
    MeanOverPairs,
    OfClasses,
    Sample,
    Score,
    Scored,
    loo_deviance,
    sweep,
)

#: log₂ of the values of C, times the scale of the kernel, and of kernel parameters, times where
#: they start.
_COSTS = np.arange(-5.0, 16.0, 2.0)
_AROUND = np.arange(-6.0, 7.0, 2.0)
_MOST_PARAMETERS = 2
_RATES = {"error": error_rate, "ber": balanced_error_rate}
_DIGITS = 10  # of log₂: what rounding leaves of a power of two is that power


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
        """The value at a coordinate; one of `values` to the last digit where it is one."""
        place = np.flatnonzero(self.log2 == log2)
        return float(self.values[place[0]] if len(place) else np.exp2(log2))

    def at_edge(self, value: float) -> str | None:
        """Message for a chosen value at an end of several values."""
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
        """Messages for a chosen point at an edge of the space."""
        values = self.params(point).values()
        messages = (axis.at_edge(value) for axis, value in zip(self.axes, values, strict=True))
        return [message for message in messages if message is not None]


@dataclass(frozen=True, eq=False)
class SpaceSearched:
    """Points of a space with their scores.

    Attributes
    ----------
    space : where.
    points : coordinates of all points, in the order they were tried.
    scored : what was found at each.
    best : index of the chosen one.
    """

    space: Space
    points: list[tuple[float, ...]]
    scored: list[Scored]
    best: int

    @property
    def score(self) -> float:
        """The least score."""
        return self.scored[self.best].score

    @property
    def point(self) -> tuple[float, ...]:
        """Coordinates of the chosen point."""
        return self.points[self.best]


def spaces_of(kernels: Sequence[Kernel], param_grid: Any, X: Matrix) -> list[Space]:
    """Search space of each kernel; ValueError for what cannot be searched."""
    given = _checked_grid(param_grid)
    if not kernels[0].pairwise:
        check_scale(X)
    spaces = [
        _space(kernel.started(Samples(X, center=center_of(X))), given, X) for kernel in kernels
    ]
    known = list(dict.fromkeys(axis.name for space in spaces for axis in space.axes))
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"param_grid names {unknown}, which the kernel does not have or holds; "
            f"known are {known}."
        )
    return spaces


def _checked_grid(param_grid: Any) -> dict[str, Array]:
    if param_grid is None:
        return {}
    if not isinstance(param_grid, Mapping):
        raise ValueError(
            f"param_grid must be None or a dict from names to values, got {param_grid!r}."
        )
    grid = {}
    for name, values in param_grid.items():
        try:
            array = np.unique(np.atleast_1d(np.asarray(values, dtype=np.float64)))
        except (TypeError, ValueError):
            array = np.array([np.nan])
        if array.ndim != 1 or not len(array) or not ((array > 0) & np.isfinite(array)).all():
            raise ValueError(f"param_grid[{name!r}] must be positive numbers, got {values!r}.")
        grid[str(name)] = array
    return grid


def _space(kernel: Kernel, given: Mapping[str, Array], X: Matrix) -> Space:
    free = kernel.hyperparameters
    if len(free) > _MOST_PARAMETERS:
        raise ValueError(
            f"{type(kernel).__name__} has {len(free)} hyper-parameters here, and a search without "
            f"gradient takes {_MOST_PARAMETERS} at most: hold some by bounds='fixed', or use "
            "LSSVMClassifierCV, which tunes any number."
        )
    costs = given["C"] if "C" in given else np.exp2(_COSTS) / _scale(kernel, X)
    axes = [
        Axis("C", costs, "give smaller values in param_grid", "give larger values in param_grid")
    ]
    for h in free:
        values = given.get(h.name)
        if values is None:
            values = _nearest_power(float(h.value or 1.0)) * np.exp2(_AROUND)
            if h.bounds is not None:
                values = np.unique(np.clip(values, *h.bounds))
        lower, upper = (
            f"{advice or 'the best may lie beyond'}, or give other values in param_grid"
            for advice in (h.at_lower, h.at_upper)
        )
        axes.append(Axis(h.name, values, lower, upper))
    return Space(kernel, tuple(axes))


def _nearest_power(value: float) -> float:
    return float(np.exp2(np.round(np.log2(value))))


def _scale(kernel: Kernel, X: Matrix) -> float:
    """The mean squared distance of the samples from their mean in feature space.

    As the power of two not below it: C of the kernel divided by it times it is the same
    machine. One for an RBF kernel at its start.
    """
    n = X.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = outputs(kernel, X, X, np.full(n, 1.0 / n), 0.0).mean()
        spread = float(np.mean(kernel.self_values(Samples(X))) - mean)
    return float(np.exp2(np.ceil(np.log2(spread)))) if 1e-12 < spread < np.inf else 1.0


def kernel_matrix(kernel: Kernel, X: Matrix) -> Array:
    """(n, n) kernel matrix; ValueError unless it is finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel(X)
    check_finite_lower(K, kernel)
    return K


def search_space(
    space: Space,
    X: Matrix,
    sample: Sample,
    score: Score,
    search: str,
    resolution: float,
    n_jobs: int | None,
) -> SpaceSearched:
    """Search one space; machines of different kernel parameters in parallel.

    ValueError if the solver fails wherever the search begins.
    """
    known: dict[tuple[float, ...], Scored] = {}

    def score_points(points: list[tuple[float, ...]]) -> list[float]:
        by_kernel: dict[tuple[float, ...], list[tuple[float, ...]]] = {}
        for point in points:
            by_kernel.setdefault(point[1:], []).append(point)
        columns = Parallel(n_jobs=n_jobs)(
            delayed(_swept)(
                X,
                space.kernel_at(column[0]),
                [space.params(point)["C"] for point in column],
                sample,
                score,
            )
            for column in by_kernel.values()
        )
        for column, scored in zip(by_kernel.values(), columns, strict=True):
            known.update(zip(column, scored, strict=True))
        if all(scored.failure is not None for scored in known.values()):
            first = next(iter(known.values()))
            raise ValueError(
                f"No setting of {len(known)} has a score; of the first: {first.failure}"
            )
        return [known[point].score for point in points]

    axes = [axis.log2 for axis in space.axes]
    if search == "grid":
        result = grid_search(score_points, axes)
    else:
        result = pattern_search(score_points, axes, resolution)
    return SpaceSearched(space, result.points, [known[p] for p in result.points], result.best)


def _swept(
    X: Matrix, kernel: Kernel, costs: list[float], sample: Sample, score: Score
) -> list[Scored]:
    with one_blas_thread():
        return sweep(kernel_matrix(kernel, X), costs, sample, score)


@dataclass(frozen=True)
class AtThreshold:
    """An error rate by name at a threshold, which a rule or a sigmoid sets anew each time."""

    name: str
    threshold: Any
    probability: str | None

    def __call__(self, loo: HeldOut, sigmoids: tuple[Sigmoid, ...]) -> float:
        calibrator = None if self.probability is None else sigmoids[0]
        threshold, _ = threshold_and_loss(number_or_rule(self.threshold, calibrator, loo), loo)
        return _RATES[self.name](*loo, threshold=threshold)


def sigmoids_of(probability: str | None) -> FittedTo:
    """Outputs that the sigmoids of several classes are fitted to."""
    return "single" if probability == "single" else "loo"


def score_of(criterion: Any, threshold: Any, probability: str | None) -> Score:
    """Score of solved machines by a criterion; an error for what is none."""
    if isinstance(criterion, Criterion):
        return MeanOverPairs(criterion)
    if not isinstance(criterion, str):
        raise TypeError(f"A criterion is a name or a looms.criteria object, got {criterion!r}.")
    if criterion == "log_likelihood":
        return loo_deviance
    if criterion in _RATES:
        rate = AtThreshold(criterion, threshold, probability)
        return OfClasses(rate, sigmoids_of(probability))
    if criterion not in DIFFERENTIABLE:
        known = ", ".join(["log_likelihood", *_RATES, *DIFFERENTIABLE])
        raise ValueError(f"Unknown criterion {criterion!r}; known are {known}.")
    return MeanOverPairs(DIFFERENTIABLE[criterion])


def results_table(kernels: Sequence[Any], searched: Sequence[SpaceSearched]) -> dict[str, Any]:
    """``cv_results_``: a row for each point of each kernel."""
    rows = [
        (name if isinstance(name, str) else repr(name), one.space.params(point), scored)
        for name, one in zip(kernels, searched, strict=True)
        for point, scored in zip(one.points, one.scored, strict=True)
    ]
    names = list(dict.fromkeys(name for _, params, _ in rows for name in params))
    table: dict[str, Any] = {"kernel": [kernel for kernel, _, _ in rows]}
    for name in names:
        table[f"param_{name}"] = np.array([params.get(name, np.nan) for _, params, _ in rows])
    scores = np.array([scored.score for _, _, scored in rows])
    table["params"] = [params for _, params, _ in rows]
    table["loo_score"] = scores
    table["rank_loo_score"] = _ranks(scores, searched)
    table["n_support"] = np.array([scored.n_support for _, _, scored in rows])
    table["seconds"] = np.array([scored.seconds for _, _, scored in rows])
    table["failure"] = [scored.failure for _, _, scored in rows]
    return table


def _ranks(scores: Array, searched: Sequence[SpaceSearched]) -> AnyArray:
    """Ranks from 1, the chosen one alone on the first; those without a score come last."""
    bests, first = [], 0
    for one in searched:
        bests.append(first + one.best)
        first += len(one.points)
    chosen = min(bests, key=lambda k: scores[k])
    ranks = rankdata(np.where(np.isnan(scores), np.inf, scores), method="min").astype(int)
    ranks[(ranks <= ranks[chosen]) & (np.arange(len(ranks)) != chosen)] += 1
    ranks[chosen] = 1
    return np.asarray(ranks)


def fitted_machines(
    machines: Machines, seen: AnyArray, X: Matrix, kernel: Kernel, probability: str | None
) -> dict[str, Any]:
    """Fitted attributes of the machines of the samples ``seen`` of ``X``."""
    coefficients, intercept = machines.coefficients, machines.intercepts
    of_support = np.flatnonzero(coefficients.any(axis=1))
    support, dual_coef = seen[of_support], coefficients[of_support]
    one = len(intercept) == 1
    # The coupling of several classes needs sigmoids even where nobody asked for probabilities.
    needed = probability is not None or not one
    calibrators = machines.sigmoids(sigmoids_of(probability)) if needed else None
    return {
        "kernel_": kernel,
        "support_": support,
        "support_vectors_": X[support],
        "dual_coef_": dual_coef[:, 0] if one else dual_coef,
        "intercept_": float(intercept[0]) if one else intercept,
        "calibrators_": calibrators,
    }
