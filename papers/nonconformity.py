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
least validation error. Cross-validation, which takes long, is run with ``--cv``, and what it is
compared with are the same folds of the same seeds.

Claims checked: nonconformity is 15 × faster than GridSearchCV(SVC(kernel="rbf"), cv=10) over all
sets (paper: 7.3 ×), with a mean error at most 0.0117 above it (the paper's difference over its
eight sets; 0.0121 without Pima), by the default rule, "within_se".
``--tol 1e-3`` gives the machines of the pool the tolerance of the grid search too.

Every row is kept in ``results/nonconformity_folds.csv`` as it comes, and what is there is not
run again; ``--summary`` makes the table of what is there. Two other tables are made anew:

- ``--figure``, Figure 2: the error of the test rows whose bound is at most each value, on Bupa,
  for the first of the ten splits and for all ten together (`nonconformity_bound`, with a plot).
- ``--sizes 0.05 0.1 0.4``: other shares of the nine folds that validate, beside the paper's rule,
  a fifth and at most 50 (`nonconformity_sizes`, one seed).

    python -m papers nonconformity [--data votes glass_windows ..] [--seeds 0 1 2] [--cv]
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from benchmarks._report import (
    RESULTS,
    command_line,
    data_or_exit,
    header_line,
    versions,
    write_table,
)
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from looms import NonconformityClassifier
from looms.nonconformity._choice import choose, conformity_counts, within_standard_errors
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


def outer_folds(
    name: str, seed: int, scaling: str = "standard"
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Training samples and classes, and those of the test fold, of each of the ten outer folds."""
    X, y = uci(name)
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
        scaler = SCALERS[scaling]().fit(X[train])
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def rows_trained_on(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows that do not validate."""
    one = NonconformityClassifier({"C": [1.0], "gamma": [1.0]}, random_state=0)
    return np.delete(np.arange(len(y)), one.fit(X, y).validation_)


def one_fold(
    parts: tuple[np.ndarray, ...], options: argparse.Namespace, row: dict[str, object]
) -> dict[str, object]:
    """The row with errors and seconds of the methods; all train on what the first one trains on.

    A row that has those of nonconformity gets those of cross-validation only.
    """
    X, y, *test = parts
    row, peers = dict(row), {}
    if not row:
        ours = NonconformityClassifier(tol=options.tol, random_state=0, n_jobs=options.jobs)
        _, row["nonconformity_seconds"] = timed(ours, parts)
        row |= {f"{rule}_error": error for rule, error in rule_errors(ours, *test).items()}
        peers["linf"] = LargestMarginClassifier(tol=options.tol, n_jobs=options.jobs)
    if options.cv:
        peers["cv"] = GridSearchCV(SVC(kernel="rbf"), GRID, cv=10, n_jobs=options.jobs)
    rest = rows_trained_on(X, y)
    for name, model in peers.items():
        row[f"{name}_error"], row[f"{name}_seconds"] = timed(model, (X[rest], y[rest], *test))
    return row


def rows_so_far() -> pd.DataFrame:
    return pd.read_csv(FOLDS, comment="#") if FOLDS.exists() else pd.DataFrame(columns=COLUMNS)


def keep(rows: Sequence[dict[str, object]]) -> None:
    """Write the rows, below a line with the commands that made them."""
    if FOLDS.exists():
        first, also = FOLDS.read_text().partition("\n")[0], header_line(command_line())[2:]
        first = first if also in first else f"{first}; then {also}"
    else:
        machine = f"{os.cpu_count()} cores, {platform.machine()}, {versions()}"
        first = header_line(command_line(), machine)
    RESULTS.mkdir(exist_ok=True)
    table = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False, float_format="%.4g")
    FOLDS.write_text(f"{first}\n{table}")


def run(options: argparse.Namespace) -> None:
    """All folds asked for that are not in the file yet, and their cross-validation."""
    rows = {
        tuple(row[key] for key in KEYS): {name: row[name] for name in row if row[name] == row[name]}
        for row in rows_so_far().to_dict("records")
    }
    wanted = "cv_error" if options.cv else "paper_error"
    for seed in options.seeds:
        for name in options.data:
            for fold, parts in enumerate(outer_folds(name, seed, options.scaling)):
                key = (name, options.scaling, options.tol, seed, fold)
                if fold < options.folds and wanted not in rows.get(key, {}):
                    found = one_fold(parts, options, rows.get(key, {}))
                    rows[key] = found | dict(zip(KEYS, key, strict=True))
                    keep(list(rows.values()))


