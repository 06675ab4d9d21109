"""ARFF files: dense rows of numbers, nominal values, text and ISO dates.

This reader is strict. SciPy's cannot read text or names in double quotes, and without an error it
cuts rows that are too long, reads a missing nominal value as the value ``?``, rounds whole numbers
and makes 400 digits infinite; scikit-learn's is private.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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
#: "number", "text", "date", or the nominal values.
_Kind: TypeAlias = str | frozenset[str | None]
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", **{mark: mark for mark in "\\'\"%"}}


class _Line(NamedTuple):
    """Line of a file, counted from one."""

    where: int
    text: str
    path: Path

    def bad(self, problem: str) -> TableError:
        """Error for the line."""
        problem = f"line {self.where}: {problem}"
        return TableError(self.path, problem, "Correct the line, or get the file again.")

    def bad_token(self, column: int, token: str, reason: str) -> TableError:
        """Error for a token that begins in a column, counted from one."""
        return bad_token(self.path, self.where, column, token, reason)

    def cells(self, position: int = 0) -> Iterator[tuple[str | None, int]]:
        """Values between commas from a position on, None for ``?``, and the column of each."""
        while True:
            match = _CELL.match(self.text, position)
            if match is None:
                column = len(self.text) - len(self.text[position:].lstrip()) + 1
                reason = "has a quotation mark that is out of place or not closed"
                raise self.bad_token(column, self.text[column - 1 :], reason)
            text, column = match[1].strip(), match.start(1) + 1
            yield None if text == "?" else self.unquoted(text, column), column
            if not match[2]:
                return
            position = match.end()

    def unquoted(self, text: str, column: int) -> str:
        """A value without its quotation marks and escapes."""
        if text[:1] not in ("'", '"'):
            return text

        def character(match: re.Match[str]) -> str:
            if len(match[1]) > 1:
                return chr(int(match[1][1:], 16))
            if match[1] not in _ESCAPED:
                raise self.bad_token(column, text, f"has the unknown escape {match[0]!r}")
            return _ESCAPED[match[1]]

        plain = _ESCAPE.sub(character, text[1:-1])
        try:  # two escapes may be the halves of one character
            return plain.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self.bad_token(column, text, "has an escape of half of a character") from None


def read_arff(path: Path, max_bytes: int) -> Columns:
    """Read an ARFF file; ``?`` is missing, nominal values and text become strings."""
    # Text between quotation marks may hold what splitlines() takes for the end of a line.
    text = read_text(path, max_bytes).replace("\r\n", "\n").replace("\r", "\n")
    lines = (
        _Line(where, line, path)
        for where, line in enumerate(text.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith("%")
    )
    attributes = list(_header(lines, path))
    check_columns([name for name, _ in attributes], path)
    rows: list[tuple[_Line, list[str | None]]] = []
    for line in lines:
        if line.text.lstrip().startswith("{"):
            raise TableError(
                path,
                f"line {line.where} is a sparse row",
                "Convert the file to svmlight or CSV; sparse ARFF files are not read.",
            )
        rows.append((line, [value for value, _ in line.cells()]))
        if (n := len(rows[-1][1])) != len(attributes):
            raise line.bad(f"there are {n} values for {len(attributes)} attributes")
    texts, values, notes = {}, {}, []
    for j, (name, kind) in enumerate(attributes):
        cells = texts[name] = [row[j] for _, row in rows]
        try:
            values[name], note = _column(name, kind, cells)
        except _BadCell as bad:
            line, _ = rows[bad.row]
            column = list(line.cells())[j][1]
            raise line.bad_token(column, str(cells[bad.row]), str(bad)) from None
        notes += note
    return Columns(pandas.DataFrame(values), texts.__getitem__, tuple(notes))


def _header(lines: Iterator[_Line], path: Path) -> Iterator[tuple[str, _Kind]]:
    """Names and kinds of the attributes; reads the lines up to ``@data``."""
    for line in lines:
        keyword = line.text.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return
        if keyword == "@relation":
            continue
        if keyword != "@attribute":
            raise line.bad(f"{line.text.strip()[:40]!r} is no declaration")
        match = _ATTRIBUTE.fullmatch(line.text)
        if match is None:
            raise line.bad("the declaration has no name and type")
        name, kind = line.unquoted(match[1], match.start(1) + 1), match[2].strip()
        if kind.startswith("{") and kind.endswith("}"):
            start = match.start(2) + 1
            declared = line._replace(text=line.text[: start + len(kind) - 2])
            yield name, frozenset(value for value, _ in declared.cells(start))
        elif kind.lower() in _KINDS or kind.lower().startswith("date"):
            yield name, _KINDS.get(kind.lower(), "date")
        else:
            raise line.bad(f"attribute {name!r} has the type {kind[:40]!r}")
    raise TableError(path, "there is no line @data", "Get the whole file, or check its format.")


class _BadCell(ValueError):
    """Cell in a row of a column, and the reason why it is wrong."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def _column(name: str, kind: _Kind, cells: list[str | None]) -> tuple[Any, list[str]]:
    """Values of an attribute, and a note if its numbers are left as text."""
    notes: list[str] = []
    text = pandas.Series(cells, dtype=object)
    if kind == "number":
        for row, cell in enumerate(cells):
            try:
                number("nan" if cell is None else cell)
            except RoundedError as error:
                notes = notes or [left_as_text(name, row, str(cell), error)]
            except ValueError as error:
                raise _BadCell(row, f"of {name!r} {error}") from None
        return (text if notes else numbers(pa.array(cells, pa.string())).to_pandas()), notes
    if kind == "date":
        times = pandas.to_datetime(text, format="ISO8601", errors="coerce")
        wrong = (times.isna() & text.notna()).to_numpy()
        if wrong.any():
            reason = f"of {name!r} is not a date like 2006-07-16 or 2006-07-16T12:30"
            raise _BadCell(int(wrong.argmax()), reason)
        return times, notes
    for row, cell in enumerate(cells) if isinstance(kind, frozenset) else ():
        if cell is not None and cell not in kind:
            raise _BadCell(row, f"is not a declared value of {name!r}")
    return text, notes
