"""Cost of a criterion on rows held out together, against LAPACK's factorization and inverse.

Each row by itself, 5 and 10 folds, five repetitions of 2, and groups of 4 rows, which are many
small folds; kernel with a scale for each of 20 features, criterion "press".

    python benchmarks/folds_cost.py [1000 2000 4000]
"""

from __future__ import annotations

import sys

import numpy as np
from _report import seconds, write_table
from evaluation_cost import lapack_seconds, problem

from looms.selection._objective import Objective
from looms.units import Units

HELD_OUT = ("each row", "5", "10", "5x2", "groups of 4")


def units_of(held_out: str, y: np.ndarray) -> Units:
    if held_out == "each row":
        return Units.rows(len(y))
    if held_out == "groups of 4":
        return Units.of(None, y, np.arange(len(y)) // 4)
    return Units.of(held_out, y, classes=True)


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or [1000, 2000, 4000]
    rows = []
    for n in sizes:
        X, y = problem(n)
        for held_out in HELD_OUT:
            units = units_of(held_out, y)
            objective = Objective(X, y, kernel="ard", criterion="press", units=units)
            theta = objective.theta0
            objective.evaluate(theta)  # buffers made, BLAS awake
            reference = lapack_seconds(n)
            value = seconds(lambda o=objective, at=theta: o.evaluate(at, gradient=False))
            both = seconds(lambda o=objective, at=theta: o.evaluate(at))
            rows.append(
                (n, held_out, units.n_units, reference, value / reference, both / reference)
            )
            print(*rows[-1], flush=True)
    header = (
        "n",
        "held_out",
        "folds",
        "potrf_potri_seconds",
        "value_ratio",
        "value_and_gradient_ratio",
    )
    write_table("folds_cost", header, rows)


if __name__ == "__main__":
    main()
