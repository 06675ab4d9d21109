"""Beta calibration: a sigmoid that may be steeper on one side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from looms._typing import Array
from looms.calibration._sigmoid import (
    Sigmoid,
    checked_sample,
    fit_increasing_sigmoid,
    platt_targets,
)

_MAX_ITERATIONS = 100
_HALVINGS = 40


@dataclass(frozen=True)
class Beta:
    """Probability of the positive class, with log-odds a log s − b log(1 − s) + c [KSF17 eq. 4].

    Parameters
    ----------
    sigmoid : maps outputs to scores s in (0, 1), which beta calibration needs.
    a, b : nonnegative; a = b = 1 and c = 0 give the sigmoid itself.
    c : constant added to the log-odds.
    """

    sigmoid: Sigmoid
    a: float
    b: float
    c: float

    def probability(self, outputs: npt.ArrayLike) -> Array:
        """Probability of the positive class for outputs of any shape."""
        with np.errstate(over="ignore"):
            z = self.sigmoid.slope * np.asarray(outputs, dtype=np.float64) + self.sigmoid.intercept
        z = np.clip(z, -1e300, 1e300)  # zero times infinity is no log-odds
        return np.asarray(expit(self.a * log_expit(-z) - self.b * log_expit(z) + self.c))


def fit_beta(
    outputs: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> Beta:
    """Beta calibration of the scores of `fit_sigmoid`, nondecreasing in the output.

    The likelihood is that of `fit_sigmoid`, with Platt's targets. If a or b would be
    negative, it is set to zero, as in Kull, Silva Filho & Flach [KSF17 Section 4].

    Parameters
    ----------
    outputs, labels, sample_weight : as for `fit_sigmoid`.

    Returns
    -------
    beta : Beta
        Constant if the sigmoid is.

    Raises
    ------
    ValueError
        As `fit_sigmoid`.

    Notes
    -----
    Newton's method in three unknowns, O(n) per step. The score of an output is the sigmoid's
    probability, so the result does not depend on the unit of the outputs.

    Examples
    --------
    >>> beta = fit_beta([-1.0, -0.2, 0.1, 0.2, 1.0], [-1, 1, -1, 1, 1])
    >>> bool((beta.probability([-1.0, 0.0, 1.0]) == sorted(beta.probability([0, -1, 1]))).all())
    True
    """
    f, positive, weight = checked_sample(outputs, labels, sample_weight)
    sigmoid = fit_increasing_sigmoid(f, np.where(positive, 1, -1), weight)
    if sigmoid.slope == 0.0:
        return Beta(sigmoid, 1.0, 1.0, 0.0)
    targets, weight = platt_targets(positive, weight)
    z = sigmoid.slope * f + sigmoid.intercept
    features = np.column_stack([log_expit(-z), -log_expit(z), np.ones(len(f))])
    best, least = np.array([1.0, 1.0, 0.0]), np.inf
    # The loss is convex: if its minimum is not allowed, the best of an edge is the answer.
    for free in ([0, 1, 2], [0, 2], [1, 2], [2]):
        coefficients = np.zeros(3)
        coefficients[free], loss = _logistic(features[:, free], targets, weight)
        if (coefficients[:2] >= 0).all() and loss < least:
            best, least = coefficients, loss
        if len(free) == 3 and (coefficients[:2] >= 0).all():
            break
    return Beta(sigmoid, *map(float, best))


def _logistic(features: Array, targets: Array, weight: Array) -> tuple[Array, float]:
    """Coefficients of least logistic loss for targets within (0, 1), and that loss."""

    def loss_at(coefficients: Array) -> float:
        log_odds = features @ coefficients
        return float(-weight @ (log_expit(log_odds) - (1.0 - targets) * log_odds))

    coefficients = np.zeros(features.shape[1])
    loss = loss_at(coefficients)
    for _ in range(_MAX_ITERATIONS):
        p = expit(features @ coefficients)
        gradient = features.T @ (weight * (p - targets))
        hessian = (features.T * (weight * p * (1.0 - p))) @ features
        # Of few different outputs the three features are dependent.
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
        decrement = float(-gradient @ step)
        for halving in range(_HALVINGS):
            moved = coefficients + step / 2.0**halving
            reached = loss_at(moved)
            if reached <= loss - 1e-4 * decrement / 2.0**halving + 1e-13 * abs(loss):
                coefficients, loss = moved, reached
                break
        if decrement <= 1e-20 * weight.sum():
            break
    return coefficients, loss
