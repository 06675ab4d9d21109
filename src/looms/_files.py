"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

#: At the end of the name of a file that is not whole yet.
_PART = ".part"


def advice_on(error: OSError, otherwise: str) -> str:
    """What to do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on the disk, or name a file on another one"
    return otherwise


def write_whole(path: Path, data: bytes) -> None:
    """Write beside, then rename: a reader sees the old file or the new one, whole.

    Parameters
    ----------
    path : Path
        The file; one that is there is replaced. Of a symbolic link that is the file it leads to.
    data : bytes
        Its content.

    Raises
    ------
    OSError
        If it cannot be written, as it is no regular file; what was there stays.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    while True:
        # Process numbers come again, in another container or after a kill; this name does not.
        beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{_PART}")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if _renamed(beside, path):
                return
        finally:
            beside.unlink(missing_ok=True)


def _renamed(beside: Path, path: Path) -> bool:
    """Put the file in its place, for good; False if `remove_parts` took it away before."""
    try:
        os.replace(beside, path)
    except FileNotFoundError:
        return False
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems cannot, and need not
                os.fsync(folder)
        finally:
            os.close(folder)
    return True


def remove_parts(folder: Path) -> None:
    """Remove what killed processes had begun to write in a folder.

    Whether a process still lives cannot be told, as it may be on another machine. So a
    file that is being written may go too, and `write_whole` then writes it once more.
    """
    for part in folder.glob(f".*{_PART}"):
        with suppress(OSError):  # gone already, on Windows still open, or the disk is read-only
            part.unlink()
