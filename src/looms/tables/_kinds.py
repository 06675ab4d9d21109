"""Kinds of the columns of a table, and their cells as floats or text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from looms._optional import require
from looms._typing import AnyArray
from looms._words import row_name
from looms.kernels._samples import LARGEST
from looms.tables._columns import Column

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "day-first date", "month-first date", "category"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_DATE_KINDS: tuple[Kind, ...] = ("date", "day-first date", "month-first date")

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime64", "datetime", "date", "period")
_CATEGORIES = ("string", "boolean", "categorical", "mixed-integer")

#: Texts that may be no dates before the first of a column of dates with such texts.
_MOST_ODD = 3
#: Cells that are tried as dates before all.
_FEW = 100
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


class Read(NamedTuple):
    """A column of a table, read.

    Attributes
    ----------
    kinds : kinds that the column may be, of `KINDS`; none if it lacks two different values;
        several, all of them dates, if the cells do not tell which of their numbers is the day.
    values : floats, with NaN for gaps, if the kind is certain and no category; else texts.
    codes : number of each different cell of a column of texts, -1 for a gap; None for floats.
    """

    kinds: tuple[Kind, ...]
    values: AnyArray
    codes: AnyArray | None = None

    @property
    def kind(self) -> Kind:
        """How the column is used: dates that are not clear are categories."""
        return self.kinds[0] if len(self.kinds) == 1 else "category"


def read_column(column: Column, name: object, known: Kind | None = None) -> Read:
    """Kinds and values of a column, each cell converted once.

    Parameters
    ----------
    column : ndarray or pandas.Series
        Numbers, dates, text, categories or booleans; an array holds numbers.
    name : object
        Name for messages.
    known : str, optional
        The kind, if it is known.

    Raises
    ------
    ValueError
        If the column holds something else, or infinite numbers.
    """
    if isinstance(column, np.ndarray) and known in (None, "number"):
        return _read_floats(column, name, "number")
    pandas = require("pandas", "A table of mixed columns")
    column = pandas.Series(column) if isinstance(column, np.ndarray) else column
    if known == "category":
        return _read_texts(column, (known,))
    if known is not None:
        return _read_floats(column, name, known)
    inferred = pandas.api.types.infer_dtype(column, skipna=True)
    if inferred in _NUMBERS or inferred in _DATES:
        return _read_floats(column, name, "number" if inferred in _NUMBERS else "date")
    dates = _dates(column, name) if inferred == "string" else []
    if len(dates) == 1:
        ((kind, floats),) = dates
        return Read((kind,) if _vary(floats, column) else (), floats)
    if inferred not in (*_CATEGORIES, "empty"):
        raise _mixed(column.dropna(), name, inferred)
    return _read_texts(column, tuple(kind for kind, _ in dates) or ("category",))


def _dates(column: pd.Series, name: object) -> list[tuple[Kind, AnyArray]]:
    """Kinds of dates that all texts of a column may be, with their days, which all differ."""
    texts = column.dropna()
    if not (len(texts) and _may_be_dates(str(texts.iloc[0]))):
        return []
    kinds: dict[bytes, tuple[Kind, AnyArray]] = {}  # by the days that they read
    for kind in _DATE_KINDS:
        with suppress(ValueError):
            as_floats(column.iloc[:_FEW], name, kind)  # which often decide
            floats = as_floats(column, name, kind)
            kinds.setdefault(floats.tobytes(), (kind, floats))
    return list(kinds.values())


def _mixed(cells: pd.Series, name: object, inferred: str) -> ValueError:
    """Error for a column of several types, or of another; it names the first cell of a rare one."""
    types = cells.map(lambda cell: type(cell).__name__)
    common = types.mode().iloc[0]
    odd = types.ne(common).to_numpy()
    if not odd.any():
        return ValueError(
            f"column {name!r} holds {inferred} values, which are neither numbers, dates, text nor "
            "booleans: leave it out or convert it"
        )
    row = int(odd.argmax())
    where = row_name(cells, row)
    return ValueError(
        f"column {name!r} holds values of the type {common}, and {where} has {cells.iloc[row]!r}: "
        "convert the column to one type, or leave it out"
    )


def _read_floats(column: Column, name: object, kind: Kind) -> Read:
    floats = as_floats(column, name, kind)
    return Read((kind,) if _vary(floats, column) else (), floats)


def _read_texts(column: pd.Series, kinds: tuple[Kind, ...]) -> Read:
    texts, codes = _texts(column)
    varies = len(codes) > 0 and bool((codes != codes[0]).any())
    return Read(kinds if varies else (), texts, codes)


def _vary(floats: AnyArray, column: Column) -> bool:
    """True if the cells differ; a gap differs from a number."""
    if not len(floats):
        return False
    gaps, first = np.isnan(floats), floats[0]
    if np.isnan(first):
        return not gaps.all()
    if gaps.any() or (floats != first).any():
        return True
    cells = column.tolist()  # integers that floats round
    return any(cell != cells[0] for cell in cells)


def converted(column: Column, name: object, kind: str) -> AnyArray:
    """Texts of a category, floats of any other kind.

    A column of dates may be written in another way than in the fit, if its order is clear.
    """
    if isinstance(column, np.ndarray) and kind != "number":
        column = require("pandas", "A table of mixed columns").Series(column)
    if kind == "category":
        return as_text(column)
    try:
        return as_floats(column, name, kind)
    except ValueError:
        dates = _dates(column, name) if kind == "date" else []
        if len(dates) != 1:
            raise
    return dates[0][1]


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
    return _texts(column)[0]


def _texts(column: pd.Series) -> tuple[AnyArray, AnyArray]:
    """`as_text`, and the number of each different cell, -1 for a gap."""
    pandas = require("pandas", "A table of mixed columns")
    cells = column.to_numpy(dtype=object)
    codes, different = pandas.factorize(cells)
    if len(set(map(type, cells[codes >= 0]))) < 2:
        texts = np.array([*map(_text, different), np.nan], dtype=object)
        return texts[codes], codes
    known: dict[str, str] = {}  # one copy of each text
    texts = np.full(len(cells), np.nan, dtype=object)  # 1 and True are equal, their texts are not
    for row in np.flatnonzero(codes >= 0):
        text = _text(cells[row])
        texts[row] = known.setdefault(text, text)
    return texts, codes


def _text(value: object) -> str:
    if isinstance(value, float | np.floating) and value == np.floor(value) and np.isfinite(value):
        value = int(value)
    return str(value).strip()


def date_like(texts: AnyArray) -> AnyArray:
    """(n,) whether each text is a date, if they are written as most are."""
    pandas = require("pandas", "A table of mixed columns")
    first = next((each for each in texts[:_MOST_ODD] if _may_be_dates(each)), None)
    if first is None:
        return np.zeros(len(texts), dtype=bool)
    cells = pandas.Series([first, *texts], dtype=object)  # the first tells how they are written
    kinds = _DATE_KINDS if _formats_of([first]) else _DATE_KINDS[1:]
    read = [~np.isnan(_floats(cells, kind))[1:] for kind in kinds]
    return max(read, key=np.count_nonzero)


def _may_be_dates(first: str) -> bool:
    return bool(_iso_date(first, "day-first date") or _formats_of([first]))


def as_floats(column: Column, name: object, kind: str) -> AnyArray:
    """Numbers, or days since 1970; NaN for a gap."""
    if isinstance(column, np.ndarray):
        floats: AnyArray = column.astype(float)
        wrong = np.isinf(floats)
    else:
        floats = _floats(column, kind)
        wrong = (np.isnan(floats) & ~column.isna().to_numpy()) | np.isinf(floats)
    huge = np.abs(floats) > LARGEST
    if wrong.any() or huge.any():
        row = int((wrong | huge).argmax())
        cell = column[row] if isinstance(column, np.ndarray) else column.iloc[row]
        size = abs(Decimal(cell if isinstance(cell, int) else str(cell))) if huge[row] else math.inf
        if size < math.inf:
            raise ValueError(
                f"column {name!r} goes up to {size:.3g} in absolute value, in "
                f"{row_name(column, row)}, beyond {LARGEST:g}, so squares overflow: correct the "
                "cell, or scale the column"
            )
        shown = repr(cell) if isinstance(cell, str) else str(cell)
        raise wrong_cell(name, kind, row_name(column, row), shown)
    return floats


def wrong_cell(name: object, kind: str, row: str, shown: str) -> ValueError:
    """Error for a cell that is not of the kind of its column."""
    written = ", with dates written as 2024-02-25," * kind.endswith("date")
    return ValueError(
        f"column {name!r} is a column of {kind}s, and {row} holds {shown}: correct the cell"
        f"{written} or leave it empty"
    )


def _floats(column: pd.Series, kind: str) -> AnyArray:
    """Numbers, or days since 1970; NaN for gaps and for what is neither."""
    pandas = require("pandas", "A table of mixed columns")
    others = "biuf" if kind.endswith("date") else "mM"
    if getattr(column.dtype, "kind", "") in others:  # whose numbers pandas would take as they are
        return np.full(len(column), np.nan)
    if not kind.endswith("date"):
        try:
            numbers = pandas.to_numeric(column, errors="coerce")
        except OverflowError:  # of whole numbers that no float reaches
            whole = column.map(lambda cell: Decimal(cell) if isinstance(cell, int) else cell)
            numbers = pandas.to_numeric(whole, errors="coerce")
        floats: AnyArray = numbers.to_numpy(dtype=float, na_value=np.nan)
        return floats
    if isinstance(column.dtype, np.dtype | pandas.DatetimeTZDtype) and column.dtype.kind == "M":
        return _days(pandas.to_datetime(column, utc=True))
    codes, different = pandas.factorize(column.to_numpy(dtype=object))
    texts = all(isinstance(cell, str) for cell in different)
    as_iso = _iso_date if texts else _iso_cell
    days = _days_as([as_iso(cell, kind) for cell in different], "ISO8601")
    if kind == "date" and texts:
        cells = [cell.strip() for cell in different]
        parsed = [_days_as(cells, form) for form in _formats_of(cells)]
        days = max([days, *parsed], key=lambda each: np.count_nonzero(~np.isnan(each)))
    values: AnyArray = np.append(days, np.nan)[codes]
    return values


def _iso_cell(cell: Any, kind: str) -> Any:
    """A cell of a column of dates, in ISO 8601 if it is text, a period, or far from today.

    None for a number, which pandas takes for a day or a time.
    """
    if isinstance(cell, str):
        return _iso_date(cell, kind)
    if hasattr(cell, "asfreq"):
        start = cell.asfreq("s", "start")
        return f"{start.year:04}{start.strftime('-%m-%dT%H:%M:%S')}"
    far = isinstance(cell, date) and not _NEAR[0] <= cell.year <= _NEAR[1]
    return cell.isoformat() if far else None if isinstance(cell, Real) else cell


def _days(times: pd.Series) -> AnyArray:
    """Days since 1970 of times in UTC, in whatever unit; NaN for NaT."""
    since = times.dt.tz_localize(None).to_numpy() - np.datetime64("1970-01-01")
    days: AnyArray = since / np.timedelta64(1, "D")
    return days


def _formats_of(cells: Iterable[str]) -> list[str]:
    """Formats of plain dates by which the first cell can be read."""
    first = str(next(iter(cells), "")).strip()
    if _MAY_BE_PLAIN.fullmatch(first) is None:
        return []
    return [form for form in _FORMATS if not math.isnan(_day(first, form))]


def _days_as(cells: list[Any], form: str) -> AnyArray:
    """Days since 1970 of dates, and of texts in one format; NaN for a cell that is neither."""
    pandas = require("pandas", "A table of mixed columns")
    times = pandas.Series(cells, dtype=object)
    days = _days(pandas.to_datetime(times, format=form, errors="coerce", utc=True))
    for k in np.flatnonzero(np.isnan(days)):  # beyond the reach of nanoseconds
        if isinstance(cells[k], str) and _FAR.match(cells[k]):
            days[k] = _day(cells[k], form)
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
