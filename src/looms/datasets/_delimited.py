"""CSV and TSV files with a line of column names, of any common dialect."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

from looms._optional import require
from looms.datasets._bytes import read_bytes
from looms.datasets._columns import MISSING, Signs, number_types
from looms.datasets._table import Columns, TableError, check_columns, first_line

#: Characters that may separate cells, with their names.
SEPARATORS = {",": '","', ";": '";"', "\t": "tab", "|": '"|"'}

#: Number of rows that are looked at to detect the separator.
_ROWS = 1000

#: Options by which pyarrow finds the types of columns.
_INFERENCE = {
    "null_values": list(MISSING),
    "strings_can_be_null": True,
    "quoted_strings_can_be_null": True,
}

#: A letter beyond ASCII in UTF-8.
_UTF8_LETTER = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")

#: Halves of characters (surrogates), which are not text by themselves.
_HALF = re.compile("[\ud800-\udfff]")

#: First line that tells spreadsheet programs the separator.
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

    All cells of a column together decide whether it holds whole numbers, numbers, true/false,
    dates, or else text. Separator, decimal mark and encoding are detected unless given; a first
    line such as ``sep=;`` also tells the separator. ``usual`` is the usual one of the format.
    """
    content = [read_bytes(path, max_bytes, text=True)]
    encoding = encoding or encoding_of(content, path)
    text, sep = without_sep_line("".join(texts(content, encoding, path)), sep)
    sep = sep or separator(text, usual, path)
    check_quotes(text, sep, path)
    columns, decimal = typed(text, sep, decimal, path)
    return replace(columns, notes=(*unusual(sep, usual, decimal, encoding), *columns.notes))


def without_sep_line(text: str, sep: str | None) -> tuple[str, str | None]:
    """Text after a first line such as ``sep=;``, and the separator (by that line if not given)."""
    declared = _SEP_LINE.match(text)
    return (text[declared.end() :], sep or declared[1]) if declared else (text, sep)


def unusual(sep: str, usual: str, decimal: str, encoding: str) -> tuple[str, ...]:
    """Note on a dialect that is not the plain one, if any."""
    differs = {
        f"separator {SEPARATORS.get(sep, repr(sep))}": sep != usual,
        f'decimal "{decimal}"': decimal != ".",
        f"encoding {encoding}": encoding != "utf-8",
    }
    words = ", ".join(word for word, is_so in differs.items() if is_so)
    return (f"read with {words}",) if words else ()


def typed(text: str, sep: str, decimal: str | None, path: Path) -> tuple[Columns, str]:
    """Typed columns of a text, and its decimal mark."""
    require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading CSV files")
    inferred = parsed(text, sep, path)
    names = inferred.column_names
    check_columns(names, path)
    raw = parsed(text, sep, path, as_text=names)
    cells = cells_of(raw)
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


def cells_of(rows: Any) -> dict[str, Any]:
    """Cells of each column of a table of text, null for a missing one."""
    pa = require("pyarrow", "Reading CSV files")
    pc = require("pyarrow.compute", "Reading CSV files")
    # not a null for all rows: with it pyarrow 15 to 22 read other cells in a slice of a table
    missing, gaps = pa.array(MISSING), pa.nulls(len(rows), pa.string())
    return {n: pc.if_else(pc.is_in(rows[n], missing), gaps, rows[n]) for n in rows.column_names}


def parsed(text: str, sep: str, path: Path, as_text: Sequence[str] | None = None) -> Any:
    """Table of pyarrow from a text; TableError if rows differ in their number of cells.

    The columns named by ``as_text`` are left as text; if it is None, pyarrow finds all types.
    """
    pa = require("pyarrow", "Reading CSV files")
    csv_files = require("pyarrow.csv", "Reading CSV files")
    content = text.encode()
    conversion = {"column_types": dict.fromkeys(as_text, pa.string())} if as_text else _INFERENCE
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
        problem = first_line(error).removeprefix("CSV parse error: ")
        raise TableError(
            path,
            re.sub(r"^Row #(\d+)", lambda match: f"data row {int(match[1]) - 1}", problem),
            "Correct that row, or give the separator by sep=...; a file "
            "with decimal commas is mostly separated by ';'.",
        ) from None


