"""The machine of the whole sample."""

from __future__ import annotations

import numpy as np

from looms._typing import Array
from looms.diagnostics._likelihood import log_probabilities, sigmoid_log_probabilities
from looms.diagnostics._problem import Problem
from looms.diagnostics._refits import refitted
from looms.diagnostics._support_vectors import exact_solution


def log_probabilities_of_sample(problem: Problem) -> Array:
    """(n_samples, n_classes) log probabilities by machine and sigmoid fitted to all samples."""
    weight = np.ones(problem.n_samples)
    solution = exact_solution(problem)
    if solution is not None:
        return sigmoid_log_probabilities(solution.outputs, problem.labels == 1, weight)
    return log_probabilities_of_refit(problem)


def log_probabilities_of_refit(problem: Problem) -> Array:
    """The same as scikit-learn fits it."""
    weight = np.ones(problem.n_samples)
    machine, X = refitted(problem, weight)
    return log_probabilities(machine, X, problem.labels, weight, len(problem.classes))
