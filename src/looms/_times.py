"""Times of rows, and a gap between them, without rounding that decides which are within it.

Whole numbers, fractions and dates are compared exactly, floats up to the rounding that they have
been through.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, Self

import numpy as np

from looms._advice import setting
from looms._typing import AnyArray

#: Machine epsilons that a float may be off by: of 3 * 0.1, or of dates as days with fractions.
_EPSILONS = 8
#: Units of dates: months have no fixed length.
_UNITS = {"M": ("months", Fraction(1)), "Y": ("months", Fraction(12))} | {
    unit: ("seconds", Fraction(seconds))
    for unit, seconds in {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}.items()
}
_UNITS |= {
    unit: ("seconds", Fraction(1, 1000**k))
    for k, unit in enumerate(["ms", "us", "ns", "ps", "fs", "as"], 1)
}


def exact_times(values: AnyArray) -> AnyArray | None:
    """Numbers or dates without rounding; None if the values are neither.

    Arrays stay as they are. Objects become dates of numpy, in UTC if they have a time zone, and
    integers or floats; fractions, and whole numbers beyond 64 bits, stay objects.
    """
    if values.dtype.kind in "iufM":
        return values.astype(np.float64) if values.dtype.char == "g" else values
    cells = values.tolist() if values.ndim == 1 and values.dtype == object else []
    if not cells or bool in map(type, cells):
        return None
    if len({getattr(cell, "tzinfo", None) is None for cell in cells}) > 1:
        return None
    exact = [_exact(cell) for cell in cells]
    types = {*map(type, exact)}
    if types == {int}:
        whole = np.array(exact, dtype=object)
        return whole.astype(np.int64) if abs(whole).max() < 2**63 else whole
    if types <= {int, Fraction}:
        return np.array([Fraction(cell) for cell in exact], dtype=object)
    if types <= {int, Fraction, float}:
        return np.array([float(cell) for cell in exact])
    if types != {np.datetime64}:
        return None
    coarse = [moment.astype("M8[us]") for moment in exact]  # which reach further
    return np.array(coarse if coarse == exact else exact)


def _exact(value: Any) -> Any:
    """A number as an integer, fraction or float, a date as one of numpy, and others as they are."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational) or (isinstance(value, Decimal) and value.is_finite()):
        return Fraction(value)
    if isinstance(value, Real | Decimal):
        return float(value)
    if not isinstance(value, date | np.datetime64):
        return value
    if hasattr(value, "to_datetime64"):  # of pandas, in UTC and with nanoseconds
        return np.datetime64(value.to_datetime64())
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value)


def plain_times(values: AnyArray | None, gap: Any) -> tuple[AnyArray | None, Any]:
    """Times and a gap that make the same windows, without fractions: in a smaller unit."""
    times = None if values is None else exact_times(values)
    gap = numpy_gap(gap)
    unit = 1
    if times is not None and times.dtype == object:
        unit = math.lcm(*(time.denominator for time in times))
        times = exact_times(np.array([int(time * unit) for time in times], dtype=object))
    number = _number(gap)
    if number is None:
        return times, gap
    if not isinstance(gap, Rational | Decimal):
        return times, gap * unit
    floats = times is not None and times.dtype.kind == "f"
    return times, float(number) if floats else math.floor(number * unit)


def numpy_gap(gap: Any) -> Any:
    """A duration of Python or pandas as one of numpy; any other gap as it is."""
    if hasattr(gap, "to_timedelta64"):  # of pandas, with nanoseconds
        return gap.to_timedelta64()
    if isinstance(gap, timedelta):
        return np.timedelta64(gap // timedelta(microseconds=1), "us")
    return gap


@dataclass(frozen=True)
class Timeline:
    """Times in increasing order, and a gap in the same unit.

    Attributes
    ----------
    times : n numbers.
    gap : 0 or more.
    errors : largest relative errors of the times and of the gap.

    Examples
    --------
    >>> Timeline.of(np.array([0.1, 0.2, 0.3, 0.4]), 0.1).around(2, 2)  # 0.3 - 0.1 is less than 0.2
    slice(1, 4, None)
    """

    times: list[Any]
    gap: Fraction
    errors: tuple[Fraction, Fraction]

    @classmethod
    def of(cls, times: AnyArray, gap: Any) -> Self:
        """Timeline of times in order, as `exact_times` gives them, and a gap.

        Raises
        ------
        ValueError
            If the gap is not a number of 0 or more, or of dates a duration.
        """
        errors = _error(times), _error(np.asarray(gap))
        if times.dtype.kind != "M":
            number = _number(gap)
            if number is None or number < 0:
                raise ValueError(f"{setting('gap')} must be a number of 0 or more, got {gap!r}.")
            return cls(times.tolist(), number, errors)
        (kind, unit), (gap_kind, length) = _unit(times.dtype), _duration(gap)
        if kind == "months" != gap_kind:
            times, (kind, unit) = times.astype("M8[D]"), _UNITS["D"]
        if kind != gap_kind or length < 0:
            raise ValueError(
                f"{setting('gap')} must be a duration of 0 or more, such as of days, got {gap!r}."
            )
        return cls(times.astype(np.int64).tolist(), length / unit, errors)

    def around(self, first: int, last: int) -> slice:
        """Places of the times from the gap before the first to the gap after the last place."""
        start, end = (Fraction(self.times[place]) for place in (first, last))
        return slice(
            bisect_left(self.times, start - self._reach(start)),
            bisect_right(self.times, end + self._reach(end)),
        )

    def _reach(self, time: Fraction) -> Fraction:
        """Gap, plus the largest rounding error of a distance from this time."""
        of_times, of_gap = self.errors
        return self.gap + of_times * (abs(time) + self.gap) + of_gap * self.gap


def _error(values: AnyArray) -> Fraction:
    """Largest relative error of numbers: 0 unless they are floats, and not all whole numbers."""
    if values.dtype.kind != "f":
        return Fraction(0)
    epsilon = np.finfo(values.dtype).eps
    if (values == np.rint(values)).all() and (np.abs(values) * epsilon <= 2).all():
        return Fraction(0)
    return _EPSILONS * Fraction(float(epsilon))


def _number(gap: Any) -> Fraction | None:
    """The gap as it is; None if it is no finite number."""
    exact: Any = None if isinstance(gap, np.timedelta64) else _exact(gap)
    finite = isinstance(exact, int | Fraction) or (isinstance(exact, float) and np.isfinite(exact))
    return Fraction(exact) if finite else None


def _unit(dtype: Any) -> tuple[str, Fraction]:
    """Unit of dates or durations, in months or in seconds."""
    name, count = np.datetime_data(dtype)
    kind, length = _UNITS.get(name, ("", Fraction(0)))
    return kind, count * length


def _duration(gap: Any) -> tuple[str, Fraction]:
    """The gap in months or in seconds; of no kind if it is not a duration."""
    if isinstance(gap, Real) and gap == 0:
        return "seconds", Fraction(0)
    gap = numpy_gap(gap)
    if not isinstance(gap, np.timedelta64) or np.isnat(gap):
        return "", Fraction(0)
    kind, length = _unit(gap.dtype)
    return kind, int(gap.astype(np.int64)) * length
