"""Fitting one machine with given hyper-parameters."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.estimators._machine import check_kernel_matrix
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, gram_into, is_finite_lower
from looms.kernels._samples import check_scale, training_rows
from looms.lssvm._system import Fit
from looms.lssvm.cholesky import solve_in_place


def fit_given(estimator: Any, X: Matrix, targets: Array, fit_weight: Array) -> tuple[Kernel, Fit]:
    """The estimator's kernel with all its values, and its machine on samples of positive weight.

    ``fit_weight`` is rescaled to mean one over these, so that integer weights are copies.
    """
    mu = estimator.mu
    if not (isinstance(mu, Real) and 0 < float(mu) < np.inf):
        raise ValueError(f"mu must be a positive number, got {mu!r}.")
    if isinstance(estimator.kernel, (list, tuple)):
        name = type(estimator).__name__
        raise ValueError(
            f"{name} takes one kernel, got a list of {len(estimator.kernel)}; {name}CV chooses "
            "among several."
        )
    (kernel,) = estimator._kernels()
    if kernel.pairwise:
        check_kernel_matrix(X)
    else:
        check_scale(X)
    seen = np.flatnonzero(fit_weight > 0)
    if len(seen) < 2:
        raise ValueError(
            f"Leave-one-out needs two samples of non-zero weight or more, got {len(seen)}."
        )
    X = training_rows(X, seen, kernel.pairwise) if len(seen) < len(fit_weight) else X
    fit_weight = fit_weight[seen] * (len(seen) / fit_weight[seen].sum())
    with blas_threads(len(seen)):
        blocks = GramBlocks(X, frozenset(), fit_weight)
        kernel = kernel.started(blocks.samples)
        K = np.empty((len(seen), len(seen)), order="F")
        gram_into(K, kernel, blocks)
        check_finite_lower(K, kernel)
        return kernel, solve_in_place(
            K, targets[seen], float(mu), fit_weight, fit_intercept=estimator.fit_intercept
        ).fit


def check_finite_lower(K: Array, kernel: Kernel) -> None:
    """ValueError unless the lower triangle of a kernel matrix is finite."""
    if not is_finite_lower(K):
        raise ValueError(
            f"The kernel matrix of {kernel!r} contains NaN or infinity: scale the features, or "
            "use smaller values of its parameters."
        )
