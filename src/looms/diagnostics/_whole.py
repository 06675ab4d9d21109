"""The machine of the whole sample."""

from __future__ import annotations

import numpy as np

from looms._typing import Array
from looms.diagnostics._likelihood import deviance_of, log_probabilities, own_class
from looms.diagnostics._problem import Problem
from looms.diagnostics._refits import refitted


def log_probabilities_of_sample(problem: Problem) -> Array:
    """(n_samples, n_classes) log probabilities by machine and sigmoid fitted to all samples."""
    weight = np.ones(problem.n_samples)
    machine, X = refitted(problem, weight)
    return log_probabilities(machine, X, problem.labels, weight, len(problem.classes))


def deviance_of_sample(problem: Problem) -> float:
    """Deviance of the machine and sigmoid fitted to all samples."""
    log_likelihood = own_class(log_probabilities_of_sample(problem), problem.labels)
    return deviance_of(log_likelihood, np.ones(problem.n_samples))
