"""Scores of support vector machines by their leave-one-out outputs, for many C at once.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from looms._typing import Array
from looms.calibration._sigmoid import Sigmoid
from looms.criteria import Criterion
from looms.held_out import HeldOut
from looms.svm._one_against_one import (
    FittedTo,
    Labels,
    Machines,
    class_leave_one_out,
    class_log_probabilities,
    pairs_of,
    solved_pairs,
)
from looms.svm._problem import IndefiniteKernelError, NotConvergedError

#: Solved machines, class of each sample and its weight in the score; smaller is better.
Score = Callable[[Machines, Labels, Array], float]


def loo_deviance(machines: Machines, labels: Labels, weight: Array) -> float:
    r"""Leave-one-out deviance, the "CV score" of [T11 section 2.2.1].

    .. math:: -2 \sum_i w_i \log \hat p_{(i)}(y_i)

    with the probability of the class of sample i by machines and sigmoids fitted without it,
    coupled over the pairs if there are more than two classes.
    """
    log_p = class_log_probabilities(machines.left_out().log_odds)
    return float(-2.0 * weight @ log_p[np.arange(len(labels)), labels])


@dataclass(frozen=True)
class MeanOverPairs:
    """Mean of a criterion over the pairs, by the weight of their samples."""

    criterion: Criterion

    def __call__(self, machines: Machines, labels: Labels, weight: Array) -> float:
        outputs = machines.loo_outputs
        values, masses = [], []
        for q, pair in enumerate(machines.pairs):
            mass = weight[pair.samples]
            values.append(self.criterion.evaluate(pair.y, outputs[pair.samples, q], mass).value)
            masses.append(mass.sum())
        return float(np.average(values, weights=masses))


@dataclass(frozen=True)
class OfClasses:
    """Function of the leave-one-out decision values of the classes, such as an error rate.

    The sigmoids of the pairs, fitted to `fitted_to`, turn outputs into decision values.
    """

    rate: Callable[[HeldOut, tuple[Sigmoid, ...]], float]
    fitted_to: FittedTo

    def __call__(self, machines: Machines, labels: Labels, weight: Array) -> float:
        loo = class_leave_one_out(machines, labels, self.fitted_to)
        reweighted = HeldOut(loo.y, loo.outputs, weight)
        return float(self.rate(reweighted, machines.sigmoids(self.fitted_to)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Labels of samples and their weights.

    Attributes
    ----------
    labels : (n,) classes 0 to k - 1, each with a sample.
    cost_weight : (n,) positive factors of C.
    sample_weight : (n,) positive weights in sigmoids.
    selection_weight : (n,) positive weights in the score.
    """

    labels: Labels
    cost_weight: Array
    sample_weight: Array
    selection_weight: Array

    def machines(self, K: Array, C: float, start: Machines | None = None) -> Machines:
        """Machines of all pairs at one C; NotConvergedError as `solved_pairs`."""
        bounds = C * self.cost_weight
        return solved_pairs(K, pairs_of(self.labels), bounds, self.sample_weight, start)


@dataclass(frozen=True)
class Scored:
    """Score of the machines at one C.

    Attributes
    ----------
    score : smaller is better; NaN where there is no solution.
    n_support : samples with a coefficient in any of the machines.
    seconds : wall time.
    failure : message of the solver where there is no solution.
    """

    score: float
    n_support: int
    seconds: float
    failure: str | None = None


def sweep(K: Array, costs: Sequence[float], sample: Sample, score: Score) -> list[Scored]:
    """Scores at several C of one kernel matrix, each solution the start of the next.

    Parameters
    ----------
    K : (n, n) kernel matrix.
    costs : values of C; they are taken upward, whatever their order.
    sample, score : labels and weights of the samples, and the score.

    Returns
    -------
    scored : in the order of ``costs``.
    """
    by_cost: dict[int, Scored] = {}
    machines = None
    for k in np.argsort(costs, kind="stable").tolist():
        began = time.perf_counter()
        value, n_support, failure = np.nan, 0, None
        try:
            machines = sample.machines(K, float(costs[k]), machines)
            n_support = int(machines.coefficients.any(axis=1).sum())
            value = score(machines, sample.labels, sample.selection_weight)
        except (IndefiniteKernelError, NotConvergedError) as error:
            failure = str(error)
        by_cost[k] = Scored(value, n_support, time.perf_counter() - began, failure)
    return [by_cost[k] for k in range(len(costs))]
