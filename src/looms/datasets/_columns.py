"""Types of columns of text: numbers, true and false, dates, or text."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looms._optional import require
from looms._words import listed
from looms.datasets._numbers import EXACT, UNSIGNED, left_as_text, number

if TYPE_CHECKING:
    import pyarrow as pa

#: Cells that stand for a missing value: those of pyarrow, and the question mark of UCI's files.
MISSING = ("", "?", "#N/A", "N/A", "NA", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null")

#: By decimal mark, numbers whose thousands may be separated by the other mark.
_NUMBER = {
    mark: rf"^[ \t]*[+-]?(?:[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?:[{mark}]\d*)?|"
    rf"{UNSIGNED.replace(chr(92) + '.', f'[{mark}]')})[ \t]*$"
    for mark, other in ((".", ","), (",", "."))
}
#: Numbers with a decimal point and no thousands separator.
_PLAIN_NUMBER = rf"^[ \t]*[+-]?(?:{UNSIGNED})[ \t]*$"

_BLANKS = r"[ \t\x{a0}\x{202f}]"
#: What people in some country, or some program, would read as a number.
_LIKE_A_NUMBER = (
    rf"^{_BLANKS}*[-+\x{{2212}}]?{_BLANKS}*[$€£¥]?{_BLANKS}*"
    r"(?:0[xX][0-9a-fA-F.pP]+|\p{Nd}+(?:_\p{Nd}+)*|\p{Nd}{1,3}(?:[.,'’ \x{a0}\x{202f}]\p{Nd}{3})+)"
    rf"(?:[.,]\p{{Nd}}*)?(?:[eE][-+]?\p{{Nd}}+)?{_BLANKS}*[%‰$€£¥]?{_BLANKS}*$"
)


#: Kinds of numbers that `Signs` tells apart.
_ANY_NUMBER = "|".join(_NUMBER.values())
_KINDS = {
    **_NUMBER,
    "plain": _PLAIN_NUMBER,
    "any": _ANY_NUMBER,
    "like": f"{_LIKE_A_NUMBER}|{_ANY_NUMBER}",
}


@dataclass(frozen=True)
class Cell:
    """A cell of text, and its row in the data, from 0."""

    row: int
    text: str


class Signs:
    """First cells of a text column that decide its type, gathered from all cells by `add`.

    Attributes
    ----------
    first : the first cell that is not missing.
    unlike : for each kind of number, the first cell that is not of that kind. The kinds are ``.``
        and ``,``, the decimal marks; "plain"; "any", with either mark; "like", what a person may
        read as a number.
    marks : the first cell with a point, and the first with a comma.
    rounded : by decimal mark, the first cell that floats round, and the reason.
    fractions : decimal marks with which some cell is not a 64-bit integer.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.first: Cell | None = None
        self.unlike: dict[str, Cell] = {}
        self.marks: dict[str, Cell] = {}
        self.rounded: dict[str, tuple[Cell, str]] = {}
        self.fractions: set[str] = set()

    def add(self, column: pa.Array) -> Signs:
        """Add the next cells, pyarrow strings with null for a missing one; returns itself."""
        pc = require("pyarrow.compute", "Reading tables of text")

        def cell(row: int) -> Cell:
            return Cell(self.n_rows + row, column[row].as_py())

        if column.null_count < len(column):
            if self.first is None:
                self.first = cell(pc.index(pc.is_valid(column), True).as_py())
            for mark in {".", ","} - self.marks.keys():
                row = _row(column, f"[{mark}]")
                if row is not None:
                    self.marks[mark] = cell(row)
            # Most numbers are of all kinds: it takes a tenth of the time to see that of all cells.
            floats = _floats(column)
            plain: set[str] = set()
            if floats is not None and not pc.any(pc.is_nan(floats)).as_py():  # else nan(x), too
                plain = _KINDS.keys() - ({","} if "." in self.marks else set())
            for kind in _KINDS.keys() - self.unlike.keys() - plain:
                row = _row(column, _KINDS[kind], matches=False)
                if row is not None:
                    self.unlike[kind] = cell(row)
            for mark in {".", ","} - self.unlike.keys() - self.rounded.keys():
                is_plain = mark in plain
                numbers = column if is_plain else _plain(column, mark)
                if mark not in self.fractions and not _whole(numbers):
                    self.fractions.add(mark)
                rounded = _rounded(numbers, floats if is_plain else _floats(numbers))
                if rounded is not None:
                    self.rounded[mark] = cell(rounded[0]), rounded[1]
        self.n_rows += len(column)
        return self

    def is_all(self, kind: str) -> bool:
        """True if there are cells and all are numbers of this kind."""
        return self.first is not None and kind not in self.unlike


@dataclass(frozen=True)
class NumberTypes:
    """Names of the number columns (True for whole numbers), decimal mark, and notes."""

    whole: dict[str, bool]
    decimal: str
    notes: tuple[str, ...]

    def values(self, name: str, cells: pa.Array) -> pa.Array:
        """Numbers in the cells of a column, as integers or floats."""
        return _values(cells, self.decimal, self.whole[name])


