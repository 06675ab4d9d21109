"""Types of columns of text: numbers, true and false, dates, or text."""

from __future__ import annotations

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

#: By decimal mark, numbers whose thousands may be parted by the other mark.
_NUMBER = {
    mark: rf"^[ \t]*[+-]?(?:[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?:[{mark}]\d*)?|"
    rf"{UNSIGNED.replace(chr(92) + '.', f'[{mark}]')})[ \t]*$"
    for mark, other in ((".", ","), (",", "."))
}
#: Numbers with a point, and nothing between thousands.
_PLAIN_NUMBER = rf"^[ \t]*[+-]?(?:{UNSIGNED})[ \t]*$"

_BLANKS = r"[ \t\x{a0}\x{202f}]"
#: What a reader of many countries, or a program, takes for a number.
_LIKE_A_NUMBER = (
    rf"^{_BLANKS}*[-+\x{{2212}}]?{_BLANKS}*[$€£¥]?{_BLANKS}*"
    r"(?:0[xX][0-9a-fA-F.pP]+|\p{Nd}+(?:_\p{Nd}+)*|\p{Nd}{1,3}(?:[.,'’ \x{a0}\x{202f}]\p{Nd}{3})+)"
    rf"(?:[.,]\p{{Nd}}*)?(?:[eE][-+]?\p{{Nd}}+)?{_BLANKS}*[%‰$€£¥]?{_BLANKS}*$"
)


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers by name, the decimal mark, and notes on other columns."""

    numbers: dict[str, pa.Array]
    decimal: str
    notes: tuple[str, ...]


def numbers_of(
    cells: dict[str, pa.Array], decimal: str | None = None, *, other_decimal: bool = False
) -> Numbers:
    """Columns of which all cells are numbers, as arrays of pyarrow.

    The decimal mark is a comma if some column can only be read with a comma and none only with
    a point, for all columns. The other mark separates thousands if the mark is given or a comma.

    Parameters
    ----------
    cells : arrays of strings by name, null for a missing cell.
    decimal : the decimal mark, or None to detect it.
    other_decimal : whether a comma is likely, so that 1.234 may also be 1234.
    """
    written = {mark: {name for name in cells if _all(cells[name], _NUMBER[mark])} for mark in ".,"}
    only_point, only_comma = written["."] - written[","], written[","] - written["."]
    is_set = decimal is not None
    if decimal is None:
        commas = not only_point and any(_row(cells[name], ",") is not None for name in only_comma)
        decimal = "," if commas else "."
    pattern = _NUMBER[decimal] if is_set or decimal == "," else _PLAIN_NUMBER
    numbers, notes, left = {}, [], []
    for name, column in cells.items():
        if _all(column, pattern):
            values = _values(name, column, decimal)
            if not isinstance(values, str):
                numbers[name] = values
            else:
                notes.append(values)
        elif name in written["."] | written[","]:
            left.append(name)
        elif _all(column, _LIKE_A_NUMBER):
            first = _row(column, "|".join(_NUMBER.values()), matches=False) or 0
            notes.append(left_as_text(name, first, column[first].as_py(), "is not a number"))
    if left:
        first = _row(cells[left[0]], "[.,]") or 0
        columns = f"column {left[0]!r} is" if len(left) == 1 else f"columns {listed(left)} are"
        why = (
            f"is not the decimal mark {decimal!r} that was given"
            if is_set
            else "may be a decimal mark or part thousands, and the file does not tell; choose by "
            "decimal=..., a comma or a point"
        )
        shown = f"{cells[left[0]][first].as_py()!r} (data row {first + 1})"
        notes.insert(0, f"{columns} read as text: the mark in {shown} {why}")
    doubtful = not is_set and (decimal == "," or (other_decimal and not only_point))
    for name in numbers if doubtful else ():
        row = _row(cells[name], "[.]") if name in written[","] else None
        if row is not None and _row(cells[name], ",") is None:
            notes.append(
                f"column {name!r} has {cells[name][row].as_py()!r} (data row {row + 1}), which is "
                f"read as {numbers[name][row].as_py()}; if the point "
                + ("parts thousands" if decimal == "." else "is a decimal mark")
                + ", say so by decimal=..."
            )
    return Numbers(numbers, decimal, tuple(notes))


def _matches(column: pa.Array, pattern: str) -> pa.Array:
    pc = require("pyarrow.compute", "Reading tables of text")
    return pc.match_substring_regex(column, pattern)


def _all(column: pa.Array, pattern: str) -> bool:
    """True if there are cells and all match."""
    pc = require("pyarrow.compute", "Reading tables of text")
    return column.null_count < len(column) and bool(pc.all(_matches(column, pattern)).as_py())


def _row(column: pa.Array, pattern: str, *, matches: bool = True) -> int | None:
    """First row whose cell matches, or does not."""
    pc = require("pyarrow.compute", "Reading tables of text")
    row: int = pc.index(_matches(column, pattern), matches).as_py()
    return None if row < 0 else row


def _values(name: str, column: pa.Array, decimal: str) -> pa.Array | str:
    """Integers or floats, or a note if floats would round the cells."""
    pa = require("pyarrow", "Reading tables of text")
    pc = require("pyarrow.compute", "Reading tables of text")
    plain = pc.replace_substring(column, "," if decimal == "." else ".", "")
    plain = pc.utf8_trim(pc.replace_substring(plain, decimal, "."), characters=" \t")
    plain = pc.utf8_ltrim(plain, characters="+")
    floats = pc.cast(plain, pa.float64())
    for row in pc.indices_nonzero(pc.greater_equal(pc.abs(floats), float(EXACT))).to_pylist():
        try:
            number(plain[row].as_py())
        except ValueError as error:
            return left_as_text(name, row, column[row].as_py(), error)
    if _all(plain, "^-?[0-9]{1,19}$"):
        with suppress(pa.ArrowInvalid):  # beyond 64 bits, and floats hold them
            return pc.cast(plain, pa.int64())
    return floats
