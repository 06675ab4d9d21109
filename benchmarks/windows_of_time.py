"""Windows of time beside single rows: the figure that chose a model, and the error on later rows.

Four features and a disturbance; the target is 1.5 sin x_1 + 0.5 x_2 and the disturbance. Of
stationary series, each is autoregressive. Of drifting ones, the first 400 rows are followed by 100:
"level" has a random walk as disturbance, "coefficients" has a linear target whose coefficients are
random walks; the place in time is a fifth feature of "..., time given". `KernelRegressor` is fitted
to the first rows, and its root mean square error is that on later ones; its own is
`evaluate(nested=False)`. Means over draws, with standard errors; and the mean of the log ratio of
the later error to that by windows with rows on either side.

    python benchmarks/windows_of_time.py [--draws 30] [--rows 400] [--later 800]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from _report import write_table
from joblib import Parallel, delayed

from looms import KernelRegressor
from looms.folds import ForwardSplit, GapKFold

AROUND = "10 windows"
CVS = {
    "each row": None,
    AROUND: GapKFold(10),
    "10 windows with gap 30": GapKFold(10, gap=30),
    "5 windows by rows before": ForwardSplit(5),
    "5 windows by rows before a gap of 30": ForwardSplit(5, gap=30),
}
SERIES = [
    "0",
    "0.9",
    "0.97",
    "level",
    "level, time given",
    "coefficients",
    "coefficients, time given",
]
_LATER_OF_DRIFT = 100


def series(rng: np.random.Generator, autocorrelation: float, n: int) -> np.ndarray:
    """Stationary autoregressive series of order one and variance one."""
    x = rng.normal(size=n)
    for t in range(1, n):
        x[t] = autocorrelation * x[t - 1] + np.sqrt(1 - autocorrelation**2) * x[t]
    return x


def rows_of(name: str, rng: np.random.Generator, n: int, later: int) -> tuple[np.ndarray, ...]:
    """Features and targets in order of time."""
    kind, _, given = name.partition(",")
    if kind[0] == "0":
        columns = [series(rng, float(kind), n + later) for _ in range(5)]
        X = np.column_stack(columns[:4])
        return X, 1.5 * np.sin(X[:, 0]) + 0.5 * X[:, 1] + columns[4]
    n_all = n + _LATER_OF_DRIFT
    if kind == "level":
        X = np.column_stack([series(rng, 0.97, n_all) for _ in range(4)])
        walk = np.cumsum(rng.normal(size=n_all)) / np.sqrt(n / 2)
        y = 1.5 * np.sin(X[:, 0]) + 0.5 * X[:, 1] + walk + 0.3 * rng.normal(size=n_all)
    else:
        X = rng.normal(size=(n_all, 4))
        slopes = rng.normal(size=4) + np.cumsum(rng.normal(size=(n_all, 4)), axis=0) / np.sqrt(n)
        y = (X * slopes).sum(axis=1) + 0.5 * rng.normal(size=n_all)
    return (np.column_stack([X, np.arange(n_all) / n * 6]) if given else X), y


def errors(name: str, seed: int, n: int, later: int) -> np.ndarray:
    """Own and later errors, (n_cvs, 2), of one draw."""
    warnings.simplefilter("ignore")
    X, y = rows_of(name, np.random.default_rng(seed), n, later)
    rmse = []
    for cv in CVS.values():
        model = KernelRegressor(cv=cv).fit(X[:n], y[:n])
        away = y[n:] - model.predict(X[n:])
        rmse.append((model.evaluate(nested=False)["rmse"], np.sqrt(np.mean(away**2))))
    return np.array(rmse)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--later", type=int, default=800)
    options = parser.parse_args()
    table = []
    for name in SERIES:
        draws = (
            delayed(errors)(name, s, options.rows, options.later) for s in range(options.draws)
        )
        rmse = np.stack(Parallel(n_jobs=2)(draws))
        ratio = np.log(rmse[:, :, 1] / rmse[:, [list(CVS).index(AROUND)], 1])
        values = np.concatenate([rmse, ratio[:, :, None]], axis=2)
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(options.draws)
        for k, held_out in enumerate(CVS):
            pairs = np.stack([mean[k], error[k]], axis=1).ravel()
            table.append([name, held_out, *map(float, pairs)])
            print(*table[-1][:2], *np.round(table[-1][2:], 3), flush=True)
    columns = ["series", "held_out", "own", "own_error", "later", "later_error"]
    write_table("windows_of_time", [*columns, "log_ratio", "log_ratio_error"], table)


if __name__ == "__main__":
    main()
