"""Probabilities from leave-one-out outputs against CalibratedClassifierCV(cv=5).

Binary sets; stratified splits, four fifths for training; columns prepared by TablePreprocessor
on the training part, the same for all. Everything a row holds was run on the same splits in one
run, after a warm-up. Log loss and Brier score are of the test parts, means over splits;
``difference_se`` is the standard error of ours less selecting.

What is beside what:

- ours: KernelClassifier(), one selection and one fit, a sigmoid of the leave-one-out outputs.
  ``fit_s`` is all of it, ``calibration_s`` what the sigmoid takes of it.
- selecting: CalibratedClassifierCV(KernelClassifier(calibration=None), cv=5), the same model,
  which selects in every fold. ``selecting_s`` is all of it.
- fixed: CalibratedClassifierCV(KernelClassifier(..., mu=...), cv=5) with the kernel and mu that
  ours chose on the whole training part: no selection is repeated. ``fixed_s`` is all of it.
- ``ours_isotonic`` and ``ours_beta``: the other calibrations of the same leave-one-out outputs.

Claims checked: mean log loss no higher than that of ``selecting``; calibration in less than a tenth
of what cross-validation takes to calibrate the machine that is already chosen (``fixed_s``). The
last columns are those ratios: ``whole`` is fit_s / selecting_s, ``part`` calibration_s / fixed_s.
The whole cannot be below one fifth at equal cost of a fold, and is not asked to be.

    python benchmarks/calibration.py [--splits 20] [credit pima ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _report import data_or_exit, write_table
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from looms import KernelClassifier
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import class_probabilities
from looms.tables import TablePreprocessor

SETS = ["credit", "pima", "breastw", "ionosphere", "haberman", "mackerel"]
SCORES = ["ours", "selecting", "fixed", "ours_isotonic", "ours_beta"]
TIMES = ["fit_s", "calibration_s", "selecting_s", "fixed_s"]


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_csv(data_or_exit(f"{name}.csv"))
    y = table.pop("target").astype(str).to_numpy()
    # The raw count is what the label was made of.
    return table.drop(columns="egg.count", errors="ignore"), y


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    value = call()
    return value, time.perf_counter() - began


def one_split(table: pd.DataFrame, y: np.ndarray, seed: int) -> dict[str, float]:
    parts = train_test_split(table, y, test_size=0.2, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    prepare = TablePreprocessor().fit(X_train)
    X_train, X_test = prepare.transform(X_train), prepare.transform(X_test)

    ours, fit_s = timed(lambda: KernelClassifier().fit(X_train, y_train))
    _, calibration_s = timed(lambda: fit_calibrator(ours.loo_))
    selecting = CalibratedClassifierCV(KernelClassifier(calibration=None), cv=5)
    _, selecting_s = timed(lambda: selecting.fit(X_train, y_train))
    chosen = KernelClassifier(ours.kernel_, mu=ours.mu_, calibration=None)
    fixed = CalibratedClassifierCV(chosen, cv=5)
    _, fixed_s = timed(lambda: fixed.fit(X_train, y_train))

    probabilities = {
        "ours": ours.predict_proba(X_test),
        "selecting": selecting.predict_proba(X_test),
        "fixed": fixed.predict_proba(X_test),
    }
    outputs = ours.decision_function(X_test)
    for name in ("isotonic", "beta"):
        calibrator = fit_calibrator(ours.loo_, name)
        probabilities[f"ours_{name}"] = class_probabilities(calibrator, outputs)
    positive = y_test == ours.classes_[1]
    figures = dict(zip(TIMES, (fit_s, calibration_s, selecting_s, fixed_s), strict=True))
    for name, p in probabilities.items():
        figures[f"{name}_log_loss"] = log_loss(positive, p[:, 1])
        figures[f"{name}_brier"] = float(np.mean((p[:, 1] - positive) ** 2))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("sets", nargs="*", default=SETS)
    arguments = parser.parse_args()
    score_columns = [f"{name}_{score}" for score in ("log_loss", "brier") for name in SCORES]
    columns = [*score_columns, *TIMES]
    means, errors, rows = [], [], []
    for name in arguments.sets:
        table, y = read(name)
        one_split(table, y, 0)  # imports, BLAS and caches awake
        splits = pd.DataFrame([one_split(table, y, k) for k in range(arguments.splits)])
        difference = splits["ours_log_loss"] - splits["selecting_log_loss"]
        error = float(difference.std() / np.sqrt(len(splits))) if len(splits) > 1 else np.nan
        mean = splits[columns].mean()
        means.append(mean)
        errors.append(error)
        rows.append(_row(name, len(y), mean, error))
    error = float(np.sqrt(np.sum(np.square(errors))) / len(errors))
    rows.append(_row("mean", 0, pd.concat(means, axis=1).mean(axis=1), error))
    header = ["set", "n", *score_columns, "difference_se", *TIMES, "whole", "part"]
    write_table("calibration", header, rows)


def _row(name: str, n: int, mean: pd.Series, error: float) -> list[Any]:
    scores = [float(value) for value in mean[: -len(TIMES)]]
    whole = float(mean["fit_s"] / mean["selecting_s"])
    part = float(mean["calibration_s"] / mean["fixed_s"])
    return [name, n, *scores, error, *map(float, mean[TIMES]), whole, part]


if __name__ == "__main__":
    main()
