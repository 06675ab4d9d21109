"""A hundred outer splits on ida_heart by one process and by two: at most 0.6 of the time.

All 270 rows of the first split of the benchmark, train and test together. Workers are started
before the clock: they serve any number of assessments.
"""

from __future__ import annotations

import argparse

import joblib
import numpy as np
from _report import data_or_exit, seconds, write_table
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms
from looms.assessment._result import Assessment


def heart() -> tuple[np.ndarray, np.ndarray]:
    """All rows of ida_heart."""
    with np.load(data_or_exit("ida_heart.npz")) as file:
        parts = ("train", "test")
        X = np.concatenate([file[f"X_{part}_1"] for part in parts])
        return X, np.concatenate([file[f"y_{part}_1"] for part in parts])


def machine() -> object:
    """A self-tuning machine with a threshold, behind a scaler."""
    return make_pipeline(StandardScaler(), looms.KernelClassifier("rbf", threshold="balanced"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    X, y = heart()

    def run(n_jobs: int, n_splits: int = options.splits) -> Assessment:
        return looms.assess(machine(), X, y, n_splits, n_jobs=n_jobs, random_state=0)

    joblib.Parallel(2)(joblib.delayed(run)(1, 2) for _ in range(2))
    tables = {n_jobs: run(n_jobs).table.to_csv() for n_jobs in (1, 2)}
    assert tables[1] == tables[2]
    alone, together = (seconds(lambda n=n: run(n), options.repeats) for n in (1, 2))
    header = ("splits", "seconds_alone", "seconds_with_two", "ratio", "bar")
    write_table(
        "parallel_assess", header, [(options.splits, alone, together, together / alone, 0.6)]
    )


if __name__ == "__main__":
    main()
