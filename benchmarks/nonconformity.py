"""Nonconformity selection beside ten-fold cross-validation and the largest margin (SVM-L∞).

The protocol of Hardoon, Hussain & Shawe-Taylor: eight UCI sets without incomplete and
contradictory rows, ten outer folds, RBF machines at C = 2^-5, 2^-3 .. 2^15 and
gamma = 2^-15, 2^-13 .. 2^3. A validation split of a fifth, at most 50 samples, is taken from the
nine training folds; all three methods train on the rest. The paper does not say how features were
scaled: here they are standardized on the nine folds, unless ``--scaling none``. Categories
are numbered. Seconds are those of training, selection and prediction of the test fold.

Claims checked: nonconformity is 15 × faster than GridSearchCV(SVC(kernel="rbf"), cv=10) over all
sets (paper: 7.3 ×), with a mean error at most 0.0117 above it (the paper's difference).
``--tol 1e-3`` gives the machines of the pool the tolerance of the grid search too.

Every row is kept in ``results/nonconformity_folds.csv`` as it comes, and one that is there is not
run again; ``--summary`` makes the table of what is there.

    python benchmarks/nonconformity.py [--data votes glass_windows ..] [--folds 10]
"""

from __future__ import annotations

import argparse
import os
import platform
import time

import numpy as np
import pandas as pd
from _report import RESULTS, data_or_exit, versions, write_table
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from looms import LargestMarginClassifier, NonconformityClassifier

GRID = {"C": 2.0 ** np.arange(-5, 16, 2), "gamma": 2.0 ** np.arange(-15, 4, 2)}
SCALERS = {"standard": StandardScaler, "none": FunctionTransformer}
METHODS = ("nonconformity", "cv", "linf")
#: Errors and seconds in Table 3 of the paper, in the order of METHODS.
PAPER = {
    "votes": ((0.0700, 0.0833, 0.0933), (0.72, 5.74, 0.43)),
    "glass_windows": ((0.2167, 0.2085, 0.2328), (5.25, 32.58, 3.08)),
    "haberman": ((0.3133, 0.2518, 0.3300), (58.23, 455.77, 49.23)),
    "bupa": ((0.2753, 0.2840, 0.3192), (44.85, 329.96, 38.81)),
    "credit": ((0.2990, 0.2745, 0.2914), (86.85, 592.42, 72.31)),
    "pima": ((0.2562, 0.2473, 0.3019), (169.05, 1305.29, 155.65)),
    "breastw": ((0.0378, 0.0335, 0.0408), (24.80, 150.36, 18.29)),
    "ionosphere": ((0.0562, 0.0479, 0.1158), (17.63, 103.45, 11.85)),
}
KEYS = ["dataset", "scaling", "tol", "fold"]
FOLDS = RESULTS / "nonconformity_folds.csv"


