"""Combinations of candidates by their held-out predictions: the best one, or a stack."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax

from looms._classes import class_indices
from looms._typing import Array

#: Of a class without errors the best constant has no bound; this keeps it near the others.
_CONSTANT_PENALTY = 1e-3
#: Slope of the log odds in the outputs, ±1 of sure ones, where the search begins.
_FIRST_SLOPE = 4.0
#: A share below it costs as much as any other model, and changes no figure that is shown.
_LEAST_SHARE = 1e-3


#: Values of the parameter ``combine``.
COMBINATIONS = ("stack", "best")


def weight_of_best(losses: Array, sizes: Array) -> Array:
    """One for the smallest loss, and among equal ones the fewest hyper-parameters; zeros."""
    weights = np.zeros(len(losses))
    weights[np.lexsort((sizes, losses))[0]] = 1.0
    return weights


def stacking_weights(y: Array, outputs: Array, weight: Array, *, labeled: bool) -> Array:
    r"""Nonnegative weights with sum one for which the weighted held-out outputs predict best.

    .. math:: \min_{w \ge 0} \sum_i \zeta_i \ell\Bigl(y_i, \sum_k w_k f_k^{(-i)}(x_i)\Bigr)

    For numbers the loss is the squared error, with :math:`\sum_k w_k = 1`; for classes it is the
    log loss of the softmax of the sum plus a constant for each class, and the weights are scaled to
    sum one afterwards, since a calibrator sets the slope. Source: Breiman (1996), Stacked
    regressions, Machine Learning 24, with the log loss of van der Laan, Polley & Hubbard (2007).

    Parameters
    ----------
    y : (n,) or (n, t) targets; ±1, one column a class of several, if ``labeled``.
    outputs : (n_models, n) or (n_models, n, t), each row by models that have not seen it.
    weight : (n,) nonnegative.
    labeled : whether the targets are classes, and what counts is their probabilities.

    Returns
    -------
    weights : (n_models,) of which those below a thousandth are zero.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0])
    >>> stacking_weights(y, np.array([y + 1, y - 1]), np.ones(3), labeled=False)
    array([0.5, 0.5])
    """
    shares = _by_log_loss(y, outputs, weight) if labeled else _by_squares(y, outputs, weight)
    shares[shares < _LEAST_SHARE * shares.sum()] = 0.0
    return np.asarray(shares / shares.sum())


def _by_squares(y: Array, outputs: Array, weight: Array) -> Array:
    """Point of the simplex with the smallest weighted squared error.

    With Σ w = 1 the error is w'Gw, where G has the inner products of residuals. Its minimum is at
    u / Σ u, for the u ≥ 0 that minimizes ½ u'Gu − Σ u.
    """
    residuals = (y - outputs).reshape(*outputs.shape[:2], -1) * np.sqrt(weight)[:, None]
    A = residuals.reshape(len(outputs), -1).T
    scale = np.sqrt(np.mean(A**2))
    if scale == 0:
        return np.asarray(np.eye(len(outputs))[0])
    R: Array = np.linalg.qr(np.vstack([A / scale, 1e-6 * np.eye(A.shape[1])]))[1]
    return np.asarray(nnls(R, solve_triangular(R, np.ones(len(R)), trans="T"))[0])


def _by_log_loss(y: Array, outputs: Array, weight: Array) -> Array:
    """Slopes ≥ 0 with the smallest log loss, with a constant for each class."""
    F = outputs if y.ndim == 2 else np.stack([-outputs, outputs], axis=-1) / 2
    labels, (n_models, n, n_classes) = class_indices(y), F.shape
    own, share = np.arange(n), weight / weight.sum()

    def loss(x: Array) -> tuple[float, Array]:
        slopes, constants = x[:n_models], x[n_models:]
        log_p = log_softmax(np.tensordot(slopes, F, 1) + constants, axis=1)
        excess = np.exp(log_p)
        excess[own, labels] -= 1.0
        excess *= share[:, None]
        value = -float(share @ log_p[own, labels])
        gradient = [np.tensordot(F, excess, 2), excess.sum(axis=0) + _CONSTANT_PENALTY * constants]
        return value + 0.5 * _CONSTANT_PENALTY * float(constants @ constants), np.concatenate(
            gradient
        )

    start = np.append(np.full(n_models, _FIRST_SLOPE / n_models), np.zeros(n_classes))
    bounds = [(0.0, None)] * n_models + [(None, None)] * n_classes
    options = {"maxiter": 500, "ftol": 1e-10, "gtol": 1e-7}
    slopes = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    slopes = slopes[:n_models]
    if not slopes.sum() > 0:  # nothing is learned: the model of the least squared error
        errors = [weight @ ((y - f) ** 2).reshape(n, -1).sum(axis=1) for f in outputs]
        slopes = np.eye(n_models)[int(np.argmin(errors))]
    return np.asarray(slopes)
