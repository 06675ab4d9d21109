"""Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from looms._optional import require
from looms.datasets._bytes import read_bytes, too_large
from looms.datasets._numbers import EXACT, RoundedError, left_as_text, number
from looms.datasets._table import Columns, TableError, check_columns, first_line

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(path: Path, max_bytes: int) -> Columns:
    """Read a Parquet file; columns keep the types that the file gives them.

    Only whole numbers that floats would round become text.
    """
    content = read_bytes(path, max_bytes)
    pandas = require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading Parquet files")
    parquet = require("pyarrow.parquet", "Reading Parquet files")
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        check_columns(file.schema_arrow.names, path)
        # A value that is written once, however often it appears, has its bytes in memory each time.
        if 8 * file.metadata.num_rows * file.metadata.num_columns > max_bytes:
            raise too_large(path, max_bytes)
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise TableError(
            path,
            f"it is not a whole Parquet file ({first_line(error)})",
            "Get or write the file again.",
        ) from None
    nested = [field for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise TableError(
            path,
            f"column {nested[0].name!r} holds values of the type {nested[0].type}",
            "Write a column for each of its parts, or leave it out.",
        )
    try:
        frame = table.to_pandas(date_as_object=False)
    except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableError(
            path,
            f"its columns, or what pandas noted about them, are damaged ({first_line(error)})",
            "Get or write the file again.",
        ) from None

    def text(name: str) -> list[str | None]:
        cells = table[name].to_pylist()
        return [None if cell is None else str(cell).removesuffix(".0") for cell in cells]

    integers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    rounded = {name: _rounded(name, table[name]) for name in integers if name in frame.columns}
    for name in rounded:
        if rounded[name]:
            frame[name] = pandas.Series(text(name), index=frame.index, dtype=object)
    return Columns(frame, text, tuple(filter(None, rounded.values())))


def _rounded(name: str, column: pa.Array) -> str:
    """Note if floats would round a whole number of a column, else empty."""
    pa = require("pyarrow", "Reading Parquet files")
    pc = require("pyarrow.compute", "Reading Parquet files")
    floats = pc.cast(column, pa.float64(), safe=False)
    for row in pc.indices_nonzero(pc.greater_equal(pc.abs(floats), float(EXACT))).to_pylist():
        cell = str(column[row].as_py())
        try:
            number(cell)
        except RoundedError as error:
            return left_as_text(name, row, cell, error)
    return ""
