"""The zip file of a model, unpacked within bounds."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass

#: What the list of types takes when read, in bytes a byte of it.
_SCHEMA_GROWS = 16
_CHUNK = 1 << 20
_ZIP = b"PK\x03\x04"


class TooLarge(ValueError):
    """A file that would take more memory than is allowed."""


@dataclass
class Allowance:
    """Bytes that may still be unpacked."""

    left: int

    def take(self, n_bytes: int) -> None:
        """Less by so many; `TooLarge` if there are not so many."""
        self.left -= n_bytes
        if self.left < 0:
            raise TooLarge


def repacked(data: bytes, allowance: Allowance) -> bytes:
    """The same files without compression, so that reading them takes what is counted here.

    The sizes that the directory of the file gives are refused first. They may be wrong: the
    bytes that come out are counted too, a piece at a time. Sparse matrices are zip files in it.

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
