"""Probabilities of a fitted machine: Platt's sigmoid on its decision values, or its own.

Samples are in a training set by weight: a bootstrap sample counts each as often as it was
drawn, and a sample left out counts zero. One function then serves all the statistics.
"""

from __future__ import annotations

import copy
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC

from looms._typing import AnyArray, Array
from looms.calibration import couple, fit_sigmoid
from looms.diagnostics._problem import Problem, last_step


def check_probabilities(problem: Problem) -> None:
    """ValueError unless the machine gives probabilities or decision values to make them of."""
    machine = problem.machine
    name = type(last_step(machine)).__name__
    if not (hasattr(machine, "decision_function") or hasattr(machine, "predict_proba")):
        raise ValueError(
            f"{name} has neither decision_function nor predict_proba, so it has no deviance; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    if takes_sigmoid(machine) and len(problem.classes) > 2 and not _is_libsvm(machine):
        raise ValueError(
            f"{name} has no predict_proba, and a sigmoid needs two classes; y has "
            f"{len(problem.classes)}. Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def takes_sigmoid(machine: Any) -> bool:
    """Whether probabilities are a sigmoid of the decision values of the machine itself.

    So it is for support vector classifiers, whatever ``probability`` says: their own
    predict_proba is of other machines, on folds [T11 section 2.4].
    """
    return _is_libsvm(machine) or not hasattr(machine, "predict_proba")


def log_probabilities(machine: Any, X: Any, labels: AnyArray, weight: Array, k: int) -> Array:
    """Log probability of every class for every sample, (n_samples, n_classes).

    Parameters
    ----------
    machine : fitted to the samples of positive `weight`.
    X : (n_samples, n_features) all samples.
    labels : (n_samples,) index of the class of each.
    weight : (n_samples,) how much each counts in the fit of the sigmoid.
    k : number of classes.
    """
    if not takes_sigmoid(machine):
        with np.errstate(divide="ignore"):  # of zero: the deviance says so
            return np.log(np.asarray(machine.predict_proba(X), dtype=np.float64))
    if k == 2:
        outputs = np.asarray(machine.decision_function(X), dtype=np.float64)
        return sigmoid_log_probabilities(outputs, labels == 1, weight)
    outputs = _pairwise(machine).decision_function(X)
    pairwise = np.zeros((len(labels), k, k))
    for column, (a, b) in enumerate(combinations(range(k), 2)):
        of_pair = weight * ((labels == a) | (labels == b))
        log_p = sigmoid_log_probabilities(outputs[:, column], labels == a, of_pair)
        pairwise[:, a, b], pairwise[:, b, a] = np.exp(log_p[:, 1]), np.exp(log_p[:, 0])
    with np.errstate(divide="ignore"):
        return np.log(couple(pairwise))


def sigmoid_log_probabilities(outputs: Array, positive: AnyArray, weight: Array) -> Array:
    """Log probabilities of the negative and the positive class by the sigmoid fitted to outputs.

    Repeated samples are repeated for the fit, as the sigmoid's own weights are only ratios.
    """
    rows = np.repeat(np.arange(len(outputs)), weight.astype(int))
    sigmoid = fit_sigmoid(outputs[rows], np.where(positive, 1, -1)[rows])
    return log_sigmoids(sigmoid.slope * outputs + sigmoid.intercept)


def log_sigmoids(exponent: Array) -> Array:
    """Log of 1 / (1 + exp(-exponent)) and of 1 / (1 + exp(exponent)), along a new last axis.

    The probabilities of the negative and the positive class, where exponent is
    slope f + intercept: as logarithms, none is zero.
    """
    return np.stack([-np.logaddexp(0.0, -exponent), -np.logaddexp(0.0, exponent)], axis=-1)


def own_class(log_p: Array, labels: AnyArray) -> Array:
    """Log probability of the class that each sample has, (n_samples,)."""
    return np.asarray(log_p[np.arange(len(labels)), labels])


def deviance_of(log_likelihood: Array, weight: Array) -> float:
    """−2 Σ weight log p̂ over the samples of positive weight.

    Raises
    ------
    ValueError
        If a sample has probability zero for the class it has.
    """
    inside = weight > 0
    terms = log_likelihood[inside]
    if not np.isfinite(terms).all():
        raise ValueError(
            f"{int((~np.isfinite(terms)).sum())} samples have probability 0 of the class that "
            "they have, so the deviance is infinite; use an estimator with smoother "
            "probabilities, or wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    return float(-2.0 * weight[inside] @ terms)


def _is_libsvm(machine: Any) -> bool:
    return isinstance(last_step(machine), SVC | NuSVC)


def _pairwise(machine: Any) -> Any:
    """The same fitted machine, giving the decision values of all pairs of classes."""
    last = copy.copy(last_step(machine)).set_params(decision_function_shape="ovo")
    if isinstance(machine, Pipeline):
        return Pipeline([*machine.steps[:-1], (machine.steps[-1][0], last)])
    return last
