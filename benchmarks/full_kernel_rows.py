"""A tuned fit of 10,000 rows, by the whole kernel matrix and as it is by default: time and memory.

In one run at each n: potrf + potri of a matrix of that size, and both fits, each in a process of
its own, whose peak of memory is given in n × n arrays of float64 (8 n² bytes). Synthetic rows, 20
features (see `_large_problems.py`), an RBF kernel. By default models of more than 7000 rows are on
landmarks; the search for a whole matrix is on 2000 of the rows.

Bar: 20 s for 10,000 rows, which both meet. At 20,000 rows OpenBLAS's potri, which the library does
not call, fails.

    python benchmarks/full_kernel_rows.py [--rows 10000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from _large_problems import split
from _report import in_fresh_process, write_table
from evaluation_cost import invert

from looms import KernelClassifier


def lapack_seconds(n: int) -> float:
    """Time of potrf + potri in place."""
    K = np.full((n, n), 0.5, order="F")
    K[np.diag_indices(n)] = 1.0
    invert(K[:100, :100].copy(order="F"))
    began = time.perf_counter()
    invert(K)
    return time.perf_counter() - began


def fit(n: int, n_landmarks: str | None) -> tuple[float, float, float]:
    """Seconds and CPU seconds of a fit, and test error."""
    X, y, X_test, y_test = split("synthetic", n, 10_000)
    began, cpu = time.perf_counter(), time.process_time()
    model = KernelClassifier(n_landmarks=n_landmarks).fit(X, y)
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    return elapsed, cpu, float(np.mean(model.predict(X_test) != y_test))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000])
    rows = []
    for n in parser.parse_args().rows:
        lapack, _ = in_fresh_process(lapack_seconds, n)
        for n_landmarks in (None, "auto"):
            (elapsed, cpu, error), peak = in_fresh_process(fit, n, n_landmarks)
            times = elapsed, cpu, lapack, elapsed / lapack
            rows.append((n, n_landmarks, *times, peak, peak / (8e-9 * n * n), error))
            print(*rows[-1], flush=True)
    header = (
        "rows",
        "n_landmarks",
        "seconds",
        "cpu_seconds",
        "potrf_potri_seconds",
        "ratio",
        "peak_gigabytes",
        "peak_n_by_n_arrays",
        "test_error",
    )
    write_table("full_kernel_rows", header, rows)


if __name__ == "__main__":
    main()
