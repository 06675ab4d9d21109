"""Hyper-parameters of kernels and the bounds of their search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

#: As a user gives them, natural units; None for wide bounds around the start.
Bounds: TypeAlias = tuple[float, float] | Literal["fixed"] | None


@dataclass(frozen=True)
class Hyperparameter:
    """One positive number that tuning may change.

    Attributes
    ----------
    name : as in ``get_params``, with an index where the parameter is a vector.
    value : in natural units; None while it waits for the data.
    bounds : natural units; None means wide bounds around the start.
    at_lower, at_upper : what a value on that bound means and what to do about it;
        empty where it is nothing to worry about.
    """

    name: str
    value: float | None
    bounds: tuple[float, float] | None
    at_lower: str = ""
    at_upper: str = ""

    @property
    def log2(self) -> float:
        """log₂ of the value, the unit that tuning works in."""
        return float(np.log2(concrete(self.value, self.name)))


def concrete(value: float | None, name: str) -> float:
    """A value that no longer waits for the data, or an error that says how to get it."""
    if value is None:
        raise ValueError(
            f"Hyper-parameter {name!r} waits for the data: give it a value, or call started() "
            "with samples first."
        )
    return float(value)


def is_fixed(bounds: Any) -> bool:
    """Whether bounds take their hyper-parameter out of the search."""
    return isinstance(bounds, str) and bounds == "fixed"


def checked_bounds(owner: object, name: str) -> tuple[float, float] | None:
    """The bounds of a free hyper-parameter, or an error that names kernel and argument."""
    bounds = getattr(owner, name)
    if bounds is None:
        return None
    try:
        low, high = (float(b) for b in bounds)
        valid = 0 < low <= high < np.inf
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"{type(owner).__name__}: {name} must be None, 'fixed' or a pair of positive "
            f"numbers (low, high), got {bounds!r}."
        )
    return low, high