def uci(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set without incomplete rows and without rows that occur with both labels."""
    table = pd.read_csv(data_or_exit(f"{name}.csv")).dropna()
    features = [column for column in table if column != "target"]
    for column in features:
        if not pd.api.types.is_numeric_dtype(table[column]):
            table[column] = pd.factorize(table[column], sort=True)[0]
    labels = table.groupby(features)["target"].transform("nunique")
    table = table[labels == 1]
    return table[features].to_numpy(dtype=float), table["target"].astype(str).to_numpy()


def timed(model: BaseEstimator, parts: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """Test error, and seconds to train, select and predict."""
    X, y, X_test, y_test = parts
    began = time.perf_counter()
    predicted = model.fit(X, y).predict(X_test)
    return float(np.mean(predicted != y_test)), time.perf_counter() - began


def one_fold(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, options: argparse.Namespace
) -> dict[str, float]:
    """Errors and seconds of the three methods; all train on what the first one trains on."""
    scaler = SCALERS[options.scaling]().fit(X[train])
    X = scaler.transform(X)
    ours = NonconformityClassifier(tol=options.tol, random_state=0, n_jobs=options.jobs)
    parts = (X[test], y[test])
    found = {"nonconformity": timed(ours, (X[train], y[train], *parts))}
    seen = np.delete(train, ours.validation_)
    parts = (X[seen], y[seen], *parts)
    grid_search = GridSearchCV(SVC(kernel="rbf"), GRID, cv=10, n_jobs=options.jobs)
    found["cv"] = timed(grid_search, parts)
    found["linf"] = timed(LargestMarginClassifier(tol=options.tol, n_jobs=options.jobs), parts)
    return {
        f"{method}_{what}": value
        for method, values in found.items()
        for what, value in zip(("error", "seconds"), values, strict=True)
    }


def rows_so_far() -> pd.DataFrame:
    return pd.read_csv(FOLDS, comment="#") if FOLDS.exists() else pd.DataFrame(columns=KEYS)


def keep(row: dict[str, object]) -> None:
    """Add a row to the file, which begins with the machine and the versions."""
    RESULTS.mkdir(exist_ok=True)
    if not FOLDS.exists():
        note = f"# {os.cpu_count()} cores, {platform.machine()}, {versions()}"
        FOLDS.write_text(f"{note}\n{','.join(row)}\n")
    with FOLDS.open("a") as file:
        file.write(",".join(str(value) for value in row.values()) + "\n")


def run(options: argparse.Namespace) -> None:
    """All folds asked for that are not in the file yet."""
    done = {tuple(row) for row in rows_so_far()[KEYS].itertuples(index=False)}
    for name in options.data:
        X, y = uci(name)
        folds = StratifiedKFold(10, shuffle=True, random_state=0).split(X, y)
        for fold, (train, test) in enumerate(folds):
            key = (name, options.scaling, options.tol, fold)
            if fold >= options.folds or key in done:
                continue
            row = dict(zip(KEYS, key, strict=True)) | one_fold(X, y, train, test, options)
            keep(row)
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})


def summarize(options: argparse.Namespace) -> None:
    """The table of the paper: means over folds, with the paper's values beside them."""
    rows = rows_so_far()
    rows = rows[(rows["scaling"] == options.scaling) & (rows["tol"] == options.tol)]
    header = ["dataset", "folds"]
    for method in METHODS:
        header += [f"{method}_{what}" for what in ("error", "std", "paper_error", "seconds")]
    header += ["cv_over_nonconformity", "paper_cv_over_nonconformity", "n", "features"]
    table = [_line(name, rows[rows["dataset"] == name]) for name in PAPER]
    table = [line for line in table if line is not None]
    if not table:
        raise SystemExit("No rows with these options yet.")
    numbers = pd.DataFrame(table, columns=header)
    overall = ["overall", *numbers[header[1:]].mean()]
    for column, top, bottom in (
        (-4, numbers["cv_seconds"].sum(), numbers["nonconformity_seconds"].sum()),
        (-3, *(sum(PAPER[name][1][k] for name in numbers["dataset"]) for k in (1, 0))),
    ):
        overall[column] = top / bottom
    write_table("nonconformity", header, [*table, overall])
    excess = overall[2] - overall[6]
    print(f"mean error less that of cross-validation: {excess:+.4f} (bar 0.0117)")
    print(f"times faster than cross-validation: {overall[-4]:.1f} (bar 15)")


def _line(name: str, rows: pd.DataFrame) -> list[object] | None:
    if rows.empty:
        return None
    errors, seconds = PAPER[name]
    line: list[object] = [name, len(rows)]
    for method, paper in zip(METHODS, errors, strict=True):
        error = rows[f"{method}_error"]
        line += [float(error.mean()), float(error.std()), paper]
        line += [float(rows[f"{method}_seconds"].mean())]
    ratio = float(rows["cv_seconds"].mean() / rows["nonconformity_seconds"].mean())
    return [*line, ratio, seconds[1] / seconds[0], *uci(name)[0].shape]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten outer folds")
    parser.add_argument("--scaling", choices=list(SCALERS), default="standard")
    parser.add_argument("--tol", type=float, default=1e-2, help="tolerance of the pool's solver")
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of all three methods")
    parser.add_argument("--summary", action="store_true", help="only the table of what is there")
    options = parser.parse_args()
    if not options.summary:
        run(options)
    summarize(options)


if __name__ == "__main__":
    main()
