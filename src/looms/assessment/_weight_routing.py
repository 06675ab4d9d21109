"""Arguments of `fit` that take weights of samples, for any estimator."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object

from looms._typing import Array

#: Where estimators that hand the arguments of `fit` on keep the one that gets them.
_INNER = ("estimator", "regressor")


def checked_weights(sample_weight: Any, estimator: Any, n_samples: int) -> Array | None:
    """Weights (n_samples,) that the estimator takes, or None.

    Raises
    ------
    ValueError
        If they are not as many finite nonnegative numbers, one of them positive, or the
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
    fit_arguments(estimator, weight)
    return weight


def fit_arguments(estimator: Any, weight: Array) -> dict[str, Array]:
    """Arguments of `fit` with the weights, by metadata routing if it is enabled, else by name.

    Raises
    ------
    ValueError
        If the estimator takes no weights; with routing if it does not ask for them.
    """
    if get_config()["enable_metadata_routing"]:
        router = MetadataRouter(owner="looms.assess").add(
            estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )
        routed = router.route_params(caller="fit", params={"sample_weight": weight})
        if "sample_weight" not in routed["estimator"]["fit"]:
            raise ValueError(
                f"Metadata routing is enabled, and nothing in {type(estimator).__name__} asks for "
                "sample_weight in fit: say so by set_fit_request(sample_weight=True) of what "
                "takes them, or leave the weights out."
            )
        return {"sample_weight": weight}
    name = _name(estimator)
    if name is None:
        which = type(estimator).__name__
        if isinstance(estimator, Pipeline):
            which = f"{type(estimator.steps[-1][1]).__name__}, the last step of the pipeline,"
        raise ValueError(
            f"{which} takes no sample_weight in fit: leave the weights out, or take another "
            "estimator."
        )
    return {name: weight}


def takes_weights_in_fit(estimator: Any) -> bool:
    """True if `fit` takes weights: by name, or by metadata routing if it is enabled."""
    try:
        fit_arguments(estimator, np.ones(1))
    except (TypeError, ValueError):
        return False
    return True


def route(estimator: Any) -> str | None:
    """Metadata routing of weights; None if not enabled."""
    if not get_config()["enable_metadata_routing"]:
        return None
    return repr(get_routing_for_object(estimator))


def _name(estimator: Any) -> str | None:
    """Argument that takes weights; of a pipeline ``step__sample_weight`` of its last step."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        name = _name(last)
        return None if name is None else f"{step}__{name}"
    if not hasattr(estimator, "fit"):
        return None
    parameters = inspect.signature(estimator.fit).parameters
    named = "sample_weight" in parameters
    if not named and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        return None
    inner = [getattr(estimator, name, None) for name in _INNER]
    inner += [part for _, part in getattr(estimator, "estimators", None) or []]
    names = {_name(part) for part in inner if hasattr(part, "fit")}
    if not named and len(names) == 1:  # a search or a transformed target hands on all it is given
        return names.pop()
    return "sample_weight" if names <= {"sample_weight"} else None  # an ensemble, to all its parts