def error_up_to(bound: npt.ArrayLike, wrong: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Distinct bounds, ascending, and the error rate of the samples up to each [H10 Figure 2].

    The last is the error rate of all samples; lower ones before it say that samples with smaller
    bounds are predicted better.

    >>> error_up_to([0.3, 0.1, 0.3, 0.2], [True, False, False, False])
    (array([0.1, 0.2, 0.3]), array([0.  , 0.  , 0.25]))
    """
    values, place = np.unique(np.asarray(bound), return_inverse=True)
    n_up_to = np.bincount(place).cumsum()
    return values, np.bincount(place, weights=np.asarray(wrong, dtype=float)).cumsum() / n_up_to


def figure(options: argparse.Namespace) -> None:
    """Figure 2: error against bound on Bupa, by the rule of the paper."""
    import matplotlib.pyplot as plt

    bounds, wrong = [], []
    for X, y, X_test, y_test in outer_folds("bupa", 0):
        model = NonconformityClassifier(
            within_se=None, ties="random", tol=options.tol, random_state=0, n_jobs=options.jobs
        ).fit(X, y)
        bounds.append(model.error_bound(X_test, method="vc").round(4))
        wrong.append(model.predict(X_test) != y_test)
    drawing, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    curves = {"first split": (bounds[0], wrong[0])}
    curves["ten splits"] = (np.concatenate(bounds), np.concatenate(wrong))
    rows = []
    for label, (bound, mistaken) in curves.items():
        values, errors = error_up_to(bound, mistaken)
        counts = [int((bound <= value).sum()) for value in values]
        rows += [(label, *row) for row in zip(values, counts, errors, strict=True)]
        ax.plot(values, errors, "o-", drawstyle="steps-post", markersize=3, label=label)
    ax.set(xlabel="bound of Proposition 4.2", ylabel="error rate up to this bound")
    ax.legend()
    drawing.savefig(RESULTS / "nonconformity_bound.png", dpi=150)
    write_table("nonconformity_bound", ("splits", "bound", "samples", "error"), rows)


def sizes(options: argparse.Namespace) -> None:
    """Errors with other numbers of validation samples, beside those of the paper's number."""
    rules, found = ("paper", "within_se"), []
    for size in (None, *options.sizes):
        for name in options.data:
            for seed in options.seeds:
                for fold, (X, y, *test) in enumerate(outer_folds(name, seed)):
                    model = NonconformityClassifier(
                        validation_size=size, tol=options.tol, random_state=0, n_jobs=options.jobs
                    ).fit(X, y)
                    errors, m = rule_errors(model, *test), len(model.validation_)
                    found.append((size or "paper", name, seed, fold, m, *map(errors.get, rules)))
    every = pd.DataFrame(found, columns=["size", "dataset", "seed", "fold", "m", *rules])
    means = every.groupby(["size", "dataset"], sort=False)[["m", *rules]].mean()
    of_paper = means.loc["paper"]
    rows: list[tuple[object, ...]]
    rows = [(*key, *row) for key, row in zip(means.index, means.to_numpy(), strict=True)]
    for size in means.index.unique("size"):
        rows.append((size, "mean", *means.loc[size].mean()))
        less = (means.loc[size] - of_paper)[list(rules)]
        rows.append((size, "less that of the paper", "", *less.mean()))
        rows.append((size, "standard error", "", *less.sem()))
    write_table("nonconformity_sizes", ("share", "dataset", "validation_rows", *rules), rows)


def summarize(options: argparse.Namespace) -> None:
    """Mean errors of each set and over the sets, and the paper's values beside them.

    The error of cross-validation is that of the seeds it was run with. In the same folds are
    "within_se_beside_cv", the error of the default rule, and the differences "less cv". Standard
    errors are of the mean difference over sets.
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
        beside = some[some["cv_error"].notna()].groupby("dataset")["within_se_error"].mean()
        means["within_se_beside_cv"] = beside
        for name, values in means.iterrows():
            n_seeds = some[some["dataset"] == name]["seed"].nunique()
            table.append([scaling, name, n_seeds, *map(float, values), *PAPER[str(name)]])
        paper = [PAPER[str(name)] for name in means.index]
        table.append([scaling, "mean", "", *map(float, means.mean()), *np.mean(paper, axis=0)])
        none = [""] * 4  # columns beside those of the methods
        for method in ("paper", "cv"):
            both = some[some[f"{method}_error"].notna()]
            if both.empty:
                continue
            less = both[errors].sub(both[f"{method}_error"], axis=0).groupby(both["dataset"]).mean()
            n_seeds = both["seed"].nunique()
            table.append([scaling, f"less {method}", n_seeds, *map(float, less.mean()), *none])
            standard_error = map(float, less.sem())
            table.append([scaling, "standard error", "", *standard_error, *none])
    if not table:
        raise SystemExit("No rows with these options yet.")
    also = [f"{method}_in_paper" for method in ("nonconformity", "cv", "linf")]
    header = ["scaling", "dataset", "seeds", *METHODS, "within_se_beside_cv", *also]
    write_table("nonconformity", header, table)
    both = rows[(rows["scaling"] == options.scaling) & rows["cv_error"].notna()]
    if len(both):
        each = both.groupby("dataset")[[*errors, "cv_seconds", "nonconformity_seconds"]].mean()
        print(each.mean().to_string())
        for rule in RULES:
            excess = (each[f"{rule}_error"] - each["cv_error"]).mean()
            print(f"{rule}: mean error less that of cross-validation {excess:+.4f} (bar 0.0117)")
        ratio = each["cv_seconds"].sum() / each["nonconformity_seconds"].sum()
        print(f"times faster than cross-validation: {ratio:.1f} (bar 15)")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m papers nonconformity", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten outer folds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the outer folds")
    parser.add_argument("--scaling", choices=list(SCALERS), default="standard")
    parser.add_argument("--tol", type=float, default=1e-2, help="tolerance of the pool's solver")
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of all methods")
    parser.add_argument("--cv", action="store_true", help="cross-validation too")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--summary", action="store_true", help="only the table of what is there")
    other.add_argument("--figure", action="store_true", help="error against bound, Figure 2")
    other.add_argument("--sizes", type=float, nargs="+", help="shares of rows that validate")
    options = parser.parse_args(arguments)
    if options.figure:
        figure(options)
    elif options.sizes:
        sizes(options)
    else:
        if not options.summary:
            run(options)
        summarize(options)


if __name__ == "__main__":
    main()
