"""Checks of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_known(name: Any, kind: str, known: Iterable[str]) -> None:
    """Raise ValueError, with the known names, unless ``name`` is one of them."""
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"Unknown {kind} {name!r}; known are {', '.join(known)}.")


def check_count(value: Any, name: str, least: int = 1, others: str = "") -> None:
    """Raise ValueError unless ``value`` is an integer from ``least`` on; ``others`` may be too."""
    proper = isinstance(value, Integral) and not isinstance(value, bool)
    if not (proper and int(value) >= least):
        number = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {number}{others}, got {value!r}.")


def check_share(value: Any, name: str) -> None:
    """Raise ValueError unless ``value`` is a number between 0 and 1, both excluded."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}.")


def some_of(values: Any, rows: Any) -> Any:
    """Values of some rows of an array; None of None."""
    return None if values is None else values[rows]


def one_or_many(parameter: Any) -> list[Any]:
    """The members of a list or tuple, or the one thing that is not a list."""
    return list(parameter) if isinstance(parameter, (list, tuple)) else [parameter]


def check_flag(name: str, value: Any) -> None:
    """ValueError unless ``value`` is True or False: a string such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
