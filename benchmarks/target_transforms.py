"""Test errors with the target transformed and without, on the tables for development.

    OMP_NUM_THREADS=1 python -m benchmarks.target_transforms

Five repetitions of three folds of each regression table of `benchmarks/tables`, at most 500 rows
for training, the RBF kernel. A row of the result is a table: root mean square error of the model
that selects a transform of the target by held-out errors, over that of the model of the plain
target. It is a geometric mean, with its standard error over the fits, which share rows.

Claims checked: the geometric mean over tables is below 0.99, and no table loses more than 0.3
percent. The stored result was made with medians and a choice by likelihood beside it, which the
models no longer have.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from benchmarks._report import write_table
from benchmarks.tables._list import TABLES
from benchmarks.tables.prepare import FOLDER
from benchmarks.tables.run import loaded, split

from looms import TabularRegressor

HEADER = ("table", "transforms", "rmse", "rmse_se")
MOST_TRAINING, MOST_TEST = 500, 3000


def fold_error(
    X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray, target: str
) -> tuple[float, str]:
    """Root mean square error on test rows, and the transform."""
    model = TabularRegressor(["rbf"], target=target).fit(X.iloc[train], y[train])
    residuals = model.predict(X.iloc[test]) - y[test]
    return float(np.sqrt(np.mean(residuals**2))), model.transform_


def main() -> None:
    rows = []
    for table in TABLES:
        if table.half != "develop" or table.task != "regression":
            continue
        X, y = loaded(table, FOLDER)
        splits = [
            (train, test[:MOST_TEST])
            for repeat in range(5)
            for train, test in split(y, False, repeat, MOST_TRAINING)
        ]
        plain = np.array([fold_error(X, y, *parts, "none")[0] for parts in splits])
        results = [fold_error(X, y, *parts, "auto") for parts in splits]
        logarithms = np.log(np.array([error for error, _ in results]) / plain)
        used = [name for _, name in results]
        counts = " ".join(f"{name}:{used.count(name)}" for name in dict.fromkeys(used))
        error = logarithms.std(ddof=1) / np.sqrt(len(splits))
        rows.append((table.name, counts, float(np.exp(logarithms.mean())), float(error)))
        print(rows[-1], flush=True)
    write_table("target_transforms", HEADER, rows)
    ratios = np.array([row[2] for row in rows])
    assert np.exp(np.log(ratios).mean()) < 0.99
    assert (ratios < 1.003).all()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of copies and bounds
        main()
