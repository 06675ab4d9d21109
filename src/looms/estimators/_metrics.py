"""Metrics of held-out predictions, by scorers of scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from looms._checks import one_or_many
from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms._words import listed
from looms.scores import Scores

Scorer = Callable[..., float]


def as_scorers(metrics: Any) -> dict[str, Scorer]:
    """Scorers by name; ValueError for a name that scikit-learn does not know.

    Examples
    --------
    >>> from looms.estimators._metrics import as_scorers
    >>> as_scorers("roc_acu")
    Traceback (most recent call last):
    ValueError: scikit-learn has no scorer 'roc_acu'; did you mean 'roc_auc'? See ...
    """
    scorers: dict[str, Scorer] = {}
    for metric in one_or_many(metrics):
        if isinstance(metric, str):
            if metric not in get_scorer_names():
                near = get_close_matches(metric, get_scorer_names(), 1)
                meant = f"; did you mean {near[0]!r}?" if near else "."
                raise ValueError(
                    f"scikit-learn has no scorer {metric!r}{meant} See "
                    "sklearn.metrics.get_scorer_names()."
                )
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


def scorers_for(metrics: Any, model: Any, y: AnyArray) -> dict[str, Scorer]:
    """Scorers by name for a model of these targets, fitted or not.

    Names such as "f1" score the positive class of two. ValueError for names of scorers that cannot
    score such predictions, with near ones that can.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelClassifier
    >>> from looms.estimators._metrics import scorers_for
    >>> list(scorers_for(["f1", "roc_auc"], KernelClassifier(), np.array(["ill", "well"])))
    ['f1', 'roc_auc']
    >>> scorers_for("roc_auc", KernelClassifier(), np.array(["a", "b", "c"]))
    Traceback (most recent call last):
    ValueError: 'roc_auc' cannot score these 3 classes (...); use 'roc_auc_ovr', ...
    """
    named = {each for each in one_or_many(metrics) if isinstance(each, str)}
    return {
        name: suited(name, scorer, model, y) if name in named else scorer
        for name, scorer in as_scorers(metrics).items()
    }


def suited(name: str, scorer: Scorer, model: Any, y: Any) -> Scorer:
    """A scorer of scikit-learn as it scores a model of these targets, as for `scorers_for`."""
    y = np.asarray(y)
    if not (is_regressor(model) or (is_classifier(model) and y.ndim == 1)):
        return scorer  # for it to judge
    predicted = _Predicted.perfectly(model, y)
    positive = predicted.positive(getattr(model, "pos_label", None))

    def fault(of: Scorer) -> str | None:
        return _fault(_of_positive(of, positive), predicted, y)

    wrong = fault(scorer)
    if wrong is None:
        return scorer
    classes = predicted.classes_
    what = "numbers" if classes is None else f"{len(classes)} classes"
    usual = ["r2", "neg_mean_absolute_error"] if classes is None else ["accuracy", "f1_macro"]
    able = [each for each in get_scorer_names() if fault(get_scorer(each)) is None]
    near = listed(get_close_matches(name, able, 3) or usual)
    raise ValueError(f"{name!r} cannot score these {what} ({wrong}); use {near}.")


def _of_positive(scorer: Any, positive: Any) -> Any:
    """Scorer for one of two classes, set to score ``positive`` and not the label 1."""
    takes = "pos_label" in inspect.signature(scorer._score_func).parameters
    if positive is not None and takes and scorer._kwargs.get("average", "binary") == "binary":
        scorer._kwargs = {**scorer._kwargs, "pos_label": positive}
    return scorer


def _fault(scorer: Any, predicted: _Predicted, y: AnyArray) -> str | None:
    """Why a scorer of scikit-learn cannot score predictions of such targets; None if it can."""
    if predicted.classes_ is not None and scorer._score_func.__module__.endswith("._regression"):
        return "it scores numbers"
    try:
        with warnings.catch_warnings(action="ignore"):
            scorer(predicted, np.arange(len(y))[:, None], y)
    except (ValueError, AttributeError) as error:
        return str(error).rstrip(".")
    return None


def judged(scores: Scores, scorers: dict[str, Scorer], classes: AnyArray | None) -> Scores:
    """Scores by other metrics of the same held-out predictions, without standard errors.

    ``classes`` are the labels; None for numbers.
    """
    y, _, weight = (each[scores.rows] for each in scores.predictions)
    if classes is not None:
        y = classes[class_indices(y)]
    of_rows = np.arange(len(y))[:, None]
    options = {} if np.ptp(weight) == 0 else {"sample_weight": weight}
    outputs, decisions = scores.predictions.outputs[scores.rows], scores.decisions
    predicted = _Predicted(outputs, classes)
    if decisions is not None and classes is not None:
        predicted = _Predicted(outputs, classes, decisions.predicted, decisions.probabilities)
    values = {
        name: (float(scorer(predicted, of_rows, y, **options)), np.nan)
        for name, scorer in scorers.items()
    }
    return replace(scores, with_errors=values)


class _Predicted(BaseEstimator):  # type: ignore[misc]
    """Fitted estimator with given predictions; a sample is its place.

    ``indices`` are those of the predicted ``classes``, both None for numbers.
    """

    def __init__(
        self,
        outputs: Array,
        classes: AnyArray | None,
        indices: AnyArray | None = None,
        probabilities: Array | None = None,
    ) -> None:
        self.outputs, self.classes_ = outputs, classes
        self.indices, self.probabilities = indices, probabilities

    @classmethod
    def perfectly(cls, model: Any, y: AnyArray) -> _Predicted:
        """The right classes of ``y``, with probabilities if a model has them, or near numbers."""
        if not is_classifier(model):
            return cls(y + 0.5, None)
        classes, indices = np.unique(y, return_inverse=True)
        certain = np.eye(len(classes))[indices]
        outputs = 2.0 * (certain[:, 1] if len(classes) == 2 else certain) - 1.0
        return cls(outputs, classes, indices, certain if hasattr(model, "predict_proba") else None)

    def positive(self, named: Any) -> Any:
        """The positive one of two classes, by default the later; None for other targets."""
        two = self.classes_ is not None and len(self.classes_) == 2
        return (self.classes_[1] if named is None else named) if two else None  # type: ignore[index]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    def predict(self, X: AnyArray) -> AnyArray:
        if self.classes_ is None or self.indices is None:
            return self.outputs[X[:, 0]]
        return np.asarray(self.classes_[self.indices[X[:, 0]]])

    def decision_function(self, X: AnyArray) -> Array:
        return self.outputs[X[:, 0]]

    def predict_proba(self, X: AnyArray) -> Array:
        if self.probabilities is None:
            raise AttributeError("there are no probabilities")
        return self.probabilities[X[:, 0]]
