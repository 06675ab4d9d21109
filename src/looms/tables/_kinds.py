"""Kinds of the columns of a table, and their cells as floats or text.

`read_column` decides the kind of a column by the rows of the fit. `converted` reads the cells of
any rows by a kind, each by itself.
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date, time
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from looms._advice import setting
from looms._optional import require
from looms._typing import AnyArray
from looms._words import row_name
from looms.kernels._samples import LARGEST
from looms.tables._cells import (
    EXACT,
    POINT,
    TRUTH,
    Cells,
    Marks,
    is_number_by_either,
    is_rounded,
    may_hold_text,
    text_of,
)
from looms.tables._dates import days_of, days_of_times, may_be_date
from looms.tables._frames import Column

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "date", "day-first date", "month-first date", "truth", "category"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Kinds of which each value becomes a feature.
CATEGORIES: tuple[Kind, ...] = ("truth", "category")
DATES: tuple[Kind, ...] = ("date", "day-first date", "month-first date")

#: Texts that may be no dates before the first of a column of dates with such texts.
_MOST_ODD = 3
#: Cells that are tried as dates before all.
_FEW = 100


class Read(NamedTuple):
    """A column of a table, read.

    Attributes
    ----------
    kinds : kinds that the column may be, of `KINDS`: one, or several kinds of dates if the cells do
        not tell which of their numbers is the day.
    values : floats, with NaN for gaps, of numbers and dates; else texts.
    codes : number of each different text, -1 for a gap; None for floats.
    varies : False if all cells are the same.
    sign : why a column is no number although it looks like one ("code", "rounded", "mark", "other
        mark"), or may be other numbers ("doubt"), with the row and the text of a cell that shows
        it.
    gaps : spellings of gaps.
    thousands : True if thousands are separated in some number.
    """

    kinds: tuple[Kind, ...]
    values: AnyArray
    codes: AnyArray | None = None
    varies: bool = True
    sign: tuple[str, int, str] | None = None
    gaps: tuple[str, ...] = ()
    thousands: bool = False

    @property
    def kind(self) -> Kind:
        """How the column is used: dates that are not clear are categories."""
        return self.kinds[0] if len(self.kinds) == 1 else "category"


def cells_of(column: Column, name: object) -> Cells | None:
    """Cells of a column that may hold text; None for one of numbers, times or booleans.

    ValueError if there is one that no kind has.
    """
    of_type = getattr(column.dtype, "kind", "O")
    if of_type in "mc":
        raise _wrong_type(name, "durations" if of_type == "m" else "complex numbers")
    if not may_hold_text(column):
        return None
    cells = Cells(column)
    admitted = (str, bool, np.bool_, Real, Decimal, date, time, np.datetime64)
    for kind in cells.types:
        if not (issubclass(kind, admitted) or hasattr(kind, "asfreq")):
            raise _wrong_type(name, f"values of the type {kind.__name__}")
    return cells


def read_column(
    column: Column,
    name: object,
    marks: Marks = POINT,
    given: Kind | None = None,
) -> Read:
    """Kind and values of a column of the fit, each cell converted once.

    Parameters
    ----------
    column : ndarray or pandas.Series
        Numbers, dates, text, categories or booleans.
    name : object
        Name for messages.
    marks : Marks
        How numbers are written in text.
    given : str, optional
        The kind, if it need not be decided.

    Raises
    ------
    ValueError
        If the column holds something else, or infinite numbers.
    """
    cells = cells_of(column, name)
    if given is not None:
        if given in CATEGORIES:
            return _texts(cells or Cells(_series(column)), (given,))
        return _floats(floats_of(column, name, given, marks, cells), given, cells, marks)
    if cells is None:
        return _read_typed(column, name)
    categorical = require("pandas", "A table of mixed columns").CategoricalDtype
    if isinstance(column.dtype, categorical):
        return _texts(cells, ("truth" if _is_truth(cells) else "category",))
    sign = None
    if cells.written or not cells.are_text:
        sign = _sign(cells, marks)
        if sign is None and not cells.missing.all() and _only_numbers(cells, marks):
            floats = floats_of(column, name, "number", marks, cells)
            doubt = _doubt(cells) if marks == POINT else None
            return _floats(floats, "number", cells, marks)._replace(sign=doubt)
    if _is_truth(cells):
        return _texts(cells, ("truth",))
    dates = _dates(cells)
    if len(dates) == 1:
        ((kind, floats),) = dates
        return _floats(floats, kind, cells)
    return _texts(cells, tuple(kind for kind, _ in dates) or ("category",), sign)


def _read_typed(column: Column, name: object) -> Read:
    """A column whose type tells its kind."""
    of_type = column.dtype.kind
    if of_type == "b":
        return _texts(Cells(_series(column)), ("truth",))
    floats = floats_of(column, name, "date" if of_type == "M" else "number")
    if of_type in "iu" and (np.abs(floats) >= EXACT).any():
        cells = Cells(_series(column))
        if rounded := cells.first(is_rounded):
            return _texts(cells, ("category",), ("rounded", *rounded))
    return _floats(floats, "date" if of_type == "M" else "number")


def _series(column: Column) -> pd.Series:
    return require("pandas", "A table of mixed columns").Series(column)


def _only_numbers(cells: Cells, marks: Marks) -> bool:
    return not (np.isnan(cells.numbers(marks, strict=True)) & ~cells.missing).any()


def _sign(cells: Cells, marks: Marks) -> tuple[str, int, str] | None:
    """Why a column that looks like numbers is none; None for other columns."""
    if not any(map(cells.holds_only_numbers, ".,")):
        return None
    if code := cells.first_code():
        return "code", *code
    floats = cells.numbers(marks, strict=True)
    if np.isnan(floats[~cells.missing]).any():
        marked = cells.first_with(",") or cells.first_with(".")
        topic = "mark" if cells.holds_only_numbers(marks.decimal) else "other mark"
        return (topic, *marked) if marked else None
    most = np.nanmax(np.abs(floats))
    found = cells.first(is_rounded) if EXACT <= most <= LARGEST else None
    return ("rounded", *found) if found else None


def _doubt(cells: Cells) -> tuple[str, int, str] | None:
    """The first number whose point may separate thousands or be a decimal mark."""
    point = cells.first_with(".") if all(map(cells.holds_only_numbers, ".,")) else None
    return ("doubt", *point) if point else None


def _is_truth(cells: Cells) -> bool:
    """True if all cells are True and False, as words or by their type, or some as 1 and 0."""
    words = False
    for cell in cells.different:
        text = text_of(cell).casefold()
        words |= text in ("true", "false")
        if text not in TRUTH:
            return False
    return words


def _dates(cells: Cells) -> list[tuple[Kind, AnyArray]]:
    """Kinds of dates that all cells of a column may be, with their days, which all differ."""
    different = cells.different
    if not different or not (not isinstance(different[0], str) or may_be_date(different[0])):
        return []
    kinds: dict[bytes, tuple[Kind, AnyArray]] = {}  # by the days that they read
    for kind in DATES:
        for tried in (different[:_FEW], different):  # the first often decide
            days = days_of(tried, kind, strict=True)
            if np.isnan(days).any():
                break
        else:
            kinds.setdefault(days.tobytes(), (kind, cells.cell_values(days)))
    return list(kinds.values())


def date_like(texts: AnyArray) -> AnyArray:
    """(n,) True for dates of the kind that most of the texts are."""
    if not any(may_be_date(text) for text in texts[:_MOST_ODD]):
        return np.zeros(len(texts), dtype=bool)
    read = [~np.isnan(days_of(texts.tolist(), kind, strict=True)) for kind in DATES]
    return max(read, key=np.count_nonzero)


def _wrong_type(name: object, what: str) -> ValueError:
    return ValueError(
        f"column {name!r} holds {what}, which are neither numbers, dates, text nor booleans: "
        "convert it, or leave it out"
    )


def _floats(floats: AnyArray, kind: Kind, cells: Cells | None = None, marks: Marks = POINT) -> Read:
    gaps = np.isnan(floats)
    varies = len(floats) > 0 and not gaps.all() and bool(gaps.any() or (floats != floats[0]).any())
    thousands = bool(cells and marks.thousands and cells.first_with(marks.thousands))
    return Read((kind,), floats, None, varies, None, tuple(cells.gaps) if cells else (), thousands)


def _texts(cells: Cells, kinds: tuple[Kind, ...], sign: tuple[str, int, str] | None = None) -> Read:
    texts = [_cell_text(cell, kinds[0]) for cell in cells.different]
    place: dict[str, int] = {}
    codes = np.array([place.setdefault(text, len(place)) for text in texts] + [-1])[cells.codes]
    varies = len(codes) > 0 and bool((codes != codes[0]).any())
    return Read(kinds, cells.cell_values(texts, object), codes, varies, sign, tuple(cells.gaps))


def _cell_text(cell: object, kind: str) -> str:
    text = text_of(cell)
    return TRUTH.get(text.casefold(), text) if kind == "truth" else text


def converted(column: Column, name: object, kind: str, marks: Marks = POINT) -> AnyArray:
    """Cells as texts of a category, floats of any other kind; NaN for gaps."""
    if kind not in CATEGORIES:
        return floats_of(column, name, kind, marks)
    cells = cells_of(column, name) or Cells(_series(column))
    return cells.cell_values([_cell_text(cell, kind) for cell in cells.different], object)


def texts_of(column: pd.Series) -> AnyArray:
    """Cells as text, as `text_of` has it, the same whichever types a file gave them."""
    return converted(column, None, "category")


def floats_of(
    column: Column, name: object, kind: str, marks: Marks = POINT, cells: Cells | None = None
) -> AnyArray:
    """Numbers, or days since 1970; NaN for a gap."""
    cells = cells or cells_of(column, name)
    missing = None
    if cells is not None:
        floats = cells.numbers(marks) if kind == "number" else _days(cells, kind)
        missing = cells.missing
    elif (column.dtype.kind == "M") == (kind == "number"):
        floats = np.full(len(column), np.nan)
    elif kind != "number":
        floats = days_of_times(_series(column))
    elif isinstance(column, np.ndarray):
        floats = column.astype(float)
        missing = np.isnan(floats)
    else:
        floats = column.to_numpy(dtype=float, na_value=np.nan)
    missing = _series(column).isna().to_numpy() if missing is None else missing
    _check_floats(floats, missing, column, name, kind)
    return floats


def _days(cells: Cells, kind: str) -> AnyArray:
    return cells.cell_values(days_of(cells.different, kind))


def _check_floats(
    floats: AnyArray, missing: AnyArray, column: Column, name: object, kind: str
) -> None:
    """ValueError that names the first cell that is not of the kind of its column, or huge."""
    wrong = (np.isnan(floats) & ~missing) | np.isinf(floats)
    huge = np.abs(floats) > LARGEST
    if not (wrong.any() or huge.any()):
        return
    row = int((wrong | huge).argmax())
    cell = column[row] if isinstance(column, np.ndarray) else column.iloc[row]
    size = Decimal(math.nan)
    with suppress(InvalidOperation):  # of text with another decimal mark
        size = abs(Decimal(cell if isinstance(cell, int) else str(cell).strip()))
    if huge[row] and size.is_finite():
        raise ValueError(
            f"column {name!r} goes up to {size:.3g} in absolute value, in {row_name(column, row)}, "
            f"beyond {LARGEST:g}, so squares overflow: correct the cell, or scale the column"
        )
    written = ", with dates written as 2024-02-25," * (kind in DATES)
    written_otherwise = isinstance(cell, str) and not np.isinf(floats[row])
    by_other = kind == "number" and written_otherwise and is_number_by_either(cell.strip())
    advice = (
        f"; if its decimal mark is another than in the fit, name that by {setting('decimal', ...)}"
        * by_other
    )
    raise ValueError(
        f"column {name!r} is a column of {kind}s, and {row_name(column, row)} holds "
        f"{repr(cell) if isinstance(cell, str) else cell}: correct the cell{written} or leave it "
        f"empty{advice}"
    )
