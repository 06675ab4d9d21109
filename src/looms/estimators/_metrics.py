"""Scores by name, and scorers of held-out predictions, as scikit-learn means ``scoring``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from typing import Any, Self, TypeAlias
from warnings import catch_warnings

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import (
    cohen_kappa_score,
    get_scorer,
    get_scorer_names,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_squared_error,
    roc_auc_score,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _is_fitted

from looms._advice import setting
from looms._checks import check_known
from looms._classes import class_indices
from looms._scores import ValuesAndErrors, ranked_probability_scores
from looms._typing import AnyArray, Array
from looms._words import listed
from looms.criteria import mean_class_error
from looms.estimators._targets import order_of
from looms.estimators._warnings import warn
from looms.fitted._outcome import Outcome
from looms.scores import Scores
from looms.selection._fold_pairs import pair_auc

#: Function ``(estimator, X, y)``; some also take ``sample_weight``.
Scorer: TypeAlias = Callable[..., float]


def balanced_accuracy(y: Any, predicted: Any, sample_weight: Any = None) -> float:
    """Mean over the classes in ``y``, or of positive weight, of the share predicted right."""
    labels = np.unique(y, return_inverse=True)[1]
    return 1.0 - mean_class_error(labels, np.asarray(y) != np.asarray(predicted), sample_weight)


def roc_auc(y: Any, outputs: Array, sample_weight: Any = None, labels: Any = None) -> float:
    """Area under the ROC curve; mean over those of several classes in ``y`` against the rest.

    The classes are the ``labels``, one for each column of ``outputs``; None for two classes.
    """
    if labels is None:
        return float(roc_auc_score(y, outputs, sample_weight=sample_weight))
    if np.shape(outputs)[1:] != np.shape(labels):
        raise ValueError(f"there is not one output for each of {len(labels)} classes")
    codes = np.where(np.asarray(y)[:, None] == labels, 1.0, -1.0)
    weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    return pair_auc(codes, outputs, [np.arange(len(codes))], [], [], weight)[0]


def root_mean_square_error(y: Any, predicted: Any, sample_weight: Any = None) -> float:
    """Root of the mean square over all rows, and targets."""
    return float(np.sqrt(mean_squared_error(y, predicted, sample_weight=sample_weight)))


def mean_rank_error(y: Any, predicted: Any, sample_weight: Any = None, labels: Any = None) -> float:
    """Mean distance of the ranks of predicted and true classes; ``labels`` are those in order."""
    ranks, of_predicted = (_ranks(values, labels) for values in (y, predicted))
    return float(np.average(np.abs(ranks - of_predicted), weights=sample_weight))


def quadratic_kappa(y: Any, predicted: Any, sample_weight: Any = None, labels: Any = None) -> float:
    """Cohen's kappa with squared distances of ranks; ``labels`` are the classes in order."""
    ranks, of_predicted = (_ranks(values, labels) for values in (y, predicted))
    return float(
        cohen_kappa_score(ranks, of_predicted, weights="quadratic", sample_weight=sample_weight)
    )


def ranked_probability_loss(
    y: Any, probabilities: Array, sample_weight: Any = None, labels: Any = None
) -> float:
    """Mean ranked probability score of columns for the sorted ``labels``, given in order."""
    ranks = _ranks(y, labels)
    by_rank = probabilities[:, np.searchsorted(np.sort(labels), labels)]
    return float(np.average(ranked_probability_scores(ranks, by_rank), weights=sample_weight))


def _ranks(values: Any, labels: Any) -> AnyArray:
    if labels is None:
        raise ValueError("the classes have no order: give an ordered pandas.Categorical")
    order = np.argsort(labels)
    return np.asarray(order[np.searchsorted(labels, np.asarray(values), sorter=order)])