def texts(chunks: Iterable[bytes], encoding: str, path: Path) -> Iterator[str]:
    """Pieces of a file as text, without a byte order mark."""
    try:
        with suppress(UnicodeError):
            b"a".decode(encoding)  # refuses what is no encoding of text
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise TableError(
            path, f"there is no encoding {encoding!r}", "Known are utf-8, utf-16, cp1252 and more."
        ) from None
    n_bytes, n_lines, begun = 0, 0, False
    for chunk in chain(chunks, [b""]):
        waiting = len(decoder.getstate()[0])
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeError as error:
            place = "the file"
            if isinstance(error, UnicodeDecodeError):
                place = f"byte {n_bytes - waiting + error.start + 1}"
            raise TableError(
                path,
                f"{place} is not text in {encoding}",
                "Give the encoding by encoding=..., or check that the file has "
                "the format that its name says.",
            ) from None
        if text and not begun:
            text, begun = text.removeprefix("\ufeff"), True
        _check_characters(text, n_lines, path)
        yield text
        n_bytes, n_lines = n_bytes + len(chunk), n_lines + text.count("\n")


def _check_characters(text: str, n_lines: int, path: Path) -> None:
    """Raise TableError for characters that no table has; ``n_lines`` lines precede the text."""
    half = None if text.isascii() else _HALF.search(text)
    if half:
        raise TableError(
            path,
            f"line {n_lines + text.count(chr(10), 0, half.start()) + 1} holds half of a character, "
            f"{half[0]!r}",
            "Give another encoding by encoding=..., or correct the line.",
        )
    if "\0" in text:
        line = n_lines + text.count(chr(10), 0, text.index(chr(0))) + 1
        raise TableError(
            path,
            f"line {line} holds the character NUL",
            "If the text is UTF-16, give encoding=..., utf-16-le or utf-16-be; "
            "else check that the file has the format that its name says.",
        )


def encoding_of(chunks: Iterable[bytes], path: Path) -> str:
    """Encoding: UTF-16 by its byte order mark, UTF-8, or else cp1252."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_bytes, wrong, letter, before = 0, None, False, b""
    for chunk in chain(chunks, [b""]):
        if not n_bytes and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if not (chunk.isascii() and before[-2:].isascii()):
            letter = letter or _UTF8_LETTER.search(before[-2:] + chunk) is not None
        if wrong is None:
            waiting = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                wrong = n_bytes - waiting + error.start + 1
        if wrong is not None and letter:
            raise TableError(
                path,
                f"byte {wrong} is not UTF-8 text, and other letters are",
                "Get the file again, or give its encoding by encoding=...",
            )
        n_bytes, before = n_bytes + len(chunk), chunk
    return "utf-8" if wrong is None else "cp1252"


def separator(text: str, usual: str, path: Path) -> str:
    """The only separator that gives the first rows the same number of cells, two or more.

    If there is none, the one that divides the first line, so that the error names a row.
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
        f"the separator of the cells is not clear: of {', '.join(SEPARATORS.values())}, the first "
        f"line may be divided by {marks}",
        "Give the separator by sep=...",
    )


def _widths(lines: StringIO, mark: str) -> list[int]:
    """Number of cells of each of the first nonblank rows, up to the first that differs."""
    widths: list[int] = []
    lines.seek(0)
    rows = csv.reader(lines, delimiter=mark, strict=True)
    with suppress(csv.Error):  # quotation marks that `check_quotes` refuses, or a very long cell
        widths.extend(len(row) for row in islice(rows, _ROWS) if row)
    return widths


def check_quotes(
    text: str, sep: str, path: Path, n_lines: int = 0, *, goes_on: bool = False
) -> int:
    """End of the last complete row; TableError for a quotation mark that is not closed.

    ``n_lines`` lines precede the text. If it ``goes_on``, its last row, or a last cell that is not
    closed, is left to the text that follows; else the whole text is rows.
    """
    ends = re.escape(f"{sep}\r\n")
    cell = rf'(?<![^{ends}])"([^"]*+(?:""[^"]*+)*+)'
    stray = rf'(?<=[^{ends}])"'
    whole = re.compile(rf'(?:[^"]++|{cell}"(?=[{ends}]|\Z)|{stray})*+')
    end = _line_start(text, len(text)) if goes_on else len(text)
    while (start := whole.match(text, 0, end).end()) < end:  # type: ignore[union-attr]
        opened = re.compile(cell).match(text, start, end)
        assert opened is not None
        after = text[opened.end() + 1 : opened.end() + 2]
        is_closed = opened.end() < end
        if goes_on and not is_closed:
            end = _line_start(text, start)
            continue
        line = text.count("\n", 0, start) or text.count("\r", 0, start)
        column = start - max(text.rfind("\n", 0, start), text.rfind("\r", 0, start))
        problem = f"is closed before {after!r}" if is_closed else "is not closed"
        raise TableError(
            path,
            f"line {n_lines + line + 1}, character {column}: the quotation mark before "
            f"{opened[1][:20]!r} {problem}",
            "Close it at the end of its cell, write it twice inside one, or get the whole file "
            "again.",
        )
    return end


def _line_start(text: str, place: int) -> int:
    """Place after the last line end before this place."""
    return text.rfind("\n", 0, place) + 1 or text.rfind("\r", 0, place) + 1
