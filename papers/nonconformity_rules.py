"""Rules of nonconformity selection on sets that none of them was chosen on.

The paper's rule; its ties decided by vote; so among the models of the least validation error
("least"), and among those within one standard error of it ("within_se", the default). Plain
hold-out selection: a vote of the models of the least error, or one of them trained again on all
training rows ("refit"). All this with a validation part, with five folds, where "refit" is the
machine of ``GridSearchCV(SVC(tol=1e-2), cv=5)``, and by leave-one-out. The pool is the paper's of
110 RBF machines. Seconds are those of training and of the margins that validate.

Sets: classes of the half "develop" of the suite but for those of the paper, 250 rows drawn for
training and at most 500 of the rest for testing, and the first splits of the IDA benchmarks. The
claim checked: the mean error of the default rule over all sets is below that of the paper's rule by
two standard errors of the mean difference, and it is so on more than half of the sets.

Rows are kept in ``--store`` as they come; one that is there is not run again.

    LOOMS_TABLES=.. python -m papers.nonconformity_rules --store ROWS.csv [--splits 10]
        [--folds 5] [--loo 1]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks._report import data_or_exit, write_table
from benchmarks.tables._list import TABLES
from benchmarks.tables.prepare import FOLDER
from benchmarks.tables.run import loaded
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from looms import NonconformityClassifier
from looms.tables import TablePreprocessor
from papers.nonconformity import RULES, rule_errors

#: Sets of the paper, on which rules were compared before; IDA has two of the tables, too.
LEFT_OUT = {"credit", "haberman", "ionosphere", "pima", "breast", "heart"}
IDA = ("banana", "breast_cancer", "heart")
NAMES = [
    table.name
    for table in TABLES
    if table.half == "develop" and table.task == "classification" and table.name not in LEFT_OUT
] + [f"ida_{name}" for name in IDA]
N_TRAIN, N_TEST = 250, 500
KEYS = ["dataset", "split", "validation"]
Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def parts_of(name: str, split: int) -> Parts:
    """Training samples, their labels, test samples and labels, standardized."""
    if name.startswith("ida_"):
        with np.load(data_or_exit(f"{name}.npz")) as arrays:
            X, y, X_test, y_test = (
                arrays[f"{part}_{split + 1}"] for part in ("X_train", "y_train", "X_test", "y_test")
            )
        scaler = StandardScaler().fit(X)
        return scaler.transform(X), y, scaler.transform(X_test[:N_TEST]), y_test[:N_TEST]
    frame, labels = loaded(next(table for table in TABLES if table.name == name), FOLDER)
    train, rest = train_test_split(
        np.arange(len(labels)), train_size=N_TRAIN, stratify=labels, random_state=split
    )
    test = rest[:N_TEST]
    before = TablePreprocessor().fit(frame.iloc[train])
    X, X_test = (np.asarray(before.transform(frame.iloc[rows])) for rows in (train, test))
    return X, labels[train], X_test, labels[test]


def errors_of(parts: Parts, validation: int | str, split: int) -> dict[str, float]:
    """Test errors by all rules, of the best machine on all training rows, and CPU seconds."""
    X, y, X_test, y_test = parts
    began = time.process_time()
    model = NonconformityClassifier(validation=validation, random_state=split).fit(X, y)
    seconds = time.process_time() - began
    row = rule_errors(model, X_test, y_test)
    best = SVC(**model.pool_[int(model.validation_errors_.argmin())], tol=1e-2).fit(X, y)
    return row | {"refit": float(np.mean(best.predict(X_test) != y_test)), "seconds": seconds}


def run(options: argparse.Namespace) -> None:
    numbers = {"split": options.splits, "5": options.folds, "loo": options.loo}
    done = set()
    if options.store.exists():
        done = set(pd.read_csv(options.store, dtype=str)[KEYS].itertuples(index=False, name=None))
    for split in range(max(numbers.values())):
        for name in options.data:
            for validation, n_splits in numbers.items():
                key = (name, str(split), validation)
                if split >= n_splits or key in done:
                    continue
                asked = int(validation) if validation.isdecimal() else validation
                row = dict(zip(KEYS, key, strict=True))
                row |= errors_of(parts_of(name, split), asked, split)
                new = not options.store.exists()
                with options.store.open("a") as file:
                    file.write(f"{','.join(row)}\n" * new + f"{','.join(map(str, row.values()))}\n")


def summarize(store: Path) -> None:
    """Mean errors, and those of the default rule less each of them over the sets."""
    rows = pd.read_csv(store, dtype={"validation": str})
    methods = [*RULES, "refit"]
    table: list[list[object]] = []
    for validation, some in rows.groupby("validation", sort=False):
        each = some.groupby("dataset")[[*methods, "seconds"]].mean()
        n_splits = some.groupby("dataset").size()
        if validation == "split":
            for name, values in each.iterrows():
                table.append([validation, name, int(n_splits[name]), *map(float, values)])
        table.append([validation, "mean", int(n_splits.min()), *map(float, each.mean())])
        less = each[methods].rsub(each["within_se"], axis=0)
        for name, values in {
            "within_se less": less.mean(),
            "standard error": less.std(ddof=1) / np.sqrt(len(less)),
            "sets better": (less < 0).sum(),
            "sets worse": (less > 0).sum(),
        }.items():
            table.append([validation, name, "", *values.tolist(), ""])
    header = ["validation", "dataset", "splits", *methods, "cpu_seconds"]
    write_table("nonconformity_rules", header, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--splits", type=int, default=10, help="splits by a validation part")
    parser.add_argument("--folds", type=int, default=5, help="splits by five folds")
    parser.add_argument("--loo", type=int, default=1, help="splits by leave-one-out")
    parser.add_argument("--summary", action="store_true", help="only the table of what is there")
    options = parser.parse_args()
    if not options.summary:
        run(options)
    summarize(options.store)


if __name__ == "__main__":
    main()
