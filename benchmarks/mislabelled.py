"""Flipped labels found by leave-one-out margins, beside cleanlab's rankings.

5 % of the labels are flipped at random; the 5 % of the samples that a ranking puts first are
looked at, and precision is the share of them that were flipped. Rankings:

- "looms": leave-one-out margins of an KernelClassifier, one fit;
- "cleanlab, same machine": cleanlab's label quality from 5-fold out-of-sample probabilities of
  the same estimator, which chooses its hyper-parameters in every fold; outputs become
  probabilities by σ(2 f), which does not change their order;
- "cleanlab, logistic regression": CleanLearning() as it comes.

Everything on one thread; times include the fits. Rows with gaps are left out of breastw.

    python benchmarks/mislabeled.py [n_repeats of breastw [of usps_test]]

Needs cleanlab 2.9 beside looms (pip install cleanlab).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from _report import data_or_exit, write_table
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from looms import BoundWarning, KernelClassifier
from looms.diagnostics import case_deletion

FLIPPED = 0.05


def breastw() -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(data_or_exit("breastw.csv")).dropna()
    return standardized(table.drop(columns="target")), (table["target"] == 4).to_numpy(dtype=int)


def usps_odd() -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(data_or_exit("usps_test.csv.gz"))
    return standardized(table.drop(columns="target")), table["target"].to_numpy(dtype=int) % 2


def standardized(table: pd.DataFrame) -> np.ndarray:
    X = table.to_numpy(dtype=float)
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)


def by_margin(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    return case_deletion(
        KernelClassifier(random_state=seed, calibration=None).fit(X, labels)
    ).margin


def by_cleanlab(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    from cleanlab.rank import get_label_quality_scores

    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    model = KernelClassifier(random_state=seed, calibration=None)
    f = cross_val_predict(model, X, labels, cv=folds, method="decision_function")
    return get_label_quality_scores(labels, np.column_stack([expit(-2 * f), expit(2 * f)]))


def by_logistic_regression(X: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    from cleanlab.classification import CleanLearning

    issues = CleanLearning(seed=seed).find_label_issues(X, labels)
    return issues["label_quality"].to_numpy()


RANKINGS: dict[str, Callable[..., np.ndarray]] = {
    "looms": by_margin,
    "cleanlab same machine": by_cleanlab,
    "cleanlab logistic regression": by_logistic_regression,
}


def flipped(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, some of them wrong, and which."""
    wrong = np.random.default_rng(seed).choice(len(y), round(FLIPPED * len(y)), replace=False)
    labels = y.copy()
    labels[wrong] = 1 - labels[wrong]
    return labels, wrong


def rows_of(name: str, X: np.ndarray, y: np.ndarray, n_repeats: int) -> list[tuple]:
    found: dict[str, list[tuple[float, float]]] = {ranking: [] for ranking in RANKINGS}
    for seed in range(n_repeats):
        labels, wrong = flipped(y, seed)
        for ranking, quality in RANKINGS.items():
            began = time.perf_counter()
            first = np.argsort(quality(X, labels, seed), kind="stable")[: len(wrong)]
            elapsed = time.perf_counter() - began
            found[ranking].append((float(np.isin(first, wrong).mean()), elapsed))
    rows = []
    for ranking, pairs in found.items():
        precision, elapsed = np.array(pairs).T
        error = precision.std(ddof=1) / np.sqrt(n_repeats) if n_repeats > 1 else np.nan
        row = (name, len(y), n_repeats, ranking)
        rows.append((*row, *map(float, (precision.mean(), error, np.median(elapsed)))))
        print(*rows[-1], flush=True)
    return rows


def main() -> None:
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        raise SystemExit("This needs cleanlab: pip install cleanlab") from None
    repeats = [int(argument) for argument in sys.argv[1:]] + [20, 5][len(sys.argv) - 1 :]
    for category in (BoundWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)
    rows = []
    with threadpool_limits(1):
        for name, load, n_repeats in zip(
            ("breastw", "usps_test odd or even"), (breastw, usps_odd), repeats, strict=True
        ):
            X, y = load()
            KernelClassifier().fit(X[:200], y[:200])  # BLAS and imports awake
            rows += rows_of(name, X, y, n_repeats)
    header = ("data", "n", "repeats", "ranking", "precision", "standard_error", "median_seconds")
    write_table("mislabeled", header, rows)


if __name__ == "__main__":
    main()
