"""Dates in cells, as days since 1970: each cell is read by itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from looms._optional import require
from looms._typing import AnyArray

if TYPE_CHECKING:
    import pandas as pd

_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
#: Dates of which no number may be another one: the year first, or the month by its name.
_MONTHS = ("%b", "%B")  # Jan and January
_PLAIN_DATES = (
    *("%Y/%m/%d", "%Y-%m-%d"),
    *(f"%d{mark}{month}{mark}%Y" for month in _MONTHS for mark in "- /"),
    *(f"{month} %d{mark} %Y" for month in _MONTHS for mark in ("", ",")),
    *(f"{month}{mark}%Y" for month in _MONTHS for mark in "- "),
    *(f"%Y{mark}{month}{mark}%d" for month in _MONTHS for mark in "- "),
)
_FORMATS = tuple(date + time for date in _PLAIN_DATES for time in ("", " %H:%M", " %H:%M:%S"))
_MAY_BE_PLAIN = re.compile(
    r"(?=.*\d{4})(\d{4}[/-]\d|.*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)).{,30}",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000  # microseconds
#: Two numbers (one the day, one the month), a year, and perhaps a time.
_OTHER_DATE = re.compile(r"(\d\d?)([./-])(\d\d?)\2(\d{4})(?:[T ]+(\d\d?)(:\d\d(?::\d\d)?))?")


def may_be_date(text: str) -> bool:
    """True for a text that is written like a date."""
    text = text.strip()
    return bool(_ISO_DATE.fullmatch(text) or _OTHER_DATE.fullmatch(text) or _formats_of(text))


def days_of(cells: Iterable[Any], kind: str, *, strict: bool = False) -> AnyArray:
    """Days since 1970 of text, dates and periods; NaN for what is none.

    Two numbers and a year are read by the order of the kind, or of a "date" if it is clear: only
    one of them may be the day. With ``strict`` they are no "date".
    """
    days: list[float] = []
    forms: Sequence[str] = ()
    for cell in cells:
        day = _day_of(cell, kind, strict)
        if math.isnan(day) and isinstance(cell, str) and _MAY_BE_PLAIN.fullmatch(cell.strip()):
            forms = _formats_of(cell.strip(), forms)  # most cells are written like the last one
            day = _days_by(cell.strip(), forms[0]) if forms else math.nan
        days.append(day)
    return np.array(days)


def days_of_times(times: pd.Series) -> AnyArray:
    """Days since 1970 of times, in whatever unit and zone; NaN for NaT."""
    pandas = require("pandas", "A table of mixed columns")
    if hasattr(times.array, "__arrow_array__"):  # whose far dates pandas 2 turns to nanoseconds
        times = times.array.__arrow_array__().to_pandas(date_as_object=False)
    utc = pandas.to_datetime(times, utc=True).dt.tz_localize(None).to_numpy().astype("M8[us]")
    return np.where(np.isnat(utc), np.nan, _days(utc.astype(np.int64)))


def times_of(days: AnyArray) -> AnyArray:
    """Times of days since 1970, in microseconds; NaT for NaN."""
    times = np.round(np.where(np.isnan(days), 0.0, days) * _DAY).astype("M8[us]")
    times[np.isnan(days)] = np.datetime64("NaT")
    return times


def _days(microseconds: Any) -> Any:
    """Days in microseconds, which are a whole number or an array of them."""
    days = microseconds // _DAY
    return days + (microseconds - days * _DAY) / _DAY


def _day_of(cell: Any, kind: str, strict: bool) -> float:
    """Days since 1970 of a date in ISO 8601, with its numbers in an order, or by its type."""
    if isinstance(cell, np.datetime64):
        cell = cell.astype("M8[us]").item()
    if isinstance(cell, str):
        cell = _iso_text(cell.strip(), kind, strict)
    elif hasattr(cell, "asfreq"):  # a period
        start = cell.asfreq("s", "start")
        cell = f"{start.year:04}{start.strftime('-%m-%dT%H:%M:%S')}"
    elif isinstance(cell, date):
        cell = cell.isoformat()
    return _days_by(cell, None) if isinstance(cell, str) else math.nan


def _iso_text(text: str, kind: str, strict: bool) -> str:
    """Date in ISO 8601; an empty string if the text is not a date of this kind."""
    match = _OTHER_DATE.fullmatch(text)
    if match is None:
        return text if _ISO_DATE.fullmatch(text) else ""
    if kind == "date":
        orders = {_ordered(match, first) for first in ("day", "month")} - {""}
        return orders.pop() if len(orders) == 1 and not strict else ""
    return _ordered(match, kind.partition("-")[0])


def _ordered(match: re.Match[str], first: str) -> str:
    """Date in ISO 8601 with the day, or the month, first; empty if there is no such date."""
    number, mark, next_number, year, hour, minutes = match.groups()
    day, month = (number, next_number) if first == "day" else (next_number, number)
    if (first == "month" and mark == ".") or not 1 <= int(month) <= 12:
        return ""
    return f"{year}-{month:0>2}-{day:0>2}" + (f"T{hour:0>2}{minutes}" if hour else "")


def _formats_of(text: str, first: Sequence[str] = ()) -> Sequence[str]:
    """Formats of plain dates by which a text can be read; the ``first`` ones are tried before."""
    if _MAY_BE_PLAIN.fullmatch(text) is None:
        return ()
    if first and not math.isnan(_days_by(text, first[0])):
        return first
    return [form for form in _FORMATS if not math.isnan(_days_by(text, form))]


def _days_by(text: str, form: str | None) -> float:
    """Days since 1970 of a date in ISO 8601, or in another format; NaN for other texts."""
    try:
        when = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    since = when.replace(tzinfo=None) - _EPOCH - (when.utcoffset() or timedelta(0))
    return float(_days(since // timedelta(microseconds=1)))
