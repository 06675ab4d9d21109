"""CSV and TSV files with a line of column names, as programs of many countries write them."""

from __future__ import annotations

import codecs
import csv
import re
from contextlib import suppress
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.datasets._bytes import MAX_BYTES, read_bytes
from looms.datasets._table import TableError, check_columns, listed

if TYPE_CHECKING:
    import pandas as pd

#: Cells that stand for a missing value: those of pyarrow, and the question mark of UCI's files.
MISSING = ("", "?", "#N/A", "N/A", "NA", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null")

#: What may stand between cells, with the words for it.
SEPARATORS = {",": '","', ";": '";"', "\t": "tab", "|": '"|"'}

#: So many rows tell the separator.
_ROWS = 1000

#: A letter beyond ASCII in UTF-8.
_UTF8_LETTER = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")

#: By decimal mark, numbers whose thousands may be parted by the other mark.
_NUMBER = {
    mark: rf"^\s*[+-]?((\d+|\d{{1,3}}([{other}]\d{{3}})+)([{mark}]\d*)?|[{mark}]\d+)"
    r"([eE][+-]?\d+)?\s*$"
    for mark, other in ((".", ","), (",", "."))
}


def read_delimited(
    path: Path,
    usual: str,
    sep: str | None,
    decimal: str | None,
    encoding: str | None,
    max_bytes: int = MAX_BYTES,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read a table of text, strictly: every row has as many cells as the first line.

    A column is whole numbers, numbers, true/false, dates, or else text, decided by all its cells.
    Separator, decimal mark and encoding are detected unless given; ``usual`` is the separator
    that the format stands for. Beside the table: what to say of the reading.
    """
    text, encoding = _decoded(read_bytes(path, max_bytes), encoding, path)
    sep = sep or _separator(text, usual, path)
    _check_quotes(text, sep, path)
    frame, decimal, remarks = typed(text, sep, decimal, path)
    unusual = {
        f"separator {SEPARATORS.get(sep, repr(sep))}": sep != usual,
        f'decimal "{decimal}"': decimal != ".",
        f"encoding {encoding}": encoding != "utf-8",
    }
    if any(unusual.values()):
        words = ", ".join(word for word, differs in unusual.items() if differs)
        remarks = (f"read with {words}", *remarks)
    return frame, remarks


def typed(
    text: str, sep: str, decimal: str | None, path: Path
) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """The table of a text, its decimal mark, and a remark if that leaves numbers as text.

    The mark is a comma if some column can only be read so, and none only with a point; it holds
    for all columns. Thousands are parted by the other mark where the mark was given or is a comma.
    """
    require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading CSV files")
    pc = require("pyarrow.compute", "Reading CSV files")
    arrow_csv = require("pyarrow.csv", "Reading CSV files")
    content = text.encode()

    def parsed(mark: str, texts: list[str] | None = None) -> Any:
        try:
            return arrow_csv.read_csv(
                pa.BufferReader(content),
                # One block, so that a row may be as long as it likes; one thread, so that errors
                # give the row.
                read_options=arrow_csv.ReadOptions(block_size=len(content) + 1, use_threads=False),
                parse_options=arrow_csv.ParseOptions(delimiter=sep),
                convert_options=arrow_csv.ConvertOptions(
                    null_values=list(MISSING),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    decimal_point=mark,
                    column_types=dict.fromkeys(texts or [], pa.string()),
                ),
            )
        except pa.ArrowInvalid as error:
            raise TableError(
                path,
                _tidy(error),
                "Correct that row, or name what separates the cells by --sep (sep in Python).",
            ) from None

    def columns(table: Any, is_type: Any) -> list[str]:
        return [field.name for field in table.schema if is_type(field.type)]

    def numbers(table: Any, mark: str) -> list[str]:
        """Columns of text all of whose cells are numbers with this mark."""
        return [
            name
            for name in columns(table, pa.types.is_string)
            if pc.all(pc.match_substring_regex(table[name], _NUMBER[mark])).as_py()
        ]

    table = parsed(decimal or ".")
    check_columns(table.column_names, path)
    given = decimal is not None
    if decimal is None:
        decimal = "."
        with_comma, with_point = numbers(table, ","), numbers(table, ".")
        if set(with_comma) - set(with_point) and not set(with_point) - set(with_comma):
            raw = parsed(".", columns(table, pa.types.is_floating))
            if not any(
                pc.any(pc.match_substring(raw[name], ".")).as_py()
                for name in columns(table, pa.types.is_floating)
            ):
                decimal, table = ",", parsed(",")
    if given or decimal == ",":
        for name in numbers(table, decimal):
            digits = pc.replace_substring(table[name], "." if decimal == "," else ",", "")
            plain = pc.utf8_trim_whitespace(pc.replace_substring(digits, decimal, "."))
            place = table.column_names.index(name)
            table = table.set_column(place, name, pc.cast(plain, pa.float64()))
    if "0x" in text or "0X" in text:  # which pyarrow takes for a whole number
        whole = columns(table, pa.types.is_integer)
        raw = parsed(decimal, whole)
        for name in whole:
            if pc.any(pc.match_substring(raw[name], "x", ignore_case=True)).as_py():
                table = table.set_column(table.column_names.index(name), name, raw[name])
    left = {*numbers(table, ","), *numbers(table, ".")}
    unread = [name for name in table.column_names if name in left]
    frame = table.to_pandas(date_as_object=False)
    return frame, decimal, (_remark(frame, unread),) if unread else ()


def _remark(frame: pd.DataFrame, unread: list[str]) -> str:
    """What to say of columns of numbers that are left as text."""
    cells = frame[unread[0]]
    row = int(cells.str.contains("[.,]", na=False).to_numpy().argmax())
    which = f"column {unread[0]!r} is" if len(unread) == 1 else f"columns {listed(unread, 5)} are"
    return (
        f"{which} read as text: the mark in {cells.iloc[row]!r} (data row {row + 1}) may be a "
        "decimal mark or part thousands, and the file does not tell; choose by --decimal (decimal "
        "in Python), a comma or a point"
    )


def _decoded(content: bytes, encoding: str | None, path: Path) -> tuple[str, str]:
    """The text and the name of its encoding."""
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
            "Name the encoding by --encoding (encoding in Python), or check that the file has "
            "the format that its name says.",
        ) from None
    if "\0" in text:
        raise TableError(
            path,
            f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} holds the character NUL",
            "If the text is UTF-16, name the encoding, utf-16-le or utf-16-be, by --encoding "
            "(encoding in Python); else check that the file has the format that its name says.",
        )
    return text, encoding


def _encoding(content: bytes, path: Path) -> str:
    """UTF-16 by its byte order mark, UTF-8, or else what Windows writes in the West."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if _UTF8_LETTER.search(content):
            raise TableError(
                path,
                f"byte {error.start + 1} is not UTF-8 text, and other letters are",
                "Get the file again, or name its encoding by --encoding (encoding in Python).",
            ) from None
        return "cp1252"
    return "utf-8"


def _separator(text: str, usual: str, path: Path) -> str:
    """The only mark that divides all rows, of the first ones, into as many cells, two or more.

    If no mark does, the one that divides the first line, so that the row at fault is named.
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
        "Name the separator by --sep (sep in Python).",
    )


def _widths(lines: StringIO, mark: str) -> list[int]:
    """Cells of the first rows that are not blank, up to the first that is out of order."""
    widths: list[int] = []
    lines.seek(0)
    rows = csv.reader(lines, delimiter=mark, strict=True)
    with suppress(csv.Error):  # quotation marks that `_check_quotes` refuses, or a very long cell
        widths.extend(len(row) for row in islice(rows, _ROWS) if row)
    return widths


def _check_quotes(text: str, sep: str, path: Path) -> None:
    """Refuse a cell that begins with a quotation mark and does not end with another."""
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


def _tidy(error: Exception) -> str:
    """First line of an error of Arrow without its prefix, cut to a length that can be read."""
    line = str(error).splitlines()[0].removeprefix("CSV parse error: ").rstrip(".")
    return line if len(line) <= 160 else f"{line[:157]}..."
