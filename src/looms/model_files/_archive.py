"""Zip file of a model, unpacked within a limit of size."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass

#: What the list of types takes when read, in bytes a byte of it.
_SCHEMA_GROWS = 16
_CHUNK = 1 << 20
_ZIP = b"PK\x03\x04"


class TooLarge(ValueError):
    """Error for a file that would take more memory than is allowed."""


@dataclass
class Allowance:
    """Bytes that may still be unpacked."""

    left: int

    def take(self, n_bytes: int) -> None:
        """Subtract from the allowance; `TooLarge` if it is exceeded."""
        self.left -= n_bytes
        if self.left < 0:
            raise TooLarge


def repacked(data: bytes, allowance: Allowance) -> bytes:
    """Archive of the same files without compression, of limited size.

    The sizes in the directory of the file are checked first. They may be wrong, so the unpacked
    bytes are counted too, a piece at a time. Sparse matrices are zip files in it.

    Raises
    ------
    TooLarge
        If it is more than the allowance.
    zipfile.BadZipFile
        If it is no whole zip file, two files in it have one name, or they are packed in another
        way than skops does.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        grows = {m.filename: _SCHEMA_GROWS if m.filename == "schema.json" else 1 for m in members}
        if len(grows) < len(members):
            raise zipfile.BadZipFile("two files of one name")
        Allowance(allowance.left).take(sum(m.file_size * grows[m.filename] for m in members))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as plain:
            for member in members:
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise zipfile.BadZipFile("compressed in an unusual way")
                content = bytearray()
                with archive.open(member) as file:
                    while chunk := file.read(_CHUNK):
                        allowance.take(len(chunk) * grows[member.filename])
                        content += chunk
                inner = content.startswith(_ZIP)
                plain.writestr(
                    member.filename,
                    repacked(bytes(content), allowance) if inner else bytes(content),
                )
    return buffer.getvalue()
