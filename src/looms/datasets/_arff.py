"""ARFF files: dense rows of numbers, nominal values, text and dates, as they are declared.

This reader is strict. SciPy's cannot read text or names in double quotes, and without an error it
cuts rows that are too long, reads a missing nominal value as the value ``?``, rounds whole numbers
and makes 400 digits infinite; scikit-learn's is private.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas

from looms.datasets._bytes import read_text
from looms.datasets._table import WRITTEN, TableError, check_columns, number, shown
from looms.tables._cells import EXACT, is_rounded

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# The values of a nominal attribute end at a brace that is not quoted; a comment may follow a type.
_ATTRIBUTE = re.compile(
    rf"@attribute\s+({_QUOTED}|[^\s'\"]\S*)\s+"
    rf"(\{{(?:{_QUOTED}|[^}}])*+\}}|[^{{%\s](?:{_QUOTED}|[^%])*+)\s*(?:%.*)?",
    re.IGNORECASE,
)
# A blank is never given back by \s*+, so what begins with a quotation mark must end with it.
_CELL = re.compile(rf"\s*+({_QUOTED}|[^,'\"][^,]*|)\s*(,|$)")
#: Parts of a format of dates of Java, and what Python's ``strptime`` has for them.
_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
_PARTS = {
    **{"yyyy": "%Y", "yy": "%y", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d"},
    **{"HH": "%H", "H": "%H", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S"},
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", **{mark: mark for mark in "\\'\"%"}}


class _Attribute(NamedTuple):
    """Name, value of a cell (ValueError with the reason if it is none), and type of the column."""

    name: str
    value: Callable[[str], Any]
    dtype: Any


def read_arff(path: Path, max_bytes: int) -> pandas.DataFrame:
    """Cells of an ARFF file: numbers, dates, and nominal values and text as they are written;
    ``?`` is missing."""
    # Text between quotation marks may hold what splitlines() takes for the end of a line.
    text = read_text(path, max_bytes).replace("\r\n", "\n").replace("\r", "\n")
    attributes: list[_Attribute] = []
    rows: list[list[Any]] | None = None
    for where, line in enumerate(text.split("\n"), start=1):
        line = line.strip(" \t")
        if not line or line.startswith("%"):
            continue
        word = line.split(maxsplit=1)[0].lower()
        try:
            if rows is not None:
                rows.append(_row(line, attributes))
            elif word == "@data":
                rows = []
                check_columns([attribute.name for attribute in attributes], path)
            elif word != "@relation":
                attributes.append(_attribute(line))
        except TableError:
            raise
        except ValueError as error:
            advice = "Correct the line, or get the file again."
            raise TableError(path, f"line {where}: {error}", advice) from None
    if rows is None:
        problem = "there is no line @data"
        raise TableError(path, problem, "Get the whole file, or check its format.")
    columns = zip(*rows, strict=True) if rows else [()] * len(attributes)
    pairs = zip(attributes, columns, strict=True)
    return pandas.DataFrame({name: _column(cells, dtype) for (name, _, dtype), cells in pairs})


def _row(line: str, attributes: Sequence[_Attribute]) -> list[Any]:
    """Values of a row."""
    if line.startswith("{"):
        raise ValueError("this is a sparse row, which is not read; convert the file to svmlight")
    cells = list(_cells(line))
    if len(cells) != len(attributes):
        raise ValueError(f"there are {len(cells)} values for {len(attributes)} attributes")
    row = []
    for cell, attribute in zip(cells, attributes, strict=True):
        try:
            row.append(None if cell is None else attribute.value(cell))
        except ValueError as error:
            raise ValueError(f"{shown(str(cell))} of {attribute.name!r} {error}") from None
    return row


def _cells(text: str) -> Iterator[str | None]:
    """Values between commas, None for ``?``."""
    position = 0
    while match := _CELL.match(text, position):
        yield None if match[1].strip() == "?" else _unquoted(match[1].strip())
        if not match[2]:
            return
        position = match.end()
    rest = shown(text[position:].lstrip())
    raise ValueError(f"{rest} has a quotation mark that is out of place or not closed")


def _unquoted(text: str) -> str:
    """A value without its quotation marks and escapes."""
    if text[:1] not in ("'", '"'):
        return text

    def character(match: re.Match[str]) -> str:
        if len(match[1]) > 1:
            return chr(int(match[1][1:], 16))
        if match[1] not in _ESCAPED:
            raise ValueError(f"{shown(text)} has the unknown escape {match[0]!r}")
        return _ESCAPED[match[1]]

    plain = _ESCAPE.sub(character, text[1:-1])
    try:  # two escapes may be the halves of one character
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError(f"{shown(text)} has an escape of half of a character") from None


def _attribute(line: str) -> _Attribute:
    """The attribute that a line declares."""
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise ValueError(f"{shown(line)} is no declaration of a name and a type")
    name, kind = _unquoted(match[1]), match[2].strip()
    word, *rest = kind.split(maxsplit=1)
    if kind.startswith("{"):
        return _Attribute(name, partial(_declared, set(_cells(kind[1:-1]))), WRITTEN)
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, _number, float)
    if kind.lower() == "string":
        return _Attribute(name, str, WRITTEN)
    if word.lower() == "date":
        pattern = _unquoted("".join(rest))
        return _Attribute(name, partial(_date, _format_of(pattern), pattern), "M8[us]")
    raise ValueError(f"attribute {name!r} has the type {shown(kind)}")


def _declared(nominal: Collection[str | None], cell: str) -> str:
    """A cell of a nominal attribute."""
    if cell not in nominal:
        raise ValueError("is not a declared value")
    return cell


def _number(cell: str) -> float:
    """A number; an integer if it is written so and floats hold it, or would round it."""
    value = number(cell)
    is_whole = cell.lstrip("+-").isdecimal() and abs(value) <= EXACT
    return int(Decimal(cell)) if is_whole or is_rounded(cell) else value


def _format_of(pattern: str) -> str:
    """Format of ``strptime`` for Java's format of dates; empty for an empty one."""

    def part(match: re.Match[str]) -> str:
        if match[2] and match[0] not in _PARTS:
            raise ValueError(f"the format of dates {pattern!r} has the part {match[0]!r}")
        literal = match[0] if match[1] is None else match[1].replace("''", "'") or "'"
        return _PARTS.get(match[0], literal.replace("%", "%%"))

    form = _PATTERN.sub(part, pattern)
    if pattern and not all(re.search(rf"%[{letter}]", form) for letter in ("Yy", "m", "d")):
        raise ValueError(f"the format of dates {pattern!r} is not of whole dates")
    return form


def _date(form: str, pattern: str, cell: str) -> datetime:
    """A date by its declared format."""
    with suppress(ValueError):
        value = datetime.strptime(cell, form) if form else datetime.fromisoformat(cell)
        if value.tzinfo is None:
            return value
    raise ValueError(f"is not a date like {pattern or '2006-07-16 or 2006-07-16T12:30'}")


def _column(cells: Sequence[Any], dtype: Any) -> Any:
    """Column of an attribute; whole numbers that floats would round stay integers of Python."""
    if dtype is not float:
        return pandas.Series(np.array(cells, dtype) if dtype == "M8[us]" else cells, dtype=dtype)
    if any(map(is_rounded, cells)):
        return pandas.Series(cells, dtype=object)
    return np.array([np.nan if cell is None else cell for cell in cells])
