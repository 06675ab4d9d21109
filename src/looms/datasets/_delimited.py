"""CSV and TSV files with a line of column names, of any common dialect, at once or in blocks.

Pieces of text that end with a row are parsed by pyarrow one by one. Measured on 2,000,000 rows of
20 columns, its incremental reader takes as long and more memory, and pandas six times as long.
Encoding, separator and quotation marks are not its matter: it takes whatever follows a mark that is
not closed for one cell.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
from pyarrow import csv as arrow_csv

from looms._advice import setting
from looms.datasets._bytes import text_content
from looms.datasets._rows import Source
from looms.datasets._table import WRITTEN, TableError, check_columns, first_line

#: Number of bytes that are parsed at once, and of characters in the longest row.
_PIECE, _LONGEST = 2**22, 2**26

#: Characters that may separate cells, with their names.
_SEPARATORS = {",": '","', ";": '";"', "\t": "tab", "|": '"|"'}

#: Number of rows that are looked at to detect the separator.
_LOOKED_AT = 1000

#: A letter of two or three bytes in UTF-8.
_LETTER = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")

#: First line that tells spreadsheet programs the separator.
_SEP_LINE = re.compile(r'"?sep=([^"\r\n])"?(?=\r|\n)', re.IGNORECASE)

_LINE_END = re.compile(r"\r\n|\n|\r")


def delimited_source(
    path: Path,
    usual: str,
    max_bytes: int | None = None,
    sep: str | None = None,
    encoding: str | None = None,
) -> Source:
    """Source of a table of text, strictly: every row has as many cells as the first line.

    Separator and encoding are detected unless given; a first line such as ``sep=;`` also tells the
    separator. With ``max_bytes`` the file is read once, into memory.

    Parameters
    ----------
    usual : usual separator of the format.
    path, sep, encoding, max_bytes : as in `read_table`.
    """
    file = _TextFile(path, text_content(path, _PIECE, max_bytes))
    file.detect(usual, sep, encoding)
    differs = {
        f"separator {_SEPARATORS.get(file.sep, repr(file.sep))}": file.sep != usual,
        f"encoding {file.encoding}": file.encoding != "utf-8",
    }
    words = ", ".join(word for word, is_so in differs.items() if is_so)
    notes = (f"read with {words}",) if words else ()
    return Source(path, file.stored, read_as_text, file.names, notes)


def read_as_text(table: pa.Table) -> pandas.DataFrame:
    """Cells of text as they are written."""
    return table.to_pandas(types_mapper={pa.large_string(): WRITTEN}.get)


class _TextFile:
    """Text file, of which ``content`` returns pieces, and its dialect once it was detected."""

    def __init__(self, path: Path, content: Callable[[], Iterator[bytes]]) -> None:
        self.path, self.content = path, content

    def detect(self, usual: str, sep: str | None, encoding: str | None) -> None:
        """Set encoding, separator and names of columns."""
        self.encoding, self.start = encoding or self._encoding(), 0
        text = next(filter(None, self._texts()), "")
        if declared := _SEP_LINE.match(text):
            sep, self.start = sep or declared[1], declared.end()
            text = text[self.start :]
        self.sep = sep or _separator(text[: text.rfind("\n") + 1] or text, usual, self.path)
        first = next(self._pieces(), "")
        try:
            self.names = next(csv.reader(StringIO(first, newline=""), delimiter=self.sep), [])
        except csv.Error as error:
            problem = f"the line of names cannot be read ({error})"
            raise TableError(self.path, problem, "Check that the file is a table.") from None
        check_columns(self.names, self.path)

    def _encoding(self) -> str:
        """Encoding: UTF-16 by its byte order mark, UTF-8, or else cp1252."""
        if next(self.content(), b"").startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        self.encoding = "utf-8"
        try:
            for _ in self._texts():
                pass
        except TableError as error:
            if not any(map(_LETTER.search, self.content())):
                return "cp1252"
            problem = f"{error.problem}, and other letters are"
            raise TableError(self.path, problem, error.advice) from None
        return self.encoding

    def stored(self) -> Iterator[pa.Table]:
        """Pyarrow tables of cells as they are written."""
        n_rows = -1  # the line of names is the first row
        for piece in self._pieces():
            rows = self._parsed(piece.encode(), n_rows)
            yield rows
            n_rows = max(n_rows, 0) + len(rows)

    def _pieces(self) -> Iterator[str]:
        """Pieces of complete rows, without blank lines at the start and the end of the file."""
        rest = ""
        n_lines = 0
        start = self.start
        begun = False
        for text in chain(filter(None, self._texts()), [""]):  # the empty one ends the file
            rest, start = rest + text[start:], 0
            rest = rest if begun else rest.lstrip("\r\n")
            goes_on = bool(text) and len(rest) <= _LONGEST
            end, wrong = _rows_end(rest, self.sep, goes_on)
            if wrong is not None:
                line = rest.count("\n", 0, wrong) or rest.count("\r", 0, wrong)
                raise TableError(
                    self.path,
                    f"line {n_lines + line + 1}: the quotation mark before "
                    f"{rest[wrong + 1 : wrong + 21]!r} is not closed at the end of its cell",
                    "Write a mark inside a cell twice, or get the whole file again.",
                )
            if end := len(rest[:end].rstrip("\r\n")):  # blank lines may be the last ones
                line_end = _LINE_END.match(rest, end)
                end = line_end.end() if line_end else end
                begun = True
                yield rest[:end]
            n_lines += rest.count("\n", 0, end)
            rest = rest[end:]

    def _parsed(self, content: bytes, n_rows: int) -> pa.Table:
        """Cells of a piece; ``n_rows`` rows precede it, -1 if it begins with the names.

        TableError if rows differ in their number of cells.
        """
        try:
            return arrow_csv.read_csv(
                pa.BufferReader(content),
                # One block, so that a row may be as long as it likes; one thread, so that errors
                # give the row.
                read_options=arrow_csv.ReadOptions(
                    block_size=len(content) + 1,
                    use_threads=False,
                    column_names=self.names,
                    skip_rows_after_names=int(n_rows < 0),
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.sep,
                    newlines_in_values=True,
                    ignore_empty_lines=len(self.names) > 1,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.large_string())
                ),
            )
        except pa.ArrowInvalid as error:
            problem = first_line(error).removeprefix("CSV parse error: ")
            problem = re.sub(r"^Row #(\d+)", lambda m: f"data row {int(m[1]) + n_rows}", problem)
            remedy = f"Correct that row, or give the separator by {setting('sep', ...)}, often ';'."
            raise TableError(self.path, problem, remedy) from None

    def _texts(self) -> Iterator[str]:
        """Pieces of the file as text, without a byte order mark."""
        n_lines, begun = 1, False
        try:
            with suppress(UnicodeError):
                b"a".decode(self.encoding)  # refuses what is no encoding of text
            for text in codecs.iterdecode(self.content(), self.encoding):
                text.replace("\0", "\ud800").encode()  # refuses NUL and halves of characters
                yield text if begun else text.removeprefix("\ufeff")
                n_lines, begun = n_lines + text.count("\n"), begun or bool(text)
        except LookupError:
            problem, remedy = f"there is no encoding {self.encoding!r}", "Known is utf-8, for one."
            raise TableError(self.path, problem, remedy) from None
        except UnicodeError as error:
            before: Any = getattr(error, "object", "")[: getattr(error, "start", 0)]
            n_lines += before.count("\n" if isinstance(before, str) else b"\n")
            raise TableError(
                self.path,
                f"line {n_lines} is not text in {self.encoding}",
                f"Give the encoding by {setting('encoding', ...)}, such as utf-16-le, or check "
                "that the file has the format that its name says.",
            ) from None


def _separator(text: str, usual: str, path: Path) -> str:
    """The only separator that gives the first rows the same number of cells, two or more.

    If there is none, the one that divides the first line, so that the error names a row.
    """
    lines, widths = StringIO(text, newline=""), {mark: list[int]() for mark in _SEPARATORS}
    for mark, width in widths.items():  # of the first nonblank rows
        lines.seek(0)
        rows = csv.reader(lines, delimiter=mark, strict=True)
        with suppress(csv.Error):  # marks that `_rows_end` refuses, or a very long cell
            width.extend(len(row) for row in islice(rows, _LOOKED_AT) if row)
    fits = [mark for mark, width in widths.items() if len(set(width)) == 1 and width[0] > 1]
    if not fits:
        fits = [mark for mark, width in widths.items() if width and width[0] > 1]
        if usual in fits or not fits:
            return usual
    if len(fits) == 1:
        return fits[0]
    marks = " and ".join(_SEPARATORS[mark] for mark in fits)
    problem = f"the separator is not clear: the first line may be divided by {marks}"
    raise TableError(path, problem, f"Give the separator by {setting('sep', ...)}")


def _rows_end(text: str, sep: str, goes_on: bool) -> tuple[int, int | None]:
    """End of the last complete row, and the place of a quotation mark that is not closed, or not at
    the end of its cell; if the text ``goes_on``, its row is left to what follows.
    """
    end = _line_start(text, len(text)) if goes_on else len(text)
    if '"' not in text:
        return end, None
    ends = re.escape(f"{sep}\r\n")
    cell = rf'(?<![^{ends}])"[^"]*+(?:""[^"]*+)*+"(?=[{ends}]|\Z)'
    whole = re.compile(rf'(?:[^"]++|{cell}|(?<=[^{ends}])")*+')
    while (wrong := whole.match(text, 0, end).end()) < end:  # type: ignore[union-attr]
        if not goes_on:
            return end, wrong
        end = _line_start(text, wrong)
    return end, None


def _line_start(text: str, place: int) -> int:
    """Place after the last line end before this place; a last "\r" may be half of one."""
    return text.rfind("\n", 0, place) + 1 or text.rfind("\r", 0, max(place - 1, 0)) + 1
