"""Kinds of the columns of a table, and their cells as floats or text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from looms._optional import require
from looms._typing import AnyArray

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "day-first date", "month-first date", "category"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_DATE_KINDS: tuple[Kind, ...] = ("date", "day-first date", "month-first date")

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime64", "datetime", "date")
_CATEGORIES = ("string", "boolean", "categorical", "mixed-integer")

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
#: Two numbers (one the day, one the month), a year, and perhaps a time.
_OTHER_DATE = re.compile(r"(\d\d?)([./-])(\d\d?)\2(\d{4})(?:[T ]+(\d\d?)(:\d\d(?::\d\d)?))?")


def column_kinds(X: pd.DataFrame) -> dict[str, tuple[Kind, ...]]:
    """Kinds that each column of a table may be.

    Parameters
    ----------
    X : pandas.DataFrame
        Columns of numbers, dates, text or booleans.

    Returns
    -------
    kinds : dict of str to tuple of str
        For each column one of `KINDS`; none if the column lacks two different values; several,
        all of them dates, if the cells do not tell which of their numbers is the day.

    Raises
    ------
    ValueError
        If a column holds something else, or infinite numbers.
    """
    kinds = {str(name): _kinds(X[name], name) for name in X.columns}
    return {name: of if X[name].nunique(dropna=False) > 1 else () for name, of in kinds.items()}


def as_text(column: pd.Series) -> AnyArray:
    """Values as text, the same whichever types the reader of a file gave them; NaN for a gap.

    Parameters
    ----------
    column : pandas.Series
        Text, booleans or numbers. Whole numbers are written without a decimal point, because gaps
        turn integers into floats; blanks around text are removed.

    Returns
    -------
    values : ndarray of object
        Strings, and NaN where the value is missing.
    """
    gaps = column.isna().to_numpy()
    values = column.to_numpy(dtype=object)
    known: dict[str | float, str | float] = {}  # one copy of each text, for long columns of few
    texts = (np.nan if gap else _text(value) for gap, value in zip(gaps, values, strict=True))
    return np.array([known.setdefault(text, text) for text in texts], dtype=object)


def _text(value: object) -> str:
    if isinstance(value, float | np.floating) and value == np.floor(value) and np.isfinite(value):
        value = int(value)
    return str(value).strip()


def _kinds(column: pd.Series, name: object) -> tuple[Kind, ...]:
    """Kinds that a column may have; none if it is empty, several dates if the order is unclear."""
    pandas = require("pandas", "A table of mixed columns")
    inferred = pandas.api.types.infer_dtype(column, skipna=True)
    if inferred in (*_DATES, "empty"):
        return ("date",) if inferred in _DATES else ()
    cells = column.dropna()
    if inferred == "string" and _may_be_dates(str(cells.iloc[0])):
        kinds: dict[bytes, Kind] = {}  # by the days that they read
        for kind in _DATE_KINDS:
            with suppress(ValueError):
                kinds.setdefault(as_floats(cells, name, kind).tobytes(), kind)
        if kinds:
            return tuple(kinds.values())
    if inferred in _NUMBERS:
        as_floats(column, name, "number")
    if inferred in _NUMBERS + _CATEGORIES:
        return ("number",) if inferred in _NUMBERS else ("category",)
    raise ValueError(
        f"column {name!r} holds {inferred} values, which are neither numbers, dates, text nor "
        "booleans: leave it out or convert it"
    )


def _may_be_dates(first: str) -> bool:
    return bool(_iso_date(first, "day-first date") or _formats_of([first]))


def as_floats(column: pd.Series, name: object, kind: str) -> AnyArray:
    """Numbers, or days since 1970; NaN for a gap."""
    pandas = require("pandas", "A table of mixed columns")
    gaps = column.isna().to_numpy()
    if kind.endswith("date"):
        cells = column.astype(object)
        iso = [_iso_date(v, kind) if isinstance(v, str) else v for v in cells]
        written = pandas.Series(iso, column.index, dtype=object)
        times = pandas.to_datetime(written, format="ISO8601", errors="coerce", utc=True)
        if kind == "date" and pandas.api.types.infer_dtype(column, skipna=True) == "string":
            parsed = [_read_as(cells, form) for form in _formats_of(cells[~gaps])]
            times = max([times, *parsed], key=lambda each: each.notna().sum())
        values = (times - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)
    else:
        values = pandas.to_numeric(column, errors="coerce")
    floats: AnyArray = values.to_numpy(dtype=float, na_value=np.nan)
    wrong = (np.isnan(floats) & ~gaps) | np.isinf(floats)
    if wrong.any():
        row = int(wrong.argmax())
        cell = column.iloc[row]
        index, types = column.index, pandas.api.types
        if types.is_integer_dtype(index) and index.is_monotonic_increasing:
            row = index[row]  # of a block, or of rows with a target, it counts the rows of a file
        shown = repr(cell) if isinstance(cell, str) else str(cell)
        raise ValueError(
            f"column {name!r} is a column of {kind}s, and data row {row + 1} holds {shown}: "
            "correct the cell or leave it empty"
        )
    return floats


def _formats_of(cells: Iterable[str]) -> list[str]:
    """Formats of plain dates by which the first cell can be read."""
    first = str(next(iter(cells), "")).strip()
    if _MAY_BE_PLAIN.fullmatch(first) is None:
        return []
    one = require("pandas", "A table of mixed columns").Series([first])
    return [form for form in _FORMATS if _read_as(one, form).notna().all()]


def _read_as(cells: pd.Series, form: str) -> pd.Series:
    """Times of cells that are all written in one format; NaT for a cell that is not."""
    pandas = require("pandas", "A table of mixed columns")
    times: pd.Series = pandas.to_datetime(cells.str.strip(), format=form, errors="coerce", utc=True)
    return times


def _iso_date(text: str, kind: str) -> str:
    """Date in ISO 8601; an empty string if the text is not a date of this kind."""
    text = text.strip()
    match = _OTHER_DATE.fullmatch(text)
    if match is None or kind == "date":
        return text if _ISO_DATE.fullmatch(text) else ""
    day, mark, month, year, hour, minutes = match.groups()
    if kind == "month-first date":
        day, month = (month, day) if mark != "." else ("", "")
    return f"{year}-{month:0>2}-{day:0>2}" + (f"T{hour:0>2}{minutes}" if hour else "")
