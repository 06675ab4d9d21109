"""Level and power of the permutation test, and its time beside refits by scikit-learn.

Five normal features, of which the target depends on the first: noise of unit variance, or classes
by the sign. On noise a right test rejects 5 of 100 draws at 0.05. Beside it, the share of draws
whose score of a fit by leave-one-out is better than the mean of the others by more than 1.645
standard errors, a one-sided interval. The time of refits is that of `permutation_test_score` with
a grid as large, from two permutations.

    python benchmarks/permutation_level.py [--draws 500] [--jobs 1]
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from _report import draws_of, quietly, seconds, write_table
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, permutation_test_score

from looms import KernelClassifier, KernelRegressor, Search
from looms.diagnostics import permutation_test

N_PERMUTATIONS = 199
ROWS = 60
SIGNALS = (0.0, 0.5, 0.8)
CASES = ("rows", "groups", "in groups", "classes")


def drawn(case: str, signal: float, seed: int) -> tuple[float, bool]:
    """p of one draw, and whether the interval of the score excludes the baseline."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(ROWS, 5)), None
    if "groups" in case:
        groups = np.arange(ROWS) // 3
    if case == "groups":
        X = X[groups] + 0.3 * X
    f = signal * np.sin(X[:, 0])
    y = f + rng.normal(size=ROWS)
    if case == "groups":
        y = f[::3][groups] + rng.normal(size=ROWS // 3)[groups]
    if case == "in groups":
        y = y + rng.normal(size=ROWS // 3)[groups]
    search = Search(method="grid")
    model = KernelRegressor(search=search)
    if case == "classes":
        model, y = KernelClassifier(search=search), np.where(y > 0, "b", "a")
    model.fit(X, y, groups=groups)
    p = permutation_test(model, N_PERMUTATIONS, random_state=seed).p_value
    if case != "rows":
        return p, False
    others = (y.sum() - y) / (ROWS - 1)
    gain = (y - others) ** 2 - (y - model.loo_.outputs) ** 2
    return p, bool(gain.mean() > 1.645 * gain.std(ddof=1) / np.sqrt(ROWS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for case in CASES:
        for signal in SIGNALS:
            found = draws_of(drawn, case, signal, n_draws=options.draws, n_jobs=options.jobs)
            p, sure = np.array(found).T
            excludes = float(sure.mean()) if case == "rows" else ""
            rows.append((case, signal, options.draws, float((p <= 0.05).mean()), excludes))
    head = ("case", "signal", "draws", "rejected_05", "interval_excludes_baseline")
    write_table("permutation_level", head, rows)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = 0.5 * np.sin(X[:, 0]) + rng.normal(size=300)
    model = KernelRegressor().fit(X, y)
    own = seconds(lambda: quietly(permutation_test, model))
    grid = {"gamma": 10.0 ** np.linspace(-3, 1, 7), "alpha": 10.0 ** np.linspace(-3, 2, 9)}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=10)
    refits = seconds(
        lambda: quietly(partial(permutation_test_score, n_permutations=2, cv=10), search, X, y), 1
    )
    all_refits = refits / 3 * 1000
    head = ("rows", "permutations", "looms_seconds", "refits_seconds", "ratio")
    write_table("permutation_time", head, [(300, 999, own, all_refits, all_refits / own)])


if __name__ == "__main__":
    main()
