"""A support vector classifier of two classes solved exactly, with and without each sample."""

from __future__ import annotations

import warnings
from dataclasses import replace

from sklearn.base import clone
from sklearn.svm import SVC

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.diagnostics._problem import Problem
from looms.svm import (
    DualSolution,
    IndefiniteKernelError,
    NotConvergedError,
    dual_problem,
    kernel_matrix,
)

#: Samples up to which n×n matrices are kept, 800 MB each: the kernel matrix as it is and scaled,
#: the tableau of the paths and the outputs of all machines, these twice.
LARGEST = 10_000


def exact_solution(problem: Problem) -> DualSolution | None:
    """The solution to machine precision; None unless the machine is an SVC of two classes.

    None too, with a warning, where there is no solution to that precision, and for kernels that
    are not positive semi-definite.
    """
    if type(problem.machine) is not SVC or len(problem.classes) > 2 or problem.n_samples > LARGEST:
        return None
    try:
        return dual_problem(problem.machine, problem.X, problem.y).solve()
    except (IndefiniteKernelError, NotConvergedError) as error:
        _warn(error)
        return None


def exact_left_out(problem: Problem) -> tuple[Array, Array] | None:
    """Outputs of the machine, (n,), and of those without sample i for sample j, (n, n) at i, j.

    None where `exact_solution` is, or, with a warning, where one without a sample is.
    """
    solution = exact_solution(problem)
    if solution is None:
        return None
    try:
        return solution.outputs, solution.leave_one_out(all_outputs=True)[1]
    except NotConvergedError as error:
        _warn(error)
        return None


def exact_left_out_predictions(problem: Problem) -> tuple[AnyArray, AnyArray] | None:
    """Class of each sample by the machine, (n,), and by the one without it; None as above."""
    solution = exact_solution(problem)
    if solution is None:
        return None
    try:
        outputs = solution.outputs, solution.leave_one_out().outputs
    except NotConvergedError as error:
        _warn(error)
        return None
    seen, unseen = (problem.classes[class_indices(values, problem.threshold)] for values in outputs)
    return seen, unseen


def with_kernel_matrix(problem: Problem) -> Problem:
    """The same problem on the kernel matrix of an SVC, for many refits; others as they are.

    An SVC in a pipeline that is refitted has another kernel matrix in every refit, and stays.
    """
    machine = problem.machine
    if type(machine) is not SVC or machine.kernel == "precomputed":
        return problem
    if problem.n_samples > LARGEST:
        return problem
    K = kernel_matrix(clone(machine).fit(problem.X, problem.y), problem.X)
    return replace(problem, machine=clone(machine).set_params(kernel="precomputed"), X=K)


def _warn(error: Exception) -> None:
    warnings.warn(f"{error} Refits by LIBSVM take its place.", RuntimeWarning, stacklevel=5)
