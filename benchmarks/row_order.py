"""Level and power of the test of row order, and the tables of the papers.

Rows are drawn one by one ("no order"), then sorted by class, by target, by a rounded target with
ties in random order, or by the target and some noise; or of groups in no order, held out together.
A right test rejects 5 of 100 of these at 0.05, or fewer. Along a track, features and what the
target depends on beside them are autoregressive series, and a test should reject. Machines are
tuned by leave-one-out first.

    python benchmarks/row_order.py [--draws 100] [--jobs 1] [--only levels]
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from _report import as_errors, data_or_exit, draws_of, quietly, write_table
from scipy.signal import lfilter

from looms import KernelClassifier, KernelRegressor
from looms.diagnostics import row_order
from looms.diagnostics._row_order import RowOrder

#: Autocorrelation of the series along a track; the first rows are left out.
TRACKS = {"track 0.8": 0.8, "track 0.95": 0.95}
_BEFORE, _OF_A_GROUP = 100, 4
CASES = {
    "classes": ("no order", "sorted", "groups", *TRACKS),
    "numbers": ("no order", "sorted", "sorted + ties", "sorted + noise", "groups", *TRACKS),
}
#: Machines, by their kernel, and numbers of rows.
MACHINES = (("rbf", 60), ("rbf", 200), ("ard", 60), ("ard", 200))
#: Tables of two classes, and the label of one.
TABLES = {
    "mackerel": "present",
    "ionosphere": "g",
    "bupa": 1,
    "pima": 1,
    "breastw": 4,
    "haberman": 2,
}
Sample = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def rows_of(case: str, task: str, n: int, rng: np.random.Generator) -> Sample:
    """Features, targets and groups of one draw."""
    Z, groups = rng.normal(size=(n, 4)), None
    if case in TRACKS:
        step = TRACKS[case]
        noise = rng.normal(size=(_BEFORE + n, 4))
        Z = lfilter([np.sqrt(1 - step**2)], [1, -step], noise, axis=0)[_BEFORE:]
    if case == "groups":
        groups = np.arange(n) // _OF_A_GROUP
        Z = Z[groups] + 0.2 * rng.normal(size=(n, 4))
    f = np.sin(2 * Z[:, 0]) + Z[:, 1] + 0.5 * Z[:, 3]
    y = f + 0.2 * rng.normal(size=n) if task == "numbers" else np.where(f > np.median(f), 1.0, -1.0)
    if case == "sorted + ties":
        y = np.round(2 * y) / 2
    if case.startswith("sorted"):
        noise = 0.5 * rng.normal(size=n) if case == "sorted + noise" else 0.0
        order = np.lexsort((rng.random(n), y + noise))
        Z, y = Z[order], y[order]
    return Z[:, :3], y, groups


def p_value(case: str, task: str, kernel: str, n: int, seed: int) -> float:
    """p of one draw."""
    X, y, groups = rows_of(case, task, n, np.random.default_rng(seed))
    machine = KernelRegressor if task == "numbers" else KernelClassifier
    order = row_order(machine(kernel).fit(X, y, groups=groups))
    return np.nan if order is None else order.p_value


def levels(options: argparse.Namespace) -> None:
    """Share of the draws in which the test rejects."""
    rows = []
    for kernel, n in MACHINES:
        for task, case in ((task, case) for task, cases in CASES.items() for case in cases):
            if case == "groups" and n < 20 * _OF_A_GROUP:
                continue
            sizes = {"n_draws": options.draws, "n_jobs": options.jobs}
            p = np.array(draws_of(p_value, case, task, kernel, n, **sizes))
            rates = [float(np.mean(p <= level + 1e-12)) for level in (0.05, 0.01)]
            error = float(np.sqrt(rates[0] * (1 - rates[0]) / len(p)))
            rows.append((kernel, n, task, case, len(p), *rates, error, float(np.median(p))))
            print(*rows[-1], flush=True)
    header = ("kernel", "n", "task", "rows", "draws", "rejected_05", "rejected_01")
    write_table("row_order", (*header, "standard_error_05", "median_p"), rows)


def fitted(X: np.ndarray, y: np.ndarray) -> tuple[float, RowOrder | None]:
    """Error to quote of the default machine, and the test."""
    model = KernelClassifier().fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    return as_errors(model.evaluate())["error"], row_order(model)


def tables() -> None:
    """The tables of the papers as they are, and with their rows shuffled."""
    rows = []
    for name, positive in TABLES.items():
        table = pd.read_csv(data_or_exit(f"{name}.csv")).dropna()
        y = np.where(table.pop("target") == positive, 1, -1)
        X = table.drop(columns="egg.count", errors="ignore").to_numpy(float)
        X = X[:, X.std(axis=0) > 0]
        some = np.random.default_rng(0).permutation(len(y))
        for rows_are, order in (("as they are", slice(None)), ("shuffled", some)):
            error, result = quietly(fitted, X[order], y[order])
            random = float(result.random.mean()), float(result.random.std())
            numbers = (
                error,
                as_errors(result.scores)["error"],
                result.statistic,
                *random,
                result.p_value,
            )
            rows.append((name, len(y), rows_are, *map(float, numbers)))
    header = ("table", "n", "rows", "error", "error_by_blocks", "press_by_blocks", "press_random")
    write_table("row_order_tables", (*header, "press_random_sd", "p"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=("levels", "tables"))
    options = parser.parse_args()
    if options.only != "levels":
        tables()
    if options.only != "tables":
        levels(options)


if __name__ == "__main__":
    main()
