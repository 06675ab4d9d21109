"""Test errors with the target transformed and without, on the tables for development.

    OMP_NUM_THREADS=1 python -m benchmarks.target_transforms

Five repetitions of three folds of each regression table of `benchmarks/tables`, at most 500 rows
for training, the RBF kernel. A row of the result is a table and what chooses the transform: root
mean square error of predicted means, and mean absolute error of predicted medians, over those of
the machine of the plain target. These are geometric means, with standard errors over the fits,
which share rows.

Claims checked: chosen by held-out error, the geometric mean over tables of either ratio is below
0.99, and no table loses more than 0.3 percent.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from benchmarks._report import write_table
from benchmarks.tables._list import TABLES
from benchmarks.tables.prepare import FOLDER
from benchmarks.tables.run import loaded, split

from looms import KernelRegressor, TransformedTargetRegressorCV
from looms.tables import TablePreprocessor

HEADER = ("table", "criterion", "transforms", "rmse", "rmse_se", "mae", "mae_se")
MOST_TRAINING, MOST_TEST = 500, 3000


def fold_errors(
    X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray, criterion: str | None
) -> tuple[list[float], list[str]]:
    """Root mean square error of means, mean absolute error of medians, and both transforms."""
    before = TablePreprocessor()
    matrix, new = before.fit_transform(X.iloc[train]), before.transform(X.iloc[test])
    errors, names = [], []
    for statistic, power in (("mean", 2), ("median", 1)):
        model = KernelRegressor()
        if criterion is not None:
            options = {"criterion": criterion, "statistic": statistic}
            model = TransformedTargetRegressorCV(model, **options)
        residuals = np.abs(model.fit(matrix, y[train]).predict(new) - y[test])
        errors.append(np.mean(residuals**power) ** (1 / power))
        names.append(getattr(model, "transform_", "none"))
    return errors, names


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
        plain = np.array([fold_errors(X, y, *parts, None)[0] for parts in splits])
        for criterion in ("error", "likelihood"):
            results = [fold_errors(X, y, *parts, criterion) for parts in splits]
            logarithms = np.log(np.array([errors for errors, _ in results]) / plain)
            used = [name for _, names in results for name in names]
            counts = " ".join(f"{name}:{used.count(name)}" for name in dict.fromkeys(used))
            ratio = np.exp(logarithms.mean(axis=0))
            error = logarithms.std(axis=0, ddof=1) / np.sqrt(len(splits))
            rows.append((table.name, criterion, counts, ratio[0], error[0], ratio[1], error[1]))
            print(rows[-1], flush=True)
    write_table("target_transforms", HEADER, rows)
    by_error = np.array([[row[3], row[5]] for row in rows if row[1] == "error"])
    assert (np.exp(np.log(by_error).mean(axis=0)) < 0.99).all()
    assert (by_error < 1.003).all()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of copies and bounds
        main()