def number_types(
    signs: Mapping[str, Signs], decimal: str | None = None, *, other_decimal: bool = False
) -> NumberTypes:
    """Columns whose cells are all numbers.

    All columns have the same decimal mark: a comma if some column can only be read with a comma
    and none only with a point. The other mark separates thousands if the decimal mark is given or
    is a comma.

    Parameters
    ----------
    signs : signs of the columns, by name.
    decimal : the decimal mark, or None to detect it.
    other_decimal : whether a comma is likely, so that 1.234 may also mean 1234.
    """
    pa = require("pyarrow", "Reading tables of text")
    written = {mark: {name for name in signs if signs[name].is_all(mark)} for mark in ".,"}
    only_point, only_comma = written["."] - written[","], written[","] - written["."]
    is_set = decimal is not None
    if decimal is None:
        commas = not only_point and any("," in signs[name].marks for name in only_comma)
        decimal = "," if commas else "."
    kind = decimal if is_set or decimal == "," else "plain"
    whole: dict[str, bool] = {}
    notes, left = [], []
    for name, of in signs.items():
        if of.is_all(kind):
            if decimal in of.rounded:
                cell, reason = of.rounded[decimal]
                notes.append(left_as_text(name, cell.row, cell.text, reason))
            else:
                whole[name] = decimal not in of.fractions
        elif name in written["."] | written[","]:
            left.append(name)
        elif of.first is not None and of.is_all("like"):
            cell = of.unlike.get("any", of.first)
            notes.append(left_as_text(name, cell.row, cell.text, "is not a number"))
    if left:
        cell = min(signs[left[0]].marks.values(), key=lambda cell: cell.row)
        columns = f"column {left[0]!r} is" if len(left) == 1 else f"columns {listed(left)} are"
        why = (
            f"is not the decimal mark {decimal!r} that was given"
            if is_set
            else "may be a decimal mark or a thousands separator, and the file does not tell; "
            "choose by decimal=..., a comma or a point"
        )
        shown = f"{cell.text!r} (data row {cell.row + 1})"
        notes.insert(0, f"{columns} read as text: the mark in {shown} {why}")
    doubtful = not is_set and (decimal == "," or (other_decimal and not only_point))
    for name in whole if doubtful else ():
        marks = signs[name].marks
        if name in written[","] and "." in marks and "," not in marks:
            cell = marks["."]
            value = _values(pa.array([cell.text]), decimal, whole[name])[0].as_py()
            notes.append(
                f"column {name!r} has {cell.text!r} (data row {cell.row + 1}), which is "
                f"read as {value}; if the point "
                + ("separates thousands" if decimal == "." else "is a decimal mark")
                + ", set decimal=..."
            )
    return NumberTypes(whole, decimal, tuple(notes))


def _row(column: pa.Array, pattern: str, *, matches: bool = True) -> int | None:
    """First row whose cell matches, or does not match."""
    pc = require("pyarrow.compute", "Reading tables of text")
    row: int = pc.index(pc.match_substring_regex(column, pattern), matches).as_py()
    return None if row < 0 else row


def _plain(column: pa.Array, decimal: str) -> pa.Array:
    """Numbers rewritten with a decimal point and no thousands separator."""
    pc = require("pyarrow.compute", "Reading tables of text")
    plain = pc.replace_substring(column, "," if decimal == "." else ".", "")
    plain = pc.utf8_trim(pc.replace_substring(plain, decimal, "."), characters=" \t")
    return pc.utf8_ltrim(plain, characters="+")


def _values(column: pa.Array, decimal: str, whole: bool) -> pa.Array:
    pa = require("pyarrow", "Reading tables of text")
    pc = require("pyarrow.compute", "Reading tables of text")
    return pc.cast(_plain(column, decimal), pa.int64() if whole else pa.float64())


def _floats(column: pa.Array) -> pa.Array | None:
    """Plain numbers with a decimal point as floats; None if some cells are not such numbers."""
    pa = require("pyarrow", "Reading tables of text")
    pc = require("pyarrow.compute", "Reading tables of text")
    with suppress(pa.ArrowInvalid):
        return pc.cast(column, pa.float64())
    return None


def _whole(plain: pa.Array) -> bool:
    """True if all are 64-bit integers."""
    pa = require("pyarrow", "Reading tables of text")
    pc = require("pyarrow.compute", "Reading tables of text")
    with suppress(pa.ArrowInvalid):  # a fraction, or beyond 64 bits, and floats hold them
        return pc.cast(plain, pa.int64()) is not None
    return False


def _rounded(plain: pa.Array, floats: pa.Array) -> tuple[int, str] | None:
    """First row whose number floats round, and the reason."""
    pc = require("pyarrow.compute", "Reading tables of text")
    for row in pc.indices_nonzero(pc.greater_equal(pc.abs(floats), float(EXACT))).to_pylist():
        try:
            number(plain[row].as_py())
        except ValueError as error:
            return row, str(error)
    return None
