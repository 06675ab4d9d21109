"""All outputs of a least-squares machine without each sample, from one factorisation."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone

from looms._typing import AnyArray, Array
from looms.diagnostics._problem import Problem
from looms.estimators import LSSVMClassifier
from looms.estimators._weights import class_weights
from looms.lssvm import NotPositiveDefiniteError


def is_least_squares(problem: Problem) -> bool:
    """Whether the machine is a least-squares one, and its sample does not change with refits."""
    return type(problem.machine) is LSSVMClassifier


def least_squares_outputs(problem: Problem) -> tuple[Array, Array]:
    r"""Outputs of the machine, (n,), and of those without sample i for sample j, (n, n) at i, j.

    .. math:: f^{(-i)}(x_j) = y_j - \lambda_j (\alpha_j - P_{ji} \alpha_i / P_{ii}), \qquad
              f^{(-i)}(x_i) = y_i - \alpha_i / P_{ii}

    with P of docs/references.md, Leave-one-out outputs. The ridge λ stays as it is while a
    sample is left out, as in ``loo_``. Two classes.
    """
    machine = clone(problem.machine).fit(problem.X, problem.y)
    y, n = machine.loo_.y, problem.n_samples
    ones = np.ones(n)
    zeta = class_weights(machine.class_weight, problem.labels, problem.classes, ones)
    ridge = n * machine.mu_ * zeta.mean() / zeta
    K = problem.X if machine.kernel_.pairwise else machine.kernel_(problem.X)
    try:
        factor = cho_factor(K + np.diag(ridge), lower=True)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(machine.mu_) from None
    P = cho_solve(factor, np.eye(n))
    if machine.fit_intercept:
        eta = P.sum(axis=1)
        P -= np.outer(eta, eta / eta.sum())
    alpha = P @ y
    residual = alpha / P.diagonal()
    outputs = y - ridge * (alpha - P * residual[:, None])
    outputs[np.diag_indices(n)] = y - residual
    return y - ridge * alpha, outputs


def least_squares_predictions(problem: Problem) -> tuple[AnyArray, AnyArray]:
    """Class of each sample by the machine, and by the one without it; any number of classes."""
    machine = clone(problem.machine).fit(problem.X, problem.y)
    outputs = machine.loo_.outputs
    above = outputs > machine.threshold_
    chosen = above.astype(int) if outputs.ndim == 1 else outputs.argmax(axis=1)
    return np.asarray(machine.predict(problem.X)), np.asarray(problem.classes[chosen])
