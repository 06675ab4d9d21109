"""Time of exact leave-one-out of an SVC beside that of as many refits, on mackerel.

`looms.svm.leave_one_out` fits the SVC, polishes its solution and follows all paths; scikit-learn's
``cross_val_predict`` with ``LeaveOneOut`` fits 634 of them. One thread, the best of five runs after
a first one that is given too, against one run of the refits. The last rows are a grid of 187 pairs
of C and gamma, leave-one-out outputs of all machines at all samples included.

    python benchmarks/svm_loo_speed.py [--samples 634] [--no-grid]

The table is written to ``benchmarks/results/svm_loo_speed.csv``.
"""

import argparse
import time

import numpy as np
from _report import seconds, write_table
from _svm_problems import mackerel, squared_distances
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from looms.svm import leave_one_out
from looms.svm.dual import solve

POINTS = ((1, 0.2), (10, 0.2), (100, 0.5))
GRID_C = 2.0 ** np.arange(-2, 6.1, 0.5)
GRID_GAMMA = 2.0 ** np.arange(-4, 1.1, 0.5)


def compare(X, y, C, gamma):
    """Seconds of both, and how far apart they are."""
    svc = SVC(C=C, gamma=gamma)
    first = seconds(lambda: leave_one_out(svc, X, y), repeats=1)
    ours = seconds(lambda: leave_one_out(svc, X, y), repeats=5)
    theirs = seconds(
        lambda: cross_val_predict(svc, X, y, cv=LeaveOneOut(), method="decision_function"),
        repeats=1,
    )
    return [f"C={C} gamma={gamma}", first, ours, theirs, theirs / ours]


def sweep(X, y):
    """Seconds of the grid, each machine started from that of the C before."""
    distances, labels = squared_distances(X), np.where(y == np.unique(y)[1], 1.0, -1.0)
    began = time.perf_counter()
    for gamma in GRID_GAMMA:
        K, solution = np.exp(-gamma * distances), None
        for C in GRID_C:
            solution = solve(K, labels, C, start=solution)
            solution.leave_one_out()
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=634)
    parser.add_argument("--no-grid", action="store_true")
    arguments = parser.parse_args()
    X, y = mackerel()
    chosen = np.random.default_rng(0).permutation(len(y))[: arguments.samples]
    X, y = (X, y) if arguments.samples >= len(y) else (X[chosen], y[chosen])
    with threadpool_limits(1):
        rows = [compare(X, y, C, gamma) for C, gamma in POINTS]
        if not arguments.no_grid:
            rows.append([f"grid of {len(GRID_C) * len(GRID_GAMMA)}", "", sweep(X, y), "", ""])
    header = ["problem", "first_call_seconds", "seconds", "refits_seconds", "ratio"]
    write_table("svm_loo_speed", header, rows)


if __name__ == "__main__":
    main()
