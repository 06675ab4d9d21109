"""Memory that a kernel matrix takes, and memory that is free."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from looms._advice import setting

#: Arrays of n × n float64 in memory at once. A search by gradients has three (kernel matrix,
#: gradient, distances), with a peak of 3.4 to 3.7. The others are of a search on a grid, a fit with
#: given values, as at the end of a search on some rows, and the refits of a certificate.
SEARCH, GRID, GIVEN, CERTIFICATE = 3.5, 6.5, 1.5, 5.5
#: Bytes that are taken without asking the system, which takes as long as a fit to 50 rows.
_LITTLE = 1 << 20
_SYSTEM = Path("/")


def bytes_needed(n_rows: int, n_arrays: float = SEARCH) -> int:
    """Memory of arrays of n_rows × n_rows numbers of 8 bytes."""
    return int(8 * n_arrays * n_rows**2)


def gigabytes(n_bytes: float) -> str:
    """Text with two significant digits, or none after the decimal point.

    Examples
    --------
    >>> gigabytes(137.2e9), gigabytes(1.24e9)
    ('137 GB', '1.2 GB')
    """
    size = n_bytes / 1e9
    return f"{size:,.0f} GB" if size >= 10 else f"{size:.2g} GB"


def check_memory(n_rows: int, n_arrays: float = SEARCH) -> None:
    """MemoryError if arrays of n_rows × n_rows numbers take more memory than is free.

    Parameters
    ----------
    n_rows : number of rows of the kernel matrix.
    n_arrays : number of such arrays that are in memory at once.
    """
    needed = bytes_needed(n_rows, n_arrays)
    if needed <= _LITTLE:
        return
    free = free_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"the kernel matrix of {n_rows:,} rows, and arrays of its size beside it, take about "
            f"{gigabytes(needed)} of memory, but {gigabytes(free)} are free. Use "
            f"{setting('n_landmarks', 1000)}, a model on landmarks, or a sample of the rows."
        )


def check_rows(n_rows: int, n_columns: int) -> None:
    """MemoryError if two arrays of n_rows × n_columns numbers take more memory than is free."""
    needed, free = 16 * n_rows * n_columns, free_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"this needs all {n_rows:,} rows in memory, about {gigabytes(needed)}, but "
            f"{gigabytes(free)} are free. Fit to a sample of the rows, or with fewer landmarks."
        )


def free_memory() -> int | None:
    """Bytes that this process may still take; None where the system does not tell.

    The least of what the system has available and what limits of control groups, such as those of
    containers and batch jobs, leave. Where only the size of the memory is known, that size.
    """
    meminfo = [line.split() for line in _lines(_SYSTEM / "proc/meminfo")]
    limits = [1024 * int(amount) for name, amount, *_ in meminfo if name == "MemAvailable:"]
    for line in _lines(_SYSTEM / "proc/self/cgroup"):  # of version 2 and 1
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _SYSTEM / "sys/fs/cgroup", ("max", "current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = _SYSTEM / "sys/fs/cgroup/memory"
            names = ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.strip("/")
        for folder in (group, *group.parents):  # the group and those around it
            limit, used = (_lines(folder / f"memory.{name}")[:1] for name in names[:2])
            if limit and used and limit != ["max"]:
                stat = dict(line.split(maxsplit=1) for line in _lines(folder / "memory.stat"))
                droppable = int(stat.get(names[2], 0))  # pages of files
                limits.append(int(limit[0]) - int(used[0]) + droppable)
            if folder == root:
                break
    if not limits and hasattr(os, "sysconf"):
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    return max(0, min(limits)) if limits else None


def _lines(path: Path) -> list[str]:
    """Lines of a file of the system; none if it is not there."""
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    return []
