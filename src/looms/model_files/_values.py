"""Checks of single attributes of a model: numbers and indices."""

from __future__ import annotations

from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from looms._typing import AnyArray

#: What is taken for a number, which NumPy may have made.
_NUMBERS = {float: Real, int: Integral, bool: bool | np.bool_}


def type_name(kind: Any) -> str:
    """Module and name of a type or function."""
    return f"{kind.__module__}.{kind.__qualname__}"


def require(condition: bool | np.bool_, problem: str) -> None:
    """Raise ValueError with the problem unless the condition holds."""
    if not condition:
        raise ValueError(problem)


def is_of(value: Any, declared: Any) -> bool:
    """True for a value of a declared type, with the elements of tuples, lists and dicts.

    A float may be any real number, and a protocol is not checked.
    """
    kind, parts = get_origin(declared) or declared, get_args(declared)
    if kind is Any or getattr(kind, "_is_protocol", False):
        return True
    if kind in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if kind is Literal:
        return isinstance(value, str) and value in parts
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind])
    if not isinstance(value, kind) or kind not in (tuple, list, dict) or not parts:
        return isinstance(value, kind)
    if kind is dict:
        return all(is_of(key, parts[0]) and is_of(one, parts[1]) for key, one in value.items())
    if kind is tuple and parts[-1] is not Ellipsis:
        return len(value) == len(parts) and all(map(is_of, value, parts))
    return all(is_of(one, parts[0]) for one in value)


def numbers(owner: Any, name: str, *shape: int | None) -> AnyArray:
    """Finite array of this shape; None means any length, no shape a single number."""
    value = getattr(owner, name)
    require(isinstance(value, np.ndarray | np.generic | Real), f"{name} holds no numbers")
    array = np.asarray(value)
    require(array.dtype.kind in "biuf", f"{name} holds no numbers")
    agrees = len(shape) == array.ndim and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    require(agrees, f"{name} has shape {array.shape}, not {shape}")
    require(bool(np.isfinite(array).all()), f"{name} is not finite")
    return array


def positive(owner: Any, name: str, *shape: int | None) -> None:
    """`numbers` that are all positive."""
    require(bool((numbers(owner, name, *shape) > 0).all()), f"{name} is not positive")


def places(owner: Any, name: str, n: int, *shape: int | None, least: int = 0) -> AnyArray:
    """`numbers` that are integers from ``least`` to below ``n``."""
    array = numbers(owner, name, *shape)
    inside = array.dtype.kind in "iu" and bool(((array >= least) & (array < n)).all())
    require(inside, f"{name} points beyond {n}")
    return array


def indices(owner: Any, name: str, n: int) -> AnyArray:
    """Distinct indices below ``n``."""
    array = places(owner, name, n, None)
    require(len(np.unique(array)) == len(array), f"{name} names one twice")
    return array


def index(owner: Any, name: str, n: int) -> None:
    """Index below ``n``."""
    value = getattr(owner, name)
    require(isinstance(value, int | np.integer) and 0 <= value < n, f"{name} points beyond {n}")
