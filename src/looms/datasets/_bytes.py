"""The content of a file, unpacked, or the reason why there is none."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from looms.datasets._table import TableError


def read_bytes(path: Path) -> bytes:
    """Content of a file; a name in ``.gz`` is unpacked.

    The whole file is read: a kernel machine is far larger than its data.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise TableError(path, "there is no such file", "Check the name and the folder.") from None
    except IsADirectoryError:
        raise TableError(path, "this is a folder", "Name one file in it.") from None
    except OSError as error:
        raise TableError(
            path, f"it cannot be read ({error.strerror})", "Check its permissions."
        ) from error
    if path.suffix == ".gz":
        content = _unpack(content, path)
    if not content.strip():
        raise TableError(path, "the file is empty", "Give a file with data.")
    return content


def read_text(path: Path) -> str:
    """Content of a file as text, which is UTF-8 with or without a byte order mark."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(
            path,
            f"byte {error.start + 1} is not UTF-8 text",
            "Save the file in UTF-8, or check that it has the format that its name says.",
        ) from None


def _unpack(content: bytes, path: Path) -> bytes:
    try:
        return gzip.decompress(content)
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
