"""Arguments of `fit` besides the data: weights and groups of samples, for any estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import RFECV
from sklearn.model_selection import PredefinedSplit
from sklearn.model_selection._classification_threshold import BaseThresholdClassifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._split import _CVIterableWrapper
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object

from looms._typing import AnyArray, Array
from looms._words import one_line
from looms.folds import splits_groups
from looms.kernels._names import is_estimator
from looms.threshold import as_rule

#: Attributes in which estimators that pass on the arguments of `fit` keep their recipient.
_INNER = ("estimator", "regressor", "final_estimator")
#: Estimators that pass on arguments by metadata routing alone, though `fit` takes any name.
_BY_ROUTING = (
    *(RFECV, BaseThresholdClassifier, SelfTrainingClassifier, ClassifierChain, RegressorChain),
    *(OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier),
)
#: Splitters whose splits hold numbers of rows.
_OF_GIVEN_ROWS = (PredefinedSplit, _CVIterableWrapper)


def fit_arguments(
    estimator: Any, *, sample_weight: Array | None = None, groups: AnyArray | None = None
) -> dict[str, AnyArray]:
    """Arguments of `fit`, by metadata routing if it is enabled, else by name.

    Groups are ignored if nothing takes them.

    Raises
    ------
    ValueError
        If the estimator takes no weights or, with routing, does not ask for them or does not say
        whether it does.
    """
    given = {"sample_weight": sample_weight, "groups": groups}
    metadata = {what: values for what, values in given.items() if values is not None}
    if get_config()["enable_metadata_routing"]:
        router = MetadataRouter(owner="looms").add(
            estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )
        routed = router.route_params(caller="fit", params=metadata)["estimator"]["fit"]
        if sample_weight is not None and "sample_weight" not in routed:
            raise ValueError(
                f"Metadata routing is enabled, and nothing in {type(estimator).__name__} asks for "
                "sample_weight in fit: call set_fit_request(sample_weight=True) on the step that "
                "takes them, or leave the weights out."
            )
        return {what: values for what, values in metadata.items() if what in routed}
    names = {what: _names(estimator, what) for what in metadata}
    if sample_weight is not None and not names["sample_weight"]:
        raise ValueError(
            f"{one_line(estimator)} takes no sample_weight in fit: leave weights of rows and "
            "classes out, or take another estimator."
        )
    return {name: metadata[what] for what in metadata for name in sorted(names[what])}


def check_groups(estimator: Any, groups: AnyArray | None) -> None:
    """ValueError for an estimator that is tuned by groups of rows, but gets none."""
    handed_on = bool(fit_arguments(estimator, groups=groups))
    if not handed_on and _splits_groups(estimator):
        remedy = "give groups" if groups is None else "tune it by GridSearchCV"
        raise ValueError(
            f"{one_line(estimator)} is tuned by groups, but gets none: {remedy}, or take another "
            "cv."
        )


def check_tuning(estimator: Any) -> None:
    """ValueError for an estimator that is tuned by the numbers of given rows, or keeps no model.

    It is fitted to some of the rows, where these numbers name others.
    """
    parameters = estimator.get_params()
    for part in (estimator, *parameters.values()):
        if isinstance(part, BaseSearchCV) and not part.refit:
            raise ValueError(f"{one_line(estimator)} keeps no model of its search: set refit=True.")
    for name, cv in parameters.items():
        given = isinstance(cv, Iterable) and not isinstance(cv, str)
        if name.rpartition("__")[2] == "cv" and (given or isinstance(cv, _OF_GIVEN_ROWS)):
            raise ValueError(
                f"{one_line(estimator)} is tuned by splits of given rows, {name}, but is fitted to "
                "some of the rows, where their numbers name others: give a number of folds or a "
                "splitter, such as KFold."
            )


def takes_weights(estimator: Any) -> bool:
    """True if `fit` takes sample_weight: by name, or by routing if it is enabled."""
    try:
        return bool(fit_arguments(estimator, sample_weight=np.ones(1)))
    except (TypeError, ValueError):
        return False


def takes_weight(model: Any) -> bool:
    """False for a model with a metric, for its threshold, or an estimator without weights."""
    rule, candidates = getattr(model, "threshold", 0.5), getattr(model, "candidates", "auto")
    for one in () if isinstance(candidates, str) else filter(is_estimator, candidates):
        with routing_of(one):
            if not takes_weights(one):
                return False
    return isinstance(rule, Real) or as_rule(rule).takes_weight


def routing_of(estimator: Any) -> Any:
    """Context in which looms fits an estimator: by name, for steps need not ask for weights.

    By metadata routing if it is enabled and something in the estimator asks for weights, or if
    groups reach what is tuned by them in no other way.
    """
    enabled, asked = get_config()["enable_metadata_routing"], set()
    alone = _splits_groups(estimator) and not _names(estimator, "groups")
    if enabled or alone:
        with suppress(NotImplementedError, RecursionError):  # without routing; RidgeCV's own fault
            both = ("sample_weight", "groups")
            asked = get_routing_for_object(estimator).consumes("fit", both)
    routed = (enabled and "sample_weight" in asked) or (alone and "groups" in asked)
    return config_context(enable_metadata_routing=routed)


def route(estimator: Any) -> str | None:
    """Metadata routing of an estimator; None if not enabled."""
    if not get_config()["enable_metadata_routing"]:
        return None
    return repr(get_routing_for_object(estimator))


def _splits_groups(estimator: Any) -> bool:
    """True if the estimator, or one inside of it, is tuned by groups of rows."""
    parameters = estimator.get_params().items()
    return any(splits_groups(cv) for name, cv in parameters if name.rpartition("__")[2] == "cv")


def _may_split_groups(cv: Any) -> bool:
    """False for what ignores groups with a warning, as folds by number do."""
    own = hasattr(cv, "split") and not hasattr(cv, "get_metadata_routing")  # does not say
    return own or splits_groups(cv)


def _names(estimator: Any, what: str) -> frozenset[str]:
    """Arguments of `fit` that take weights or groups; weights of a pipeline are its last step's."""
    if isinstance(estimator, Pipeline):
        steps = estimator.steps if what == "groups" else estimator.steps[-1:]
        return frozenset(f"{step}__{name}" for step, part in steps for name in _names(part, what))
    if not hasattr(estimator, "fit"):
        return frozenset()
    parameters = inspect.signature(estimator.fit).parameters
    named, own = what in parameters, frozenset({what})
    if not named and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        return frozenset()
    if what == "groups" and isinstance(estimator, BaseSearchCV | RFECV):
        named = _may_split_groups(estimator.cv)
    only = what == "groups" and named and not isinstance(estimator, BaseSearchCV)
    if only or isinstance(estimator, _BY_ROUTING):
        return own if named else frozenset()
    inner = [getattr(estimator, name, None) for name in _INNER]
    parts = [part for _, part in getattr(estimator, "estimators", None) or []]
    names = {_names(part, what) for part in (*inner, *parts) if hasattr(part, "fit")}
    if what == "groups" and named:  # a search, also for its splitter
        return own.union(*names)
    if not (named or parts) and len(names) == 1:  # a search or a transformed target hands on all
        return names.pop()
    known = named or parts or isinstance(estimator, TransformedTargetRegressor)  # by default linear
    return own if what == "sample_weight" and known and names <= {own} else frozenset()
