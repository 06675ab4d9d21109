"""Scores of the challenge, and error rates at several thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from looms.assessment import smaller_is_better
from looms.criteria import balanced_error_rate
from looms.held_out import HeldOut
from looms.threshold import balanced_error_threshold


def challenge_score(ber: float, guess: float, sigma: float) -> float:
    r"""Test score of an entry: its balanced error rate plus a penalty for a wrong guess.

    .. math:: \mathrm{ber} + e\,(1 - \exp(-e/\sigma)), \quad e = |\mathrm{guess} - \mathrm{ber}|

    Parameters
    ----------
    ber : balanced error rate on the test set.
    guess : guess of ``ber`` by the entry.
    sigma : standard error of ``ber``, positive; see `ber_standard_error`.

    Examples
    --------
    >>> round(challenge_score(0.1845, 0.1683, 0.002), 4)   # ADA [C06 Table V]
    0.2007
    """
    error = abs(guess - ber)
    return float(ber + error * -np.expm1(-error / sigma)) if error else float(ber)


def ber_standard_error(miss: float, false_alarm: float, n_positive: int, n_negative: int) -> float:
    """Standard error of a balanced error rate, ½ √(p₊(1−p₊)/m₊ + p₋(1−p₋)/m₋).

    Parameters
    ----------
    miss, false_alarm : error rates p₊, p₋ of the positive and of the negative class.
    n_positive, n_negative : test rows m₊, m₋ of each.
    """
    positive = miss * (1 - miss) / n_positive
    negative = false_alarm * (1 - false_alarm) / n_negative
    return float(0.5 * np.sqrt(positive + negative))


@smaller_is_better
def miss(model: Any, X: Any, y: Any) -> float:
    """Share of the positive rows that are taken for negative; a scorer."""
    return float(np.mean(np.asarray(model.predict(X))[np.asarray(y) > 0] < 0))


@smaller_is_better
def false_alarm(model: Any, X: Any, y: Any) -> float:
    """Share of the negative rows that are taken for positive; a scorer."""
    return float(np.mean(np.asarray(model.predict(X))[np.asarray(y) < 0] > 0))


@smaller_is_better
def ber_at_zero(model: Any, X: Any, y: Any) -> float:
    """Balanced error rate with the threshold at 0; a scorer."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return balanced_error_rate(y, model.decision_function(X), threshold=-last.threshold_)


@smaller_is_better
def ber_best_on_test(model: Any, X: Any, y: Any) -> float:
    """Balanced error rate with the threshold that is best on these very rows; a scorer.

    Optimistic; the printed rates of [C06 Table III] are near it.
    """
    return balanced_error_threshold(HeldOut(y, model.decision_function(X)))[1]


#: Scores of every experiment.
SCORING: dict[str, Any] = {
    "ber": "ber",
    "auc": "auc",
    "miss": miss,
    "false_alarm": false_alarm,
    "ber_at_zero": ber_at_zero,
    "ber_best_on_test": ber_best_on_test,
}
