"""Cells of columns with text: as they are written in a file, or typed.

A cell means what it tells by itself, and by what the fit decided of its column: nothing here looks
at other rows, but `Cells.holds_only_numbers`, by which the fit decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from looms._checks import check_known
from looms._number_text import NUMBER, UNSIGNED
from looms._optional import require
from looms._typing import AnyArray

#: Texts that stand for a missing value, without the blanks around them: those of pandas and
#: pyarrow, the question mark of UCI's files, and the errors that spreadsheet programs write.
GAPS = {
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "NAN", "Nan", "-NaN"),
    *("-nan", "NULL", "null", "None", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "#NV", "#WERT!", "#BEZUG!"),
    *("#ZAHL!", "\\N", "."),
}
#: Whole numbers up to this one are exact as floats.
EXACT = 2**53
#: Texts that are True or False, in lower case.
TRUTH = {
    **dict.fromkeys(("true", "1", "wahr", "vrai", "verdadero", "vero", "waar"), "True"),
    **dict.fromkeys(("false", "0", "falsch", "faux", "falso", "onwaar"), "False"),
}
#: By decimal mark, numbers without thousands, and with thousands that the other mark separates.
_PLAIN = {
    mark: re.compile(rf"[+-]?(?:{UNSIGNED.replace(chr(92) + '.', f'[{mark}]')})") for mark in ".,"
}
_GROUPED = {mark: re.compile(pattern) for mark, pattern in NUMBER.items()}
#: A number whose marks may separate thousands.
_MAY_BE_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:[.,][0-9]{3})+")
_WHOLE = re.compile(r"[+-]?[0-9]+")
#: Codes: a whole number of two digits or more that begins with zero, such as 007, and digits with a
#: capital E that no program writes for a power of ten, such as 1E05.
CODE = "^(?:0[0-9]+|[0-9]+E[0-9]+)$"
_MIDNIGHT = re.compile(r"(\d{4,}-\d\d-\d\d)[T ]00:00:00(?:\.0+)?(?:\+00:00)?")


class Marks(NamedTuple):
    """Decimal mark of numbers in text, and their separator of thousands, empty for none."""

    decimal: str = "."
    thousands: str = ""


def other_mark(mark: str) -> str:
    """A comma for a point, and a point for a comma."""
    return "," if mark == "." else "."


#: How numbers are written where nothing tells.
POINT = Marks()


def is_written(column: Any) -> bool:
    """True for cells as they are written in a file of text.

    They are a column of pandas of the type ``ArrowDtype(pyarrow.large_string())``.
    """
    return str(getattr(column, "dtype", "")) == "large_string[pyarrow]"


def may_be_numbers(column: Any) -> bool:
    """True for text that may be numbers: as it is written, or beside cells of other types."""
    if is_written(column) or getattr(column.dtype, "kind", "") != "O":
        return is_written(column)
    types = Cells(column).types
    return str in types and len(types) > 1


def may_hold_text(column: Any) -> bool:
    """False for a column of numbers, booleans, times or durations by its type."""
    return getattr(column.dtype, "kind", "O") not in "biufcmM"


def missing_in(column: Any) -> AnyArray:
    """(n,) True for the gaps of a column of pandas, however they are spelled."""
    missing: AnyArray = Cells(column).missing if may_hold_text(column) else column.isna().to_numpy()
    return missing


def text_of(cell: object) -> str:
    """A cell as text without blanks around, the same whichever type a file gave it.

    Whole numbers have no decimal point, as gaps turn integers into floats; a date at midnight has
    no time.
    """
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float | np.floating | Decimal) and math.isfinite(cell) and cell % 1 == 0:
        return str(int(cell))
    text = str(cell).strip()
    midnight = _MIDNIGHT.fullmatch(text) if isinstance(cell, date | np.datetime64) else None
    return midnight[1] if midnight else text


def number_of(cell: object, marks: Marks, *, strict: bool = False) -> float:
    """Number that a cell is, NaN if it is none.

    Unless the reading is ``strict``, text that is no number by the marks is one by the other mark
    if it can mean nothing else, and True and False are 1 and 0.
    """
    if not isinstance(cell, str):
        if isinstance(cell, bool | np.bool_):
            return math.nan if strict else float(cell)
        if not isinstance(cell, Real | Decimal):
            return math.nan
        try:
            return float(cell)
        except OverflowError:  # of a whole number
            return math.inf
    decimal, thousands = marks
    if thousands and _GROUPED[decimal].fullmatch(cell):
        return float(cell.replace(thousands, "").replace(decimal, "."))
    if _PLAIN[decimal].fullmatch(cell):
        return float(cell.replace(decimal, "."))
    other = other_mark(decimal)
    if not strict and _PLAIN[other].fullmatch(cell) and not may_be_grouped(cell):
        return float(cell.replace(other, "."))
    word = None if strict else TRUTH.get(cell.casefold())
    return math.nan if word is None else float(word == "True")


def may_be_grouped(cell: object) -> bool:
    """True for text of a number whose marks may separate thousands, such as 1.250."""
    return isinstance(cell, str) and _MAY_BE_GROUPED.fullmatch(cell) is not None


def is_number_by_either(text: str) -> bool:
    """True for a number by a decimal point or comma, with or without thousands."""
    return any(_GROUPED[mark].fullmatch(text) for mark in ".,")


def spelling_in(text: str, spellings: Collection[str]) -> str:
    """The one of some spellings that a text is another form of, or the text itself.

    Another form of a whole number is 1.0, but not the code 01; where True and False, or 1 and
    0, are all the spellings, each of these words in any case.
    """
    if text in spellings:
        return text
    whole = text_of(math.nan if is_code(text) else number_of(text, POINT, strict=True))
    if whole in spellings:
        return whole
    truth: dict[str | None, str] = {TRUTH.get(form.casefold()): form for form in spellings}
    return text if None in truth else truth.get(TRUTH.get(text.casefold()), text)


def is_rounded(cell: object) -> bool:
    """True for a whole number that floats round."""
    if isinstance(cell, str):  # which int() refuses if it is very long
        return _WHOLE.fullmatch(cell) is not None and Decimal(cell) != float(cell)
    if isinstance(cell, int | np.integer) or (isinstance(cell, Decimal) and cell % 1 == 0):
        return abs(int(cell)) > EXACT and number_of(cell, POINT) != int(cell)
    return False


def is_code(cell: object) -> bool:
    """True for text of a code, such as 007 or 1E05."""
    return isinstance(cell, str) and re.fullmatch(CODE, cell) is not None


class Cells:
    """Cells of a column that may hold text.

    Parameters
    ----------
    column : pandas.Series
        Cells as they are written, or a column of objects, text or categories.
    """

    def __init__(self, column: Any) -> None:
        self.column = column
        self.written = is_written(column)
        self._plain: dict[str, AnyArray | None] = {}
        self._numbers: dict[tuple[Marks, bool], AnyArray] = {}

    @cached_property
    def types(self) -> set[type]:
        """Types of the cells that are there."""
        return {str} if self.written else set(map(type, self.column.dropna()))

    @cached_property
    def _arrow(self) -> Any:
        """Written cells without blanks around, null for a gap."""
        compute, arrow = require("pyarrow.compute", "Reading text"), require("pyarrow", "x")
        cells = compute.utf8_trim_whitespace(self.column.array.__arrow_array__())
        gaps = arrow.array(sorted(GAPS), arrow.large_string())
        return compute.if_else(compute.is_in(cells, gaps), arrow.scalar(None, cells.type), cells)

    @cached_property
    def _coded(self) -> tuple[AnyArray, list[Any], list[str]]:
        """Codes, different cells, and spellings of gaps."""
        if self.written:
            encoded = self._arrow.combine_chunks().dictionary_encode()
            codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            return codes.astype(np.intp), encoded.dictionary.to_pylist(), []
        pandas = require("pandas", "A table of mixed columns")
        values = self.column.to_numpy(dtype=object)
        codes, cells = pandas.factorize(values)
        if len(self.types) > 1:  # 1 and True are equal, their texts are not
            places: dict[Any, int] = {}
            for row in np.flatnonzero(codes >= 0):
                codes[row] = places.setdefault((type(values[row]), values[row]), len(places))
            cells = [cell for _, cell in places]
        place: dict[Any, int] = {}
        gaps, renumbered = [], np.full(len(cells) + 1, -1)  # the last is that of gaps
        for k, cell in enumerate(cells):
            cell = str(cell).strip() if isinstance(cell, str) else cell
            if isinstance(cell, str) and cell in GAPS:
                gaps.append(cell)
            else:
                renumbered[k] = place.setdefault((type(cell), cell), len(place))
        return renumbered[codes], [cell for _, cell in place], gaps

    @property
    def codes(self) -> AnyArray:
        """(n,) place of each cell in ``different``, -1 for a gap."""
        return self._coded[0]

    @property
    def different(self) -> list[Any]:
        """The different cells in the order of their first; text has no blanks around it."""
        return self._coded[1]

    @cached_property
    def gaps(self) -> list[str]:
        """Spellings of gaps, but for empty cells."""
        if not self.written:
            return [*filter(None, self._coded[2])]
        compute = require("pyarrow.compute", "Reading text")
        if self._arrow.null_count == 0:
            return []
        raw = self.column.array.__arrow_array__().filter(compute.is_null(self._arrow))
        return [*filter(None, (text.strip() for text in raw.unique().to_pylist() if text))]

    @property
    def are_text(self) -> bool:
        """True if no cell is of another type than text."""
        return all(issubclass(kind, str) for kind in self.types)

    @property
    def missing(self) -> AnyArray:
        """(n,) True for gaps."""
        if self.written:
            nulls: AnyArray = self._arrow.is_null().to_numpy(zero_copy_only=False)
            return nulls
        return self.codes < 0 if str in self.types else self.column.isna().to_numpy()

    def cell_values(self, values: Any, dtype: Any = float) -> AnyArray:
        """(n,) values of the cells from those of the different cells, NaN for a gap."""
        out = np.empty(len(values) + 1, dtype=dtype)
        out[:-1], out[-1] = values, np.nan
        return out[self.codes]

    def numbers(self, marks: Marks, *, strict: bool = False) -> AnyArray:
        """(n,) numbers, NaN for gaps and for what is no number, as of `number_of`."""
        if self.written:
            floats = self._plain_numbers(marks.decimal)
            if floats is not None:
                return floats
        elif self.types and all(issubclass(kind, float | np.floating) for kind in self.types):
            return np.asarray(self.column.to_numpy(dtype=float, na_value=np.nan))
        if (marks, strict) not in self._numbers:
            values = [number_of(cell, marks, strict=strict) for cell in self.different]
            self._numbers[marks, strict] = self.cell_values(values)
        return self._numbers[marks, strict]

    def _plain_numbers(self, decimal: str) -> AnyArray | None:
        if decimal not in self._plain:
            self._plain[decimal] = self._cast(decimal)
        return self._plain[decimal]

    def _cast(self, decimal: str) -> AnyArray | None:
        """Numbers of written cells with at most one mark, the decimal one; None if not all are."""
        compute, arrow = require("pyarrow.compute", "Reading text"), require("pyarrow", "x")
        cells = self._arrow
        if decimal == ",":
            if compute.any(compute.match_substring(cells, ".")).as_py():
                return None
            cells = compute.replace_substring(cells, ",", ".")
        with suppress(arrow.ArrowInvalid):
            for part in (cells.slice(0, 8), cells):  # many cells of another type take long to fail
                floats = compute.cast(part, arrow.float64())
            if not compute.any(compute.is_nan(floats)).as_py():  # which cells like nan(x) are, too
                values: AnyArray = floats.to_numpy(zero_copy_only=False)
                return values
        return None

    def share(self, decimal: str) -> float:
        """Share of cells that are numbers by a decimal mark; the other may separate thousands."""
        if not self.written:
            floats = self.numbers(Marks(decimal, other_mark(decimal)), strict=True)
            present = ~self.missing
            return float(np.mean(~np.isnan(floats[present]))) if present.any() else 0.0
        if decimal == "." and self._plain_numbers(".") is not None:
            return float(self._arrow.null_count < len(self._arrow))
        compute = require("pyarrow.compute", "Reading text")
        return (
            compute.mean(compute.match_substring_regex(self._arrow, NUMBER[decimal])).as_py() or 0.0
        )

    def holds_only_numbers(self, decimal: str) -> bool:
        """True if all cells are numbers by a decimal mark."""
        if self.written:  # most columns of text begin with a word
            first = self._arrow.drop_null().slice(0, 8).to_pylist()
            if not all(_GROUPED[decimal].fullmatch(cell) for cell in first):
                return False
        return self.share(decimal) == 1.0

    @property
    def tells_comma(self) -> bool:
        """True if most cells are numbers with a comma that is a decimal mark."""
        return self.holds(",") and self.share(",") > 0.5 >= self.share(".")

    @property
    def tells_point(self) -> bool:
        """True if most cells are numbers with a point that is a decimal mark."""
        return self.share(".") > 0.5 >= self.share(",")

    @property
    def has_thousands(self) -> bool:
        """True for numbers with a decimal comma, some of them with points."""
        return self.first_with(".") is not None and self.share(",") > 0.5

    def holds(self, mark: str) -> bool:
        """True if some text, perhaps of a gap, holds a mark; most files have no comma."""
        if not self.written:
            return self.first_with(mark) is not None
        compute = require("pyarrow.compute", "Reading text")
        raw = self.column.array.__arrow_array__()  # blanks need not be taken off
        return bool(compute.any(compute.match_substring(raw, mark)).as_py())

    def first(self, test: Any) -> tuple[int, str] | None:
        """Row and text of the first cell that passes a test; None if none does."""
        for k, cell in enumerate(self.different):
            if test(cell):
                return int((self.codes == k).argmax()), text_of(cell)
        return None

    def first_with(self, mark: str) -> tuple[int, str] | None:
        """Row and text of the first text that holds a mark."""
        if self.written:
            compute = require("pyarrow.compute", "Reading text")
            row = compute.index(compute.match_substring(self._arrow, mark), True).as_py()
            return None if row < 0 else (row, self._arrow[row].as_py())
        return self.first(lambda cell: isinstance(cell, str) and mark in cell)

    def first_code(self) -> tuple[int, str] | None:
        """Row and text of the first code."""
        if not self.written:
            return self.first(is_code)
        compute = require("pyarrow.compute", "Reading text")
        floats = self._plain_numbers(".")
        if floats is not None and not (floats == np.floor(floats)).any():  # which is faster
            return None
        row = compute.index(compute.match_substring_regex(self._arrow, CODE), True).as_py()
        return None if row < 0 else (row, self._arrow[row].as_py())


def marks_of(columns: Iterable[Any], decimal: str | Sequence[str] | None) -> Marks:
    """Marks of a table, by its columns that may hold numbers in text.

    The decimal mark is a comma if most cells of some column can be read as numbers only with it,
    and of none only with a point. The other mark separates thousands if some number has it, or if
    the decimal mark is given by itself; a pair is both marks. Each column is looked at by itself,
    so that one is in memory at a time.
    """
    if decimal is not None:
        mark, *thousands = decimal if len(decimal) in (1, 2) else [str(decimal)]
        check_known(mark, "decimal", (".", ","))
        other = other_mark(mark)
        (given,) = thousands or [other]
        check_known(given, "thousands", ("", other))
        return Marks(mark, given)
    columns = [column for column in columns if may_be_numbers(column)]
    if not any(Cells(column).tells_comma for column in columns) or tell_point(columns):
        return Marks()
    in_thousands = any(Cells(column).has_thousands for column in columns)
    return Marks(",", "." if in_thousands else "")


def tell_point(columns: Iterable[Any]) -> bool:
    """True if a column is of numbers with a point that is a decimal mark."""
    return any(Cells(column).tells_point for column in columns if may_be_numbers(column))
