"""Hyper-parameters of kernels and the bounds of their search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

#: As a user gives them, natural units; None for wide bounds around the start.
Bounds: TypeAlias = tuple[float, float] | Literal["fixed"] | None


@dataclass(frozen=True)
class Hyperparameter:
    """Positive number that tuning may change.

    Attributes
    ----------
    name : as in ``get_params``, with an index where the parameter is a vector.
    value : in natural units; None until it is set from the samples.
    bounds : natural units; None means wide bounds around the start.
    at_lower, at_upper : meaning of a value on that bound, and advice; empty if harmless.
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
    """Value of a hyper-parameter; ValueError if it is None."""
    if value is None:
        raise ValueError(
            f"Hyper-parameter {name!r} is None: it is set from the training samples in fit. Pass "
            "a number, or call started(Samples) first, to use the kernel on its own."
        )
    return float(value)


def is_fixed(bounds: Any) -> bool:
    """True if bounds take their hyper-parameter out of the search."""
    return isinstance(bounds, str) and bounds == "fixed"


def checked_bounds(owner: object, name: str) -> tuple[float, float] | None:
    """Bounds of a free hyper-parameter; ValueError if they are not valid."""
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
