"""Fits of least-squares machines: solution of the system, fitted attributes, outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._gram import (
    GramBlocks,
    check_finite_lower,
    expansion,
    finite_values,
    gram_into,
)
from looms.kernels._samples import Pairs, Samples, center_of
from looms.lssvm._system import targets_as_columns
from looms.lssvm.dense import Dense
from looms.lssvm.features import decompose_features, has_few_features
from looms.lssvm.fit import Fit
from looms.lssvm.landmarks import Landmarks, Streamed, outputs_on
from looms.lssvm.projection import Projection

_NUMBERS = 1 << 20  # in an array of a block


def projection_of(
    kernel: Kernel,
    X: Matrix,
    y: Array,
    mu: float,
    zeta: Array,
    fit_intercept: bool,
    landmarks: Matrix | None = None,
) -> Projection:
    """Solved system for a kernel with all its values, on landmarks, or by the features if few.

    Parameters
    ----------
    kernel, mu : values of the machine.
    X : rows, or `RowBlocks` of them if there are landmarks.
    y : (n,) or (n, t) targets.
    zeta : (n,) weights.
    fit_intercept : whether the machine has an intercept.
    landmarks : (m, n_features), or None for the whole kernel matrix.
    """
    n, Y = len(y), targets_as_columns(y)
    with blas_threads(n):
        if landmarks is not None:
            blocks = X if isinstance(X, RowBlocks) else ArrayBlocks(X)
            on = Landmarks(kernel, Samples(landmarks, center=center_of(landmarks)))
            return Streamed(blocks, Y, mu, zeta, on, fit_intercept=fit_intercept)
        if has_few_features(kernel, X):
            return decompose_features(X, zeta, fit_intercept=fit_intercept).solve(Y, mu)
        K = np.empty((n, n), order="F")
        gram_into(K, kernel, GramBlocks(X, frozenset()))
        check_finite_lower(K, kernel)
        cross = cross_of(kernel, X)
        return Dense(K, Y, mu, zeta, fit_intercept=fit_intercept, cross=cross)


def cross_of(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Array]:
    """Function of new rows that gives their kernel values with the rows ``X``, (b, n)."""
    basis = Samples(X, center=center_of(X))
    return lambda new: kernel.values(Pairs(Samples(new, center=basis.center), basis))


def kernel_blocks(
    kernel: Kernel, X: Matrix, basis: Samples, train: AnyArray
) -> Iterator[tuple[slice, Array]]:
    """Rows of ``X`` and their kernel values with some samples of the basis, (rows, n_train).

    Blocks have so many rows that an array of rows × samples has 2²⁰ numbers.
    """
    step = max(1, _NUMBERS // basis.n_samples)
    for start in range(0, X.shape[0], step):
        rows = Samples(X[start : start + step], start=start, center=basis.center)
        K = finite_values(kernel, Pairs(rows, basis))
        yield slice(start, start + step), K if K.shape[1] == len(train) else K[:, train]


def fitted_machine(
    X: Matrix, weight: Array, y: Array, kernel: Kernel, mu: float, fit: Fit
) -> dict[str, Any]:
    """Fitted attributes of a machine that was fitted to the samples of positive weight.

    The other samples get coefficient zero and, as leave-one-out output, the output of the
    machine, which never saw them.
    """
    train, others = np.flatnonzero(weight), np.flatnonzero(weight == 0)
    if isinstance(X, RowBlocks):  # all of positive weight, and not kept
        X = None
    dual_coef, loo, fit_weight = fit.alpha, fit.outputs, fit.sample_weight
    held_out, basis = fit.mean_held_out.outputs, X if fit.landmarks is None else fit.landmarks
    if len(others):
        fit_weight = np.zeros(len(y))
        fit_weight[train] = fit.sample_weight
        if fit.landmarks is None:
            dual_coef = np.zeros(y.shape)
            dual_coef[train] = fit.alpha
        loo = np.empty(y.shape)
        loo[train] = fit.outputs
        loo[others] = outputs(kernel, X[others], basis, dual_coef, fit.intercept, fit.coef)
        held_out_of_train, held_out = held_out, loo.copy()
        held_out[train] = held_out_of_train
    return {
        "X_fit_": X,
        "kernel_": kernel,
        "mu_": mu,
        "intercept_": fit.intercept,
        "dual_coef_": dual_coef,
        "_tie": fit.tie,
        **({} if fit.coef is None else {"coef_": fit.coef}),
        "fit_weight_": fit_weight,
        "loo_": HeldOut(y, loo, weight),
        "held_out_": HeldOut(y, held_out, weight),
        **({} if fit.landmarks is None else {"landmarks_": fit.landmarks}),
    }


def as_expansion(X_fit: Matrix, dual_coef: Array, coef: Array | None) -> tuple[Matrix, Array]:
    """Samples and coefficients of an expansion; with ``coef``, w·x is the kernel of w and x."""
    if coef is None:
        return X_fit, dual_coef
    W = np.atleast_2d(coef.T)
    return W, np.eye(len(W)) if coef.ndim > 1 else np.ones(1)


def outputs(
    kernel: Kernel,
    X: Matrix,
    X_fit: Matrix,
    dual_coef: Array,
    intercept: Any,
    coef: Array | None = None,
) -> Array:
    """f(x) = Σ_j α_j k(x_j, x) + b for validated samples, or w·x + b with ``coef``."""
    X_fit, dual_coef = as_expansion(X_fit, dual_coef, coef)
    # For a precomputed kernel X_fit is the kernel matrix, of which only the size counts.
    basis = Samples(X_fit, center=center_of(X_fit))
    if isinstance(X, RowBlocks):
        return outputs_on(X, Landmarks(kernel, basis), dual_coef, intercept)
    with blas_threads(max(len(dual_coef), X.shape[0])):
        expanded = expansion(kernel, X, basis, dual_coef)
    return np.asarray(expanded + intercept)