#: Those of ordered classes.
OF_RANKS = (mean_rank_error, quadratic_kappa, ranked_probability_loss)
#: Scorers of the scores of ``evaluate``. Scikit-learn's negate losses and errors, and warn where a
#: class is not among the rows.
OWN: dict[str, Any] = {
    "accuracy": get_scorer("accuracy"),
    "balanced_accuracy": make_scorer(balanced_accuracy),
    "roc_auc": make_scorer(roc_auc, response_method=("decision_function", "predict_proba")),
    "log_loss": make_scorer(log_loss, response_method="predict_proba"),
    "mean_rank_error": make_scorer(mean_rank_error),
    "quadratic_kappa": make_scorer(quadratic_kappa),
    "ranked_probability": make_scorer(ranked_probability_loss, response_method="predict_proba"),
    "rmse": make_scorer(root_mean_square_error),
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
    more = ", and all that sklearn.metrics.get_scorer_names() lists"
    check_known(name, "score", [*OWN, *get_scorer_names()], more, OWN)
    return deepcopy(OWN[name]) if name in OWN else get_scorer(name)


def scorers_of(scoring: Any, model: Any, y: Any, weight: Array | None = None) -> dict[str, Scorer]:
    """Scorers by name for a model of these targets, fitted or not; none for None.

    Parameters
    ----------
    scoring : str, callable ``(estimator, X, y)``, iterable of these, mapping of names to these, or
        None.
    model : estimator, pipeline or search.
    y : targets of the rows.
    weight : (n,) for a score of all rows, each of which has to count by its weight. Those of weight
        zero are not scored.

    Raises
    ------
    TypeError
        For what is neither a name nor a callable ``(estimator, X, y)``.
    ValueError
        For unknown names, for names of scorers that cannot score such predictions, with near ones
        that can, for several scorers of one name, and for scorers that take no ``weight``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import mean_absolute_error
    >>> from looms import KernelClassifier
    >>> from looms.estimators._metrics import scorers_of
    >>> list(scorers_of(["f1", "roc_auc"], KernelClassifier(), np.array(["ill", "well"])))
    ['f1', 'roc_auc']
    >>> scorers_of("f1", KernelClassifier(), np.array(["a", "b", "c"]))
    Traceback (most recent call last):
    ValueError: 'f1' cannot score these 3 classes (...); use 'f1_macro', ...
    >>> scorers_of(mean_absolute_error, KernelClassifier(), np.arange(3))
    Traceback (most recent call last):
    TypeError: scoring takes ... give sklearn.metrics.make_scorer(mean_absolute_error).
    """
    if scoring is None:
        return {}
    alone = isinstance(scoring, str) or not isinstance(scoring, Iterable)
    each = [scoring] if alone else scoring
    named = each.items() if isinstance(each, Mapping) else [(_name(one), one) for one in each]
    order, y = order_of(y), np.asarray(y)
    if weight is not None:
        y, weight = y[weight > 0], weight[weight > 0]
    scorers: dict[str, Scorer] = {}
    for name, one in named:
        if name in scorers:
            raise ValueError(f"Two scorers are called {name!r}: give a dict of other names.")
        scorers[str(name)] = scorer = _suited(one, model, y, order)
        if weight is not None and np.ptp(weight) > 0 and not scorer_takes_weights(scorer):
            raise ValueError(f"{name!r} takes no weights, but the rows have weights.")
    if not scorers:
        raise ValueError("scoring is empty.")
    return scorers


def _name(scorer: Any) -> str:
    function = getattr(scorer, "_score_func", scorer)
    return str(scorer if isinstance(scorer, str) else getattr(function, "__name__", "score"))


def _suited(one: Any, model: Any, y: AnyArray, order: AnyArray | None) -> Any:
    """The scorer of a name, or a given one, for these targets; one of two classes scores the
    positive one. Names of scorers that cannot score such predictions are refused."""
    scorer = named_scorer(one) if isinstance(one, str) else one
    if not callable(scorer):
        raise TypeError(
            f"{setting('scoring')} must be names or callables (estimator, X, y), got {one!r}."
        )
    if _is_metric(scorer):
        raise TypeError(
            f"scoring takes callables (estimator, X, y), and {_name(one)} is one of (y_true, "
            f"y_pred): give sklearn.metrics.make_scorer({_name(one)})."
        )
    of_classes = is_classifier(model) and y.ndim == 1
    if not is_scikit_learns(scorer) or not (is_regressor(model) or of_classes):
        return scorer  # for it to judge
    labels = np.unique(y) if is_classifier(model) else None
    if order is not None and labels is not None:
        order = order[np.isin(order, labels)]
    scorer = _of_classes(scorer, model, labels, order)
    wrong = _fault(scorer, model, y, labels) if isinstance(one, str) else None
    if wrong is None:
        return scorer
    what = "numbers" if labels is None else f"{len(labels)} classes"
    usual = ["r2", "neg_mean_absolute_error"] if labels is None else ["accuracy", "f1_macro"]
    others = {n: _of_classes(get_scorer(n), model, labels, None) for n in get_scorer_names()}
    able = [n for n, other in others.items() if _fault(other, model, y, labels) is None]
    same = [n for n in able if n.startswith(f"{one}_")]
    near = listed(same[:3] or get_close_matches(one, able, 3) or usual)
    raise ValueError(f"{one!r} cannot score these {what} ({wrong}); use {near}.")


def _is_metric(function: Any) -> bool:
    """True for functions ``(y_true, y_pred)``, with options or not."""
    parameters = signature(function).parameters.values()
    needed = (one for one in parameters if one.default is one.empty)
    names = [one.name for one in needed if one.kind < one.VAR_POSITIONAL]
    return names[:1] == ["y_true"] or (len(names) == 2 and names[1] != "X")


def scorer_takes_weights(scorer: Any) -> bool:
    """True if a scorer takes weights, and does not refuse them by its metadata request."""
    if not is_scikit_learns(scorer):
        return "sample_weight" in signature(scorer).parameters
    if "sample_weight" not in signature(scorer._score_func).parameters:
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is not False


def is_scikit_learns(scorer: Any) -> bool:
    """True for scorers that scikit-learn made."""
    return hasattr(scorer, "_score_func") and hasattr(scorer, "get_metadata_routing")


def own_name(scorer: Any) -> str | None:
    """Name of the score of ``evaluate`` that a scorer gives, whatever its own name is."""
    if not is_scikit_learns(scorer) or scorer._kwargs.keys() - {"labels"}:
        return None
    what = scorer._score_func, scorer._response_method, scorer._sign
    same = (n for n, s in OWN.items() if what == (s._score_func, s._response_method, s._sign))
    return next(same, None)


def judged(scores: Scores, scorers: Mapping[str, Scorer], outcome: Outcome) -> Scores:
    """Scores by other scorers of the same held-out predictions; without any the scores themselves.

    Those that the scores have already keep their standard errors; NaN, with a UserWarning, where a
    scorer fails. Over several passes over the rows others are refused: they would judge the mean of
    the predictions, which is better than the models.
    """
    if not scorers:
        return scores
    y, outputs, weight = (each[scores.rows] for each in scores.predictions)
    of_rows = np.arange(len(y))[:, None]
    options = {} if np.ptp(weight) == 0 else {"sample_weight": weight}
    predicted, made = StandIn(outputs), scores.decisions
    if made is not None:
        y, ranks = outcome.values(y), outputs.ndim == 2 or len(outcome.classes) == 2
        predicted = StandIn(outputs, outcome.classes, made.predicted, made.probabilities, ranks)
    values: ValuesAndErrors = {}
    for name, scorer in scorers.items():
        own = own_name(scorer)
        if own is not None and own in scores:
            values[name] = scores.with_errors[own]
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


def _of_classes(scorer: Any, model: Any, labels: AnyArray | None, order: AnyArray | None) -> Any:
    """A copy of a scorer that scores the positive class of two, not the label 1; or the area under
    the curve of several; or ranks by the order of the labels."""
    if labels is None:
        return scorer
    one, options = copy(scorer), scorer._kwargs
    if one._score_func is roc_auc_score and not options:
        one._score_func = roc_auc
    last = _last_of(model)
    if one._score_func in OF_RANKS:
        one._kwargs = {"labels": order}
    elif one._score_func is log_loss:
        one._kwargs = {"labels": labels, **options}
    elif len(labels) > 2:
        of_pairs = getattr(last, "decision_function_shape", None) == "ovo"  # not of classes
        if one._score_func is roc_auc and not of_pairs:
            one._kwargs = {"labels": labels}
    elif "pos_label" in signature(one._score_func).parameters and "pos_label" not in options:
        named = getattr(last, "pos_label", None)
        if options.get("average", "binary") == "binary":
            one._kwargs = {**options, "pos_label": labels[-1] if named is None else named}
    return one


def _fault(scorer: Any, model: Any, y: AnyArray, labels: AnyArray | None) -> str | None:
    """Why a scorer of scikit-learn cannot score predictions of such targets; None if it can.

    Those are the right classes, with the outputs and probabilities that the model has, or both if
    it shows neither before its fit; numbers are a little larger.
    """
    decides = False
    if labels is None:
        order = np.argsort(y.reshape(len(y), -1)[:, 0], kind="stable")
        y = y[order[np.unique(np.linspace(0, len(y) - 1, 50).astype(int))]]  # their range
        room = getattr(getattr(scorer, "_score_func", None), "__module__", "").rpartition(".")[2]
        if room in ("_classification", "_ranking"):
            return "it is for classes"
        predicted = StandIn(y + 0.5)  # above zero if y is not below
    else:
        y, certain = np.tile(labels, 2), np.tile(np.eye(len(labels)), (2, 1))
        outputs = 2.0 * (certain[:, 1] if len(labels) == 2 else certain) - 1.0
        likely, decides = (hasattr(model, name) for name in ("predict_proba", "decision_function"))
        likely = likely or not (decides or _is_fitted(model))
        decides, p = decides or likely, certain if likely else None
        predicted = StandIn(outputs, labels, probabilities=p, decides=decides)
    try:
        with catch_warnings(action="ignore"):
            scorer(predicted, np.arange(len(y))[:, None], y)
    except AttributeError:
        return f"there are no {'probabilities' if decides else 'outputs to rank by'}"
    except (TypeError, ValueError) as error:
        return str(error).rstrip(".")
    return None


class StandIn(BaseEstimator):  # type: ignore[misc]
    """Fitted estimator that returns held-out predictions; a sample is its row number.

    Parameters
    ----------
    outputs : (n,) or (n, n_outputs), of classes less the threshold.
    classes_ : labels; None for numbers.
    indices : (n,) of the predicted classes; by default those of outputs above zero, or the largest.
    probabilities : (n, n_classes), or None.
    decides : False if the outputs are no values of a decision function.
    threshold_ : that was subtracted, for scorers that ask for it.
    """

    def __init__(
        self,
        outputs: Array,
        classes_: AnyArray | None = None,
        indices: AnyArray | None = None,
        probabilities: Array | None = None,
        decides: bool = True,
        threshold_: Any = 0.0,
    ) -> None:
        self.outputs, self.classes_, self.indices = outputs, classes_, indices
        self.probabilities, self.decides, self.threshold_ = probabilities, decides, threshold_

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        return tags

    def predict(self, X: AnyArray) -> AnyArray:
        if self.classes_ is None:
            return np.asarray(self.outputs[X[:, 0]])
        indices = class_indices(self.outputs) if self.indices is None else self.indices
        return np.asarray(self.classes_[indices[X[:, 0]]])

    @available_if(lambda one: one.classes_ is not None and one.decides)  # type: ignore[untyped-decorator]
    def decision_function(self, X: AnyArray) -> Array:
        return np.asarray(self.outputs[X[:, 0]])

    @available_if(lambda one: one.probabilities is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: AnyArray) -> Array:
        return np.asarray(self.probabilities)[X[:, 0]]
