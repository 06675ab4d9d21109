"""Nonconformity selection beside ten-fold cross-validation and the largest margin (SVM-L∞).

The protocol of Hardoon, Hussain & Shawe-Taylor: UCI sets without incomplete and contradictory
rows, ten outer folds, here repeated by seeds, RBF machines at C = 2^-5, 2^-3 .. 2^15 and
gamma = 2^-15, 2^-13 .. 2^3. A validation split of a fifth, at most 50 samples, is taken from the
nine training folds; all methods train on the rest. The paper does not say how features were
scaled: here they are standardized on the nine folds, or raw with ``--scaling none``. Categories
are numbered. Seconds are those of training, selection and prediction of the test fold.

The paper's eighth set, Pima, is kept for the report of the suite of tables, and not run here.
Seconds are compared on the rows that have those of both: other rows ran at other times.

Rules, all of one pool: the paper's; its ties by vote; so among the models of the least validation
error, and among those within one standard error of it; plain hold-out, a vote of the models of the
least validation error. Cross-validation, which takes long, is run with ``--cv``.

Claims checked: nonconformity is 15 × faster than GridSearchCV(SVC(kernel="rbf"), cv=10) over all
sets (paper: 7.3 ×), with a mean error at most 0.0117 above it (the paper's difference), by the
default rule, "within_se".
``--tol 1e-3`` gives the machines of the pool the tolerance of the grid search too.

Every row is kept in ``results/nonconformity_folds.csv`` as it comes, and one that is there is not
run again; ``--summary`` makes the table of what is there.

    python -m papers.nonconformity [--data votes glass_windows ..] [--seeds 0 1 2] [--cv]
"""

from __future__ import annotations

import argparse
import os
import platform
import time

import numpy as np
import pandas as pd
from benchmarks._report import RESULTS, data_or_exit, header_line, versions, write_table
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from looms import NonconformityClassifier
from looms.conformal._nonconformity import choose, conformity_counts, within_standard_errors
from papers.largest_margin import LargestMarginClassifier

GRID = {"C": 2.0 ** np.arange(-5, 16, 2), "gamma": 2.0 ** np.arange(-15, 4, 2)}
SCALERS = {"standard": StandardScaler, "none": FunctionTransformer}
#: Errors in Table 3 of the paper: nonconformity, cross-validation, SVM-L∞.
PAPER = {
    "votes": (0.0700, 0.0833, 0.0933),
    "glass_windows": (0.2167, 0.2085, 0.2328),
    "haberman": (0.3133, 0.2518, 0.3300),
    "bupa": (0.2753, 0.2840, 0.3192),
    "credit": (0.2990, 0.2745, 0.2914),
    "breastw": (0.0378, 0.0335, 0.0408),
    "ionosphere": (0.0562, 0.0479, 0.1158),
}
#: Width in standard errors and decision of ties; the last is plain hold-out selection.
RULES: dict[str, tuple[float | None, bool] | None] = {
    "paper": (None, False),
    "vote": (None, True),
    "least": (0.0, True),
    "within_se": (1.0, True),
    "hold_out": None,
}
METHODS = (*RULES, "linf", "cv")
KEYS = ["dataset", "scaling", "tol", "seed", "fold"]
COLUMNS = [*KEYS, *(f"{method}_error" for method in METHODS)]
COLUMNS += [f"{method}_seconds" for method in ("nonconformity", "linf", "cv")]
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


