"""Scores by name: looms' own, in which a rate of errors is a rate of errors, and scikit-learn's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.metrics import (
    check_scoring,
    get_scorer,
    make_scorer,
    recall_score,
    root_mean_squared_error,
    zero_one_loss,
)


def balanced_error_rate(y: Any, predicted: Any) -> float:
    """Mean over the classes in ``y`` of the rate of errors in the class.

    Parameters
    ----------
    y, predicted : (n_samples,) classes.
    """
    labels = np.unique(np.asarray(y))
    return float(1.0 - recall_score(y, predicted, labels=labels, average="macro", zero_division=0))


def weighted_balanced_error_rate(y: Any, predicted: Any, sample_weight: Any = None) -> float:
    """The same of weighted samples; a class whose samples have no weight does not count.

    Parameters
    ----------
    y, predicted : (n_samples,) classes.
    sample_weight : (n_samples,) weights, or None for ones.
    """
    if sample_weight is None:
        return balanced_error_rate(y, predicted)
    seen = np.asarray(sample_weight) > 0
    y, predicted, weight = (np.asarray(v)[seen] for v in (y, predicted, sample_weight))
    recall = recall_score(
        y,
        predicted,
        labels=np.unique(y),
        average="macro",
        zero_division=0,
        sample_weight=weight,
    )
    return float(1.0 - recall)


OWN: dict[str, Any] = {
    "ber": make_scorer(balanced_error_rate),
    "error": make_scorer(zero_one_loss),
    "rmse": make_scorer(root_mean_squared_error),
    "auc": get_scorer("roc_auc"),
    "r2": get_scorer("r2"),
}
#: In runs with weights; the function is a part of a store's key, in runs without as it was.
_WEIGHTED_BER = make_scorer(weighted_balanced_error_rate)


def scorers_of(scoring: Any, estimator: Any, y: Any) -> dict[str, Any]:
    """Scorers by name.

    Parameters
    ----------
    scoring : None, str, callable, iterable of str, or mapping of names to str or callables
        None is "ber" and "auc" for two classes, "ber" and "error" for more, "rmse" and
        "r2" for a regressor.
    estimator : the estimator, which says whether there are classes.
    y : targets.
    """
    if scoring is None:
        scoring = _default(estimator, y)
    if isinstance(scoring, str):
        scoring = [scoring]
    if callable(scoring):
        return {_name_of(scoring): scoring}
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    elif isinstance(scoring, Iterable):
        named = {str(name): name for name in scoring}
    else:
        raise ValueError(f"scoring must be names or callables, got {scoring!r}.")
    if not named:
        raise ValueError("scoring names no score.")
    return {str(name): _scorer(scorer) for name, scorer in named.items()}


def with_weights(scorers: Mapping[str, Any]) -> dict[str, Any]:
    """The scorers of a run with weights: our own take them too."""
    return {
        name: _WEIGHTED_BER if scorer is OWN["ber"] else scorer for name, scorer in scorers.items()
    }


def all_scores(
    scorers: Mapping[str, Any], estimator: Any, X: Any, y: Any, weight: Any = None
) -> dict[str, float]:
    """Every score of a fitted estimator; predictions are made once.

    Parameters
    ----------
    weight : (n_samples,) weights for the scorers that take them, or None.
    """
    weighted = [] if weight is None else [name for name in scorers if takes_weights(scorers[name])]
    own = [name for name in weighted if not _is_scikit_learns(scorers[name])]
    scores = {name: scorers[name](estimator, X, y, sample_weight=weight) for name in own}
    rest = {name: scorer for name, scorer in scorers.items() if name not in weighted}
    if rest:
        scores |= check_scoring(estimator, scoring=rest)(estimator, X, y)
    rest = {name: scorers[name] for name in weighted if name not in own}
    if rest:
        # Who gives weights wants them: scorers by name cannot ask for them by themselves.
        with config_context(enable_metadata_routing=False):
            scores |= check_scoring(estimator, scoring=rest)(estimator, X, y, sample_weight=weight)
    return {name: float(scores[name]) for name in scorers}


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer takes weights, and does not refuse them by its metadata request."""
    if not _is_scikit_learns(scorer):
        return "sample_weight" in inspect.signature(scorer).parameters
    if "sample_weight" not in inspect.signature(scorer._score_func).parameters:
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is not False


def _is_scikit_learns(scorer: Any) -> bool:
    return hasattr(scorer, "_score_func") and hasattr(scorer, "get_metadata_routing")


def _default(estimator: Any, y: Any) -> list[str]:
    if not is_classifier(estimator):
        return ["rmse", "r2"]
    return ["ber", "auc"] if len(np.unique(np.asarray(y))) == 2 else ["ber", "error"]


def _scorer(scorer: Any) -> Callable[..., float]:
    if callable(scorer):
        return scorer  # type: ignore[no-any-return]
    if isinstance(scorer, str) and scorer in OWN:
        return OWN[scorer]  # type: ignore[no-any-return]
    try:
        return get_scorer(scorer)  # type: ignore[no-any-return]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"Unknown score {scorer!r}; known are {', '.join(OWN)}, all that "
            "sklearn.metrics.get_scorer_names() lists, and callables (estimator, X, y)."
        ) from error


def _name_of(scorer: Any) -> str:
    function = getattr(scorer, "_score_func", scorer)
    return str(getattr(function, "__name__", "score"))
