"""Spreadsheets of Excel and OpenDocument: one sheet with a row of column names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from looms._optional import require
from looms._words import listed
from looms.datasets import _sheet_process
from looms.datasets._bytes import read_bytes
from looms.datasets._columns import MISSING, text_types
from looms.datasets._numbers import EXACT
from looms.datasets._table import Columns, TableError, check_columns

Cell: TypeAlias = str | float | bool
Rows: TypeAlias = list[list[Cell]]


def read_spreadsheet(
    path: Path, sheet: str | int | None, decimal: str | None, max_bytes: int
) -> Columns:
    """Read a sheet; its cells are typed like those of a CSV file.

    The first nonempty row has the names of the columns. Empty rows and columns are skipped.
    """
    sheets = _sheets(read_bytes(path, max_bytes), path, max_bytes)
    rows = _chosen(sheets, sheet, path)
    columns = [column for column in zip(*rows, strict=True) if any(cell != "" for cell in column)]
    names = [_text(column[0], True) for column in columns]
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

    def cells_of(name: str) -> list[str | None]:
        cells = columns[names.index(name)][1:]
        for row, cell in enumerate(cells):
            if isinstance(cell, float) and abs(cell) >= EXACT:
                raise TableError(
                    path,
                    f"data row {row + 1} of {name!r}, a column to keep, is a number of more digits "
                    "than a spreadsheet holds",
                    "Format that column as text and enter its cells again.",
                )
        return [None if cell == "" else _text(cell, True) for cell in cells]

    check_columns(names, path)
    cells = pa.table(
        {n: pa.array(_texts(c[1:]), pa.string()) for n, c in zip(names, columns, strict=True)}
    )
    types = text_types([cells], decimal, other_decimal=True)
    made = types.columns(cells)
    detected = () if types.decimal == "." else (f'read with decimal "{types.decimal}"',)
    return replace(made, text=cells_of, notes=(*detected, *types.notes))


def _sheets(content: bytes, path: Path, max_bytes: int) -> dict[str, Rows]:
    """Nonblank rows of each sheet, read in a process of its own."""
    require("python_calamine", "Reading spreadsheets")
    child = subprocess.run(
        [sys.executable, "-P", _sheet_process.__file__, str(4 * max_bytes)],
        input=content,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if child.returncode < 0 or b"memory" in child.stderr.lower():
        raise TableError(
            path,
            f"its cells take more than {4 * max_bytes:,} bytes of memory, or more than there are",
            "Look for a cell far away from the others; if the table is that large, allow more by "
            "max_bytes, or save it as .csv.",
        )
    if child.returncode:
        error = (child.stderr.decode(errors="replace").splitlines() or ["its reader ended"])[-1]
        raise TableError(
            path,
            f"it is not a whole spreadsheet ({error})",
            "Get the file again, or save it without a password as .xlsx or .csv.",
        )
    sheets: dict[str, Rows] = {}
    for item in map(json.loads, child.stdout.splitlines()):
        if isinstance(item, str):
            sheets[item] = rows = []
        else:
            rows.append(item)
    return sheets


def _chosen(sheets: dict[str, Rows], sheet: str | int | None, path: Path) -> Rows:
    """Rows of a sheet by name or number, or of the only one with data."""
    filled = [name for name, rows in sheets.items() if rows]
    if sheet is None:
        if len(filled) == 1:
            return sheets[filled[0]]
        if not filled:
            raise TableError(path, "no sheet has data", "Give a file with data.")
        problem = f"{len(filled)} sheets have data: {listed(filled, 20)}"
    elif sheet in sheets:
        return sheets[str(sheet)]
    else:
        number = int(sheet) if isinstance(sheet, int) or sheet.isdecimal() else 0
        if 1 <= number <= len(sheets):
            return list(sheets.values())[number - 1]
        problem = f"there is no sheet {sheet!r}; its sheets are {listed(sheets, 20)}"
    raise TableError(path, problem, "Choose one by sheet=..., name or number.")


def _texts(cells: tuple[Cell, ...]) -> list[str]:
    """Cells of a column as text.

    Fractions are written as whole numbers times a power of ten (184e-2), so that they have no
    decimal mark; in a column of text they are written as they are.
    """
    words = any(isinstance(cell, str) and cell.strip() not in MISSING for cell in cells)
    return [_text(cell, words) for cell in cells]


def _text(cell: Cell, plain: bool) -> str:
    if isinstance(cell, float):
        if cell.is_integer():
            return str(int(cell))
        if plain or not isfinite(cell):
            return repr(cell)
        _, digits, exponent = Decimal(repr(abs(cell))).as_tuple()
        return f"{'-' if cell < 0 else ''}{''.join(map(str, digits))}e{exponent}"
    return str(cell)
