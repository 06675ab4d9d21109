"""Dialects of text files: encoding, separator of the cells, and quotation marks."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import StringIO
from itertools import chain, islice
from pathlib import Path

from looms.datasets._table import TableError

#: Characters that may separate cells, with their names.
SEPARATORS = {",": '","', ";": '";"', "\t": "tab", "|": '"|"'}

#: Number of rows that are looked at to detect the separator.
_ROWS = 1000

#: A letter of two or three bytes in UTF-8, or half of a character written so.
_LETTER = re.compile("[\u00c0-\ud7ff\ue000-\uffff]|\udced[\udca0-\udcbf][\udc80-\udcbf]")

#: Halves of characters (surrogates), which are not text by themselves.
_HALF = re.compile("[\ud800-\udfff]")

#: First line that tells spreadsheet programs the separator.
_SEP_LINE = re.compile(r'"?sep=([^"\r\n])"?(?=\r|\n)', re.IGNORECASE)


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
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    n_bytes, wrong, letter = 0, None, False
    for chunk in chain(chunks, [b""]):
        if not n_bytes and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        place = n_bytes - len(decoder.getstate()[0])
        text, n_bytes = decoder.decode(chunk, final=not chunk), n_bytes + len(chunk)
        if text.isascii():
            continue
        letter = letter or _LETTER.search(text) is not None
        half = _HALF.search(text)
        if half and wrong is None:
            wrong = place + len(text[: half.start()].encode()) + 1
        if wrong is not None and letter:
            raise TableError(
                path,
                f"byte {wrong} is not UTF-8 text, and other letters are",
                "Get the file again, or give its encoding by encoding=...",
            )
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
