"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path


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
        The file; one that is there is replaced.
    data : bytes
        Its content.

    Raises
    ------
    OSError
        If it cannot be written; what was there stays.
    """
    # Process numbers come again, in another container or after a kill; this name does not.
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
