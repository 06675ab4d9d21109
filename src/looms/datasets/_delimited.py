"""CSV and TSV files with a line of column names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.datasets._bytes import MAX_BYTES, read_text
from looms.datasets._table import TableError, check_columns

if TYPE_CHECKING:
    import pandas as pd

#: Cells that stand for a missing value: those of pyarrow, and the question mark of UCI's files.
MISSING = ("", "?", "#N/A", "N/A", "NA", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null")


def read_delimited(path: Path, delimiter: str, max_bytes: int = MAX_BYTES) -> pd.DataFrame:
    """Read a table of text, strictly: every row has as many cells as the first line.

    A column is whole numbers, numbers, true/false, dates, or else text, decided by all its cells.
    """
    text = read_text(path, max_bytes)
    require("pandas", "Reading tables")
    csv = require("pyarrow.csv", "Reading CSV files")
    pa = require("pyarrow", "Reading CSV files")
    content = text.encode()
    try:
        table = csv.read_csv(
            pa.BufferReader(content),
            # One block, so that a row may be as long as it likes; one thread, so that errors
            # give the row.
            read_options=csv.ReadOptions(block_size=len(content) + 1, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(
                null_values=list(MISSING), strings_can_be_null=True, quoted_strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        raise TableError(path, _tidy(error), "Correct that row, or get the file again.") from None
    check_columns(table.column_names, path)
    _check_delimiter(table.column_names, path, delimiter)
    _check_quotes(table, text, path)
    return table.to_pandas(date_as_object=False)


def _check_delimiter(columns: list[str], path: Path, delimiter: str) -> None:
    first, *others = columns
    other = next((mark for mark in ";\t,|" if mark != delimiter and mark in first), None)
    if not others and other is not None:
        raise TableError(
            path,
            f"there is one column, called {first!r}, so {other!r} seems to separate the cells",
            "Save it with commas (.csv) or tabs (.tsv) between the cells.",
        )


def _check_quotes(table: Any, text: str, path: Path) -> None:
    """Refuse a last cell whose quotation mark is not closed: it holds the rest of the file."""
    if text.count('"') % 2 and table.num_rows:
        last = table.column(table.num_columns - 1)[-1].as_py()
        if isinstance(last, str) and text.endswith(f'"{last}'):
            raise TableError(
                path,
                f"the quotation mark before {last[:20]!r} is not closed",
                "Close it, or get the whole file again.",
            )


def _tidy(error: Exception) -> str:
    """First line of an error of Arrow without its prefix, cut to a length that can be read."""
    line = str(error).splitlines()[0].removeprefix("CSV parse error: ").rstrip(".")
    return line if len(line) <= 160 else f"{line[:157]}..."
