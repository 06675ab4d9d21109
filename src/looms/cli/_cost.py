"""Memory and time of a fit by the whole kernel matrix, told or refused before it starts."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy.linalg import blas

from looms._memory import SEARCH, bytes_needed, check_memory, free_memory, gigabytes
from looms.cli._output import note, refused
from looms.cli._progress import duration
from looms.estimators._search import FULL_ROWS

#: Floating-point operations of a fit over n³, at the speed of a matrix product: 3 to 13 in fits to
#: 2500 and 4000 rows.
_OPERATIONS = 8.0
#: Size of the matrix product that is timed, some hundredths of a second.
_TIMED = 1000


def check_kernel_matrix(path: Path, n_rows: int, n_arrays: float = SEARCH) -> None:
    """Refuse a table whose kernel matrix takes more memory than is free."""
    with refused(f"{path}: ", (MemoryError,)):
        check_memory(n_rows, n_arrays)


def tell_cost(n_rows: int, n_arrays: float, n_fits: float | None) -> None:
    """Note memory and time before fits to many rows start.

    ``n_arrays`` of the size of a kernel matrix are in memory at once; nothing is noted if there
    are none. ``n_fits`` is the number of fits, or None if their time is not known.
    """
    if n_rows <= FULL_ROWS or not n_arrays:
        return
    free = free_memory()
    of_free = "" if free is None else f" (of {gigabytes(free)} free)"
    of_time = ""
    if n_fits is not None:
        seconds = n_fits * _OPERATIONS * n_rows**3 / _operations_per_second()
        of_time = f" and, very roughly, {duration(seconds)}"
    note(
        f"{n_rows:,} rows: about {gigabytes(bytes_needed(n_rows, n_arrays))} of memory{of_free}"
        f"{of_time}; --rank auto, a machine on landmarks, takes far less"
    )


def _operations_per_second() -> float:
    A = np.ones((_TIMED, _TIMED), order="F")
    blas.dgemm(1.0, A[:100], A)  # wakes its threads
    began = time.perf_counter()
    blas.dgemm(1.0, A, A)
    return 2.0 * _TIMED**3 / (time.perf_counter() - began)
