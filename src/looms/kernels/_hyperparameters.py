"""Hyper-parameters of kernels and their search bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

#: Bounds as a user gives them, in natural units; None for wide bounds around the start.
Bounds: TypeAlias = tuple[float, float] | Literal["fixed"] | None

#: Advice that several kernels give.
CLOSE_TO_LINEAR = "the kernel is close to linear: add 'linear' to the candidate kernels"
EACH_FOR_ITSELF = (
    "every sample resembles only itself: scale the features if they are not, or try another kernel"
)


@dataclass(frozen=True)
class Hyperparameter:
    """Positive number that tuning may change.

    Attributes
    ----------
    name : as in ``get_params``, with an index if the parameter is a vector.
    value : in natural units; None until it is set from the samples.
    bounds : in natural units; None means wide bounds around the start.
    at_lower, at_upper : what a value on that bound means, with advice; empty if it is harmless.
    tried : further values for the scan for a start to try, if the number has no unit. Empty for
        numbers with a unit, which the scan moves all together.
    feature : number of the feature that it belongs to; None if it is of all features.
    word : what it is to the feature, such as "gamma".
    """

    name: str
    value: float | None
    bounds: tuple[float, float] | None
    at_lower: str = ""
    at_upper: str = ""
    tried: tuple[float, ...] = ()
    feature: int | None = None
    word: str = ""

    def of_feature(self, number: int) -> Hyperparameter:
        """The same for the feature of another number."""
        name = self.name.removesuffix(f"[{self.feature}]") + f"[{number}]"
        return replace(self, name=name, feature=number)

    @property
    def log2(self) -> float:
        """log₂ of the value, the scale on which tuning works."""
        return float(np.log2(concrete(self.value, self.name)))


@dataclass(frozen=True)
class Parameter:
    """Attribute of a kernel that tuning may change: a positive number, or one for each feature.

    Attributes
    ----------
    name : name of the attribute; its bounds are in the attribute ``<name>_bounds``.
    at_lower, at_upper : as for `Hyperparameter`.
    per_feature : word for one number if it holds one for each feature, such as "gamma".
    bounds : default bounds; the upper one is also the largest value allowed.
    tried : as for `Hyperparameter`; the first is the start. Empty if the start depends on the
        samples.

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
    per_feature: str = ""
    bounds: tuple[float, float] | None = None
    tried: tuple[float, ...] = ()

    def is_fixed(self, kernel: object) -> bool:
        """True if the parameter is not tuned."""
        return is_fixed(getattr(kernel, f"{self.name}_bounds"))

    def hyperparameters(self, kernel: object) -> list[Hyperparameter]:
        """Numbers to tune for this parameter of ``kernel``."""
        value = getattr(kernel, self.name)
        bounds = checked_bounds(kernel, f"{self.name}_bounds") or self.bounds
        if self.bounds and bounds and bounds[1] > self.bounds[1]:
            raise ValueError(
                f"{type(kernel).__name__}: {self.name}_bounds go up to {bounds[1]:g}, but beyond "
                f"{self.bounds[1]:g} the function is no longer a kernel."
            )
        advice = self.at_lower, self.at_upper
        if not self.per_feature:
            return [Hyperparameter(self.name, value, bounds, *advice, self.tried)]
        if value is None:
            raise ValueError(
                f"{type(kernel).__name__}: {self.name} is None: fit sets it from the training "
                "samples. Pass numbers."
            )
        return [
            Hyperparameter(
                f"{self.name}[{k}]", float(number), bounds, *advice, (), k, self.per_feature
            )
            for k, number in enumerate(np.atleast_1d(value))
        ]

    def checked(self, kernel: object, n_features: int) -> Any:
        """Checked value of this parameter of ``kernel``; a new array if it is per feature.

        Raises
        ------
        ValueError
            If it is not a positive number, or not one for each feature.
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
            f"Hyper-parameter {name!r} is None: fit sets it from the training samples. To use the "
            "kernel on its own, pass a number, or call started(Samples) first."
        )
    return float(value)


def is_fixed(bounds: Any) -> bool:
    """True if the bounds exclude the hyper-parameter from the search."""
    return isinstance(bounds, str) and bounds == "fixed"


def checked_bounds(owner: object, name: str) -> tuple[float, float] | None:
    """Bounds of a free hyper-parameter; ValueError if they are invalid."""
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
