"""Workers are killed at random moments, and some splits kill theirs: nothing else is lost.

A self-tuning machine on half of the wine data behind a step that kills its process when two
certain rows are both left out of the training part. Beside that, workers that run a split are
killed from outside by SIGKILL, a random while after a split was finished; rounds go on until the
kills are used up. The table must be that of a run in peace, byte for byte, and the splits recorded
as failures those that kill.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import psutil
from _report import write_table
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms


class Deadly(TransformerMixin, BaseEstimator):
    """Leaves samples as they are, unless none has one of some values: then it ends its process."""

    def __init__(self, values: list[float], workers: str | None = None) -> None:
        self.values = values
        self.workers = workers

    def fit(self, X: Any, y: Any = None) -> Self:
        deadly = not np.isin(self.values, X[:, 0]).any()
        if self.workers is None:
            if deadly:
                raise ValueError("In peace it only raises.")
            return self
        (Path(self.workers) / str(os.getpid())).touch()
        time.sleep(random.uniform(0.05, 0.25))
        if deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return self

    def transform(self, X: Any) -> Any:
        return X


class Killer(threading.Thread):
    """Kills a worker now and then, at most one between two finished splits."""

    def __init__(self, workers: Path, n_kills: int, until: float) -> None:
        super().__init__(daemon=True)
        self.workers, self.n_kills, self.until = workers, n_kills, until
        self.n_killed = 0
        self.finished, self.ended = threading.Event(), False

    def run(self) -> None:
        while self.n_killed < self.n_kills and not self.ended and time.monotonic() < self.until:
            if self.finished.wait(1):
                time.sleep(random.uniform(0, 0.3))
                self.finished.clear()
                self.kill_one()

    def kill_one(self) -> None:
        paths = list(self.workers.iterdir())
        for path in random.sample(paths, len(paths)):
            try:
                worker = psutil.Process(int(path.name))
                if worker.status() == psutil.STATUS_ZOMBIE:
                    continue
                worker.kill()
            except psutil.NoSuchProcess:
                continue
            self.n_killed += 1
            return


def disturbed(backend: str, options: Any, X: Any, y: Any, quiet: Any) -> tuple[Any, ...]:
    """A row of the table: kills, and whether anything differs from the quiet run."""
    n_killed = n_rounds = 0
    same_bytes = same_failures = True
    began = time.monotonic()
    until = began + 60 * options.minutes
    with ExitStack() as stack:
        if backend == "dask":
            import distributed

            cluster = distributed.LocalCluster(
                **{"n_workers": 2, "threads_per_worker": 1, "processes": True},
                **{"silence_logs": 50, "dashboard_address": None},
            )
            stack.enter_context(cluster)
            stack.enter_context(distributed.Client(cluster))
        stack.enter_context(joblib.parallel_config(backend, n_jobs=2))
        while n_killed < options.kills and time.monotonic() < until:
            n_rounds += 1
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / "workers").mkdir()
            killer = Killer(folder / "workers", options.kills - n_killed, until)
            killer.start()
            result = looms.assess(
                model(X, str(folder / "workers")),
                *(X, y, options.splits),
                random_state=3,
                store=folder / "store",
                progress=lambda *args, killer=killer: killer.finished.set(),
            )
            killer.ended = True
            killer.join()
            n_killed += killer.n_killed
            # The reason of a failure is another one in peace.
            tables = [r.table.drop(columns="failure").to_csv() for r in (result, quiet)]
            same_bytes &= tables[0] == tables[1]
            same_failures &= set(result.failures) == set(quiet.failures)
            for index, reason in result.failures.items():
                print(f"{backend}, split {index}: {reason}")
    seconds = round(time.monotonic() - began)
    n_deadly = len(quiet.failures)
    return (
        *(backend, n_killed, n_rounds, options.splits, n_deadly),
        *(same_failures, same_bytes, seconds),
    )


def model(X: Any, workers: str | None) -> Any:
    """Deadly without two rows, one of either class; self-tuning."""
    values = [float(X[0, 0]), float(X[-1, 0])]
    return make_pipeline(
        Deadly(values, workers), StandardScaler(), looms.KernelClassifier("linear")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--splits", type=int, default=120)
    parser.add_argument("--minutes", type=float, default=60, help="no kills later, by backend")
    parser.add_argument("--backends", nargs="+", default=["loky", "dask"])
    options = parser.parse_args()
    X, y = load_wine(return_X_y=True)
    X, y = X[::2] + np.arange(len(X[::2]))[:, None] * 1e-6, (y[::2] == 0).astype(int)
    quiet = looms.assess(model(X, None), X, y, options.splits, random_state=3)
    rows = [disturbed(backend, options, X, y, quiet) for backend in options.backends]
    header = ("backend", "kills", "rounds", "splits", "deadly_splits")
    write_table("kills", (*header, "same_failures", "same_bytes", "seconds"), rows)


if __name__ == "__main__":
    main()
