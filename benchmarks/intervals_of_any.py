"""Intervals of any regressor beside MAPIE's: the same ends, and the time of both.

`looms.Intervals` and MAPIE's `CrossConformalRegressor(method="plus")` fit the same regressors,
with the same splits, one after another on one thread; times are of the fit and of the intervals of
the test part. Ridge and KernelRidge leave each row out in closed form, MAPIE by n refits; all other
regressors are refitted in ten folds by both.

Claim checked: no end differs by more than 1e-6.

    python benchmarks/intervals_of_any.py

Needs mapie 1.6 beside looms (pip install mapie).
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from _report import data_or_exit, write_table
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from looms import Intervals

LEVEL = 0.9
#: Training rows of each table; the others are for tests.
ROWS = {"concrete": 500, "yacht": 100}
FOLDS = KFold(10, shuffle=True, random_state=0)
CASES = {
    "Ridge": (Ridge(1.0), LeaveOneOut()),
    "KernelRidge of RBF": (KernelRidge(0.1, kernel="rbf", gamma=0.1), LeaveOneOut()),
    "StandardScaler and Ridge": (make_pipeline(StandardScaler(), Ridge(1.0)), FOLDS),
    "gradient boosting": (HistGradientBoostingRegressor(max_iter=50, random_state=0), FOLDS),
    "random forest": (RandomForestRegressor(50, random_state=0), FOLDS),
}


def table(name: str) -> tuple[np.ndarray, ...]:
    """Training and test part, standardized by the training part."""
    frame = pd.read_csv(data_or_exit(f"{name}.csv"))
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
    y, X = frame["target"].to_numpy(), frame.drop(columns="target").to_numpy(dtype=float)
    n = ROWS[name]
    X = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0)
    return X[:n], y[:n], X[n:], y[n:]


def timed(call, repeats: int = 3):
    """Result, and the least of some wall times."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - began)
    return result, min(times)


def rows_of(data: str):
    from mapie.regression import CrossConformalRegressor

    X, y, X_test, y_test = table(data)
    for name, (estimator, cv) in CASES.items():

        def ours(estimator=estimator, cv=cv):
            own = None if isinstance(cv, LeaveOneOut) else cv  # the default leaves out each row
            return Intervals(estimator, cv=own).fit(X, y).predict_interval(X_test, LEVEL)

        def theirs(estimator=estimator, cv=cv):
            model = CrossConformalRegressor(estimator, confidence_level=LEVEL, method="plus", cv=cv)
            return model.fit_conformalize(X, y).predict_interval(X_test)[1][:, :, 0]

        ends, seconds = timed(ours)
        expected, of_mapie = timed(theirs, 1 if isinstance(cv, LeaveOneOut) else 3)
        inside = np.mean((ends[:, 0] <= y_test) & (y_test <= ends[:, 1]))
        units = "each row" if isinstance(cv, LeaveOneOut) else "10 folds"
        row = (data, len(y), name, units, seconds, of_mapie, of_mapie / seconds)
        difference = float(np.abs(ends - expected).max())
        assert difference < 1e-6, (data, name, difference)
        row = (*row, float(inside), difference)
        print(*row, flush=True)
        yield row


def main() -> None:
    try:
        import mapie  # noqa: F401
    except ImportError:
        raise SystemExit("This needs mapie: pip install mapie") from None
    with threadpool_limits(1):
        rows = [row for data in ROWS for row in rows_of(data)]
    header = ("data", "n", "regressor", "left_out", "looms_seconds", "mapie_seconds")
    more = ("times_faster", "coverage", "largest_difference")
    write_table("intervals_of_any", (*header, *more), rows)


if __name__ == "__main__":
    main()
