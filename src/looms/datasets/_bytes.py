"""Content of a file, unpacked within a size limit."""

from __future__ import annotations

import gzip
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

from looms._advice import setting
from looms._files import reading
from looms.datasets._table import TableError

#: Largest unpacked size in bytes of a file, unless the caller allows more. A table takes several
#: times as much memory while it is read; the kernel matrix of its rows takes far more.
MAX_BYTES = 2**30

#: Name of standard input.
STDIN = Path("-")

#: First bytes of formats that are not text.
_SIGNATURES = {
    b"PK\3\4": "a zip archive, such as a spreadsheet (.xlsx, .ods)",
    b"\xd0\xcf\x11\xe0": "a file of old Office programs, such as a spreadsheet (.xls)",
    b"\x1f\x8b": "compressed by gzip (.gz)",
    b"ARROW1": "an Arrow file (.arrow)",
    b"PAR1": "a Parquet file (.parquet)",
    b"%PDF-": "a PDF document",
}
_CHUNK = 2**20


def is_pipe(path: Path) -> bool:
    """True for what can be read once only: a pipe, or standard input."""
    return path == STDIN or (os.path.exists(path) and not os.path.isfile(path))


def chunks(
    path: Path, *, text: bool = False, size: int = _CHUNK, max_bytes: int | None = None
) -> Iterator[bytes]:
    """Content of a file in pieces of ``size`` bytes; a file named ``.gz`` is unpacked.

    With ``text`` the first bytes must not be those of another format. The content is counted while
    it is unpacked, so a small file that unpacks to a large one is refused after ``max_bytes``.
    """
    opened: Any = gzip.open if path.suffix == ".gz" else open
    n_bytes, blank = 0, True
    with reading(path, TableError):
        try:
            with nullcontext(sys.stdin.buffer) if path == STDIN else opened(path, "rb") as file:
                while chunk := file.read(size):
                    what = next((w for s, w in _SIGNATURES.items() if chunk.startswith(s)), None)
                    if text and not n_bytes and what:
                        given = setting("format", ...)
                        advice = f"Give it the suffix of its format, or {given}; unpack archives."
                        raise TableError(path, f"by its first bytes this is {what}", advice)
                    blank, n_bytes = blank and chunk.isspace(), n_bytes + len(chunk)
                    if max_bytes is not None and n_bytes > max_bytes:
                        raise too_large(path, max_bytes)
                    yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            advice = "Get the whole file again, or take .gz off its name if it is not compressed."
            raise TableError(path, f"it cannot be unpacked ({error})", advice) from None
    if blank:
        raise TableError(path, "the file is empty", "Give a file with data.")


def text_content(path: Path, size: int, max_bytes: int | None) -> Callable[[], Iterator[bytes]]:
    """Function that returns the content of a file of text in pieces, from the start at each call.

    With ``max_bytes`` the file is read once, into memory.
    """

    def content() -> Iterator[bytes]:
        return chunks(path, text=True, size=size, max_bytes=max_bytes)

    return content if max_bytes is None else list(content()).__iter__


def read_bytes(path: Path, max_bytes: int, *, text: bool = False) -> bytes:
    """Content of a file as in `chunks`.

    A zip archive, such as a spreadsheet or a file of NumPy, stays packed, and the sizes that it
    declares count.
    """
    content = b"".join(chunks(path, text=text, max_bytes=max_bytes))
    if content.startswith(b"PK\3\4") or zipfile.is_zipfile(BytesIO(content)):
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            problem = f"it is damaged or cut short ({error})"
            raise TableError(path, problem, "Get the whole file again.") from None
        if size > max_bytes:
            raise too_large(path, max_bytes)
    return content


def read_text(path: Path, max_bytes: int) -> str:
    """Content of a file as text in UTF-8, with or without a byte order mark."""
    try:
        return read_bytes(path, max_bytes, text=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem, advice = f"byte {error.start + 1} is not UTF-8 text", "Save the file in UTF-8."
        raise TableError(path, problem, advice) from None


def too_large(path: Path, max_bytes: int) -> TableError:
    """Error for a file that exceeds the limit of size."""
    return TableError(
        path,
        f"it has more than {max_bytes:,} bytes, unpacked",
        f"If that is right and there is memory for it, allow more by {setting('max_bytes')}.",
    )
