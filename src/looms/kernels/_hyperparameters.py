"""Hyper-parameters of kernels and the bounds of their search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

#: As a user gives them, natural units; None for wide bounds around the start.
Bounds: TypeAlias = tuple[float, float] | Literal["fixed"] | None

#: Advice that several kernels give.
CLOSE_TO_LINEAR = "the kernel is close to linear: add 'linear' to the candidate kernels"
EACH_FOR_ITSELF = "every sample resembles only itself: scale the features, or try another kernel"


@dataclass(frozen=True)
class Hyperparameter:
    """Positive number that tuning may change.

    Attributes
    ----------
    name : as in ``get_params``, with an index where the parameter is a vector.
    value : in natural units; None until it is set from the samples.
    bounds : natural units; None means wide bounds around the start.
    at_lower, at_upper : meaning of a value on that bound, and advice; empty if harmless.
    tried : of a number without a unit, values that the scan for a start tries besides its own. A
        number with a unit has none: the scan moves all of these together.
    """

    name: str
    value: float | None
    bounds: tuple[float, float] | None
    at_lower: str = ""
    at_upper: str = ""
    tried: tuple[float, ...] = ()

    @property
    def log2(self) -> float:
        """log₂ of the value, the unit that tuning works in."""
        return float(np.log2(concrete(self.value, self.name)))


@dataclass(frozen=True)
class Parameter:
    """Attribute of a kernel that tuning may change: a positive number, or one for each feature.

    Attributes
    ----------
    name : of the attribute; ``<name>_bounds`` is that of its bounds.
    at_lower, at_upper : as of `Hyperparameter`.
    per_feature : True if it holds a number for each feature.
    bounds : bounds unless others are given; the upper one is also the largest value.
    tried : as of `Hyperparameter`; the first is the start. Empty if that depends on the samples.

    Examples
    --------
    >>> from looms.kernels import RBF, Parameter
    >>> gamma = Parameter("gamma")
    >>> gamma.is_fixed(RBF(0.5, gamma_bounds="fixed"))
    True
    """

    name: str
    at_lower: str = ""
    at_upper: str = ""
    per_feature: bool = False
    bounds: tuple[float, float] | None = None
    tried: tuple[float, ...] = ()

    def is_fixed(self, kernel: object) -> bool:
        """True if the parameter is not tuned."""
        return is_fixed(getattr(kernel, f"{self.name}_bounds"))

    def hyperparameters(self, kernel: object) -> list[Hyperparameter]:
        """The parameter in ``kernel`` as numbers to tune."""
        value = getattr(kernel, self.name)
        bounds = checked_bounds(kernel, f"{self.name}_bounds") or self.bounds
        if self.bounds and bounds and bounds[1] > self.bounds[1]:
            raise ValueError(
                f"{type(kernel).__name__}: {self.name}_bounds go up to {bounds[1]:g}, beyond "
                f"{self.bounds[1]:g}, where it is no kernel any more."
            )
        advice = self.at_lower, self.at_upper
        if not self.per_feature:
            return [Hyperparameter(self.name, value, bounds, *advice, self.tried)]
        if value is None:
            raise ValueError(
                f"{type(kernel).__name__}: {self.name} are None: they are set from the training "
                "samples in fit. Pass numbers."
            )
        return [
            Hyperparameter(f"{self.name}[{k}]", float(number), bounds, *advice)
            for k, number in enumerate(np.atleast_1d(value))
        ]

    def checked(self, kernel: object, n_features: int) -> Any:
        """Value of the parameter in ``kernel``, an array of its own if it is one a feature.

        Raises
        ------
        ValueError
            Unless it is a positive number, or one for each feature.
        """
        name, value = f"{type(kernel).__name__}: {self.name}", getattr(kernel, self.name)
        if not self.per_feature:
            largest = self.bounds[1] if self.bounds else np.inf
            number = isinstance(value, (int, float, np.integer, np.floating))
            if not (number and 0 < value <= largest and value < np.inf):
                limit = f" up to {largest:g}" if self.bounds else ""
                raise ValueError(f"{name} must be a positive number{limit}, got {value!r}.")
            return value
        try:
            numbers = np.array(value, dtype=np.float64, ndmin=1)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be positive numbers, got {value!r}.") from None
        if numbers.shape == (1,):
            numbers = np.full(n_features, numbers[0])
        if numbers.shape != (n_features,):
            raise ValueError(
                f"{name} must hold one number for each of the {n_features} features, got shape "
                f"{numbers.shape}."
            )
        if not (np.isfinite(numbers).all() and (numbers > 0).all()):
            raise ValueError(f"{name} must be positive numbers.")
        return numbers


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
