"""Arguments of `fit` besides the data: weights and groups of samples, for any estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from numbers import Real
from typing import Any

import numpy as np
import sklearn
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegressionCV, RANSACRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import PredefinedSplit
from sklearn.model_selection._classification_threshold import BaseThresholdClassifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._split import _CVIterableWrapper
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.fixes import parse_version
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from looms._typing import AnyArray, Array
from looms._words import one_line
from looms.folds import splits_groups
from looms.kernels._names import is_estimator
from looms.threshold import threshold_rule

#: Attributes in which estimators that pass on the arguments of `fit` keep their recipient.
_INNER = ("estimator", "regressor", "final_estimator")
_BAGGING = (BaggingClassifier, BaggingRegressor)
#: They draw rows by their weights, which the estimators inside of them need not take.
_DRAWING = _BAGGING if parse_version(sklearn.__version__) >= parse_version("1.8") else ()
#: Estimators that pass on arguments by metadata routing alone, though `fit` takes any name.
_BY_ROUTING = (
    *(RFECV, SequentialFeatureSelector, BaseThresholdClassifier, SelfTrainingClassifier),
    *(ClassifierChain, RegressorChain, OneVsRestClassifier, OneVsOneClassifier),
    *(OutputCodeClassifier, RANSACRegressor, *_BAGGING),
)
#: Splitters whose splits hold numbers of rows.
_OF_GIVEN_ROWS = (PredefinedSplit, _CVIterableWrapper)
#: Names of arguments of `fit`.
_Names = frozenset[str]
_NONE: _Names = frozenset()


def fit_arguments(
    estimator: Any, *, sample_weight: Array | None = None, groups: AnyArray | None = None
) -> dict[str, AnyArray]:
    """Arguments of `fit`, by metadata routing if it is enabled, else by name.

    Groups are ignored if nothing takes them.

    Raises
    ------
    ValueError
        If the estimator takes no weights or, with routing, does not ask for them or does not say
        whether it does; or if it is tuned by groups of rows, but gets none.
    """
    arguments = _taken(estimator, sample_weight=sample_weight, groups=groups)
    names = {name.rpartition("__")[2] for name in arguments}
    if sample_weight is not None and "sample_weight" not in names:
        if get_config()["enable_metadata_routing"] and _names(estimator, "sample_weight"):
            raise ValueError(
                f"Metadata routing is enabled, and nothing in {type(estimator).__name__} asks for "
                "sample_weight in fit: call set_fit_request(sample_weight=True) on the step that "
                "takes them, or leave the weights out."
            )
        raise ValueError(
            f"{one_line(estimator)} takes no sample_weight in fit: leave weights of rows and "
            "classes out, or take another estimator."
        )
    if "groups" not in names and _splits_groups(estimator):
        why = "but gets none: give groups, or" if groups is None else "but its fit hands on none:"
        raise ValueError(f"{one_line(estimator)} is tuned by groups, {why} take another cv.")
    return arguments


def check_fit(estimator: Any, weight: Array | None, groups: AnyArray | None) -> None:
    """ValueError for an estimator that cannot be fitted with these weights and groups.

    ``weight`` and ``groups``, (n,), are of the rows of its fit, or None. It is also fitted to some
    of the rows, so it may not be tuned by the numbers of given rows; and it keeps a model.
    """
    for part in all_parts(estimator):
        if isinstance(part, BaseSearchCV) and not part.refit:
            raise ValueError(f"{one_line(estimator)} keeps no model of its search: set refit=True.")
    for name, cv in _splitters(estimator).items():
        given = isinstance(cv, Iterable) and not isinstance(cv, str)
        if given or isinstance(cv, _OF_GIVEN_ROWS):
            raise ValueError(
                f"{one_line(estimator)} is tuned by splits of given rows, {name}, but is fitted to "
                "some of the rows, where their numbers name others: give a number of folds or a "
                "splitter, such as KFold."
            )
    with ready(estimator) as one:
        fit_arguments(one, sample_weight=weight, groups=groups)


def fit_takes_weights(estimator: Any) -> bool:
    """True if `fit` takes sample_weight: by name, or by routing if it is enabled."""
    try:
        return bool(_taken(estimator, sample_weight=np.ones(1)))
    except (TypeError, ValueError):
        return False


def model_takes_weights(model: Any) -> bool:
    """False for a model with a metric, for its threshold, or an estimator without weights."""
    rule, candidates = getattr(model, "threshold", 0.5), getattr(model, "candidates", "auto")
    for estimator in () if isinstance(candidates, str) else filter(is_estimator, candidates):
        with ready(estimator) as one:
            if not fit_takes_weights(one):
                return False
    return isinstance(rule, Real) or threshold_rule(rule).takes_weight


@contextmanager
def ready(estimator: Any) -> Iterator[Any]:
    """A clone, in the context of its fit: by name, since steps need not ask for weights.

    By metadata routing if it is enabled and something in the estimator says whether it takes
    weights; or if groups reach what is tuned by them in no other way, with weights as by name.
    """
    consumed, decided = None, False
    # Some have no routing, and RidgeCV and MultiTaskLasso a faulty one.
    with suppress(NotImplementedError, RecursionError, ValueError):
        consumed = get_routing_for_object(estimator).consumes("fit", ("sample_weight", "groups"))
    if consumed is not None and get_config()["enable_metadata_routing"]:
        parts = [part for part in all_parts(estimator) if isinstance(part, BaseEstimator)]
        requests = [part._get_metadata_request().fit.requests for part in parts]
        decided = any(of_part.get("sample_weight") is not None for of_part in requests)
    alone = _splits_groups(estimator) and not _names(estimator, "groups")
    by_groups = alone and "groups" in (consumed or ())
    with config_context(enable_metadata_routing=decided or by_groups):
        one = clone(estimator)
        if by_groups and not decided:
            _ask_for_weights(one, bool(_names(one, "sample_weight")))
        yield one


def route(estimator: Any) -> str | None:
    """Metadata routing of an estimator; None if not enabled."""
    if not get_config()["enable_metadata_routing"]:
        return None
    return repr(get_routing_for_object(estimator))


def _taken(estimator: Any, **given: AnyArray | None) -> dict[str, AnyArray]:
    """Arguments of `fit` by which weights and groups arrive; without those that do not."""
    metadata = {what: values for what, values in given.items() if values is not None}
    if get_config()["enable_metadata_routing"]:
        router = MetadataRouter(owner="looms").add(
            estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )
        routed = router.route_params(caller="fit", params=metadata)["estimator"]["fit"]
        return {what: values for what, values in metadata.items() if what in routed}
    return {name: metadata[what] for what in metadata for name in sorted(_names(estimator, what))}


def _ask_for_weights(estimator: Any, asks: bool) -> None:
    """Request weights by routing for what gets them by name: of a pipeline the last step."""
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            _ask_for_weights(step, asks and step is estimator.steps[-1][1])
    elif isinstance(estimator, BaseEstimator):
        requests = estimator._get_metadata_request()
        if "sample_weight" in requests.fit.requests:
            estimator.set_fit_request(sample_weight=asks)
        if "sample_weight" in requests.score.requests:
            estimator.set_score_request(sample_weight=False)
        weighs, scoring = isinstance(estimator, LogisticRegressionCV), _scoring(estimator)
        if scoring is not None:  # searches do not weigh their scores
            estimator.set_params(scoring=scoring.set_score_request(sample_weight=asks and weighs))
        for part in _inside(estimator):
            _ask_for_weights(part, asks and not isinstance(estimator, _BAGGING))


def _scoring(estimator: Any) -> Any:
    """Scorer of an estimator that is tuned; None for its own score, or any function."""
    scoring = getattr(estimator, "scoring", None)
    if isinstance(estimator, LogisticRegressionCV) and scoring in (None, "warn"):
        scoring = "accuracy"
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    return scorer if hasattr(scorer, "set_score_request") else None


def _splits_groups(estimator: Any) -> bool:
    """True if the estimator, or one inside of it, is tuned by groups of rows."""
    return any(map(splits_groups, _splitters(estimator).values()))


def _splitters(estimator: Any) -> dict[str, Any]:
    """What an estimator, and those inside of it, are tuned by, by the names of the parameters."""
    parameters = estimator.get_params().items()
    return {name: cv for name, cv in parameters if name.rpartition("__")[2] == "cv"}


def all_parts(estimator: Any) -> list[Any]:
    """An estimator and the values of its parameters, those of estimators inside of it too."""
    return [estimator, *estimator.get_params().values()]


def _may_split_groups(cv: Any) -> bool:
    """False for what ignores groups with a warning, as folds by number do."""
    own = hasattr(cv, "split") and not hasattr(cv, "get_metadata_routing")  # does not say
    return own or splits_groups(cv)


def _names(estimator: Any, what: str) -> _Names:
    """Arguments of `fit` that take weights, which all inside of an estimator must take, or groups,
    which any step, search or splitter takes."""
    weighs = what == "sample_weight"
    if isinstance(estimator, Pipeline):
        steps = estimator.steps[-1:] if weighs else estimator.steps
        return frozenset(f"{step}__{name}" for step, part in steps for name in _names(part, what))
    own, inner = frozenset({what}), {_names(part, what) for part in _inside(estimator)}
    if not weighs and isinstance(estimator, BaseSearchCV | RFECV):
        own = own if _may_split_groups(estimator.cv) else _NONE
        return own.union(*inner) if isinstance(estimator, BaseSearchCV) else own
    if has_fit_parameter(estimator, what):
        return own if not weighs or isinstance(estimator, _DRAWING) or inner <= {own} else _NONE
    if hasattr(estimator, "estimators"):  # votes and stacks
        return own if weighs and inner <= {own} else _NONE
    if len(inner) != 1 or isinstance(estimator, _BY_ROUTING):
        return _NONE
    taken = inspect.signature(estimator.fit).parameters.values()  # a search, say, hands on all
    return inner.pop() if any(one.kind is one.VAR_KEYWORD for one in taken) else _NONE


def _inside(estimator: Any) -> list[Any]:
    """Estimators inside of one, which they are fitted by."""
    parts = [getattr(estimator, name, None) for name in _INNER]
    parts += [part for _, part in getattr(estimator, "estimators", None) or []]
    if isinstance(estimator, TransformedTargetRegressor) and estimator.regressor is None:
        parts.append(LinearRegression())
    return [part for part in parts if hasattr(part, "fit")]
