"""Metrics of held-out predictions, by scorers of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer, make_scorer

from looms._checks import one_or_many
from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.scores import Scores

Scorer = Callable[..., float]


def as_scorers(metrics: Any) -> dict[str, Scorer]:
    """Scorers by name; ValueError for a name that scikit-learn does not know."""
    scorers: dict[str, Scorer] = {}
    for metric in one_or_many(metrics):
        if isinstance(metric, str):
            scorers[metric] = get_scorer(metric)
        elif callable(metric):
            own = getattr(metric, "_score_func", None)  # of a scorer
            named = metric if own is None else own
            scorers[getattr(named, "__name__", repr(named))] = (
                make_scorer(metric) if own is None else metric
            )
        else:
            raise TypeError(
                f"metrics must be names of scorers, or metrics of (y_true, y_pred), got {metric!r}."
            )
    return scorers


def judged(scores: Scores, scorers: dict[str, Scorer], classes: AnyArray | None) -> Scores:
    """Scores by other metrics of the same held-out predictions, without standard errors.

    ``classes`` are the labels; None for numbers.
    """
    y, _, weight = (each[scores.rows] for each in scores.predictions)
    if classes is not None:
        y = classes[class_indices(y)]
    of_rows = np.arange(len(y))[:, None]
    options = {} if np.ptp(weight) == 0 else {"sample_weight": weight}
    predicted = _HeldOutPredictions(scores, classes)
    values = {
        name: (float(scorer(predicted, of_rows, y, **options)), np.nan)
        for name, scorer in scorers.items()
    }
    return replace(scores, with_errors=values)


class _HeldOutPredictions(BaseEstimator):  # type: ignore[misc]
    """Fitted estimator whose predictions are those held out; a sample is its place."""

    def __init__(self, scores: Scores, classes: AnyArray | None) -> None:
        self.scores, self.classes_ = scores, classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    def predict(self, X: AnyArray) -> AnyArray:
        decisions = self.scores.decisions
        if decisions is None or self.classes_ is None:
            return self._outputs[X[:, 0]]
        return np.asarray(self.classes_[decisions.predicted[X[:, 0]]])

    def decision_function(self, X: AnyArray) -> Array:
        return self._outputs[X[:, 0]]

    def predict_proba(self, X: AnyArray) -> Array:
        decisions = self.scores.decisions
        if decisions is None or decisions.probabilities is None:
            raise AttributeError("There are no probabilities.")
        return decisions.probabilities[X[:, 0]]

    @property
    def _outputs(self) -> Array:
        return self.scores.predictions.outputs[self.scores.rows]
