"""Dates in cells, as days since 1970: each cell is read by itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from numbers import Real
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
#: Years that nanoseconds reach, and texts that begin or end with another one.
_NEAR = (1678, 2261)
_FAR = re.compile(
    r"(?:(?!\d{4}).*[ ,/-])?(?!1(?:6(?:7[89]|[89])|[7-9])|2(?:[01]|2(?:[0-5]|6[01])))\d{4}(?!\d)"
)
#: Two numbers (one the day, one the month), a year, and perhaps a time.
_OTHER_DATE = re.compile(r"(\d\d?)([./-])(\d\d?)\2(\d{4})(?:[T ]+(\d\d?)(:\d\d(?::\d\d)?))?")


def may_be_date(text: str) -> bool:
    """True for a text that is written like a date."""
    text = text.strip()
    return bool(_ISO_DATE.fullmatch(text) or _OTHER_DATE.fullmatch(text) or _formats_of(text))


def days_of(cells: Sequence[Any], kind: str, *, strict: bool = False) -> AnyArray:
    """Days since 1970 of text, dates and periods; NaN for what is none.

    Two numbers and a year are read by the order of the kind, or of a "date" if it is clear: only
    one of them may be the day. With ``strict`` they are no "date".
    """
    days = _days_as([_iso(cell, kind, strict) for cell in cells], "ISO8601")
    rest = [
        k for k in np.flatnonzero(np.isnan(days)).tolist() if _MAY_BE_PLAIN.fullmatch(str(cells[k]))
    ]
    first = _formats_of(str(cells[rest[0]]).strip()) if rest else []
    for form in dict.fromkeys((*first, *_FORMATS)) if rest else ():
        days[rest] = _days_as([str(cells[k]).strip() for k in rest], form)
        rest = [k for k in rest if math.isnan(days[k])]
        if not rest:
            break
    return days


def days_of_times(times: pd.Series) -> AnyArray:
    """Days since 1970 of times, in whatever unit and zone; NaN for NaT."""
    pandas = require("pandas", "A table of mixed columns")
    if hasattr(times.array, "__arrow_array__"):  # whose far dates pandas 2 turns to nanoseconds
        times = times.array.__arrow_array__().to_pandas(date_as_object=False)
    utc = pandas.to_datetime(times, utc=True).dt.tz_localize(None)
    days: AnyArray = (utc.to_numpy() - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    return days


def _iso(cell: Any, kind: str, strict: bool) -> Any:
    """A cell in ISO 8601 if it is text, a period, of numpy or far; None for what is no date."""
    if isinstance(cell, str):
        return _iso_text(cell.strip(), kind, strict)
    if hasattr(cell, "asfreq"):
        start = cell.asfreq("s", "start")
        return f"{start.year:04}{start.strftime('-%m-%dT%H:%M:%S')}"
    if isinstance(cell, np.datetime64):
        return str(cell)
    far = isinstance(cell, date) and not _NEAR[0] <= cell.year <= _NEAR[1]
    return cell.isoformat() if far else None if isinstance(cell, Real) else cell


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
    one, mark, other, year, hour, minutes = match.groups()
    day, month = (one, other) if first == "day" else (other, one)
    if (first == "month" and mark == ".") or not 1 <= int(month) <= 12:
        return ""
    return f"{year}-{month:0>2}-{day:0>2}" + (f"T{hour:0>2}{minutes}" if hour else "")


def _formats_of(text: str) -> list[str]:
    """Formats of plain dates by which a text can be read."""
    if _MAY_BE_PLAIN.fullmatch(text) is None:
        return []
    return [form for form in _FORMATS if not math.isnan(_day(text, form))]


def _days_as(cells: Iterable[Any], form: str) -> AnyArray:
    """Days since 1970 of dates, and of texts in one format; NaN for a cell that is neither."""
    pandas = require("pandas", "A table of mixed columns")
    times = pandas.Series([*cells], dtype=object)
    days = days_of_times(pandas.to_datetime(times, format=form, errors="coerce", utc=True))
    for k in np.flatnonzero(np.isnan(days)):  # beyond the reach of nanoseconds
        if isinstance(times.iloc[k], str) and _FAR.match(times.iloc[k]):
            days[k] = _day(times.iloc[k], form)
    return days


def _day(text: str, form: str) -> float:
    """Days since 1970 of a date in some format; NaN for other texts."""
    try:
        iso = form == "ISO8601"
        moment = datetime.fromisoformat(text) if iso else datetime.strptime(text, form)
    except ValueError:
        return math.nan
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    return (since - (moment.utcoffset() or timedelta(0))) / timedelta(days=1)
