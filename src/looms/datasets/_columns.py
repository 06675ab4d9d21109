"""Types of columns of text, the same in every format: numbers, true and false, dates, or text.

All cells of a column together decide, also if they are read in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from looms._number_text import ANY_NUMBER, NUMBER, UNSIGNED, like_a_number
from looms._words import listed
from looms.datasets._numbers import AS_TEXT, EXACT, left_as_text, number
from looms.datasets._table import Columns

#: Cells that stand for a missing value: those of pyarrow, and the question mark of UCI's files.
MISSING = ("", "?", "#N/A", "N/A", "NA", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null")

#: Kinds of numbers that `Signs` tells apart; "plain" has a decimal point and no thousands.
_KINDS = {
    **NUMBER,
    "plain": rf"^[ \t]*[+-]?(?:{UNSIGNED})[ \t]*$",
    "any": ANY_NUMBER,
    "like": like_a_number(r"\p{Nd}"),
}
#: Types other than numbers that pyarrow finds in text, in its order.
_OTHER_TYPES: list[pa.DataType] = [
    *(pa.null(), pa.bool_(), pa.date32(), pa.time32("s")),
    *(pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("s", "ns")),
]
_BOOLEAN = r"^(?:0|1|true|True|TRUE|false|False|FALSE)$"


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
    others : types besides numbers and text that all cells have.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.first: Cell | None = None
        self.unlike: dict[str, Cell] = {}
        self.marks: dict[str, Cell] = {}
        self.rounded: dict[str, tuple[Cell, str]] = {}
        self.fractions: set[str] = set()
        self.others = [*_OTHER_TYPES]

    def add(self, column: pa.Array) -> None:
        """Add the next cells, pyarrow strings with null for a missing one."""

        def cell(row: int) -> Cell:
            return Cell(self.n_rows + row, column[row].as_py())

        self.others = [kind for kind in self.others if _as_type(column, kind) is not None]
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
                numbers = column if mark in plain else _plain(column, mark)
                if mark not in self.fractions and not _whole(numbers):
                    self.fractions.add(mark)
                rounded = first_rounded(numbers, floats if mark in plain else _floats(numbers))
                if rounded is not None:
                    self.rounded[mark] = cell(rounded[0]), rounded[1]
        self.n_rows += len(column)

    def is_all(self, kind: str) -> bool:
        """True if there are cells and all are numbers of this kind."""
        return self.first is not None and kind not in self.unlike


@dataclass(frozen=True)
class TextTypes:
    """Types of columns of text.

    Attributes
    ----------
    whole : names of the columns of numbers; True for whole numbers.
    others : types of the columns of other types; the rest is text.
    decimal : decimal mark.
    notes : notes like those of `Table`.
    words : as in `Table`.
    """

    whole: dict[str, bool]
    others: dict[str, pa.DataType]
    decimal: str
    notes: tuple[str, ...]
    words: dict[str, tuple[int, str]]

    def columns(self, rows: pa.Table, first: int = 0) -> Columns:
        """Typed columns of some rows, pyarrow strings."""
        cells = gaps_as_null(rows)
        for name, whole in self.whole.items():
            cells[name] = numbers(cells[name], self.decimal, whole)
        for name, kind in self.others.items():
            cells[name] = _as_type(cells[name], kind)
        frame = pa.table(cells).to_pandas(date_as_object=False)
        return Columns(frame, lambda name: rows[name].to_pylist(), words=self.words)


def text_types(
    tables: Iterable[pa.Table], decimal: str | None = None, *, other_decimal: bool = False
) -> TextTypes:
    """Types of columns by all their cells.

    All columns have the same decimal mark: a comma if some column can only be read with a comma
    and none only with a point. The other mark separates thousands if the decimal mark is given or
    is a comma.

    Parameters
    ----------
    tables : the rows, as pyarrow tables of strings.
    decimal : the decimal mark, or None to detect it.
    other_decimal : whether a comma is likely, so that 1.234 may also mean 1234.
    """
    signs: dict[str, Signs] = {}
    unknown = dict[str, None]()  # columns with a question mark
    for rows in tables:
        for name, cells in gaps_as_null(rows).items():
            signs.setdefault(name, Signs()).add(cells)
            if pc.any(pc.equal(rows[name], "?")).as_py():
                unknown[name] = None
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
            why = "is not a number" + f" with the decimal mark {decimal!r}" * of.is_all("any")
            cell = of.unlike.get("any", of.unlike[kind])
            notes.append(left_as_text(name, cell.row, cell.text, why))
    if unknown:
        notes.append(f"'?' is read as a gap, in {listed(unknown, 10)}")
    if left:
        notes.insert(0, _left(left, signs, decimal if is_set else None))
    doubtful = not is_set and (decimal == "," or (other_decimal and not only_point))
    for name in whole if doubtful else ():
        marks = signs[name].marks
        if name in written[","] and "." in marks and "," not in marks:
            notes.append(_doubt(name, marks["."], decimal, whole[name]))
    others = {n: of.others[0] for n, of in signs.items() if of.others and n not in whole}
    words = {
        name: of.unlike.get("any", of.unlike[kind])
        for name, of in signs.items()
        if kind in of.unlike and name not in others
    }
    at = {name: (cell.row, cell.text) for name, cell in words.items()}
    return TextTypes(whole, others, decimal, tuple(notes), at)


def _left(names: list[str], signs: dict[str, Signs], decimal: str | None) -> str:
    """Note on columns of numbers that are text because of their decimal mark."""
    cell = min(signs[names[0]].marks.values(), key=lambda cell: cell.row)
    columns = f"column {names[0]!r} is" if len(names) == 1 else f"columns {listed(names)} are"
    why = (
        "may be a decimal mark or a thousands separator, and the file does not tell; choose by "
        "decimal=..., a comma or a point"
        if decimal is None
        else f"is not the decimal mark {decimal!r} that was given"
    )
    return f"{columns} {AS_TEXT}: the mark in {cell.text!r} (data row {cell.row + 1}) {why}"


def _doubt(name: str, cell: Cell, decimal: str, whole: bool) -> str:
    """Note on a column of numbers whose point may be something else."""
    other = "separates thousands" if decimal == "." else "is a decimal mark"
    return (
        f"column {name!r} has {cell.text!r} (data row {cell.row + 1}), which is read as "
        f"{numbers(pa.array([cell.text]), decimal, whole)[0].as_py()}; if the point {other}, set "
        "decimal=..."
    )


def gaps_as_null(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Cells of each column of a table of strings, null for a missing one."""
    # not a null for all rows: with it pyarrow 15 to 22 read other cells in a slice of a table
    missing, gaps = pa.array(MISSING), pa.nulls(len(rows), pa.string())
    return {n: pc.if_else(pc.is_in(rows[n], missing), gaps, rows[n]) for n in rows.column_names}


