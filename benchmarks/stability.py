"""Standard errors of predictions beside their standard deviation over tables.

Four normal features; the target is s = 1.2 sin x_1 + 0.8 x_2 with noise of 0.7, or a class with the
log odds 2 s. Predictions of 60 rows, or probabilities, by models of tables of n rows, with given
values or tuned; ``error`` and ``deviation`` are root mean squares over rows and tables.

    python benchmarks/stability.py [--draws 60]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from _report import write_table
from joblib import Parallel, delayed

from looms import KernelClassifier, KernelRegressor
from looms.kernels import RBF


def predicted(seed: int, n: int, target: str, values: str) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of new rows by a model of one table, and their standard errors."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(n, 4)), np.random.default_rng(10**6).normal(size=(60, 4))
    s = 1.2 * np.sin(X[:, 0]) + 0.8 * X[:, 1]
    given = {"kernel": RBF(0.1), "mu": 0.02} if values == "given" else {}
    if target == "number":
        model = KernelRegressor(**given).fit(X, s + 0.7 * rng.normal(size=n))
        return model.predict(new), model.predict_standard_error(new)
    model = KernelClassifier(**given).fit(X, rng.random(n) < 1 / (1 + np.exp(-2 * s)))
    return model.predict_proba(new)[:, 1], model.predict_standard_error(new)[:, 1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=60)
    options = parser.parse_args()
    table = []
    for target in ("number", "class"):
        for values in ("given", "tuned"):
            for n in (60, 150, 400):
                draws = (delayed(predicted)(s, n, target, values) for s in range(options.draws))
                f, error = map(np.array, zip(*Parallel(n_jobs=2)(draws), strict=True))
                deviation = float(np.sqrt(f.var(axis=0, ddof=1).mean()))
                error = float(np.sqrt((error**2).mean()))
                table.append([target, values, n, deviation, error, deviation / error])
    columns = ["target", "values", "rows", "deviation", "error", "ratio"]
    write_table("stability", columns, table)


if __name__ == "__main__":
    main()
