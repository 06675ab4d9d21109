"""CSV and TSV files with a line of column names, of any common dialect."""

from __future__ import annotations

import codecs
import csv
import re
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from looms._optional import require
from looms.datasets._bytes import read_bytes
from looms.datasets._columns import MISSING, Signs, number_types
from looms.datasets._table import Columns, TableError, check_columns, first_line

#: What may stand between cells, with the words for it.
SEPARATORS = {",": '","', ";": '";"', "\t": "tab", "|": '"|"'}

#: So many rows tell the separator.
_ROWS = 1000

#: A letter beyond ASCII in UTF-8.
_UTF8_LETTER = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")

#: Halves of characters, which are no text alone.
_HALF = re.compile("[\ud800-\udfff]")

#: A first line that tells spreadsheet programs the separator.
_SEP_LINE = re.compile(r'"?sep=([^"\r\n])"?(?=\r|\n)', re.IGNORECASE)


def read_delimited(
    path: Path,
    usual: str,
    sep: str | None,
    decimal: str | None,
    encoding: str | None,
    max_bytes: int,
) -> Columns:
    """Read a table of text, strictly: every row has as many cells as the first line.

    A column is whole numbers, numbers, true/false, dates, or else text, decided by all its cells.
    Separator, decimal mark and encoding are detected unless given, the separator also by a first
    line such as ``sep=;``; ``usual`` is the separator that the format stands for.
    """
    text, encoding = _decoded(read_bytes(path, max_bytes, text=True), encoding, path)
    declared = _SEP_LINE.match(text)
    if declared:
        text = text[declared.end() :]
        sep = sep or declared[1]
    sep = sep or _separator(text, usual, path)
    _check_quotes(text, sep, path)
    columns, decimal = typed(text, sep, decimal, path)
    remarks = columns.notes
    unusual = {
        f"separator {SEPARATORS.get(sep, repr(sep))}": sep != usual,
        f'decimal "{decimal}"': decimal != ".",
        f"encoding {encoding}": encoding != "utf-8",
    }
    if any(unusual.values()):
        words = ", ".join(word for word, differs in unusual.items() if differs)
        remarks = (f"read with {words}", *remarks)
    return replace(columns, notes=remarks)


def typed(text: str, sep: str, decimal: str | None, path: Path) -> tuple[Columns, str]:
    """Typed columns of a text, and their decimal mark."""
    require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading CSV files")
    pc = require("pyarrow.compute", "Reading CSV files")
    inferred = _parsed(
        text,
        sep,
        path,
        null_values=list(MISSING),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    names = inferred.column_names
    check_columns(names, path)
    raw = _parsed(text, sep, path, column_types=dict.fromkeys(names, pa.string()))
    missing, gap = pa.array(MISSING), pa.scalar(None, pa.string())
    cells = {name: pc.if_else(pc.is_in(raw[name], missing), gap, raw[name]) for name in names}
    signs = {name: Signs().add(cells[name]) for name in names}
    types = number_types(signs, decimal, other_decimal=sep != ",")
    columns = cells | {name: types.values(name, cells[name]) for name in types.whole}
    for field in inferred.schema:
        # What pyarrow takes for a number, and is none, is text: 0x10.
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if field.name not in types.whole and not number:
            columns[field.name] = inferred[field.name]
    table = pa.table(columns)
    frame = table.to_pandas(date_as_object=False)
    return Columns(frame, lambda name: raw[name].to_pylist(), types.notes), types.decimal


def _parsed(text: str, sep: str, path: Path, **conversion: Any) -> Any:
    """Table of pyarrow from a text; TableError if rows differ in their number of cells."""
    pa = require("pyarrow", "Reading CSV files")
    csv_files = require("pyarrow.csv", "Reading CSV files")
    content = text.encode()
    try:
        return csv_files.read_csv(
            pa.BufferReader(content),
            # One block, so that a row may be as long as it likes; one thread, so that errors
            # give the row.
            read_options=csv_files.ReadOptions(block_size=len(content) + 1, use_threads=False),
            parse_options=csv_files.ParseOptions(delimiter=sep),
            convert_options=csv_files.ConvertOptions(**conversion),
        )
    except pa.ArrowInvalid as error:
        raise TableError(
            path,
            first_line(error).removeprefix("CSV parse error: "),
            "Correct that row, or name what separates the cells by sep=...; a file "
            "with decimal commas is mostly separated by ';'.",
        ) from None


def _decoded(content: bytes, encoding: str | None, path: Path) -> tuple[str, str]:
    """Text and the name of its encoding."""
    if encoding is None:
        encoding = _encoding(content, path)
    try:
        text = content.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise TableError(
            path, f"there is no encoding {encoding!r}", "Known are utf-8, utf-16, cp1252 and more."
        ) from None
    except UnicodeError as error:
        place = f"byte {error.start + 1}" if isinstance(error, UnicodeDecodeError) else "the file"
        raise TableError(
            path,
            f"{place} is not text in {encoding}",
            "Name the encoding by encoding=..., or check that the file has "
            "the format that its name says.",
        ) from None
    half = _HALF.search(text)
    if half:
        raise TableError(
            path,
            f"line {text.count(chr(10), 0, half.start()) + 1} holds half of a character, "
            f"{half[0]!r}",
            "Name another encoding by encoding=..., or correct the line.",
        )
    if "\0" in text:
        raise TableError(
            path,
            f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} holds the character NUL",
            "If the text is UTF-16, name the encoding by encoding=..., utf-16-le or utf-16-be; "
            "else check that the file has the format that its name says.",
        )
    return text, encoding


