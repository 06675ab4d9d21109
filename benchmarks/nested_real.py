"""Figures of small real samples beside the truth: pooled leave-one-out, scores, and test rows.

60 or 200 rows are drawn from each set, stratified, and the others are for testing; 20 draws. The
area under the ROC curve, the error rate and the log loss of the machine that a search along
gradients chose: counted on its pooled leave-one-out outputs, as its scores without and with
outer folds that tune anew, and on the test rows; then scores of the grid, where the choice is
repeated without each row, and the test rows of that machine. The last columns are means of
scores less the figure on test rows, with standard errors over draws: a positive one of the AUC,
or a negative one of the others, flatters.

    python benchmarks/nested_real.py [pima ...] [--draws 20] [--sizes 60 200] [--jobs 1]

Sets that are not in LOOMS_DATA are left out.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from _report import DATA, as_errors, draws_of, write_table
from calibration import read
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from looms import KernelClassifier, Search
from looms.calibration._calibrators import class_probabilities
from looms.criteria._error_rates import error_rate
from looms.tables import TablePreprocessor

SETS = (
    "ida_breast_cancer",
    "ida_heart",
    "ida_banana",
    "pima",
    "ionosphere",
    "haberman",
    "bupa",
    "credit",
    "mackerel",
)
FIGURES = ("auc", "error", "log_loss")
COLUMNS = ("pooled", "gradient", "folds", "test_gradient", "grid", "test_grid")
TESTS = {"gradient": "test_gradient", "folds": "test_gradient", "grid": "test_grid"}


def loaded(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """All rows of a set; of the IDA sets the training and test rows of the first split."""
    if not name.startswith("ida_"):
        return read(name)
    with np.load(DATA / f"{name}.npz") as file:
        X = np.concatenate([file["X_train_1"], file["X_test_1"]])
        y = np.concatenate([file["y_train_1"], file["y_test_1"]])
    return pd.DataFrame(X).add_prefix("x"), y


def of_scores(machine: KernelClassifier, nested: bool) -> tuple[float, ...]:
    """Scores in the order of the figures."""
    scores = as_errors(machine.evaluate(nested=nested))
    return tuple(scores[figure] for figure in FIGURES)


def of_rows(machine: KernelClassifier, X: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """Figures on rows for testing."""
    positive = y == machine.classes_[1]
    area = roc_auc_score(positive, machine.decision_function(X))
    loss = log_loss(positive, machine.predict_proba(X)[:, 1])
    return area, 1.0 - machine.score(X, y), loss


def of_draw(table: pd.DataFrame, y: np.ndarray, n: int, seed: int) -> np.ndarray:
    """(n_figures, n_columns) figures of one draw of ``n`` rows."""
    parts = train_test_split(table, y, train_size=n, stratify=y, random_state=seed)
    X, X_test, y, y_test = parts
    columns = []
    prepare = TablePreprocessor().fit(X)
    X, X_test = prepare.transform(X), prepare.transform(X_test)
    machine = KernelClassifier().fit(X, y)
    pooled, codes = machine.loo_, (machine.loo_.y > 0).astype(int)
    p = class_probabilities(machine.calibrator_, pooled.outputs)[:, 1]
    error = error_rate(pooled.y, pooled.outputs, threshold=machine.threshold_)
    columns.append((roc_auc_score(codes, pooled.outputs), error, log_loss(codes, p)))
    columns += [of_scores(machine, False), of_scores(machine, True)]
    columns.append(of_rows(machine, X_test, y_test))
    machine = KernelClassifier(search=Search(method="grid")).fit(X, y)
    columns.append(of_scores(machine, True))
    columns.append(of_rows(machine, X_test, y_test))
    return np.array(columns, dtype=float).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        if not any((DATA / f"{name}.{kind}").exists() for kind in ("csv", "npz")):
            print(f"{name} is not in {DATA}: left out.")
            continue
        table, y = loaded(name)
        for n in options.sizes:
            drawn = np.array(
                draws_of(of_draw, table, y, n, n_draws=options.draws, n_jobs=options.jobs)
            )
            for figure, values in zip(FIGURES, drawn.transpose(1, 2, 0), strict=True):
                figures = dict(zip(COLUMNS, values, strict=True))
                optimism = []
                for scores, test in TESTS.items():
                    difference = figures[scores] - figures[test]
                    error = difference.std(ddof=1) / np.sqrt(options.draws)
                    optimism += [float(difference.mean()), float(error)]
                means = [float(column.mean()) for column in values]
                rows.append((name, n, options.draws, figure, *means, *optimism))
                print(*rows[-1], flush=True)
    differences = [f"{scores}_less_test{se}" for scores in TESTS for se in ("", "_se")]
    write_table("nested_real", ("data", "n", "draws", "figure", *COLUMNS, *differences), rows)


if __name__ == "__main__":
    main()
