"""Cost of a criterion and its gradient, against LAPACK's factorization and inverse.

Claims checked: value and gradient at most 2.5 × potrf + potri at n = 4000 and 3 × at n = 2000;
value alone at most 1.2 ×; at most 4 n×n float64 arrays of memory.
"""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
from _report import seconds, write_table
from scipy.linalg import lapack

from looms.kernels import ARD, RBF
from looms.selection._objective import Objective

N_FEATURES = 20


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    return X, np.sign(X[:, 0] + X[:, 1] ** 2 - 1 + rng.normal(size=n))


def lapack_seconds(n: int) -> float:
    """Shortest time of potrf + potri in place, on the kernel matrix of the problem."""
    X, _ = problem(n)
    K = np.asfortranarray(RBF()(X) + 0.1 * np.eye(n))
    M = np.empty_like(K)
    times = []
    for _ in range(5):
        M[...] = K
        times.append(seconds(lambda: invert(M), repeats=1))
    return min(times)


def invert(M: np.ndarray) -> None:
    R, _ = lapack.dpotrf(M, lower=1, clean=0, overwrite_a=1)
    lapack.dpotri(R, lower=1, overwrite_c=1)


def peak_arrays(n: int, kernel: object, criterion: str) -> float:
    """Peak memory of making an objective and evaluating it, in n×n float64 arrays."""
    X, y = problem(n)
    tracemalloc.start()
    objective = Objective(X, y, kernel=kernel, criterion=criterion)
    objective.evaluate(objective.theta0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (8 * n * n)


def ratios(n: int, kernel: object, criterion: str) -> tuple[float, float, float]:
    """Seconds of LAPACK, and value alone and with gradient over them, in one run."""
    X, y = problem(n)
    objective = Objective(X, y, kernel=kernel, criterion=criterion)
    theta = objective.theta0
    objective.evaluate(theta)  # buffers made, BLAS awake
    reference = lapack_seconds(n)
    value = seconds(lambda: objective.evaluate(theta, gradient=False))
    both = seconds(lambda: objective.evaluate(theta))
    return reference, value / reference, both / reference


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or [500, 1000, 2000, 4000]
    rows = []
    for n in sizes:
        for kernel in (RBF(), ARD()):
            for criterion in ("press", "smoothed_error", "wmw"):
                name = type(kernel).__name__
                cost = ratios(n, kernel, criterion)
                rows.append((n, name, criterion, *cost, peak_arrays(n, kernel, criterion)))
                print(*rows[-1], flush=True)
    header = (
        "n",
        "kernel",
        "criterion",
        "potrf_potri_seconds",
        "value_ratio",
        "value_and_gradient_ratio",
        "peak_n_by_n_arrays",
    )
    write_table("evaluation_cost", header, rows)


if __name__ == "__main__":
    main()
