"""Keywords that the `fit` of an estimator takes: weights and groups of rows."""

from __future__ import annotations

from inspect import Parameter, signature
from numbers import Real
from typing import Any

from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from looms.folds import splits_groups
from looms.kernels._names import is_estimator
from looms.threshold import as_rule


def last_step(estimator: Any) -> tuple[str, Any]:
    """Prefix of what `fit` passes to the last step of a pipeline, also inside of another; the step.

    Of any other estimator, "" and itself.
    """
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def takes_sample_weight(estimator: Any) -> bool:
    """True if the estimator, or the last step of a pipeline, can weigh samples."""
    _, last = last_step(estimator)
    if has_fit_parameter(last, "sample_weight"):
        return True
    inner = _inner(last)
    return bool(inner) and all(map(takes_sample_weight, inner))


def takes_groups(estimator: Any) -> bool:
    """True if the estimator, or the last step of a pipeline, tunes itself by groups of rows."""
    _, last = last_step(estimator)
    if isinstance(last, BaseSearchCV):
        return splits_groups(last.cv)
    inner = _inner(last)
    return bool(has_fit_parameter(last, "groups") or (inner and all(map(takes_groups, inner))))


def _inner(estimator: Any) -> list[Any]:
    """Estimators that an estimator passes the keywords of its `fit` on to."""
    kinds = {each.kind for each in signature(estimator.fit).parameters.values()}
    if Parameter.VAR_KEYWORD not in kinds:
        return []
    alone = (getattr(estimator, name, None) for name in ("estimator", "regressor", "classifier"))
    return [one for one in alone if one is not None] or [
        one for _, one in getattr(estimator, "estimators", ())
    ]


def takes_weight(model: Any) -> bool:
    """False for a model with a metric, for its threshold, or an estimator without weights."""
    rule, candidates = getattr(model, "threshold", 0.5), getattr(model, "candidates", "auto")
    estimators = [] if isinstance(candidates, str) else filter(is_estimator, candidates)
    if not all(map(takes_sample_weight, estimators)):
        return False
    return isinstance(rule, Real) or as_rule(rule).takes_weight
