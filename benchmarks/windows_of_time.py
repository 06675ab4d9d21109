"""Windows of time with a gap beside single rows: the figure that chose a machine, and later rows.

Four features and a disturbance, each an autoregressive series; the target is 1.5 sin x_1 + 0.5 x_2
and the disturbance. `KernelRegressor` is fitted to the first rows, and its root mean square error
is that on later ones; its own is `evaluate(nested=False)`. Means over draws, with standard errors.

    python benchmarks/windows_of_time.py [--draws 30] [--rows 400] [--later 800]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from _report import write_table

from looms import KernelRegressor
from looms.folds import GapKFold

CVS = {"each row": None, "10 windows": GapKFold(10), "10 windows with gap 30": GapKFold(10, gap=30)}
AUTOCORRELATIONS = (0.0, 0.9, 0.97)


def series(rng: np.random.Generator, autocorrelation: float, n: int) -> np.ndarray:
    """Stationary autoregressive series of order one and variance one."""
    x = rng.normal(size=n)
    for t in range(1, n):
        x[t] = autocorrelation * x[t - 1] + np.sqrt(1 - autocorrelation**2) * x[t]
    return x


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--later", type=int, default=800)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n, table = options.rows, []
    for autocorrelation in AUTOCORRELATIONS:
        rmse = np.empty((options.draws, len(CVS), 2))
        for seed in range(options.draws):
            rng = np.random.default_rng(seed)
            columns = [series(rng, autocorrelation, n + options.later) for _ in range(5)]
            X = np.column_stack(columns[:4])
            y = 1.5 * np.sin(X[:, 0]) + 0.5 * X[:, 1] + columns[4]
            for k, cv in enumerate(CVS.values()):
                machine = KernelRegressor(cv=cv).fit(X[:n], y[:n])
                residuals = y[n:] - machine.predict(X[n:])
                rmse[seed, k] = (
                    machine.evaluate(nested=False)["rmse"],
                    np.sqrt(np.mean(residuals**2)),
                )
        errors = rmse.std(axis=0, ddof=1) / np.sqrt(options.draws)
        for k, name in enumerate(CVS):
            (own, later), (own_error, later_error) = rmse.mean(axis=0)[k], errors[k]
            numbers = (own, own_error, later, later_error)
            table.append([autocorrelation, name, *map(float, numbers)])
    columns = ["autocorrelation", "held_out", "own", "own_error", "later", "later_error"]
    write_table("windows_of_time", columns, table)


if __name__ == "__main__":
    main()
