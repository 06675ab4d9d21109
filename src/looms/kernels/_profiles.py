"""Profiles of stationary kernels: functions φ(s) of a scaled distance s ≥ 0 with φ(0) = 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from looms._typing import Array


@dataclass(frozen=True)
class Profile:
    """Function of a scaled distance, with its derivatives.

    Attributes
    ----------
    value : φ(s); may overwrite s.
    decay : −dφ/ds, not negative. Where it is infinite, at s = 0, any number will do, as it is
        multiplied by s. May overwrite s.
    by_shape : ∂φ/∂shape if the profile has a shape parameter; does not change s.
    steep : True if the decay is infinite at s = 0.
    """

    value: Callable[[Array], Array]
    decay: Callable[[Array], Array]
    by_shape: Callable[[Array], Array] | None = None
    steep: bool = False


def _gaussian(s: Array) -> Array:
    np.negative(s, out=s)
    return np.exp(s, out=s)


def _distance(s: Array, factor: float) -> Array:
    """√(factor s), in place."""
    s *= factor
    return np.sqrt(s, out=s)


def _exponential(s: Array) -> Array:
    return _exp_of_minus(_distance(s, 1.0))


def _exponential_decay(s: Array) -> Array:
    r = _distance(s, 1.0)
    decay = 0.5 * _exp_of_minus(r.copy(order="K"))
    return np.divide(decay, r, out=np.zeros_like(r), where=r > 0)


def _matern32(s: Array) -> Array:
    r = _distance(s, 3.0)
    return (1.0 + r) * np.exp(-r)


def _matern32_decay(s: Array) -> Array:
    return 1.5 * _exp_of_minus(_distance(s, 3.0))


def _matern52(s: Array) -> Array:
    r = _distance(s, 5.0)
    return (1.0 + r * (1.0 + r / 3.0)) * np.exp(-r)


def _matern52_decay(s: Array) -> Array:
    r = _distance(s, 5.0)
    return (5.0 / 6.0) * (1.0 + r) * np.exp(-r)


def _exp_of_minus(r: Array) -> Array:
    """exp(−r), in place."""
    np.negative(r, out=r)
    return np.exp(r, out=r)


#: exp(−s).
GAUSSIAN = Profile(_gaussian, _gaussian)
#: By ν [RW06 eq. 4.16, 4.17]; s = (r/ℓ)².
MATERN = {
    0.5: Profile(_exponential, _exponential_decay, steep=True),
    1.5: Profile(_matern32, _matern32_decay),
    2.5: Profile(_matern52, _matern52_decay),
}


def power_exponential(power: float) -> Profile:
    """Profile exp(−s^(power/2)) with the power as its shape.

    Its derivatives use log s, replaced by zero at s = 0: times the factors that come with them,
    both derivatives tend to zero there.
    """
    half = 0.5 * power

    def value(s: Array) -> Array:
        np.power(s, half, out=s)
        return _exp_of_minus(s)

    def decay(s: Array) -> Array:
        logs = _logs(s)
        result: Array = np.exp((half - 1.0) * logs - np.exp(half * logs))
        result *= half
        return result

    def by_shape(s: Array) -> Array:
        logs = _logs(s)
        powers = half * logs
        result: Array = np.exp(powers - np.exp(powers))
        result *= -0.5 * logs
        return result

    return Profile(value, decay, by_shape, steep=power < 2)


def _logs(s: Array) -> Array:
    """log s, and zero for s = 0."""
    return np.log(s, out=np.zeros_like(s), where=s > 0)
