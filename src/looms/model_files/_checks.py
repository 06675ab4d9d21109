"""Checks of a model that was read, at any depth."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from looms.model_files._types import TYPES
from looms.model_files._values import require, type_name

_CONTAINERS = (list, tuple, set)
_PLAIN = (str, int, float, bool, type(None), slice, np.generic, np.dtype)
_SPARSE = (sparse.csr_array, sparse.csr_matrix)
#: Attributes that hold a type or a function, which the check of their owner knows.
_KNOWN_TO_OWNER = {"dtype", "func"}


def check_fitted(model: Any, trusted: Collection[str] = ()) -> None:
    """Check all parts of a model, at any depth.

    Parameters
    ----------
    model : estimator
        Fitted or not.
    trusted : names of further types that the caller admits, whose state has no check.

    Raises
    ------
    ValueError
        If shapes do not agree, numbers are out of range or not finite, indices are out of range,
        an attribute hides a method, or there is an object of a type that no fit stores.
    """
    waiting, done = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in done:
            continue
        done.add(id(part))
        try:
            waiting += _checked(part, trusted)
        except Exception as error:  # a file may hold anything where a fit leaves an array
            problem = str(error) if isinstance(error, ValueError) else repr(error)
            raise ValueError(f"{type(part).__name__}: {problem}") from error


def _checked(part: Any, trusted: Collection[str]) -> list[Any]:
    """Parts of a part that passed its own check."""
    kind = type(part)
    name = type_name(part if kind is type else kind)
    if kind is dict:
        return [*part.keys(), *part.values()]
    if kind in _CONTAINERS:
        return list(part)
    if kind in _SPARSE:
        part.check_format(full_check=True)
        return [part.data]
    if kind is np.ndarray and part.dtype == object:
        return part.ravel().tolist()  # type: ignore[no-any-return]
    if kind is np.ndarray:
        proper = part.dtype.kind in "biufUMm" and part.dtype.itemsize > 0
        require(proper or name in trusted, f"an array of {part.dtype}")
        return []
    if isinstance(part, _PLAIN) or name == "looms.optimize._search.Outcome":
        return []
    require(name in TYPES or name in trusted, f"{name} is of another kind than a fit leaves")
    state = getattr(part, "__dict__", {})
    for attribute in state:
        require(not callable(getattr(kind, attribute, None)), f"{attribute} hides a method")
    if isinstance(part, BaseEstimator):
        _check_features(state)
        if hasattr(kind, "_parameter_constraints"):
            part._validate_params()
    held = TYPES.get(name)
    if held and held.check:
        held.check(part)
    return [value for attribute, value in state.items() if attribute not in _KNOWN_TO_OWNER]


def _check_features(state: dict[str, Any]) -> None:
    """Check that there are as many names of features as features."""
    n = state.get("n_features_in_", 1)
    require(type(n) is int and n > 0, "n_features_in_ is no number of features")
    if "feature_names_in_" in state:
        names = state["feature_names_in_"]
        proper = isinstance(names, np.ndarray) and names.shape == (n,) and names.dtype == object
        proper = proper and all(isinstance(one, str) for one in names)
        require(proper, f"feature_names_in_ does not name {n} features")
