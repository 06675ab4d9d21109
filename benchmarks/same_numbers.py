"""The numbers of two states of looms, beside each other: 30 configurations on ten tables.

Every configuration is fitted to eighty rows of every table of its kind, scaled. Kept are held-out
outputs, scores with their errors, nested outputs, predictions, probabilities, intervals and sets.

    PYTHONPATH=before/src python benchmarks/same_numbers.py --write before.pkl
    PYTHONPATH=after/src python benchmarks/same_numbers.py --write after.pkl
    python benchmarks/same_numbers.py --compare before.pkl after.pkl

The comparison prints a row for each configuration and quantity whose values differ by more than
1e-8 of the largest, or that only one state has, with the tables; its table counts the others.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import data_or_exit, quietly, write_table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import scale

from looms import KernelClassifier, KernelRegressor

#: Files of the suite: the target is their column of this name.
FILES = {
    **dict.fromkeys(("pima", "haberman", "bupa", "ionosphere"), "classes"),
    **dict.fromkeys(("concrete", "yacht"), "numbers"),
}
LOADERS = {
    "breast_cancer": ("classes", load_breast_cancer),
    "iris": ("classes", load_iris),
    "wine": ("classes", load_wine),
    "diabetes": ("numbers", load_diabetes),
}
STACK = {"kernel": ["linear", "rbf"], "combine": "stack"}
#: Options for both kinds of targets, and those of classes.
BOTH: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"kernel": "linear"},
    "ard": {"kernel": "ard"},
    "matern52": {"kernel": "matern52"},
    "no intercept": {"fit_intercept": False},
    "groups": {"groups": True},
    "weights": {"weights": True},
    "five folds": {"cv": 5},
    "five times two folds": {"cv": "2x5"},
    "list": {"kernel": ["linear", "rbf"]},
    "stack": STACK,
    "stack + groups + weights": STACK | {"groups": True, "weights": True},
    "stack + five folds": STACK | {"cv": 5},
    "auto": {"kernel": "auto"},
    "grid": {"search": "grid"},
    "grid + linear": {"search": "grid", "kernel": "linear"},
    "grid + groups": {"search": "grid", "groups": True},
    "grid + five folds + weights": {"search": "grid", "cv": 5, "weights": True},
    "landmarks": {"rank": 15},
    "landmarks + groups": {"rank": 15, "groups": True},
    "landmarks + weights": {"rank": 15, "weights": True},
}
OF_CLASSES: dict[str, dict[str, Any]] = {
    "area": {"criterion": "wmw"},
    "two criteria": {"criterion": ["press", "cross_entropy"]},
    "hinge + isotonic": {"criterion": "squared_hinge", "calibration": "isotonic"},
    "threshold": {"threshold": "ber"},
    "grid + threshold": {"search": "grid", "threshold": "ber"},
    "balanced": {"class_weight": "balanced"},
    "grid + balanced + beta": {"search": "grid", "class_weight": "balanced", "calibration": "beta"},
}
N_ROWS, N_NEW, CLOSE = 80, 7, 1e-8


def table(name: str) -> tuple[str, np.ndarray, np.ndarray]:
    """Kind of the targets, scaled features, and targets, of at most eighty rows."""
    if name in LOADERS:
        kind, load = LOADERS[name]
        X, y = load(return_X_y=True)
    else:
        kind, frame = FILES[name], pd.read_csv(data_or_exit(f"{name}.csv")).dropna()
        y, X = frame.pop("target").to_numpy(), frame.select_dtypes("number").to_numpy(float)
    rows = np.random.default_rng(0).permutation(len(y))[:N_ROWS]
    X = X[rows][:, X[rows].std(axis=0) > 0]
    return kind, scale(X[:, :8]), y[rows]


def numbers(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """What users see of a fitted machine, by name."""
    new = X[:N_NEW] + 0.1
    found = {
        "ordinary outputs": model.predict(new),
        "leave-one-out outputs": model.loo_.outputs,
        "held-out outputs": model.held_out_.outputs,
    }
    for nested in (True, False):
        scores, kind = model.evaluate(nested=nested), "nested " * nested
        found |= {kind + name: np.array([value]) for name, value in scores.items()}
        errors = scores.standard_errors.items()
        found |= {f"error of {kind}{name}": np.array([value]) for name, value in errors}
        found[f"{kind}outputs"] = scores.predictions.outputs
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(new)
        found["sets"] = model.predict_set(new, confidence_level=0.6)
    else:
        found["intervals"] = model.predict_interval(new, confidence_level=0.6)
    return found


def fitted(name: str, options: dict[str, Any]) -> dict[str, np.ndarray]:
    """Numbers of one configuration on one table; of an error its text."""
    kind, X, y = table(name)
    options, rng = dict(options), np.random.default_rng(1)
    groups = np.arange(len(y)) // 2 if options.pop("groups", False) else None
    weight = rng.uniform(0.5, 2.0, len(y)) if options.pop("weights", False) else None
    machine = KernelClassifier if kind == "classes" else KernelRegressor
    try:
        return numbers(machine(**options).fit(X, y, sample_weight=weight, groups=groups), X)
    except ValueError as error:
        return {"error": np.array([str(error)])}


def write(path: Path) -> None:
    found = {}
    for name in (*LOADERS, *FILES):
        kind, _, _ = table(name)
        for words, options in (BOTH | (OF_CLASSES if kind == "classes" else {})).items():
            found[words, name] = quietly(fitted, name, options)
        print(name, flush=True)
    path.write_bytes(pickle.dumps(found))


def difference(one: np.ndarray | None, other: np.ndarray | None) -> float:
    """Largest difference, relative to the largest value; inf if only one has it, or for texts."""
    if one is None or other is None or one.shape != other.shape:
        return np.inf
    if one.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(one, other) else np.inf
    far = np.abs(one - other).astype(float) if one.dtype != bool else (one != other).astype(float)
    far[np.isnan(one.astype(float)) & np.isnan(other.astype(float))] = 0.0
    return float(far.max() / max(1.0, np.nanmax(np.abs(one.astype(float)))))


def compare(before: Path, after: Path) -> None:
    one, other = (pickle.loads(path.read_bytes()) for path in (before, after))
    rows, n_same = [], 0
    for (words, name), values in one.items():
        for quantity in values | other[words, name]:
            far = difference(values.get(quantity), other[words, name].get(quantity))
            n_same += far <= CLOSE
            if not far <= CLOSE:
                rows.append((words, quantity, name, far))
                print(*rows[-1], flush=True)
    rows.append(("all", "equal to 1e-8", n_same, 0.0))
    write_table("same_numbers", ("configuration", "quantity", "table", "difference"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    if options.write:
        write(options.write)
    if options.compare:
        compare(*options.compare)


if __name__ == "__main__":
    main()
