"""From a search among support vector machines to fitted attributes, and what to say of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from looms._typing import AnyArray, Array, Matrix
from looms.calibration._sigmoid import Sigmoid
from looms.criteria import DIFFERENTIABLE, Criterion, balanced_error_rate, error_rate
from looms.estimators._callbacks import BoundWarning, level_of_user
from looms.estimators._classifier import number_or_rule, threshold_and_loss
from looms.estimators._svc_search import SpaceSearched
from looms.kernels import Kernel
from looms.leave_one_out import LeaveOneOut
from looms.svm._one_against_one import FittedTo, Machines
from looms.svm._scores import MeanOverPairs, OfClasses, Score, loo_deviance

_RATES = {
    "error": error_rate,
    "ber": balanced_error_rate,
}


@dataclass(frozen=True)
class AtThreshold:
    """An error rate by name at a threshold, which a rule or a sigmoid sets anew each time."""

    name: str
    threshold: Any
    probability: str | None

    def __call__(self, loo: LeaveOneOut, sigmoids: tuple[Sigmoid, ...]) -> float:
        calibrator = None if self.probability is None else sigmoids[0]
        threshold, _ = threshold_and_loss(number_or_rule(self.threshold, calibrator, loo), loo)
        return _RATES[self.name](*loo, threshold=threshold)


def sigmoids_of(probability: str | None) -> FittedTo:
    """What the sigmoids are fitted to that decide between several classes."""
    return "single" if probability == "single" else "loo"


def score_of(criterion: Any, threshold: Any, probability: str | None) -> Score:
    """What a criterion judges solved machines by; an error for what is none."""
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


def rows_alone(classes: AnyArray, labels: AnyArray) -> list[Any]:
    """Classes of one sample; ValueError if all are."""
    counts = np.bincount(labels)
    if (counts == 1).all():
        raise ValueError(
            f"Each of the {len(classes)} classes has one sample only: leaving it out leaves "
            "nothing to learn the class from. Give each class some samples."
        )
    return list(np.asarray(classes)[counts == 1].tolist())


def results_table(kernels: Sequence[Any], found: Sequence[SpaceSearched]) -> dict[str, Any]:
    """``cv_results_``: a row for each point of each kernel."""
    rows = [
        (name if isinstance(name, str) else repr(name), one.space.params(point), scored)
        for name, one in zip(kernels, found, strict=True)
        for point, scored in zip(one.points, one.scored, strict=True)
    ]
    names = list(dict.fromkeys(name for _, params, _ in rows for name in params))
    table: dict[str, Any] = {"kernel": [kernel for kernel, _, _ in rows]}
    for name in names:
        table[f"param_{name}"] = np.array([params.get(name, np.nan) for _, params, _ in rows])
    scores = np.array([scored.score for _, _, scored in rows])
    table["params"] = [params for _, params, _ in rows]
    table["loo_score"] = scores
    table["rank_loo_score"] = _ranks(scores, found)
    table["n_support"] = np.array([scored.n_support for _, _, scored in rows])
    table["seconds"] = np.array([scored.seconds for _, _, scored in rows])
    table["failure"] = [scored.failure for _, _, scored in rows]
    return table


def _ranks(scores: Array, found: Sequence[SpaceSearched]) -> AnyArray:
    """Ranks from 1, the chosen one alone on the first; those without a score come last."""
    bests, first = [], 0
    for one in found:
        bests.append(first + one.best)
        first += len(one.points)
    chosen = min(bests, key=lambda k: scores[k])
    ranks = rankdata(np.where(np.isnan(scores), np.inf, scores), method="min").astype(int)
    ranks[(ranks <= ranks[chosen]) & (np.arange(len(ranks)) != chosen)] += 1
    ranks[chosen] = 1
    return np.asarray(ranks)


def chosen_point(found: Sequence[SpaceSearched], best: int) -> tuple[Kernel, float, list[str]]:
    """Kernel and C of a row of the table, and what is to be said if it is at an edge."""
    for one in found:
        if best < len(one.points):
            point = one.points[best]
            return (
                one.space.kernel_at(point),
                one.space.params(point)["C"],
                one.space.edges(point),
            )
        best -= len(one.points)
    raise IndexError(best)


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


def whole_leave_one_out(
    loo: LeaveOneOut,
    seen: AnyArray,
    targets: Array,
    weight: Array,
    decide: Callable[[AnyArray], Array],
) -> LeaveOneOut:
    """Leave-one-out values of all samples from those of the samples ``seen``.

    The others never were in the machine: ``decide`` gives its values for these rows.
    """
    values = np.empty(targets.shape)
    values[seen] = loo.outputs
    unseen = np.flatnonzero(weight == 0)
    if len(unseen):
        values[unseen] = decide(unseen)
    return LeaveOneOut(targets, values, weight)


def warn_of(alone: Sequence[Any], table: dict[str, Any], edges: Sequence[str]) -> None:
    """Warn of what looks wrong with a machine that is fitted; last, as warnings may be errors."""
    level = level_of_user()
    for label in alone:
        warnings.warn(
            f"Class {label!r} has one sample only: without it there is nothing to learn the class "
            "from, so that it counts as an error whatever the machine. Add samples of the class, "
            "or leave it out.",
            UserWarning,
            stacklevel=level,
        )
    failures = [failure for failure in table["failure"] if failure is not None]
    if failures:
        warnings.warn(
            f"{len(failures)} of {len(table['failure'])} settings have no score and were passed "
            f"over; of the first: {failures[0]}",
            ConvergenceWarning,
            stacklevel=level,
        )
    for message in edges:
        warnings.warn(f"{message}.", BoundWarning, stacklevel=level)