def numbers(column: pa.Array, decimal: str = ".", whole: bool | None = None) -> pa.Array:
    """Numbers in cells of text, as integers if they are ``whole``, by default if all are."""
    plain = _plain(column, decimal)
    is_whole = _whole(plain) if whole is None else whole
    return pc.cast(plain, pa.int64() if is_whole else pa.float64())


def first_rounded(column: pa.Array, floats: pa.Array | None = None) -> tuple[int, str] | None:
    """First row whose number, an integer or a plain text, floats round, and the reason."""
    floats = pc.cast(column, pa.float64(), safe=False) if floats is None else floats
    for row in pc.indices_nonzero(pc.greater_equal(pc.abs(floats), float(EXACT))).to_pylist():
        try:
            number(str(column[row].as_py()))
        except ValueError as error:
            return row, str(error)
    return None


def _row(column: pa.Array, pattern: str, *, matches: bool = True) -> int | None:
    """First row whose cell matches, or does not match."""
    row: int = pc.index(pc.match_substring_regex(column, pattern), matches).as_py()
    return None if row < 0 else row


def _plain(column: pa.Array, decimal: str) -> pa.Array:
    """Numbers rewritten with a decimal point and no thousands separator."""
    plain = pc.replace_substring(column, "," if decimal == "." else ".", "")
    plain = pc.utf8_trim(pc.replace_substring(plain, decimal, "."), characters=" \t")
    return pc.utf8_ltrim(plain, characters="+")


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Cells converted to a type; None if some are not of that type."""
    with suppress(pa.ArrowInvalid):
        pc.cast(column.slice(0, 8), kind)  # many cells of another type take long to fail
        return pc.cast(column, kind)
    return None


def _floats(column: pa.Array) -> pa.Array | None:
    """Plain numbers with a decimal point as floats; None if some cells are not such numbers."""
    return _cast(column, pa.float64())


def _whole(plain: pa.Array) -> bool:
    """True if all are 64-bit integers; floats hold fractions, and what is beyond 64 bits."""
    return _cast(plain, pa.int64()) is not None


def _as_type(cells: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Cells converted to a type of `_OTHER_TYPES`; None if some are not of that type."""
    if pa.types.is_null(kind):
        return pa.nulls(len(cells)) if cells.null_count == len(cells) else None
    if pa.types.is_boolean(kind) and _row(cells, _BOOLEAN, matches=False) is not None:
        return None
    if not pa.types.is_time(kind):
        return _cast(cells, kind)
    times = _cast(pc.binary_join_element_wise("1970-01-01", cells, " "), pa.timestamp("s"))
    return None if times is None else pc.cast(times, kind)
