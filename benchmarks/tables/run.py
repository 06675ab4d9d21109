"""Repeated three-fold comparison of looms with its peers on the tables of the suite.

    OMP_NUM_THREADS=1 python -m benchmarks.tables.run [--half develop] [--repeats 10]
        [--max-rows 2000] [--methods looms_rbf catboost ...] [--tables credit ...] [--evaluate]

Protocol: that of TabArena. Folds are stratified for classes and drawn anew in each repeat; all
methods see the same rows. At most ``--max-rows`` of the training part are used, drawn from it; all
rows of the test part are predicted. Recorded are the log loss, the error rate, the area under the
ROC curve for two classes, and the root mean squared error; seconds and CPU seconds of the fit,
preparation of the columns included, and seconds of the predictions; with ``--evaluate`` CPU seconds
of the evaluation, of those that have one, in the first fold.

Tables come from ``prepare.py``. Choose and tune methods on the half "develop"; the other is for
a final report, and is run only by its name.

The store has a line of JSON for each table, repeat, fold, method, seed and number of training rows,
so that a table which has fewer than ``--max-rows`` is run once. Lines are appended whole, so that
the run can be killed: the same command goes on with what is missing or failed. Keep a store for
each state of the code. Threads are those of OMP_NUM_THREADS, in one process. Methods whose package
is missing are named and skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.tables._list import TABLES, Table
from benchmarks.tables._methods import METHODS, Builder, is_available
from benchmarks.tables.prepare import FOLDER, HALVES
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

KEYS = ("table", "repeat", "fold", "method", "seed", "n_train")
N_FOLDS = 3
ALL_ROWS = 10**9


def records(store: Path) -> Iterator[dict[str, Any]]:
    """Lines of a store, without one that was cut off."""
    for line in store.read_text().splitlines() if store.exists() else ():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def append(store: Path, record: dict[str, Any]) -> None:
    """Add a line in one write; a line that was cut off before it is ended first."""
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("ab+", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        cut = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
        file.write(b"\n" * cut + json.dumps(record).encode() + b"\n")


def loaded(table: Table, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, with text as categories that are the same in all rows, and targets or numbers of
    classes."""
    X = pd.read_parquet(folder / f"{table.name}.parquet")
    y = X.pop("target").to_numpy()
    categorical = json.loads((folder / f"{table.name}.json").read_text())["categorical"]
    X = X.astype(dict.fromkeys(categorical, "category"))
    return X, np.unique(y, return_inverse=True)[1] if table.task == "classification" else y


def split(
    y: np.ndarray, classifier: bool, repeat: int, max_rows: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows for training and for testing of each fold of a repeat."""
    folds = (StratifiedKFold if classifier else KFold)(N_FOLDS, shuffle=True, random_state=repeat)
    for train, test in folds.split(y, y):
        if len(train) > max_rows:
            strata = y[train] if classifier else None
            train, _ = train_test_split(
                train, train_size=max_rows, stratify=strata, random_state=repeat
            )
        yield train, test


def figures(machine: Any, X: pd.DataFrame, y: np.ndarray, n_classes: int) -> dict[str, float]:
    """Losses on test rows; a class that no training row had has the probability 0."""
    if not n_classes:
        return {"rmse": float(np.sqrt(np.mean((machine.predict(X) - y) ** 2)))}
    probabilities = np.zeros((len(X), n_classes))
    probabilities[:, np.asarray(machine.classes_, dtype=int)] = machine.predict_proba(X)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    result = {
        "log_loss": float(log_loss(y, probabilities, labels=np.arange(n_classes))),
        "error": float(np.mean(probabilities.argmax(axis=1) != y)),
    }
    if n_classes == 2:
        result["auc"] = float(roc_auc_score(y, probabilities[:, 1]))
    return result


def evaluated(
    build: Builder,
    data: tuple[pd.DataFrame, np.ndarray],
    rows: tuple[np.ndarray, np.ndarray],
    n_classes: int,
    seed: int,
    evaluates: bool,
) -> dict[str, Any]:
    """Figures and times of a method on a split."""
    (X, y), (train, test) = data, rows
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    facts: dict[str, Any] = {}
    began, began_cpu = time.perf_counter(), time.process_time()
    machine = build(X.iloc[train], n_classes > 0, seed, threads).fit(X.iloc[train], y[train])
    facts["seconds"] = round(time.perf_counter() - began, 4)
    facts["cpu_seconds"] = round(time.process_time() - began_cpu, 4)
    began = time.perf_counter()
    result = figures(machine, X.iloc[test], y[test], n_classes)
    facts["predict_seconds"] = round(time.perf_counter() - began, 4)
    if evaluates and hasattr(machine, "evaluate"):
        began_cpu = time.process_time()
        machine.evaluate()
        facts["evaluate_cpu_seconds"] = round(time.process_time() - began_cpu, 4)
    return facts | result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="develop")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tables", nargs="+", help="names, default all of the half")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--max-rows", type=int, default=ALL_ROWS, help="default all")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--store", type=Path, help="default store.jsonl in the folder")
    options = parser.parse_args()
    store = options.store or options.folder / "store.jsonl"
    methods = [name for name in options.methods if is_available(name)]
    for name in set(options.methods) - set(methods):
        print(f"{name} is not installed: skipped.")
    tables = [table for table in TABLES if table.half == options.half]
    tables = [table for table in tables if table.name in (options.tables or [table.name])]
    missing = [
        table.name for table in tables if not (options.folder / f"{table.name}.json").exists()
    ]
    if missing:
        raise SystemExit(f"{', '.join(missing)} not in {options.folder}: run prepare.py first.")
    data = {table.name: loaded(table, options.folder) for table in tables}
    tables.sort(key=lambda table: data[table.name][0].size)
    done = {tuple(r[key] for key in KEYS) for r in records(store) if "failed" not in r}
    for repeat in range(options.repeats):
        for table in tables:
            X, y = data[table.name]
            classifier = table.task == "classification"
            n_classes = int(y.max()) + 1 if classifier else 0
            for fold, rows in enumerate(split(y, classifier, repeat, options.max_rows)):
                for method in methods:
                    key = (table.name, repeat, fold, method, options.seed, len(rows[0]))
                    if key in done:
                        continue
                    sizes = {"n_test": len(rows[1]), "n_part": len(X) - len(rows[1])}
                    record = dict(zip(KEYS, key, strict=True)) | {"n_classes": n_classes, **sizes}
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of bounds, copies and iterations
                        try:
                            record |= evaluated(
                                METHODS[method],
                                (X, y),
                                rows,
                                n_classes,
                                options.seed,
                                options.evaluate and fold == 0,
                            )
                        except Exception as error:  # of any of the packages
                            record["failed"] = f"{type(error).__name__}: {error}"
                    append(store, record)
                    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
