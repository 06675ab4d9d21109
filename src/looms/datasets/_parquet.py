"""Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from looms._optional import require
from looms.datasets._bytes import MAX_BYTES, read_bytes, too_large
from looms.datasets._table import TableError, check_columns

if TYPE_CHECKING:
    import pandas as pd


def read_parquet(path: Path, max_bytes: int = MAX_BYTES) -> pd.DataFrame:
    """Read a Parquet file; columns keep the types that the file gives them."""
    content = read_bytes(path, max_bytes)
    require("pandas", "Reading tables")
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
            f"it is not a whole Parquet file ({_first_line(error)})",
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
        return table.to_pandas(date_as_object=False)
    except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableError(
            path,
            f"its columns, or what pandas noted about them, are damaged ({_first_line(error)})",
            "Get or write the file again.",
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:160]
