"""Jackknife+ intervals in closed form: what they cover, and MAPIE's on the same model.

Kernel ridge without intercept and λ = n μ held fixed: MAPIE's n refits of KernelRidge solve the
same systems, and take the same order statistics. Kernel and μ are chosen on a part of the data that
no split uses; "plus, tuned" chooses them again on the training samples of every split, for
which nothing is guaranteed. Everything on one thread; times include the fit.

Claims checked: coverage over 100 random splits at least the nominal one less sampling error, for
fixed hyper-parameters; the same intervals as MAPIE's within 1e-6, at least 100 × faster at n = 500.

    python benchmarks/jackknife.py [n_splits [n_splits_of_mapie]]

Needs mapie 1.6 beside looms (pip install mapie).
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _report import data_or_exit, write_table
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import LeaveOneOut
from threadpoolctl import threadpool_limits

from looms import BoundWarning, KernelRegressor
from looms.kernels import RBF

COVERAGE = 0.9
#: Samples to choose hyper-parameters on and to train on; the others are for tests.
SIZES = {"concrete": (330, 500), "yacht": (108, 100)}
METHODS = ("plus", "minmax", "scaled")


@dataclass
class Problem:
    """Standardized data, and the hyper-parameters chosen on a part that is not in it."""

    X: np.ndarray
    y: np.ndarray
    n_train: int
    gamma: float
    mu: float

    def split(self, seed: int) -> tuple[np.ndarray, ...]:
        order = np.random.default_rng(seed).permutation(len(self.y))
        train, test = order[: self.n_train], order[self.n_train :]
        return self.X[train], self.y[train], self.X[test], self.y[test]

    def model(self) -> KernelRegressor:
        return KernelRegressor(RBF(self.gamma), mu=self.mu, fit_intercept=False)


def problem(name: str) -> Problem:
    table = pd.read_csv(data_or_exit(f"{name}.csv"))
    table = table.iloc[np.random.default_rng(0).permutation(len(table))]
    y, X = table["target"].to_numpy(), table.drop(columns="target").to_numpy()
    n_tune, n_train = SIZES[name]
    X = (X - X[:n_tune].mean(axis=0)) / X[:n_tune].std(axis=0)
    y = (y - y[:n_tune].mean()) / y[:n_tune].std()
    chosen = KernelRegressor(fit_intercept=False).fit(X[:n_tune], y[:n_tune])
    # The ridge n μ that suits n_tune samples, for n_train of them.
    mu = chosen.mu_ * n_tune / n_train
    return Problem(X[n_tune:], y[n_tune:], n_train, chosen.kernel_.gamma, mu)


def covered(intervals: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Share of targets inside, and mean width in standard deviations of the target."""
    lower, upper = intervals.T
    return float(np.mean((lower <= y) & (y <= upper))), float(np.mean(upper - lower))


def coverage_rows(name: str, data: Problem, n_splits: int) -> list[tuple]:
    found: dict[str, list] = {}
    for seed in range(n_splits):
        X, y, X_test, y_test = data.split(seed)
        model = data.model().fit(X, y)
        model.evaluate()
        for method in METHODS:
            intervals = model.predict_interval(X_test, COVERAGE, method)
            found.setdefault(method, []).append(covered(intervals, y_test))
        tuned = KernelRegressor(fit_intercept=False).fit(X, y)
        tuned.evaluate(nested=False)
        intervals = tuned.predict_interval(X_test, COVERAGE)
        found.setdefault("plus tuned on the same samples", []).append(covered(intervals, y_test))
    rows = []
    for method, pairs in found.items():
        shares, widths = np.array(pairs).T
        error = shares.std(ddof=1) / np.sqrt(n_splits)
        row = (name, data.n_train, n_splits, method, COVERAGE)
        rows.append((*row, *map(float, (shares.mean(), error, widths.mean()))))
        print(*rows[-1], flush=True)
    return rows


def mapie_row(name: str, data: Problem, n_splits: int) -> tuple:
    """Ours and MAPIE's on the same splits: seconds, widths, largest difference of an end."""
    from mapie.regression import CrossConformalRegressor

    ours, theirs, differences, widths = [], [], [], []
    for seed in range(n_splits):
        X, y, X_test, _ = data.split(seed)
        began = time.perf_counter()
        model = data.model().fit(X, y)
        model.evaluate()
        intervals = model.predict_interval(X_test, COVERAGE)
        ours.append(time.perf_counter() - began)
        ridge = KernelRidge(alpha=len(y) * data.mu, kernel="rbf", gamma=data.gamma)
        mapie = CrossConformalRegressor(
            ridge, confidence_level=COVERAGE, method="plus", cv=LeaveOneOut()
        )
        began = time.perf_counter()
        _, expected = mapie.fit_conformalize(X, y).predict_interval(X_test)
        theirs.append(time.perf_counter() - began)
        differences.append(np.abs(intervals - expected[:, :, 0]).max())
        widths.append((np.ptp(intervals, axis=1).mean(), np.ptp(expected[:, :, 0], axis=1).mean()))
    seconds = float(np.median(ours)), float(np.median(theirs))
    row = (name, data.n_train, n_splits, *seconds, seconds[1] / seconds[0])
    return (*row, *map(float, np.mean(widths, axis=0)), float(np.max(differences)))


def main() -> None:
    try:
        import mapie  # noqa: F401
    except ImportError:
        raise SystemExit("This needs mapie: pip install mapie") from None
    n_splits = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    n_mapie = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    # What a search warns of is no business of this comparison.
    warnings.simplefilter("ignore", BoundWarning)
    rows, beside = [], []
    with threadpool_limits(1):
        for name in SIZES:
            data = problem(name)
            data.model().fit(*data.split(0)[:2])  # BLAS and imports awake
            rows += coverage_rows(name, data, n_splits)
            beside.append(mapie_row(name, data, n_mapie))
            print(*beside[-1], flush=True)
    header = ("data", "n", "splits", "method", "nominal", "coverage", "standard_error", "width")
    write_table("jackknife_coverage", header, rows)
    header = (
        "data",
        "n",
        "splits",
        "looms_seconds",
        "mapie_seconds",
        "times_faster",
        "looms_width",
        "mapie_width",
        "largest_difference",
    )
    write_table("jackknife_mapie", header, beside)


if __name__ == "__main__":
    main()
