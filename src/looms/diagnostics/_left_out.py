"""Every machine without one sample: what it says of that sample, and how well it fits the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.calibration import fit_sigmoids
from looms.diagnostics._least_squares import (
    is_least_squares,
    least_squares_outputs,
    least_squares_predictions,
)
from looms.diagnostics._likelihood import (
    deviance_of,
    log_probabilities,
    own_class,
    sigmoid_log_probabilities,
)
from looms.diagnostics._problem import Problem
from looms.diagnostics._refits import Progress, all_of, refitted
from looms.diagnostics._support_vectors import (
    exact_left_out,
    exact_left_out_predictions,
    with_kernel_matrix,
)
from looms.diagnostics._whole import log_probabilities_of_refit


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The machine of all samples, and those without each in turn, each with its own sigmoid.

    Attributes
    ----------
    whole : (n_samples,) log probability of the class of each sample by the machine of all.
    log_likelihood : (n_samples,) the same by the machine without it.
    deviance : (n_samples,) deviance of the machine without it over the n − 1 others.
    """

    whole: Array
    log_likelihood: Array
    deviance: Array


def left_out(problem: Problem, n_jobs: int | None, progress: Progress | None) -> LeftOut:
    """From one factorisation, or from one path a sample, where the machine has it; else refits."""
    if is_least_squares(problem) and len(problem.classes) == 2:
        return left_out_by_outputs(*least_squares_outputs(problem), problem.labels == 1)
    exact = exact_left_out(problem)
    if exact is not None:
        return left_out_by_outputs(*exact, problem.labels == 1)
    return left_out_by_refits(with_kernel_matrix(problem), n_jobs, progress)


def left_out_predictions(
    problem: Problem, n_jobs: int | None, progress: Progress | None
) -> tuple[AnyArray, AnyArray]:
    """Class of each sample by the machine of all samples, and by the one without it."""
    if is_least_squares(problem):
        return least_squares_predictions(problem)
    exact = exact_left_out_predictions(problem)
    if exact is not None:
        return exact
    problem, n = with_kernel_matrix(problem), problem.n_samples
    machine, X = refitted(problem, np.ones(n))
    found = all_of(partial(_predicted_without, problem), range(n), n, n_jobs, progress)
    return _predicted(problem, machine, X), np.array(found)


def left_out_by_refits(problem: Problem, n_jobs: int | None, progress: Progress | None) -> LeftOut:
    """By n refits, whatever the machine."""
    n = problem.n_samples
    whole = own_class(log_probabilities_of_refit(problem), problem.labels)
    deviance_of(whole, np.ones(n))
    found = all_of(partial(_without, problem), range(n), n, n_jobs, progress)
    log_likelihood, deviance = map(np.array, zip(*found, strict=True))
    return LeftOut(whole, log_likelihood, deviance)


def left_out_by_outputs(whole: Array, without: Array, positive: AnyArray) -> LeftOut:
    """From outputs of the machine of all samples, (n,), and of those without one, (n, n).

    Row i of ``without`` is of the machine without sample i.
    """
    n = len(positive)
    signs = np.where(positive, 1, -1)
    slopes, intercepts = fit_sigmoids(without, signs, 1.0 - np.eye(n))
    log_likelihood = np.multiply(without, slopes[:, None])
    log_likelihood += intercepts[:, None]
    log_likelihood *= signs
    np.logaddexp(0.0, log_likelihood, out=log_likelihood)
    np.negative(log_likelihood, out=log_likelihood)
    own = log_likelihood.diagonal().copy()
    log_p = sigmoid_log_probabilities(whole, positive, np.ones(n))
    seen = own_class(log_p, positive.astype(int))
    return LeftOut(seen, own, -2.0 * (log_likelihood.sum(axis=1) - own))


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
    return _predicted(problem, machine, _safe_indexing(X, [i]))[0]


def _predicted(problem: Problem, machine: Any, X: Any) -> AnyArray:
    if problem.threshold == 0:
        return np.asarray(machine.predict(X))
    above = class_indices(machine.decision_function(X), problem.threshold)
    return np.asarray(problem.classes[above])
