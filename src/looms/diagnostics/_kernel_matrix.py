"""The kernel matrix of a support vector classifier, computed once for all its refits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from looms._typing import Array
from looms.diagnostics._problem import Problem

#: Samples up to which the matrix is kept: 800 MB.
LARGEST = 10_000


def with_kernel_matrix(problem: Problem) -> Problem:
    """The same problem on the kernel matrix of an SVC; others as they are.

    An SVC in a pipeline that is refitted has another kernel matrix in every refit, and stays.
    """
    machine = problem.machine
    if type(machine) is not SVC or problem.n_samples > LARGEST:
        return problem
    if machine.kernel == "precomputed":
        return problem
    K = kernel_matrix(machine, problem.X)
    return replace(problem, machine=SVC(**{**machine.get_params(), "kernel": "precomputed"}), X=K)


def kernel_matrix(machine: Any, X: Any) -> Array:
    """Kernel matrix of the samples, (n_samples, n_samples), by the parameters of an SVC.

    Its ``gamma`` is a number.
    """
    if callable(machine.kernel):
        return np.asarray(machine.kernel(X, X), dtype=np.float64)
    parameters = {"gamma": machine.gamma, "degree": machine.degree, "coef0": machine.coef0}
    return np.asarray(pairwise_kernels(X, metric=machine.kernel, filter_params=True, **parameters))
