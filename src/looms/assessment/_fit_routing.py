"""Arguments of `fit` besides the data: weights and groups of samples, for any estimator."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.feature_selection import RFECV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object

from looms._typing import AnyArray, Array

#: Attributes in which estimators that pass on the arguments of `fit` keep their recipient.
_INNER = ("estimator", "regressor")


def checked_weights(sample_weight: Any, estimator: Any, n_samples: int) -> Array | None:
    """Weights (n_samples,) that the estimator takes, or None.

    Raises
    ------
    ValueError
        If the weights are not one finite nonnegative number per sample, all are zero, or the
        estimator takes none.
    """
    if sample_weight is None:
        return None
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_samples} samples, but has "
            f"shape {weight.shape}."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and not negative, and not all zero.")
    fit_arguments(estimator, sample_weight=weight)
    return weight


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
        router = MetadataRouter(owner="looms.assess").add(
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
        which = type(estimator).__name__
        if isinstance(estimator, Pipeline):
            which = f"{type(estimator.steps[-1][1]).__name__}, the last step of the pipeline,"
        raise ValueError(
            f"{which} takes no sample_weight in fit: leave the weights out, or take another "
            "estimator."
        )
    return {name: metadata[what] for what in metadata for name in sorted(names[what])}


def takes_in_fit(estimator: Any, what: str) -> bool:
    """True if `fit` takes "sample_weight" or "groups": by name, or by routing if it is enabled."""
    try:
        return bool(fit_arguments(estimator, **{what: np.ones(1)}))
    except (TypeError, ValueError):
        return False


def route(estimator: Any) -> str | None:
    """Metadata routing of an estimator; None if not enabled."""
    if not get_config()["enable_metadata_routing"]:
        return None
    return repr(get_routing_for_object(estimator))


def _names(estimator: Any, what: str) -> frozenset[str]:
    """Arguments of `fit` that take weights or groups; for a pipeline those of its last step."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        return frozenset(f"{step}__{name}" for name in _names(last, what))
    if not hasattr(estimator, "fit"):
        return frozenset()
    parameters = inspect.signature(estimator.fit).parameters
    named = what in parameters
    if not named and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        return frozenset()
    inner = [getattr(estimator, name, None) for name in _INNER]
    inner += [part for _, part in getattr(estimator, "estimators", None) or []]
    names = {_names(part, what) for part in inner if hasattr(part, "fit")}
    if what == "groups" and isinstance(estimator, BaseSearchCV):  # also to its splitter
        return frozenset({what}).union(*names)
    if what == "groups" and (named or isinstance(estimator, RFECV)):
        return frozenset({what})
    if not named and len(names) == 1:  # a search or a transformed target hands on all it is given
        return names.pop()
    if what == "groups" or not names <= {frozenset({what})}:
        return frozenset()
    return frozenset({what})  # an ensemble, to all its parts
