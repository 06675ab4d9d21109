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
        reason = str(error).splitlines()[0].rstrip(".")
        raise TableError(
            path, f"it is not a whole Parquet file ({reason})", "Get or write the file again."
        ) from None
    return table.to_pandas(date_as_object=False)
