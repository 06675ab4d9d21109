"""An assessment killed at random moments ends with the table of one that ran in peace.

A process that assesses a self-tuning machine on ida_heart is killed with SIGKILL, with all its
workers, at a random moment after it began to finish splits or to load; then it is started again,
until the kills are used up, and once more to its end. The tables must be equal byte for byte.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import write_table
from parallel_assess import heart, machine

import looms


def work(store: str, table: str, n_splits: int, n_jobs: int) -> None:
    """What is killed."""
    X, y = heart()
    result = looms.assess(machine(), X, y, n_splits, store=store, n_jobs=n_jobs, random_state=0)
    Path(table).write_bytes(result.table.to_csv().encode())


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--work", *map(str, arguments)]
    return subprocess.Popen(command, start_new_session=True)


def n_stored(store: Path) -> int:
    return len(list(store.glob("*/seed*.json")))


def killed(store: Path, table: Path, n_splits: int, n_jobs: int, longest: float) -> int:
    """Start it, kill it after a random time; how many splits are stored then."""
    with start(store, table, n_splits, n_jobs) as process:
        wait = np.random.default_rng().uniform(0, longest)
        began, before = time.monotonic(), n_stored(store)
        # Starting Python takes a while; every other kill comes after the first new split.
        first = before if wait < longest / 2 else before + 1
        while process.poll() is None and n_stored(store) < first:
            time.sleep(0.005)
        time.sleep(max(0.0, wait - (time.monotonic() - began)) if first == before else wait / 4)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return n_stored(store)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        store, table, n_splits, n_jobs = options.work
        work(store, table, int(n_splits), int(n_jobs))
        return
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with start(folder / "quiet", folder / "quiet.csv", options.splits, 1) as process:
            assert process.wait() == 0
        for n_jobs in (1, 2):
            store, table = folder / f"store{n_jobs}", folder / f"table{n_jobs}.csv"
            stored = [
                killed(store, table, options.splits, n_jobs, 3.0) for _ in range(options.kills)
            ]
            with start(store, table, options.splits, n_jobs) as process:
                assert process.wait() == 0
            same = table.read_bytes() == (folder / "quiet.csv").read_bytes()
            rows.append((n_jobs, options.kills, len(set(stored)), stored[-1], same))
    header = ("n_jobs", "kills", "different_moments", "stored_at_last_kill", "same_bytes")
    write_table("interrupted", header, rows)


if __name__ == "__main__":
    main()
