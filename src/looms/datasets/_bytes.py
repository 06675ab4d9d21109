"""Content of a file, unpacked within a size limit."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from looms._files import reading
from looms.datasets._table import TableError

#: Largest unpacked size in bytes of a file, unless the caller allows more. A table takes up to
#: fourteen times as much memory while it is read; the kernel matrix of its rows takes far more.
MAX_BYTES = 2**30

#: First bytes of formats that are not text, with advice.
_SIGNATURES = {
    b"PK\3\4": (
        "a zip archive, such as a spreadsheet (.xlsx, .ods)",
        'Give a spreadsheet its suffix or format="spreadsheet"; unpack other archives.',
    ),
    b"\xd0\xcf\x11\xe0": (
        "a file of old Office programs, such as .xls",
        'Give a spreadsheet its suffix or format="spreadsheet".',
    ),
    b"\x1f\x8b": ("compressed by gzip", "Add .gz to its name, or unpack it."),
    b"ARROW1": ("an Arrow file", 'Name it .arrow, or read it by format="arrow".'),
    b"PAR1": ("a Parquet file", 'Name it .parquet, or read it by format="parquet".'),
    b"%PDF-": ("a PDF document", "Save its table as .csv or .xlsx."),
}
_CHUNK = 2**20


def chunks(
    path: Path, *, text: bool = False, size: int = _CHUNK, max_bytes: int | None = None
) -> Iterator[bytes]:
    """Content of a file in pieces of ``size`` bytes; a file named ``.gz`` is unpacked.

    With ``text`` the first bytes must not be those of another format. The content is counted while
    it is unpacked, so a small file that unpacks to a large one is refused after ``max_bytes``.
    """
    n_bytes, blank = 0, True
    with reading(path, TableError):
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise too_large(path, max_bytes)
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                while chunk := file.read(size):
                    for signature, (what, advice) in _SIGNATURES.items() if text else ():
                        if chunk.startswith(signature):
                            problem = f"by its first bytes this is {what}"
                            raise TableError(path, problem, advice)
                    text, blank, n_bytes = False, blank and chunk.isspace(), n_bytes + len(chunk)
                    if max_bytes is not None and n_bytes > max_bytes:
                        raise too_large(path, max_bytes)
                    yield chunk
        except EOFError:
            raise TableError(
                path, "the compressed data end too early", "Get the whole file again."
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TableError(
                path,
                f"it cannot be unpacked ({error})",
                "Get the file again, or take .gz off its name if it is not compressed.",
            ) from None
    if blank:
        raise TableError(path, "the file is empty", "Give a file with data.")


def read_bytes(path: Path, max_bytes: int, *, text: bool = False) -> bytes:
    """Content of a file as in `chunks`.

    A zip archive, such as a spreadsheet or a file of NumPy, stays packed, and the sizes that it
    declares count.
    """
    content = b"".join(chunks(path, text=text, max_bytes=max_bytes))
    if content.startswith(b"PK\3\4"):
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise TableError(
                path, f"it is damaged or cut short ({error})", "Get the whole file again."
            ) from None
        if size > max_bytes:
            raise too_large(path, max_bytes)
    return content


def read_text(path: Path, max_bytes: int) -> str:
    """Content of a file as text in UTF-8, with or without a byte order mark."""
    content = read_bytes(path, max_bytes, text=True)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(
            path,
            f"byte {error.start + 1} is not UTF-8 text",
            "Save the file in UTF-8, or check that it has the format that its name says.",
        ) from None


def too_large(path: Path, max_bytes: int) -> TableError:
    """Error for a file that exceeds the limit of size."""
    return TableError(
        path,
        f"it has more than {max_bytes:,} bytes, unpacked",
        "If that is right and there is memory for it, allow more by max_bytes.",
    )
