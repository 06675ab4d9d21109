"""Every machine without one sample: what it says of that sample, and how well it fits the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from looms._typing import AnyArray, Array
from looms.calibration import fit_sigmoids
from looms.diagnostics._least_squares import (
    is_least_squares,
    least_squares_outputs,
    least_squares_predictions,
)
from looms.diagnostics._likelihood import deviance_of, log_probabilities, own_class
from looms.diagnostics._problem import Problem
from looms.diagnostics._refits import Progress, all_of, refitted


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The machines without each sample in turn, each with a sigmoid of its own where it has one.

    Attributes
    ----------
    log_likelihood : (n_samples,) log probability of the class of the sample left out.
    deviance : (n_samples,) deviance of the machine without it over the n − 1 others.
    """

    log_likelihood: Array
    deviance: Array


def left_out(problem: Problem, n_jobs: int | None, progress: Progress | None) -> LeftOut:
    """From one factorisation or path where the machine has one, else by refits."""
    if is_least_squares(problem):
        return left_out_by_outputs(least_squares_outputs(problem), problem.labels == 1)
    return left_out_by_refits(problem, n_jobs, progress)


def left_out_predictions(
    problem: Problem, n_jobs: int | None, progress: Progress | None
) -> AnyArray:
    """Class that the machine without each sample predicts for it, (n_samples,)."""
    if is_least_squares(problem):
        return least_squares_predictions(problem)
    n = problem.n_samples
    found = all_of(partial(_predicted_without, problem), range(n), n, n_jobs, progress)
    return np.array(found)


def left_out_by_refits(problem: Problem, n_jobs: int | None, progress: Progress | None) -> LeftOut:
    """By n refits, whatever the machine."""
    n = problem.n_samples
    found = all_of(partial(_without, problem), range(n), n, n_jobs, progress)
    log_likelihood, deviance = map(np.array, zip(*found, strict=True))
    return LeftOut(log_likelihood, deviance)


def left_out_by_outputs(outputs: Array, positive: AnyArray) -> LeftOut:
    """From all outputs without each sample, (n, n) in row i of the machine without sample i."""
    n = len(positive)
    signs = np.where(positive, 1, -1)
    slopes, intercepts = fit_sigmoids(outputs, signs, 1.0 - np.eye(n))
    exponent = slopes[:, None] * outputs + intercepts[:, None]
    log_likelihood = -np.logaddexp(0.0, signs * exponent)
    own = log_likelihood.diagonal().copy()
    return LeftOut(own, -2.0 * (log_likelihood.sum(axis=1) - own))


def _without(problem: Problem, i: int) -> tuple[float, float]:
    weight = np.ones(problem.n_samples)
    weight[i] = 0.0
    machine, X = refitted(problem, weight)
    log_p = log_probabilities(machine, X, problem.labels, weight, len(problem.classes))
    log_likelihood = own_class(log_p, problem.labels)
    return float(log_likelihood[i]), deviance_of(log_likelihood, weight)


def _predicted_without(problem: Problem, i: int) -> Any:
    weight = np.ones(problem.n_samples)
    weight[i] = 0.0
    machine, X = refitted(problem, weight)
    return machine.predict(_safe_indexing(X, [i]))[0]
