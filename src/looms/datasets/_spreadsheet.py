"""Spreadsheets of Excel and OpenDocument: one sheet with a row of column names."""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from datetime import timedelta
from decimal import Decimal
from io import BytesIO, StringIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.datasets._bytes import MAX_BYTES, read_bytes, too_large
from looms.datasets._delimited import MISSING, typed
from looms.datasets._table import TableError, listed

if TYPE_CHECKING:
    import pandas as pd


def read_spreadsheet(
    path: Path, sheet: str | int | None, decimal: str | None, max_bytes: int = MAX_BYTES
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read a sheet as the CSV file that it would make, and what to say of the reading.

    The first row that is not empty has the names of the columns. Rows and columns without any
    cell are skipped.
    """
    calamine = require("python_calamine", "Reading spreadsheets")
    content = read_bytes(path, max_bytes)
    if 8 * _n_cells(content) > max_bytes:
        raise too_large(path, max_bytes)
    try:
        book = calamine.CalamineWorkbook.from_filelike(BytesIO(content))
        sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    except calamine.PasswordError:
        raise TableError(path, "it has a password", "Save it without the password.") from None
    except (calamine.CalamineError, ValueError, OSError) as error:
        raise TableError(
            path,
            f"it is not a whole spreadsheet ({error})",
            "Get the file again, or save it as .xlsx or .csv.",
        ) from None
    rows = [row for row in _chosen(sheets, sheet, path) if any(cell != "" for cell in row)]
    columns = [column for column in zip(*rows, strict=True) if any(cell != "" for cell in column)]
    names = [str(column[0]) for column in columns]
    if "" in names:
        place = names.index("")
        raise TableError(
            path,
            f"the column after {names[place - 1]!r} has no name"
            if place
            else "the first column has no name",
            "The first row must name every column: split merged cells, take titles above the "
            "table away, and remove a column that only numbers the rows.",
        )
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(zip(*map(_texts, columns), strict=True))
    frame, decimal, remarks = typed(text.getvalue(), ",", decimal, path)
    return frame, remarks if decimal == "." else (f'read with decimal "{decimal}"', *remarks)


def _n_cells(content: bytes) -> int:
    """Cells up to the last one with a value, of the largest sheet; its reader keeps them all.

    0 of what is no archive of XML files: the sheets of .xls have at most 2²⁴ cells.
    """
    sizes = [0]
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for name in archive.namelist():
                if name == "content.xml":
                    sizes += map(_n_cells_of_table, archive.read(name).split(b"<table:table ")[1:])
                elif name.lower().endswith(".xml"):
                    places = re.findall(rb"\br=[\"']([A-Za-z]+)([0-9]+)[\"']", archive.read(name))
                    columns = {_column_number(letters) for letters, _ in places}
                    rows = {int(row) for _, row in places}
                    sizes.append(max(columns, default=0) * max(rows, default=0))
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, EOFError, OSError):
        return 0
    return max(sizes)


def _column_number(letters: bytes) -> int:
    """27 for AA."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _n_cells_of_table(table: bytes) -> int:
    """The same of a table of OpenDocument, where rows and cells may say how often they repeat."""
    height = n_rows = n_columns = 0
    for row in re.split(rb"<table:table-row\b", table)[1:]:
        attributes, _, cells = row.partition(b">")
        height += _repeats(rb"rows", attributes)
        width = 0
        for cell in re.findall(rb"<table:(?:covered-)?table-cell\b[^>]*>", cells):
            width += _repeats(rb"columns", cell)
            if b"value" in cell:
                n_rows, n_columns = height, max(n_columns, width)
    return n_rows * n_columns


def _repeats(kind: bytes, tag: bytes) -> int:
    number = re.search(rb"number-%s-repeated=[\"']([0-9]+)" % kind, tag)
    return int(number[1]) if number else 1


def _chosen(sheets: dict[str, Any], sheet: str | int | None, path: Path) -> list[list[Any]]:
    """The rows of a sheet by name or number, or of the only one with data."""
    filled = [name for name, rows in sheets.items() if rows]
    if sheet is None:
        if len(filled) == 1:
            return sheets[filled[0]]  # type: ignore[no-any-return]
        if not filled:
            raise TableError(path, "no sheet has data", "Give a file with data.")
        problem = f"{len(filled)} sheets have data: {listed(filled)}"
    elif sheet in sheets:
        return sheets[str(sheet)]  # type: ignore[no-any-return]
    else:
        number = int(sheet) if isinstance(sheet, int) or sheet.isdecimal() else 0
        if 1 <= number <= len(sheets):
            return list(sheets.values())[number - 1]  # type: ignore[no-any-return]
        problem = f"there is no sheet {sheet!r}; its sheets are {listed(list(sheets))}"
    raise TableError(path, problem, "Choose one by --sheet (sheet in Python), name or number.")


def _texts(column: tuple[Any, ...]) -> list[str]:
    """A column as the cells of a CSV file, the name first.

    Numbers that are not whole are written as whole ones times a power of ten (184e-2), so that
    they have no decimal mark; in a column of text they are written as they are.
    """
    name, *cells = column
    words = any(isinstance(cell, str) and cell.strip() not in MISSING for cell in cells)
    return [_text(name, True), *(_text(cell, words) for cell in cells)]


def _text(cell: Any, plain: bool) -> str:
    if isinstance(cell, timedelta):
        cell = cell / timedelta(days=1)
    if isinstance(cell, float):
        if cell.is_integer():
            return str(int(cell))
        if plain or not isfinite(cell):
            return repr(cell)
        _, digits, exponent = Decimal(repr(abs(cell))).as_tuple()
        return f"{'-' if cell < 0 else ''}{''.join(map(str, digits))}e{exponent}"
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat())
    return str(cell)
