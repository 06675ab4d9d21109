"""Memory and time of a fit by the whole kernel matrix, told or refused before it starts."""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import blas

from looms._memory import GRID, SEARCH, bytes_needed, free_memory, gigabytes
from looms.cli._output import note
from looms.cli._progress import duration
from looms.cli._request import MachineRequest
from looms.estimators._folds import CHOICE_FOLDS, OUTER_FOLDS
from looms.estimators._search import AUTO_KERNELS, FULL_ROWS

#: Floating-point operations of a fit over n³, at the speed of a matrix product: 3 to 13 in fits to
#: 2500 and 4000 rows.
_OPERATIONS = 8.0
#: Size of the matrix product that is timed, some hundredths of a second.
_TIMED = 1000


def arrays_of(request: MachineRequest) -> float:
    """Arrays of the size of a kernel matrix in memory at once; none on landmarks."""
    if request.rank:
        return 0.0
    return GRID if request.search == "grid" else SEARCH


def by_features(request: MachineRequest) -> bool:
    """True for only a linear machine, which with few features takes no kernel matrix.

    It does take one if rows are held out several times, or if a grid repeats the choice without
    each row.
    """
    linear = request.machine == "lssvm" and set(request.kernel or ()) == {"linear"}
    repeated = request.gap > 0 or "x" in (request.cv or "")
    return linear and not repeated and (request.search != "grid" or request.nested == "none")


def searches_of(request: MachineRequest) -> float | None:
    """Searches of all rows that take as long as the fit; None if that is not known."""
    if request.machine != "lssvm" or request.search == "grid":
        return None
    kernels = AUTO_KERNELS if request.kernel == ["auto"] else request.kernel or ["rbf"]
    n_candidates = len(kernels) * len(request.criterion or ["press"])
    transforms = len(request.target_transform or ["none"])
    of_choice = CHOICE_FOLDS * (1 - 1 / CHOICE_FOLDS) ** 3 if n_candidates > 1 else 0.0
    outer = OUTER_FOLDS * (1 - 1 / OUTER_FOLDS) ** 3 if request.nested == "folds" else 0.0
    return transforms * n_candidates * (1.0 + of_choice) * (1.0 + outer)


def tell_cost(request: MachineRequest, n_rows: int, n_arrays: float, n_fits: float = 1.0) -> None:
    """Note memory and time before fits to many rows start.

    ``n_arrays`` of the size of a kernel matrix are in memory at once; nothing is noted if there
    are none.
    """
    if n_rows <= FULL_ROWS or not n_arrays:
        return
    free, searches = free_memory(), searches_of(request)
    of_free = "" if free is None else f" (of {gigabytes(free)} free)"
    of_time = ""
    if searches is not None:
        seconds = n_fits * searches * _OPERATIONS * n_rows**3 / _operations_per_second()
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
