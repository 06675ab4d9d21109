"""Rows of Table III of Cawley (2006) on ADA, side by side with the paper's.

The paper's preprocessing: logarithm of features 1 and 3, features 4 and 5 made binary by
thresholds (44 and one that is not printed), continuous features standardised. In its order
of features these are age, education, capital gain and capital loss, here columns 19, 17, 29
and 23, found by their values; the missing threshold is taken at 410, between the losses that
go with a low and with a high income. Columns and rows of our ADA are permuted otherwise.

The paper does not say how it set the threshold of the output. Three rules are shown: 0, the
leave-one-out threshold (the honest one), and the one that is best on the test part. Over ten
splits the last explains the paper's figures: in every row it is within one standard error
(0.007 to 0.009) of them. The leave-one-out threshold gives 0.01 more, near the 0.188 and 0.185 that
the author reports for ADA later, and threshold 0 gives 0.25 unless training is weighted. The
splits, and the missing threshold of feature 5, are ours.

    python benchmarks/ada_table3.py [--splits 10]
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _report import DATA, data_or_exit, write_table
from sklearn.model_selection import StratifiedShuffleSplit

from looms import BoundWarning, LeaveOneOut, LSSVMClassifierCV
from looms.criteria import balanced_error_rate
from looms.threshold import balanced_error_threshold

AGE, EDUCATION, GAIN, LOSS, HOURS, WEIGHT = 19, 17, 29, 23, 1, 14
GAIN_THRESHOLD, LOSS_THRESHOLD = 44, 410
#: Criterion, weighted training, weighted selection, kernel.
ROWS = [
    *(("PRESS", "no", "no", k) for k in ("linear", "quadratic", "cubic", "boolean", "rbf")),
    ("PRESS", "yes", "no", "rbf"),
    ("PRESS", "yes", "yes", "rbf"),
    ("HINGE", "no", "no", "quadratic"),
    ("SQUARED_HINGE", "no", "no", "rbf"),
    ("WMW", "no", "no", "rbf"),
    ("ERATE", "no", "no", "linear"),
    ("ERATE", "no", "no", "rbf"),
]
CRITERIA = {
    "PRESS": "press",
    "HINGE": "hinge",
    "SQUARED_HINGE": "squared_hinge",
    "WMW": "wmw",
    "ERATE": "smoothed_error",
}


def ada() -> tuple[np.ndarray, np.ndarray]:
    """Features preprocessed but for standardisation, and labels ±1."""
    table = pd.read_csv(data_or_exit("ada.csv.gz"))
    y = table.pop("target").to_numpy(dtype=float)
    X = table.to_numpy(dtype=float)
    X[:, [AGE, EDUCATION]] = np.log(X[:, [AGE, EDUCATION]])
    X[:, GAIN] = X[:, GAIN] > GAIN_THRESHOLD
    X[:, LOSS] = X[:, LOSS] > LOSS_THRESHOLD
    return X, y


def standardised(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    X = X.copy()
    columns = [AGE, EDUCATION, HOURS, WEIGHT]
    mean, spread = X[train][:, columns].mean(axis=0), X[train][:, columns].std(axis=0)
    X[:, columns] = (X[:, columns] - mean) / spread
    return X


def paper_rows() -> dict[tuple[str, str, str, str], float]:
    path = DATA.parent / "results" / "c06_table3_100fold_test_ber.csv"
    with Path(path).open() as file:
        return {
            (r["criterion"], r["weighted_training"], r["weighted_selection"], r["kernel"]): float(
                r["ada"] or "nan"
            )
            for r in csv.DictReader(file)
        }


def one_split(row: tuple[str, str, str, str], X: np.ndarray, y: np.ndarray, split: tuple) -> tuple:
    """Balanced error rates: at 0, at the leave-one-out threshold, best on test, leave-one-out."""
    criterion, training, selection, kernel = row
    train, test = split
    X = standardised(X, train)
    model = LSSVMClassifierCV(
        kernel=kernel,
        criterion=CRITERIA[criterion],
        class_weight="balanced" if training == "yes" else None,
        selection_weight="balanced" if selection == "yes" else None,
        threshold="ber",
    ).fit(X[train], y[train])
    tested = LeaveOneOut(y[test], model.decision_function(X[test]))
    return (
        balanced_error_rate(tested, -model.threshold_),
        balanced_error_rate(tested),
        balanced_error_threshold(tested)[1],
        model.candidates_[0].score,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BoundWarning)
    X, y = ada()
    paper = paper_rows()
    splitter = StratifiedShuffleSplit(arguments.splits, test_size=0.1, random_state=0)
    splits = list(splitter.split(X, y))
    table = []
    for row in ROWS:
        began = time.perf_counter()
        rates = np.array([one_split(row, X, y, split) for split in splits])
        seconds = (time.perf_counter() - began) / len(splits)
        error = rates[:, 1].std(ddof=1) / np.sqrt(len(splits))
        mean = [float(rate) for rate in rates.mean(axis=0)]
        table.append((*row, paper[row], mean[1], float(error), mean[0], *mean[2:], seconds))
        print(*table[-1], flush=True)
    header = (
        "criterion",
        "weighted_training",
        "weighted_selection",
        "kernel",
        "paper_test_ber",
        "test_ber_loo_threshold",
        "standard_error",
        "test_ber_threshold_0",
        "test_ber_threshold_best_on_test",
        "loo_ber",
        "seconds_a_split",
    )
    write_table("ada_table3", header, table)


if __name__ == "__main__":
    main()
