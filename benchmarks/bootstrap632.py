"""The .632+ bootstrap of machines that tune themselves, beside random splits and a test set.

On the training part of each data set: balanced error rate and error rate by .632+, by repeated
random splits, and of a fit to all its rows on the test part. ``copies`` is the same bootstrap of
the same machine behind a `fit` that takes no weights, so that resamples hold copies of rows.

On pima the copies put .632+ at 0.470, where random splits say 0.282 and the test set 0.253; copies
as weights put it at 0.292. On every set it is within one standard error of the random splits.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _report import data_or_exit, write_table
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms

#: Accuracies by the names of the errors in the table, 1 − accuracy.
SCORES = {"ber": "balanced_accuracy", "error": "accuracy"}
MACHINES = {
    "rbf": looms.KernelClassifier("rbf"),
    "rbf, threshold ber": looms.KernelClassifier("rbf", threshold="balanced"),
}


class Unweighted(ClassifierMixin, BaseEstimator):
    """A classifier that takes no weights."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Unweighted:
        self.model_ = clone(self.model).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)


def parts_of(name: str) -> list[np.ndarray]:
    """X_train, y_train, X_test, y_test."""
    if name == "pima":
        tables = [pd.read_csv(data_or_exit(f"pima_{part}.csv")) for part in ("tr", "te")]
        parts = [(table.drop(columns="target"), table["target"]) for table in tables]
        return [columns.to_numpy() for part in parts for columns in part]
    with np.load(data_or_exit("ida_heart.npz")) as file:
        return [file[f"{a}_{part}_{name[-1]}"] for part in ("train", "test") for a in "Xy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resamples", type=int, default=30)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # of searches that end at a bound, and of copies
    asked = {"scoring": list(SCORES.values()), "random_state": 0, "n_jobs": options.jobs}
    rows = []
    for data in ("pima", "heart1", "heart2", "heart3"):
        X, y, X_test, y_test = parts_of(data)
        for name, machine in MACHINES.items():
            model = make_pipeline(StandardScaler(), machine)
            results = [
                looms.assess(model, X, y, options.resamples, method="bootstrap", **asked),
                looms.assess(
                    Unweighted(model), X, y, options.resamples, method="bootstrap", **asked
                ),
                looms.assess(model, X, y, options.splits, **asked),
            ]
            wrong = model.fit(X, y).predict(X_test) != y_test
            test = {"ber": np.mean([wrong[y_test == k].mean() for k in np.unique(y_test)])}
            test["error"] = wrong.mean()
            for score, key in SCORES.items():
                figures = [1.0 - float(result.mean[key]) for result in results]
                error = float(results[2].standard_error[key])
                rows.append(
                    (data, name.replace(",", ""), score, *figures, error, float(test[score]))
                )
    header = ("data", "machine", "score", "bootstrap632", "copies", "splits", "splits_se", "test")
    write_table("bootstrap632", header, rows)


if __name__ == "__main__":
    main()
