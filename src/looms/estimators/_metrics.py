"""Scores by name, and metrics of held-out predictions, by scorers of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any, TypeAlias
from warnings import catch_warnings

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
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from looms._checks import one_or_many
from looms._classes import class_indices
from looms._scores import ValuesAndErrors
from looms._typing import AnyArray, Array
from looms._words import listed
from looms.criteria import mean_class_error
from looms.estimators._warnings import warn
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
            name, scorer = metric, named_scorer(metric)
        elif callable(metric):
            function = getattr(metric, "_score_func", metric)  # of a scorer
            name = getattr(function, "__name__", repr(function))
            scorer = make_scorer(metric) if function is metric else metric
        else:
            raise TypeError(
                f"metrics must be names of scorers, or metrics of (y_true, y_pred), got {metric!r}."
            )
        if name in scorers:
            raise ValueError(
                f"Two metrics are called {name!r}: give one of them as a function of another name."
            )
        scorers[name] = scorer
    return scorers


def scorers_for(
    metrics: Any, model: Any, y: AnyArray, weight: Array | None = None
) -> dict[str, Scorer]:
    """Scorers by name for a model of these targets, fitted or not.

    Parameters
    ----------
    metrics : as for `as_scorers`.
    model : estimator, pipeline or search.
    y : targets of the rows.
    weight : (n,) of the rows; those of weight zero are not scored. None for ones.

    Raises
    ------
    ValueError
        For names of scorers that cannot score such predictions, with near ones that can, and for
        metrics without weights if there are weights.

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
    if weight is not None:
        y, weight = y[weight > 0], weight[weight > 0]
    scorers = as_scorers(metrics)
    named = {each for each in one_or_many(metrics) if isinstance(each, str)}
    for name, scorer in scorers.items():
        if weight is not None and np.ptp(weight) > 0 and not takes_weights(scorer):
            raise ValueError(f"{name!r} takes no weights, but the rows have weights.")
        of_evaluate = is_classifier(model) and name == "roc_auc"  # for several classes too
        if not of_evaluate:
            scorers[name] = suited(name, scorer, model, y, check=name in named)
    return scorers


def suited(name: str, scorer: Scorer, model: Any, y: Any, *, check: bool = True) -> Scorer:
    """A scorer of one of two classes, set to score the positive one; other scorers as they are.

    With ``check`` a scorer that cannot score such predictions is refused.
    """
    y = np.asarray(y)
    if not (is_regressor(model) or (is_classifier(model) and y.ndim == 1)):
        return scorer  # for it to judge
    labels = np.unique(y) if is_classifier(model) else None
    positive = None
    if labels is not None and len(labels) == 2:
        named = getattr(_last_of(model), "pos_label", None)
        positive = labels[1] if named is None else named
    scorer = _of_positive(scorer, positive)
    if not check:
        return scorer
    some, predicted = _some_rows(y, labels), partial(_Predicted.perfectly, model, labels=labels)
    wrong = _fault(scorer, predicted(some), some)
    if wrong is None:
        return scorer
    what = "numbers" if labels is None else f"{len(labels)} classes"
    usual = ["r2", "neg_mean_absolute_error"] if labels is None else ["accuracy", "f1_macro"]
    others = {n: _of_positive(get_scorer(n), positive) for n in get_scorer_names()}
    able = [n for n, one in others.items() if _fault(one, predicted(some), some) is None]
    same = [n for n in able if n.startswith(f"{name}_")]
    near = listed(same[:3] or get_close_matches(name, able, 3) or usual)
    raise ValueError(f"{name!r} cannot score these {what} ({wrong}); use {near}.")


def takes_weights(scorer: Any) -> bool:
    """True if a scorer takes weights, and does not refuse them by its metadata request."""
    if not is_scikit_learns(scorer):
        return "sample_weight" in signature(scorer).parameters
    if "sample_weight" not in signature(scorer._score_func).parameters:
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is not False


def is_scikit_learns(scorer: Any) -> bool:
    """True for scorers that scikit-learn made."""
    return hasattr(scorer, "_score_func") and hasattr(scorer, "get_metadata_routing")


