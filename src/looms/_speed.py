"""Speed of this computer, for estimates of time."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
from scipy.linalg import blas

from looms._threads import available_threads

_TIMED, _TIMES = 1000, 3  # size of the matrix product that is timed, some hundredths of a second


def operations_per_second() -> float:
    """Floating-point operations of a matrix product in a second, the most of three products.

    By as many threads as BLAS may take now; each number of them is timed once.
    """
    return _timed(available_threads())


@cache
def _timed(n_threads: int) -> float:
    A = np.ones((_TIMED, _TIMED), order="F")
    blas.dgemm(1.0, A[:100], A)  # wakes its threads
    seconds = []
    for _ in range(_TIMES):  # others may run
        began = time.perf_counter()
        blas.dgemm(1.0, A, A)
        seconds.append(time.perf_counter() - began)
    return 2.0 * _TIMED**3 / min(seconds)
