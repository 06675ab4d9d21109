"""How often `looms.check` finds near repeats, and how often it suspects rows drawn one by one.

"units": rows of one unit are its center, of 4 features, with some spread; the target is of the
unit, the first feature with as much noise, and "classes" are those above its median. Beside it the
accuracies, or RMSE, of a kernel classifier or regressor with each row and with each unit held out.

"single": rows drawn one by one. Their functions are smooth, of few features and with little noise,
so that near rows tell much of one another. Stripes and the board of 16 squares change within a few
rows, which are then all that tells of a row: there a suspicion is as right as wrong.

Claims checked: units of 2 to 5 rows are found in nine of ten tables of 60 rows or more; of tables
with rows drawn one by one, apart from these two, no more than 2 % are suspected.

    python benchmarks/near_rows.py [--draws 20] [--jobs 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _report import as_errors, draws_of, write_table
from sklearn.datasets import make_circles, make_friedman1, make_moons

import looms
from looms import KernelClassifier, KernelRegressor

N_FEATURES, FINDING = 4, "Rows like repeats of others"
#: Number of units, rows of each, and their spread.
UNITS = (
    *((50, 3, 0.1), (50, 3, 0.02), (30, 5, 0.1), (20, 4, 0.1), (60, 2, 0.1)),
    *((20, 3, 0.1), (30, 2, 0.1), (10, 5, 0.1), (15, 8, 0.1), (40, 8, 0.3)),
)
SIZES = (45, 60, 80, 100, 150, 300)
Sample = tuple[np.ndarray, np.ndarray]


def units(
    n_units: int, n_of_unit: int, spread: float, task: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unit = rng.permutation(np.repeat(np.arange(n_units), n_of_unit))
    center = rng.normal(size=(n_units, N_FEATURES))
    X = center[unit] + spread * rng.normal(size=(len(unit), N_FEATURES))
    target = center[:, 0] + rng.normal(size=n_units)
    y = target[unit] + 0.1 * rng.normal(size=len(unit))
    return X, y if task == "numbers" else (target > np.median(target))[unit], unit


def _of(
    n_features: int, target: Callable[[np.ndarray], np.ndarray], noise: float
) -> Callable[[int, int], Sample]:
    """Draws of normal features and a target of theirs, a class if it is a truth value."""

    def drawn(n: int, seed: int) -> Sample:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, n_features))
        y = target(X)
        return X, y if y.dtype == bool else y + noise * rng.normal(size=n)

    return drawn


def _uniform(
    n_features: int, target: Callable[[np.ndarray], np.ndarray]
) -> Callable[[int, int], Sample]:
    """Draws of features in [0, 4), and classes of theirs."""

    def drawn(n: int, seed: int) -> Sample:
        X = np.random.default_rng(seed).uniform(0, 4, (n, n_features))
        return X, target(X)

    return drawn


def _blobs(n: int, seed: int) -> Sample:
    rng = np.random.default_rng(seed)
    center, blob = 2 * rng.normal(size=(6, 3)), rng.integers(0, 6, n)
    return center[blob] + 0.5 * rng.normal(size=(n, 3)), blob % 2


SINGLE: dict[str, Callable[[int, int], Sample]] = {
    "sine, 1 feature": _of(1, lambda X: np.sin(3 * X[:, 0]), 0.05),
    "sines, 2 features": _of(2, lambda X: np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]), 0.05),
    "exact, 2 features": _of(2, lambda X: np.sin(2 * X[:, 0]) + X[:, 1] ** 2, 0.0),
    "linear, 5 features": _of(5, lambda X: X[:, 0] - X[:, 1], 0.5),
    "skewed, 3 features": _of(3, lambda X: np.log(np.exp(X[:, 0]) + np.exp(X[:, 1])), 0.1),
    "friedman": lambda n, seed: make_friedman1(n, 5, noise=0.1, random_state=seed),
    "plane, 4 features": _of(4, lambda X: X[:, 0] + X[:, 1] > 0, 0.0),
    "ball, 3 features": _of(3, lambda X: (X**2).sum(axis=1) > 2, 0.0),
    "moons": lambda n, seed: make_moons(n, noise=0.15, random_state=seed),
    "circles": lambda n, seed: make_circles(n, noise=0.05, factor=0.6, random_state=seed),
    "blobs": _blobs,
    "chess, 2 × 2": _uniform(2, lambda X: np.floor(X / 2).sum(axis=1) % 2 == 0),
    "chess, 4 × 4": _uniform(2, lambda X: np.floor(X).sum(axis=1) % 2 == 0),
    "stripes, 6": _uniform(1, lambda X: np.floor(1.5 * X[:, 0]) % 2 == 0),
}


def is_found(X: np.ndarray, y: np.ndarray) -> float:
    task = "classification" if len(np.unique(y)) == 2 else "regression"
    found = looms.check(X, y, task=task)["findings"]
    return float(FINDING in {one["title"] for one in found})


def of_units(
    n_units: int, n_of_unit: int, spread: float, task: str, seed: int
) -> tuple[float, float, float]:
    """1 if units are found, then errors with each row and each unit held out."""
    X, y, unit = units(n_units, n_of_unit, spread, task, np.random.default_rng(seed))
    machine = KernelRegressor() if task == "numbers" else KernelClassifier()
    key = "rmse" if task == "numbers" else "error"
    by_rows, by_units = (
        as_errors(machine.fit(X, y, groups=groups).evaluate(nested=False))[key]
        for groups in (None, unit)
    )
    return is_found(X, y), by_rows, by_units


def of_single(name: str, n: int, seed: int) -> float:
    return is_found(*SINGLE[name](n, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    how_many = {"n_draws": options.draws, "n_jobs": options.jobs}
    rows: list[tuple[object, ...]] = []
    for n_units, n_of_unit, spread in UNITS:
        for task in ("classes", "numbers"):
            draws = draws_of(of_units, n_units, n_of_unit, spread, task, **how_many)
            found, *errors = np.mean(draws, axis=0)
            name = f"{n_units} units of {n_of_unit}, spread {spread}; {task}"
            rows.append(("units", name, n_units * n_of_unit, len(draws), found, *errors))
            print(*rows[-1], sep=" | ", flush=True)
    for n in SIZES:
        for name in SINGLE:
            draws = draws_of(of_single, name, n, **how_many)
            rows.append(("single", name, n, len(draws), float(np.mean(draws)), "", ""))
        suspected = [row[4] for row in rows if row[0] == "single" and row[2] == n]
        print("single", n, float(np.mean(suspected)), sep=" | ", flush=True)
    columns = "rows_are problem n draws found error_by_rows error_by_units"
    write_table("near_rows", columns.split(), rows)


if __name__ == "__main__":
    main()