def _encoding(content: bytes, path: Path) -> str:
    """Encoding: UTF-16 by its byte order mark, UTF-8, or else cp1252."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if _UTF8_LETTER.search(content):
            raise TableError(
                path,
                f"byte {error.start + 1} is not UTF-8 text, and other letters are",
                "Get the file again, or name its encoding by encoding=...",
            ) from None
        return "cp1252"
    return "utf-8"


def _separator(text: str, usual: str, path: Path) -> str:
    """Only separator that gives the first rows the same number of cells, two or more.

    If no mark does, the one that divides the first line, so that the error names a row.
    """
    lines = StringIO(text, newline="")
    widths = {mark: _widths(lines, mark) for mark in SEPARATORS}
    fits = [mark for mark, width in widths.items() if len(set(width)) == 1 and width[0] > 1]
    if not fits:
        fits = [mark for mark, width in widths.items() if width and width[0] > 1]
        if usual in fits or not fits:
            return usual
    if len(fits) == 1:
        return fits[0]
    marks = " and ".join(SEPARATORS[mark] for mark in fits)
    raise TableError(
        path,
        f"what separates the cells is not clear: of {', '.join(SEPARATORS.values())} the first "
        f"line may be divided by {marks}",
        "Name the separator by sep=...",
    )


def _widths(lines: StringIO, mark: str) -> list[int]:
    """Numbers of cells of the first rows that are not blank, up to the first that differs."""
    widths: list[int] = []
    lines.seek(0)
    rows = csv.reader(lines, delimiter=mark, strict=True)
    with suppress(csv.Error):  # quotation marks that `_check_quotes` refuses, or a very long cell
        widths.extend(len(row) for row in islice(rows, _ROWS) if row)
    return widths


def _check_quotes(text: str, sep: str, path: Path) -> None:
    """Raise TableError for a cell with an opening quotation mark and no closing one."""
    if '"' not in text:
        return
    ends = f"{sep}\r\n"
    # The mark first, which is quick to search for, and then that no cell is before it.
    cell = rf'"(?<![^{re.escape(ends)}]")([^"]*+(?:""[^"]*+)*+)("?)'
    for match in re.finditer(cell, text):
        after = text[match.end() : match.end() + 1]
        if match[2] and (not after or after in ends):
            continue
        start = match.start()
        line = text.count("\n", 0, start) or text.count("\r", 0, start)
        column = start - max(text.rfind("\n", 0, start), text.rfind("\r", 0, start))
        problem = "is not closed" if not match[2] else f"is closed before {after!r}"
        raise TableError(
            path,
            f"line {line + 1}, character {column}: the quotation mark before {match[1][:20]!r} "
            f"{problem}",
            "Close it at the end of its cell, write it twice inside one, or get the whole file "
            "again.",
        )
