"""CSV and TSV files in blocks, with types decided by all cells, as if read at once.

A first pass finds the encoding, a second one the types. Pieces of text that end with a row are
then parsed like a whole file. Measured on 2,000,000 rows of 20 columns, pyarrow's incremental
reader takes as long and more memory, and pandas six times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.datasets._bytes import chunks
from looms.datasets._columns import Signs, number_types
from looms.datasets._delimited import (
    cells_of,
    check_quotes,
    encoding_of,
    parsed,
    separator,
    texts,
    unusual,
    without_sep_line,
)
from looms.datasets._rows import ColumnReader
from looms.datasets._table import Columns, TableError, check_columns

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of bytes that are parsed at once, and of characters in the longest row.
_PIECE, _LONGEST = 2**22, 2**26
#: Row in a message of `parsed`.
_ROW = re.compile(r"^data row (\d+)")
_BOOLEANS = r"^(?:0|1|true|True|TRUE|false|False|FALSE)$"


class DelimitedRows(ColumnReader):
    """Rows of a CSV or TSV file; its arguments are those of `read_delimited` and `read_table`."""

    def __init__(
        self,
        path: Path,
        target: str | None,
        keep: Sequence[str],
        usual: str,
        sep: str | None,
        decimal: str | None,
        encoding: str | None,
    ) -> None:
        super().__init__(path, target, keep)
        self._encoding = encoding or encoding_of(self._chunks(), path)
        text, sep = without_sep_line(next(self._texts()), sep)
        self._sep = sep or separator(text[: text.rfind("\n") + 1] or text, usual, path)
        signs: dict[str, Signs] = {}
        others: dict[str, list[Any]] = {}
        for rows in self.stored():
            if not signs:
                check_columns(rows.column_names, path)
                signs = {name: Signs() for name in rows.column_names}
                others = {name: _other_types() for name in rows.column_names}
                self.n_columns = len(signs)
            for name, cells in cells_of(rows).items():
                signs[name].add(cells)
                others[name] = [t for t in others[name] if _as_type(cells, t) is not None]
        self._numbers = number_types(signs, decimal, other_decimal=self._sep != ",")
        self._types = {name: types[0] for name, types in others.items() if types}
        self.notes = (
            *unusual(self._sep, usual, self._numbers.decimal, self._encoding),
            *self._numbers.notes,
        )

    def stored(self) -> Iterator[pa.Table]:
        """Cells as text."""
        header, names, n_lines, n_rows = "", [], 0, 0
        pieces = self._texts()
        rest, following = without_sep_line(next(pieces), None)[0], next(pieces, None)
        while rest or following:
            end = check_quotes(rest, self._sep, self.path, n_lines, goes_on=following is not None)
            if not end and len(rest) > _LONGEST:
                check_quotes(rest, self._sep, self.path, n_lines)
                problem = f"line {n_lines + 1} has more than {_LONGEST:,} characters"
                raise TableError(self.path, problem, "Check that the file is a table.")
            piece, start = rest[:end], 0
            if piece and not header:
                header = self._first_row(piece)
                names, start = parsed(header, self._sep, self.path).column_names, len(header)
            if piece[start:].strip("\r\n") or (header and not n_lines):
                rows = self._parsed(header + piece[start:], names, n_rows)
                yield rows
                n_rows += rows.num_rows
            n_lines += piece.count("\n")
            rest, following = rest[end:] + (following or ""), next(pieces, None)

    def _first_row(self, text: str) -> str:
        """The first nonblank row, with the lines before it."""
        for line_end in re.finditer(r"\r\n|\n|\r", text):
            row = text[: line_end.end()]
            if row.strip() and check_quotes(row, self._sep, self.path, goes_on=True) == len(row):
                return row
        return text

    def _parsed(self, text: str, names: list[str], n_rows: int) -> pa.Table:
        """Cells of a text that begins with the names; ``n_rows`` rows precede it in the file."""
        try:
            return parsed(text, self._sep, self.path, as_text=names)
        except TableError as error:
            problem = _ROW.sub(lambda match: f"data row {int(match[1]) + n_rows}", error.problem)
            raise TableError(self.path, problem, error.advice) from None

    def columns(self, rows: pa.Table, first: int) -> Columns:
        """Typed columns of some rows."""
        pa = require("pyarrow", "Reading CSV files")
        cells = cells_of(rows)
        for name, column in cells.items():
            if name in self._numbers.whole:
                cells[name] = self._numbers.values(name, column)
            elif name in self._types:
                cells[name] = _as_type(column, self._types[name])
        frame = pa.table(cells).to_pandas(date_as_object=False)
        return Columns(frame, lambda name: rows[name].to_pylist())

    def _chunks(self) -> Iterator[bytes]:
        return chunks(self.path, text=True, size=_PIECE)

    def _texts(self) -> Iterator[str]:
        return texts(self._chunks(), self._encoding, self.path)


def _other_types() -> list[Any]:
    """Types other than numbers that pyarrow finds in text, in its order."""
    pa = require("pyarrow", "Reading CSV files")
    zones = (None, "UTC")
    times = [pa.timestamp(unit, zone) for zone in zones for unit in ("s", "ns")]
    return [pa.null(), pa.bool_(), pa.date32(), pa.time32("s"), *times]


def _as_type(cells: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Cells converted to a type; None if some are not of that type."""
    pa = require("pyarrow", "Reading CSV files")
    pc = require("pyarrow.compute", "Reading CSV files")
    if pa.types.is_boolean(kind) and not _all_match(cells, _BOOLEANS):
        return None
    if pa.types.is_null(kind):
        return pa.nulls(len(cells)) if cells.null_count == len(cells) else None
    with suppress(pa.ArrowInvalid):
        if not pa.types.is_time(kind):
            return pc.cast(cells, kind)
        times = pc.binary_join_element_wise("1970-01-01", cells, " ")
        return pc.cast(pc.cast(times, pa.timestamp("s")), kind)
    return None


def _all_match(cells: pa.Array, pattern: str) -> bool:
    pc = require("pyarrow.compute", "Reading CSV files")
    return bool(pc.index(pc.match_substring_regex(cells, pattern), False).as_py() < 0)