def judged(scores: Scores, scorers: dict[str, Scorer], classes: AnyArray | None) -> Scores:
    """Scores by other metrics of the same held-out predictions.

    Those that the scores have already keep their standard errors; NaN, with a UserWarning, where a
    metric fails. Over several passes over the rows others are refused: they would judge the mean of
    the predictions, which is better than the models. ``classes`` are the labels; None for numbers.
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
    values: ValuesAndErrors = {}
    for name, scorer in scorers.items():
        if name in scores and _is_own(name, scorer):
            values[name] = scores.with_errors[name]
            continue
        if scores.n_passes > 1:
            raise ValueError(
                f"{name!r} would judge the mean of {scores.n_passes} predictions of each row: with "
                f"repeated folds use {', '.join(scores)}, or cv without repetitions."
            )
        values[name] = np.nan, np.nan
        try:
            values[name] = float(scorer(predicted, of_rows, y, **options)), np.nan
        except ValueError as error:
            warn(f"{name!r} cannot score these predictions: {error}", UserWarning)
    return replace(scores, with_errors=values)


def _last_of(model: Any) -> Any:
    """The model at the end of pipelines and searches, fitted or not."""
    if isinstance(model, Pipeline):
        return _last_of(model.steps[-1][1])
    return _last_of(model.estimator) if isinstance(model, BaseSearchCV) else model


def _some_rows(y: AnyArray, labels: AnyArray | None) -> AnyArray:
    """Targets that stand for all: two of each class, or the range of the numbers."""
    if labels is not None:
        return np.tile(labels, 2)
    order = np.argsort(y.reshape(len(y), -1)[:, 0], kind="stable")
    return np.asarray(y[order[np.unique(np.linspace(0, len(y) - 1, 50).astype(int))]])


def _of_positive(scorer: Any, positive: Any) -> Any:
    """A copy of a scorer for one of two classes that scores ``positive``, not the label 1."""
    takes = "pos_label" in signature(scorer._score_func).parameters
    averaged = scorer._kwargs.get("average", "binary") != "binary"
    if positive is None or not takes or averaged or "pos_label" in scorer._kwargs:
        return scorer
    one = copy(scorer)
    one._kwargs = {**scorer._kwargs, "pos_label": positive}
    return one


def _fault(scorer: Any, predicted: _Predicted, y: AnyArray) -> str | None:
    """Why a scorer of scikit-learn cannot score predictions of such targets; None if it can."""
    try:
        with catch_warnings(action="ignore"):
            scorer(predicted, np.arange(len(y))[:, None], y)
    except (TypeError, ValueError, AttributeError) as error:
        return str(error).rstrip(".")
    return None


def _is_own(name: str, scorer: Any) -> bool:
    parts = ("_score_func", "_sign", "_kwargs")
    return all(getattr(scorer, part) == getattr(OWN[name], part) for part in parts)


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
    def perfectly(cls, model: Any, y: AnyArray, labels: AnyArray | None) -> _Predicted:
        """The right classes, with probabilities if a model has them; numbers a little larger."""
        if labels is None:
            return cls(y + 0.5, None)  # above zero if y is not below
        indices = np.searchsorted(labels, y)
        certain = np.eye(len(labels))[indices]
        outputs = 2.0 * (certain[:, 1] if len(labels) == 2 else certain) - 1.0
        return cls(outputs, labels, indices, certain if hasattr(model, "predict_proba") else None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    def predict(self, X: AnyArray) -> AnyArray:
        if self.classes_ is None or self.indices is None:
            return np.asarray(self.outputs[X[:, 0]])
        return np.asarray(self.classes_[self.indices[X[:, 0]]])

    def decision_function(self, X: AnyArray) -> Array:
        return self.outputs[X[:, 0]]

    def predict_proba(self, X: AnyArray) -> Array:
        if self.probabilities is None:
            raise AttributeError("there are no probabilities")
        return np.asarray(self.probabilities[X[:, 0]])
