"""Spreadsheets of Excel and OpenDocument: one sheet with a row of column names."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from datetime import date, time
from functools import reduce
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
import pandas

from looms._advice import setting
from looms._optional import require
from looms._words import listed
from looms.datasets._bytes import read_bytes, too_large
from looms.datasets._table import WRITTEN, TableError, check_columns
from looms.tables._cells import text_of

#: Place of a row or a cell in the XML of a sheet.
_PLACE = re.compile(rb"\br\s*=\s*[\"']([A-Z]*)([0-9]{1,9})")


def read_spreadsheet(
    path: Path, max_bytes: int, sheet: str | int | None = None
) -> pandas.DataFrame:
    """Cells of a sheet by their own types; a column of text is text as it is written.

    The first row that is not blank has the names of the columns. Blank rows at the end and blank
    columns are left out.
    """
    calamine = require("python_calamine", "Reading spreadsheets")
    content = read_bytes(path, max_bytes)
    damaged = BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError
    try:
        _check_extent(content, path, max_bytes)
        book = calamine.CalamineWorkbook.from_filelike(BytesIO(content))
        rows = _chosen(book, sheet, path, max_bytes)
    except TableError:
        raise
    except (calamine.CalamineError, *damaged) as error:
        problem = f"it is not a whole spreadsheet ({error or 'it has a password'})"
        advice = "Get the file again, or save it without a password as .xlsx or .csv."
        raise TableError(path, problem, advice) from None
    columns = [column for column in zip(*rows, strict=True) if any(cell != "" for cell in column)]
    names = [c[0] if isinstance(c[0], str) and c[0].strip() else text_of(c[0]) for c in columns]
    if "" in names:
        place = names.index("")
        raise TableError(
            path,
            f"the column after {names[place - 1]!r} has no name"
            if place
            else "the first column has no name",
            "The first row must name every column: split merged cells, remove titles above the "
            "table, and remove a column that only numbers the rows.",
        )
    check_columns(names, path)
    return pandas.DataFrame({name: _column(c[1:]) for name, c in zip(names, columns, strict=True)})


def _check_extent(content: bytes, path: Path, max_bytes: int) -> None:
    """Raise TableError if the XML of a sheet names or counts more cells than there may be.

    calamine keeps all cells up to the last one, 30 bytes each, and ends the process if there is no
    memory for them, which a file of 1 kB can cause.
    """
    if not is_zipfile(BytesIO(content)):
        return
    with ZipFile(BytesIO(content)) as archive:
        for name in archive.namelist():
            xml = archive.read(name) if "/worksheets/" in name else b""
            columns, rows = {0}, {0}
            for place in _PLACE.finditer(xml):
                columns.add(reduce(lambda n, letter: 26 * n + letter - 64, place[1], 0))
                rows.add(int(place[2]))
            n_columns = max(*columns, *(row.count(b"<c") for row in xml.split(b"<row")))
            if 8 * max(*rows, xml.count(b"<row")) * n_columns > max_bytes:
                raise too_large(path, max_bytes)


def _chosen(book: Any, sheet: str | int | None, path: Path, max_bytes: int) -> list[list[Any]]:
    """Rows of a sheet by name or number, or of the only one with data."""
    names = book.sheet_names
    if sheet is None:
        rows = {name: _rows(book, name, path, max_bytes) for name in names}
        filled = [name for name in names if rows[name]]
        if len(filled) == 1:
            return rows[filled[0]]
        if not filled:
            raise TableError(path, "no sheet has data", "Give a file with data.")
        problem = f"{len(filled)} sheets have data: {listed(filled, 20)}"
    elif sheet in names:
        return _rows(book, str(sheet), path, max_bytes)
    else:
        number = int(sheet) if isinstance(sheet, int) or sheet.isdecimal() else 0
        if 1 <= number <= len(names):
            return _rows(book, names[number - 1], path, max_bytes)
        problem = f"there is no sheet {sheet!r}; its sheets are {listed(names, 20)}"
    raise TableError(path, problem, f"Choose one by {setting('sheet', ...)}, name or number.")


def _rows(book: Any, name: str, path: Path, max_bytes: int) -> list[list[Any]]:
    """Rows of a sheet without blank ones at the start and the end."""
    sheet = book.get_sheet_by_name(name)
    if 8 * sheet.height * sheet.width > max_bytes:  # of other formats
        raise too_large(path, max_bytes)
    rows = sheet.to_python() if sheet.height else []
    filled = [k for k, row in enumerate(rows) if any(str(cell).strip() for cell in row)]
    return rows[filled[0] : filled[-1] + 1] if filled else []


def _column(cells: Sequence[Any]) -> pandas.Series:
    """Cells of a column, None for an empty one; times of day as text."""
    values = [cell.isoformat() if isinstance(cell, time) else cell for cell in cells]
    values = [None if cell == "" else cell for cell in values]
    kinds = {type(cell) for cell in values if cell is not None}
    if kinds <= {str}:
        return pandas.Series(values, dtype=WRITTEN)
    if all(issubclass(kind, date) for kind in kinds):
        return pandas.Series(np.array(values, dtype="M8[us]"))
    return pandas.Series(values, dtype=None if len(kinds) == 1 or kinds == {int, float} else object)
