"""Every task of a streamed fit is killed once: the machine has the bits of a fit in peace.

A machine on landmarks is tuned on a table in partitions of a dask cluster of two processes. A sweep
over the table is a task for each partition. One fit for each task: its process is killed by SIGKILL
when the task begins, the first time. Tasks are counted in the fit in peace, none is sampled.

    python benchmarks/killed_tasks.py [--rows 90] [--partitions 3] [--last 1000]

The table is written to ``benchmarks/results/killed_tasks.csv``.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import distributed
import numpy as np
from _report import write_table

from looms import KernelRegressor, Search
from looms.dask import DaskBlocks


@dataclass(frozen=True, eq=False)
class Fatal:
    """Work that kills its process when it begins with a certain row, unless a file is there."""

    work: Any
    row: Any
    killed: Path

    def __call__(self, X: Any, *columns: Any) -> Any:
        if np.array_equal(X[0], self.row) and not self.killed.exists():
            self.killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(X, *columns)


class FatalBlocks(DaskBlocks):
    """Blocks that count their sweeps; one task of one sweep is fatal."""

    def __init__(self, X: Any, sweep: int, row: Any, killed: Path) -> None:
        super().__init__(X)
        self.fatal_sweep, self.row, self.killed, self.n_sweeps = sweep, row, killed, 0

    def sweep(self, work: Any, *columns: Any) -> Any:
        self.n_sweeps += 1
        if self.n_sweeps == self.fatal_sweep:
            work = Fatal(work, self.row, self.killed)
        return super().sweep(work, *columns)


def fitted(blocks: DaskBlocks, y: Any) -> list[bytes]:
    """Bits of what a fit gives."""
    machine = KernelRegressor("rbf", n_landmarks=6, search=Search(max_iter=3)).fit(blocks, y)
    values = machine.dual_coef_, machine.loo_.outputs, machine.mu_, machine.kernel_.theta
    return [np.asarray(value).tobytes() for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=90)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--last", type=int, default=1000, help="no task of a later number")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    collection = da.from_array(X, chunks=(-(-len(X) // options.partitions), 3))
    firsts = np.cumsum([0, *collection.chunks[0][:-1]])
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, silence_logs=50, dashboard_address=None
    )
    with cluster, distributed.Client(cluster), tempfile.TemporaryDirectory() as name:
        quiet = FatalBlocks(collection, 0, X[0], Path(name) / "none")
        expected = fitted(quiet, y)
        tasks = [(k, int(i)) for k in range(1, quiet.n_sweeps + 1) for i in firsts]
        n_killed = n_same = 0
        for sweep, first in tasks[: options.last]:
            killed = Path(name) / f"{sweep} {first}"
            n_same += fitted(FatalBlocks(collection, sweep, X[first], killed), y) == expected
            n_killed += killed.exists()
    header = ("rows", "partitions", "sweeps", "tasks", "killed", "same_bits")
    row = (len(X), len(firsts), quiet.n_sweeps, len(tasks), n_killed, n_same)
    write_table("killed_tasks", header, [row], ["dask", "distributed"])


if __name__ == "__main__":
    main()
