"""CSV and TSV files with a line of column names, of any common dialect, at once or in blocks.

A first pass finds the encoding, a second one the types. Pieces of text that end with a row are
parsed one by one. Measured on 2,000,000 rows of 20 columns, pyarrow's incremental reader takes as
long and more memory, and pandas six times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyarrow import csv

from looms.datasets._bytes import chunks
from looms.datasets._columns import text_types
from looms.datasets._dialect import (
    check_quotes,
    encoding_of,
    separator,
    texts,
    unusual,
    without_sep_line,
)
from looms.datasets._packages import pa
from looms.datasets._rows import Source
from looms.datasets._table import TableError, check_columns, first_line

#: Number of bytes that are parsed at once, and of characters in the longest row.
_PIECE, _LONGEST = 2**22, 2**26


def delimited_source(
    path: Path,
    usual: str,
    sep: str | None,
    decimal: str | None,
    encoding: str | None,
    max_bytes: int | None = None,
) -> Source:
    """Source of a table of text, strictly: every row has as many cells as the first line.

    Separator, decimal mark and encoding are detected unless given; a first line such as ``sep=;``
    also tells the separator. With ``max_bytes`` the rows stay in memory.

    Parameters
    ----------
    usual : usual separator of the format.
    path, sep, decimal, encoding, max_bytes : as in `read_table`.
    """
    file = _TextFile(path, usual, sep, encoding, max_bytes)
    stored = file.stored if max_bytes is None else list(file.stored()).__iter__
    types = text_types(stored(), decimal, other_decimal=file.sep != ",")
    notes = *unusual(file.sep, usual, types.decimal, file.encoding), *types.notes
    return Source(path, stored, types.columns, file.names, notes)


class _TextFile:
    """Cells of a text file as strings; ``names`` are known once a row was read."""

    def __init__(
        self, path: Path, usual: str, sep: str | None, encoding: str | None, max_bytes: int | None
    ) -> None:
        self.path, self.max_bytes = path, max_bytes
        self.names: Sequence[str] = ()
        self.encoding = encoding or encoding_of(self._chunks(), path)
        text, sep = without_sep_line(next(self._texts()), sep)
        self.sep = sep or separator(text[: text.rfind("\n") + 1] or text, usual, path)

    def stored(self) -> Iterator[pa.Table]:
        """Pyarrow tables of strings."""
        header, n_lines, n_rows = "", 0, 0
        pieces = self._texts()
        rest, following = without_sep_line(next(pieces), None)[0], next(pieces, None)
        while rest or following:
            end = check_quotes(rest, self.sep, self.path, n_lines, goes_on=following is not None)
            if not end and len(rest) > _LONGEST:
                check_quotes(rest, self.sep, self.path, n_lines)
                problem = f"line {n_lines + 1} has more than {_LONGEST:,} characters"
                raise TableError(self.path, problem, "Check that the file is a table.")
            piece, start = rest[:end], 0
            if piece and not header:
                header = self._first_row(piece)
                self.names, start = self._parsed(header, None, 0).column_names, len(header)
                check_columns(self.names, self.path)
            if piece[start:].strip("\r\n") or (header and not n_lines):
                rows = self._parsed(header + piece[start:], self.names, n_rows)
                yield rows
                n_rows += len(rows)
            n_lines += piece.count("\n")
            rest, following = rest[end:] + (following or ""), next(pieces, None)

    def _first_row(self, text: str) -> str:
        """The first nonblank row, with the lines before it."""
        for line_end in re.finditer(r"\r\n|\n|\r", text):
            row = text[: line_end.end()]
            if row.strip() and check_quotes(row, self.sep, self.path, goes_on=True) == len(row):
                return row
        return text

    def _parsed(self, text: str, names: Sequence[str] | None, n_rows: int) -> pa.Table:
        """Cells of a text that begins with the names; ``n_rows`` rows precede it in the file.

        TableError if rows differ in their number of cells.
        """
        content = text.encode()
        types = dict.fromkeys(names or (), pa.string())
        try:
            return csv.read_csv(
                pa.BufferReader(content),
                # One block, so that a row may be as long as it likes; one thread, so that errors
                # give the row.
                read_options=csv.ReadOptions(block_size=len(content) + 1, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=self.sep),
                convert_options=csv.ConvertOptions(column_types=types),
            )
        except pa.ArrowInvalid as error:
            problem = first_line(error).removeprefix("CSV parse error: ")
            raise TableError(
                self.path,
                re.sub(r"^Row #(\d+)", lambda row: f"data row {int(row[1]) - 1 + n_rows}", problem),
                "Correct that row, or give the separator by sep=...; a file "
                "with decimal commas is mostly separated by ';'.",
            ) from None

    def _texts(self) -> Iterator[str]:
        return texts(self._chunks(), self.encoding, self.path)

    def _chunks(self) -> Iterator[bytes]:
        return chunks(self.path, text=True, size=_PIECE, max_bytes=self.max_bytes)
