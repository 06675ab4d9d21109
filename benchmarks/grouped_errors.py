"""Standard errors of held-out scores beside a bootstrap of groups, or of windows of time.

The models are tuned and scored with whole groups held out, once. The bootstrap draws groups with
replacement, and takes the standard deviation of the scores of the same held-out predictions.
Areas compare rows within groups where these give enough comparisons, and so do those of the
bootstrap. "ratio" is the standard error over that of the bootstrap.

Made tables: "alone", groups of rows that have nothing in common; "wards", a share of the outcome in
common; "persons", whose rows all have one label and are alike; "series", ten windows of an
autoregressive series. Real ones: `vowel` by speaker, `concrete` by mix (rows that differ in age
alone), `mackerel` by 40 clusters of position.

Claim checked: ratios are near 1, whether rows of a group have nothing or everything in common.

    python benchmarks/grouped_errors.py [--draws 1000]

Sets that are not in LOOMS_DATA are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from _report import DATA, quietly, write_table
from sklearn.cluster import KMeans
from sklearn.metrics import r2_score, roc_auc_score

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.criteria import mean_class_error
from looms.folds import GapKFold
from looms.scores import Scores

Case = tuple[str, Any, Any, np.ndarray, np.ndarray]  #: name, model, X, y, groups


def made() -> Iterator[Case]:
    """Two classes, of which the second has a seventh to a third of the rows, and a series."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), rng.integers(6, 18, 60))
    n, level = len(groups), rng.normal(size=(60, 2))[groups]
    X, noise = rng.normal(size=(n, 3)), 1.2 * rng.normal(size=n)
    yield "alone", KernelClassifier(), X, X[:, 0] + noise > 1, groups
    yield "wards", KernelClassifier(), X, X[:, 0] + 0.7 * level[:, 0] + noise > 1.2, groups
    ill = level[:, 0] + level[:, 1] > 1
    yield "persons", KernelClassifier(), 0.3 * X + level[:, :1], ill, groups
    rng = np.random.default_rng(0)
    slow = rng.normal(size=(500, 4))
    for t in range(1, 500):
        slow[t] = 0.95 * slow[t - 1] + np.sqrt(1 - 0.95**2) * slow[t]
    windows = np.empty(500, dtype=int)
    for k, (_, rows_of) in enumerate(GapKFold(10).split(slow)):
        windows[rows_of] = k
    y = slow[:, 0] + slow[:, 3]
    yield "series", KernelRegressor(cv=GapKFold(10, gap=20)), slow[:, :3], y, windows


def real() -> Iterator[Case]:
    vowel = pd.read_csv(DATA / "vowel.csv")
    speaker = vowel.pop(vowel.columns[1]).to_numpy()
    y = vowel.pop("target").to_numpy()
    vowel = vowel.select_dtypes("number")
    yield "vowel", TabularClassifier(["rbf"]), vowel, y, np.unique(speaker, return_inverse=True)[1]
    concrete = pd.read_csv(DATA / "concrete.csv")
    y = concrete.pop("target").to_numpy()
    mix = concrete.drop(columns=[concrete.columns[-1]])
    groups = mix.groupby(list(mix.columns)).ngroup().to_numpy()
    yield "concrete", TabularRegressor(["rbf"], target="none"), concrete, y, groups
    mackerel = pd.read_csv(DATA / "mackerel.csv").drop(columns="egg.count", errors="ignore")
    y = mackerel.pop("target").to_numpy()
    places = mackerel[[c for c in mackerel if c.startswith("l")]]
    groups = KMeans(40, n_init=1, random_state=0).fit_predict(places)
    yield "mackerel", TabularClassifier(["rbf"]), mackerel, y, groups


def evaluated(model: Any, X: Any, y: np.ndarray, groups: np.ndarray) -> Scores:
    in_windows = isinstance(getattr(model, "cv", None), GapKFold)
    fitted = model.fit(X, y) if in_windows else model.fit(X, y, groups=groups)
    return fitted.evaluate(nested=False)


def area_of(
    labels: np.ndarray, outputs: np.ndarray, groups: np.ndarray, value: float
) -> Callable[[np.ndarray], float]:
    """The area as a function of weights of the rows: within groups if that has this value."""
    right, mass, first = [], [], np.unique(groups, return_index=True)[1]
    for g in groups[first]:
        positive, negative = (outputs[(groups == g) & (labels == k)] for k in (1, 0))
        right.append(float((positive[:, None] > negative).sum()))
        mass.append(float(len(positive) * len(negative)))
    if abs(np.sum(right) - value * np.sum(mass)) > 1e-6 or not np.any(mass):
        return lambda weight: float(roc_auc_score(labels, outputs, sample_weight=weight))
    return lambda weight: float(weight[first] @ right / (weight[first] @ mass))


def weighted(scores: Scores, groups: np.ndarray) -> Callable[[np.ndarray], dict[str, float]]:
    """The scores of the held-out predictions as a function of weights of the rows."""
    y, outputs, _ = scores.predictions
    decided = scores.decisions
    if decided is None:

        def of_numbers(weight: np.ndarray) -> dict[str, float]:
            residuals = y - outputs
            return {
                "rmse": float(np.sqrt(np.average(residuals**2, weights=weight))),
                "mae": float(np.average(np.abs(residuals), weights=weight)),
                "r2": float(r2_score(y, outputs, sample_weight=weight)),
            }

        return of_numbers
    labels = (y > 0) * 1 if y.ndim == 1 else y.argmax(axis=1)
    area = area_of(labels, outputs, groups, scores["roc_auc"]) if y.ndim == 1 else None

    def of_classes(weight: np.ndarray) -> dict[str, float]:
        found = {
            "accuracy": 1 - float(np.average(decided.wrong, weights=weight)),
            "balanced_accuracy": 1 - mean_class_error(labels, decided.wrong, weight),
            "log_loss": float(np.average(decided.losses, weights=weight)),
        }
        if area is not None:
            found["roc_auc"] = area(weight)
        return found

    return of_classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    cases = list(made())
    if (DATA / "vowel.csv").exists():
        cases += real()
    table = []
    for name, model, X, y, groups in cases:
        scores = quietly(evaluated, model, X, y, groups)
        rng, n, score_of = np.random.default_rng(0), groups.max() + 1, weighted(scores, groups)
        drawn = [
            score_of(1.0 * np.bincount(rng.integers(0, n, n), minlength=n)[groups])
            for _ in range(options.draws)
        ]
        for score in drawn[0]:
            value, error = scores.with_errors[score]
            spread = float(np.std([each[score] for each in drawn], ddof=1))
            table.append([name, len(y), n, score, value, error, spread, error / spread])
            print(*table[-1], flush=True)
    header = ["table", "rows", "groups", "score", "value", "standard_error", "bootstrap", "ratio"]
    write_table("grouped_errors", header, table)


if __name__ == "__main__":
    main()
