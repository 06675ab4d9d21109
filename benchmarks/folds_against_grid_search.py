"""Ten folds in closed form over a grid of kernels and ridges, beside GridSearchCV(KernelRidge).

8 gammas and 8 ridges. The ridge of KernelRidge is `alpha`, which stays as it is while a fold is
out, and so does ours, n mu: the same machines without an intercept, on centered targets. Ours come
from one eigendecomposition of each kernel (`Objective.along_mu`), or from one factorization of
each candidate (`Objective.evaluate`). GridSearchCV runs in one process and does not refit.

Claim checked: the same mean squared errors to 1e-8, relative. Sizes are multiples of ten, so that
the mean over folds is the mean over rows.

    python benchmarks/folds_against_grid_search.py [500 1000 2000]
"""

from __future__ import annotations

import sys

import numpy as np
from _report import seconds, write_table
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from looms.selection._objective import Objective
from looms.units import Units

N_FEATURES, N_FOLDS = 5, 10
LOG2_GAMMAS, LOG2_RIDGES = np.arange(-7.0, 1.0), np.arange(-9.0, 7.0, 2.0)


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, y - y.mean()


def by_eigenvectors(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean squared errors, (gammas, ridges)."""
    objective = Objective(X, y, kernel="rbf", fit_intercept=False, units=Units.of(N_FOLDS, y))
    log2_mu = LOG2_RIDGES - np.log2(len(y))
    paths = [objective.along_mu(np.array([gamma]), log2_mu) for gamma in LOG2_GAMMAS]
    return np.array([[point.value for point in path] for path in paths])


def by_cholesky(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    objective = Objective(X, y, kernel="rbf", fit_intercept=False, units=Units.of(N_FOLDS, y))
    log2_mu = LOG2_RIDGES - np.log2(len(y))
    return np.array(
        [
            [objective.evaluate(np.array([gamma, mu]), gradient=False).value for mu in log2_mu]
            for gamma in LOG2_GAMMAS
        ]
    )


def by_refits(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    grid = {"gamma": 2.0**LOG2_GAMMAS, "alpha": 2.0**LOG2_RIDGES}
    search = GridSearchCV(
        KernelRidge(kernel="rbf"), grid, cv=N_FOLDS, scoring="neg_mean_squared_error", refit=False
    ).fit(X, y)
    errors = dict.fromkeys(((g, a) for g in grid["gamma"] for a in grid["alpha"]), np.nan)
    results = search.cv_results_
    for parameters, score in zip(results["params"], results["mean_test_score"], strict=True):
        errors[parameters["gamma"], parameters["alpha"]] = -score
    return np.array(list(errors.values())).reshape(len(LOG2_GAMMAS), len(LOG2_RIDGES))


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or [500, 1000, 2000]
    rows = []
    for n in sizes:
        if n % N_FOLDS:
            raise SystemExit(f"Sizes must be multiples of {N_FOLDS}, got {n}.")
        X, y = problem(n)
        theirs = by_refits(X, y)
        worst = max(
            float(np.abs(ours(X, y) / theirs - 1).max()) for ours in (by_eigenvectors, by_cholesky)
        )
        if worst > 1e-8:
            raise SystemExit(f"The errors differ by {worst:.1e} at n = {n}.")
        times = [
            seconds(lambda search=search, X=X, y=y: search(X, y), repeats)
            for search, repeats in ((by_eigenvectors, 3), (by_cholesky, 3), (by_refits, 1))
        ]
        rows.append((n, *times, times[2] / times[0], times[2] / times[1], worst))
        print(*rows[-1], flush=True)
    header = (
        "n",
        "eigenvectors_seconds",
        "cholesky_seconds",
        "grid_search_seconds",
        "eigenvectors_times_faster",
        "cholesky_times_faster",
        "largest_relative_difference",
    )
    write_table("folds_against_grid_search", header, rows)


if __name__ == "__main__":
    main()
