"""Scores by name, and metrics of held-out predictions, by scorers of scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import (
    get_scorer,
    get_scorer_names,
    log_loss,
    make_scorer,
    mean_absolute_error,
    root_mean_squared_error,
)

from looms._checks import one_or_many
from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms._words import listed
from looms.criteria import mean_class_error
from looms.scores import Scores

#: Function ``(estimator, X, y)``; some also take ``sample_weight``.
Scorer: TypeAlias = Callable[..., float]


def balanced_accuracy(y: Any, predicted: Any, sample_weight: Any = None) -> float:
    """Mean over the classes in ``y``, or of positive weight, of the share predicted right."""
    labels = np.unique(y, return_inverse=True)[1]
    return 1.0 - mean_class_error(labels, np.asarray(y) != np.asarray(predicted), sample_weight)


#: Scorers of the scores of ``evaluate``. Scikit-learn's negate losses and errors, and warn where a
#: class is not among the rows.
OWN: dict[str, Any] = {
    "accuracy": get_scorer("accuracy"),
    "balanced_accuracy": make_scorer(balanced_accuracy),
    "roc_auc": get_scorer("roc_auc"),
    "log_loss": make_scorer(log_loss, response_method="predict_proba"),
    "rmse": make_scorer(root_mean_squared_error),
    "mae": make_scorer(mean_absolute_error),
    "r2": get_scorer("r2"),
}


def named_scorer(name: str) -> Any:
    """A scorer of looms or scikit-learn; ValueError for a name of neither.

    Examples
    --------
    >>> from looms.estimators._metrics import named_scorer
    >>> named_scorer("roc_acu")
    Traceback (most recent call last):
    ValueError: Unknown score 'roc_acu' (did you mean 'roc_auc'?); known are accuracy, ...
    """
    if name in OWN:
        return deepcopy(OWN[name])
    names = get_scorer_names()
    if name not in names:
        near = get_close_matches(str(name), [*OWN, *names], 1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"Unknown score {name!r}{meant}; known are {', '.join(OWN)}, and all that "
            "sklearn.metrics.get_scorer_names() lists."
        )
    return get_scorer(name)


def as_scorers(metrics: Any) -> dict[str, Scorer]:
    """Scorers of names, as for `named_scorer`, and of metrics of ``(y_true, y_pred)``."""
    scorers: dict[str, Scorer] = {}
    for metric in one_or_many(metrics):
        if isinstance(metric, str):
            scorers[metric] = named_scorer(metric)
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
    >>> scorers_for("f1", KernelClassifier(), np.array(["a", "b", "c"]))
    Traceback (most recent call last):
    ValueError: 'f1' cannot score these 3 classes (...); use 'f1_macro', ...
    """
    named = {each for each in one_or_many(metrics) if isinstance(each, str)}
    if is_classifier(model):
        named -= {"roc_auc"}  # of `evaluate`, for several classes too
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
    """Scores by other metrics of the same held-out predictions.

    Those that the scores have already keep their standard errors. ``classes`` are the labels; None
    for numbers.
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
        name: scores.with_errors[name]
        if name in scores and _is_own(name, scorer)
        else (float(scorer(predicted, of_rows, y, **options)), np.nan)
        for name, scorer in scorers.items()
    }
    return replace(scores, with_errors=values)


def _is_own(name: str, scorer: Any) -> bool:
    return scorer._score_func is OWN[name]._score_func


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
