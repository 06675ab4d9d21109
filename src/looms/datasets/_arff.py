"""ARFF files: dense rows of numbers, nominal values, text and ISO dates.

This reader is strict. SciPy's cannot read text or names in double quotes, and without an error it
cuts rows that are too long, reads a missing nominal value as the value ``?``, rounds whole numbers
and makes 400 digits infinite; scikit-learn's is private.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa

from looms.datasets._bytes import read_text
from looms.datasets._columns import numbers
from looms.datasets._numbers import RoundedError, bad_token, left_as_text, number
from looms.datasets._table import Columns, TableError, check_columns

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"\s*@attribute\s+({_QUOTED}|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
# A blank is never given back by \s*+, so what begins with a quotation mark must end with it.
_CELL = re.compile(rf"\s*+({_QUOTED}|[^,'\"][^,]*|)\s*(,|$)")
_KINDS = {"numeric": "number", "real": "number", "integer": "number", "string": "text"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", **{mark: mark for mark in "\\'\"%"}}


@dataclass(frozen=True)
class _Attribute:
    name: str
    kind: str  # "number", "nominal", "text" or "date"
    values: frozenset[str | None] = frozenset()


def read_arff(path: Path, max_bytes: int) -> Columns:
    """Read an ARFF file; ``?`` is missing, nominal values and text become strings.

    Numbers are typed like those of a CSV file, but a cell that is not a number is an error.
    """
    lines = _lines(read_text(path, max_bytes))
    attributes = list(_header(lines, path))
    check_columns([attribute.name for attribute in attributes], path)
    rows = [(where, line, _row(line, len(attributes), where, path)) for where, line in lines]
    texts, values, notes = {}, {}, []
    for j, attribute in enumerate(attributes):
        cells = texts[attribute.name] = [row[j] for _, _, row in rows]
        try:
            values[attribute.name], remarks = _column(attribute, cells)
        except _BadCell as bad:
            where, line, row = rows[bad.row]
            column = list(_cells(line, where, path))[j][1]
            raise bad_token(path, where, column, str(row[j]), str(bad)) from None
        notes += remarks
    return Columns(pandas.DataFrame(values), texts.__getitem__, tuple(notes))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and content of the lines, without empty ones and comments."""
    # Text between quotation marks may hold what splitlines() takes for the end of a line.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for where, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("%"):
            yield where, line


def _header(lines: Iterator[tuple[int, str]], path: Path) -> Iterator[_Attribute]:
    """Attributes of the header; reads the lines up to ``@data``."""
    for where, line in lines:
        keyword = line.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return
        if keyword == "@attribute":
            yield _attribute(line, where, path)
        elif keyword != "@relation":
            raise _bad_line(path, where, f"{line.strip()[:40]!r} is no declaration")
    raise TableError(path, "there is no line @data", "Get the whole file, or check its format.")


def _attribute(line: str, where: int, path: Path) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise _bad_line(path, where, "the declaration has no name and type")
    name = _unquoted(match[1], where, match.start(1) + 1, path)
    kind = match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        start = match.start(2) + 1
        values = _cells(line[: start + len(kind) - 2], where, path, start)
        return _Attribute(name, "nominal", frozenset(value for value, _ in values))
    word = kind.lower()
    if word not in _KINDS and not word.startswith("date"):
        raise _bad_line(path, where, f"attribute {name!r} has the type {kind[:40]!r}")
    return _Attribute(name, _KINDS.get(word, "date"))


def _row(line: str, n_cells: int, where: int, path: Path) -> list[str | None]:
    if line.lstrip().startswith("{"):
        raise TableError(
            path,
            f"line {where} is a sparse row",
            "Convert the file to svmlight or CSV; sparse ARFF files are not read.",
        )
    cells = [value for value, _ in _cells(line, where, path)]
    if len(cells) != n_cells:
        raise _bad_line(path, where, f"there are {len(cells)} values for {n_cells} attributes")
    return cells


def _cells(
    line: str, where: int, path: Path, position: int = 0
) -> Iterator[tuple[str | None, int]]:
    """Values between commas from a position on, None for ``?``, and the start of each."""
    while True:
        match = _CELL.match(line, position)
        if match is None:
            column = len(line) - len(line[position:].lstrip()) + 1
            reason = "has a quotation mark that is out of place or not closed"
            raise bad_token(path, where, column, line[column - 1 :], reason)
        text, column = match[1].strip(), match.start(1) + 1
        yield None if text == "?" else _unquoted(text, where, column, path), column
        if not match[2]:
            return
        position = match.end()


def _unquoted(text: str, where: int, column: int, path: Path) -> str:
    if text[:1] not in ("'", '"'):
        return text

    def character(match: re.Match[str]) -> str:
        if len(match[1]) > 1:
            return chr(int(match[1][1:], 16))
        if match[1] not in _ESCAPED:
            raise bad_token(path, where, column, text, f"has the unknown escape {match[0]!r}")
        return _ESCAPED[match[1]]

    plain = _ESCAPE.sub(character, text[1:-1])
    try:  # two escapes may be the halves of one character
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise bad_token(path, where, column, text, "has an escape of half of a character") from None


class _BadCell(ValueError):
    """Cell in a row of a column, and the reason why it is wrong."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def _column(attribute: _Attribute, cells: list[str | None]) -> tuple[Any, list[str]]:
    """Values of an attribute, and a note if its numbers are left as text."""
    name = attribute.name
    notes: list[str] = []
    text = pandas.Series(cells, dtype=object)
    if attribute.kind == "number":
        for row, cell in enumerate(cells):
            try:
                number("nan" if cell is None else cell)
            except RoundedError as error:
                notes = notes or [left_as_text(name, row, str(cell), error)]
            except ValueError as error:
                raise _BadCell(row, f"of {name!r} {error}") from None
        return (text if notes else numbers(pa.array(cells, pa.string())).to_pandas()), notes
    if attribute.kind == "date":
        times = pandas.to_datetime(text, format="ISO8601", errors="coerce")
        wrong = (times.isna() & text.notna()).to_numpy()
        if wrong.any():
            reason = f"of {name!r} is not a date like 2006-07-16 or 2006-07-16T12:30"
            raise _BadCell(int(wrong.argmax()), reason)
        return times, notes
    for row, cell in enumerate(cells) if attribute.kind == "nominal" else ():
        if cell is not None and cell not in attribute.values:
            raise _BadCell(row, f"is not a declared value of {name!r}")
    return text, notes


def _bad_line(path: Path, where: int, problem: str) -> TableError:
    return TableError(path, f"line {where}: {problem}", "Correct the line, or get the file again.")