def rule_errors(model: NonconformityClassifier, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test errors of a fitted pool by every rule."""
    scores = np.concatenate(list(model._scores(X)), axis=1)
    counts = conformity_counts(model.validation_scores_, scores)
    errors, labels = model.validation_errors_, {}
    for name, rule in RULES.items():
        width, vote = rule or (0.0, True)
        among = within_standard_errors(errors, len(model.validation_), width)
        if rule is None:
            own = scores[among].argmax(axis=-1)
            n_votes = (own[..., None] == np.arange(len(model.classes_))).sum(axis=0)
            labels[name] = n_votes.argmax(axis=-1)
        else:
            labels[name] = choose(counts[among], model._seed, vote=vote).label
    return {name: float(np.mean(model.classes_[of] != y)) for name, of in labels.items()}


def timed(model: BaseEstimator, parts: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """Test error, and seconds to train, select and predict."""
    X, y, X_test, y_test = parts
    began = time.perf_counter()
    predicted = model.fit(X, y).predict(X_test)
    return float(np.mean(predicted != y_test)), time.perf_counter() - began


def one_fold(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, options: argparse.Namespace
) -> dict[str, float]:
    """Errors and seconds of the methods; all train on what the first one trains on."""
    scaler = SCALERS[options.scaling]().fit(X[train])
    X = scaler.transform(X)
    ours = NonconformityClassifier(tol=options.tol, random_state=0, n_jobs=options.jobs)
    parts = (X[test], y[test])
    _, seconds = timed(ours, (X[train], y[train], *parts))
    row = {f"{rule}_error": error for rule, error in rule_errors(ours, *parts).items()}
    row["nonconformity_seconds"] = seconds
    rest = np.delete(train, ours.validation_)
    peers: dict[str, BaseEstimator] = {
        "linf": LargestMarginClassifier(tol=options.tol, n_jobs=options.jobs)
    }
    if options.cv:
        peers["cv"] = GridSearchCV(SVC(kernel="rbf"), GRID, cv=10, n_jobs=options.jobs)
    for name, model in peers.items():
        row[f"{name}_error"], row[f"{name}_seconds"] = timed(model, (X[rest], y[rest], *parts))
    return row


def rows_so_far() -> pd.DataFrame:
    return pd.read_csv(FOLDS, comment="#") if FOLDS.exists() else pd.DataFrame(columns=COLUMNS)


def keep(row: dict[str, object]) -> None:
    """Add a row to the file, which begins with the machine and the versions."""
    RESULTS.mkdir(exist_ok=True)
    if not FOLDS.exists():
        note = header_line(f"{os.cpu_count()} cores, {platform.machine()}, {versions()}")
        FOLDS.write_text(f"{note}\n{','.join(COLUMNS)}\n")
    cells = (row.get(name, "") for name in COLUMNS)
    with FOLDS.open("a") as file:
        file.write(",".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells) + "\n")


def run(options: argparse.Namespace) -> None:
    """All folds asked for that are not in the file yet."""
    done = {tuple(row) for row in rows_so_far()[KEYS].itertuples(index=False)}
    for seed in options.seeds:
        for name in options.data:
            X, y = uci(name)
            folds = StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y)
            for fold, (train, test) in enumerate(folds):
                key = (name, options.scaling, options.tol, seed, fold)
                if fold < options.folds and key not in done:
                    keep(dict(zip(KEYS, key, strict=True)) | one_fold(X, y, train, test, options))


def summarize(options: argparse.Namespace) -> None:
    """Mean errors of each set and over the sets, and the paper's values beside them.

    The error of cross-validation is that of the seeds it was run with, and so is its difference to
    the paper's rule. Standard errors are of the mean difference over sets.
    """
    rows = rows_so_far()
    rows = rows[rows["tol"] == options.tol]
    errors = [f"{method}_error" for method in METHODS]
    table: list[list[object]] = []
    for scaling in SCALERS:
        some = rows[rows["scaling"] == scaling]
        if some.empty:
            continue
        means = (
            some.groupby("dataset")[errors].mean().loc[lambda m: [n for n in PAPER if n in m.index]]
        )
        for name, values in means.iterrows():
            n_seeds = some[some["dataset"] == name]["seed"].nunique()
            table.append([scaling, name, n_seeds, *map(float, values), *PAPER[str(name)]])
        paper = [PAPER[str(name)] for name in means.index]
        table.append([scaling, "mean", "", *map(float, means.mean()), *np.mean(paper, axis=0)])
        less = some[errors].sub(some["paper_error"], axis=0).groupby(some["dataset"]).mean()
        table.append([scaling, "less paper", "", *map(float, less.mean()), "", "", ""])
        standard_error = less.std(ddof=1) / np.sqrt(len(less))
        table.append([scaling, "standard error", "", *map(float, standard_error), "", "", ""])
    if not table:
        raise SystemExit("No rows with these options yet.")
    printed = [f"{method}_in_paper" for method in ("nonconformity", "cv", "linf")]
    write_table("nonconformity", ["scaling", "dataset", "seeds", *METHODS, *printed], table)
    both = rows[(rows["scaling"] == options.scaling) & rows["cv_error"].notna()]
    if len(both):
        each = both.groupby("dataset")[[*errors, "cv_seconds", "nonconformity_seconds"]].mean()
        print(each.mean().to_string())
        for rule in RULES:
            excess = (each[f"{rule}_error"] - each["cv_error"]).mean()
            print(f"{rule}: mean error less that of cross-validation {excess:+.4f} (bar 0.0117)")
        ratio = each["cv_seconds"].sum() / each["nonconformity_seconds"].sum()
        print(f"times faster than cross-validation: {ratio:.1f} (bar 15)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten outer folds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the outer folds")
    parser.add_argument("--scaling", choices=list(SCALERS), default="standard")
    parser.add_argument("--tol", type=float, default=1e-2, help="tolerance of the pool's solver")
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of all methods")
    parser.add_argument("--cv", action="store_true", help="cross-validation too")
    parser.add_argument("--summary", action="store_true", help="only the table of what is there")
    options = parser.parse_args()
    if not options.summary:
        run(options)
    summarize(options)


if __name__ == "__main__":
    main()
