"""ARFF files: dense rows of numbers, nominal values, text and ISO dates.

SciPy's reader refuses text, letters beyond ASCII, names in double quotes and tabs, and cuts rows
that are too long without a word; scikit-learn's is private. Hence this one, which is strict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.datasets._bytes import read_text
from looms.datasets._table import TableError, check_columns

if TYPE_CHECKING:
    import pandas as pd

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"]\S*)\s+(.+)", re.IGNORECASE)
_CELL = re.compile(rf"\s*({_QUOTED}|[^,'\"][^,]*|)\s*(,|$)")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class _Attribute:
    name: str
    kind: str  # "number", "nominal", "text" or "date"
    values: frozenset[str | None] = frozenset()


def read_arff(path: Path) -> pd.DataFrame:
    """Read an ARFF file; ``?`` is missing, nominal values and text become strings."""
    pandas = require("pandas", "Reading tables")
    lines = _lines(read_text(path))
    attributes = list(_header(lines, path))
    check_columns([attribute.name for attribute in attributes], path)
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    for number, line in lines:
        rows.append(_row(line, len(attributes), number, path))
        numbers.append(number)
    columns = zip(*rows, strict=True) if rows else [()] * len(attributes)
    return pandas.DataFrame(
        {
            attribute.name: _column(attribute, list(cells), numbers, path)
            for attribute, cells in zip(attributes, columns, strict=True)
        }
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and content of the lines that are not empty and no comments."""
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("%"):
            yield number, line


def _header(lines: Iterator[tuple[int, str]], path: Path) -> Iterator[_Attribute]:
    """Consume the lines up to ``@data``."""
    for number, line in lines:
        keyword = line.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return
        if keyword == "@attribute":
            yield _attribute(line, number, path)
        elif keyword != "@relation":
            raise _bad_line(path, number, f"{line[:40]!r} is no declaration")
    raise TableError(path, "there is no line @data", "Get the whole file, or check its format.")


def _attribute(line: str, number: int, path: Path) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise _bad_line(path, number, "the declaration has no name and type")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        values = _cells(kind[1:-1])
        if values is not None:
            return _Attribute(name, "nominal", frozenset(values))
    if kind.lower() in _NUMERIC:
        return _Attribute(name, "number")
    if kind.lower() == "string":
        return _Attribute(name, "text")
    if kind.lower().startswith("date"):
        return _Attribute(name, "date")
    raise _bad_line(path, number, f"attribute {name!r} has the type {kind[:40]!r}")


def _row(line: str, n_cells: int, number: int, path: Path) -> list[str | None]:
    if line.startswith("{"):
        raise TableError(
            path,
            f"line {number} is a sparse row",
            "Convert the file to svmlight or CSV; sparse ARFF files are not read.",
        )
    cells = _cells(line)
    if cells is None:
        raise _bad_line(path, number, "a quotation mark is out of place or not closed")
    if len(cells) != n_cells:
        raise _bad_line(path, number, f"there are {len(cells)} values for {n_cells} attributes")
    return cells


def _cells(text: str) -> list[str | None] | None:
    """Values between commas, None for ``?``; None if the quotation marks are not in order."""
    cells: list[str | None] = []
    position = 0
    while True:
        match = _CELL.match(text, position)
        if match is None:
            return None
        cells.append(None if match[1].strip() == "?" else _unquoted(match[1].strip()))
        if not match[2]:
            return cells
        position = match.end()


def _unquoted(text: str) -> str:
    if text[:1] in ("'", '"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _column(attribute: _Attribute, cells: list[str | None], numbers: list[int], path: Path) -> Any:
    pandas = require("pandas", "Reading tables")
    if attribute.kind == "number":
        return _numbers(attribute.name, cells, numbers, path)
    if attribute.kind == "date":
        try:
            return pandas.to_datetime(pandas.Series(cells), format="ISO8601")
        except ValueError:
            raise TableError(
                path,
                f"attribute {attribute.name!r} has a date that is not ISO 8601",
                "Write dates as 2006-07-16 or 2006-07-16T12:30:00.",
            ) from None
    if attribute.kind == "nominal":
        for number, cell in zip(numbers, cells, strict=True):
            if cell is not None and cell not in attribute.values:
                raise _bad_line(
                    path, number, f"{cell[:40]!r} is not a declared value of {attribute.name!r}"
                )
    return pandas.Series(cells, dtype=object)


def _numbers(name: str, cells: list[str | None], numbers: list[int], path: Path) -> Any:
    """Whole numbers if all are and none is missing, else floats."""
    values: list[float] = []
    for number, cell in zip(numbers, cells, strict=True):
        try:
            values.append(float("nan") if cell is None else float(cell))
        except ValueError:
            raise _bad_line(path, number, f"{cell!r} of {name!r} is not a number") from None
    if all(cell is not None and cell.lstrip("+-").isdecimal() for cell in cells):
        return [int(value) for value in values]
    return values


def _bad_line(path: Path, number: int, problem: str) -> TableError:
    return TableError(path, f"line {number}: {problem}", "Correct the line, or get the file again.")
