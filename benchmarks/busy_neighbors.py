"""CPU seconds of the default call beside busy processes, relative to those on one thread.

    python benchmarks/busy_neighbors.py [--rows 450 1100 6000] [--busy 4]

A fit of `TabularClassifier`, and its evaluation, with `OMP_NUM_THREADS` unset and set to 1, each in
a process of its own. Beside them run processes that do nothing but take time. Threads that wait for
others by spinning take it, too, and wait for a core. The table is written to
``benchmarks/results/busy_neighbors.csv``.

Claim checked: at most 1.3 times the CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings

from _report import in_fresh_process, write_table
from default_call import made

from looms import TabularClassifier

_NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def called(n: int) -> tuple[float, float, float, float]:
    """CPU seconds of a fit and of its evaluation, and seconds of both."""
    X, y = made(n)
    warnings.simplefilter("ignore")
    clocks = [(time.process_time(), time.perf_counter())]
    model = TabularClassifier().fit(X, y)
    clocks.append((time.process_time(), time.perf_counter()))
    model.evaluate()
    clocks.append((time.process_time(), time.perf_counter()))
    (a, s), (b, t), (c, u) = clocks
    return b - a, c - b, t - s, u - t


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[450, 1100, 6000])
    parser.add_argument("--busy", type=int, default=4, help="number of busy processes")
    options, rows = parser.parse_args(), []
    for name in _NAMES:
        os.environ.pop(name, None)
    forever = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(forever) for _ in range(options.busy)]
    try:
        for n in options.rows:
            os.environ["OMP_NUM_THREADS"] = "1"
            alone, _ = in_fresh_process(called, n)
            del os.environ["OMP_NUM_THREADS"]
            free, _ = in_fresh_process(called, n)
            ratios = [several / one for several, one in zip(free, alone, strict=True)]
            rows.append((n, options.busy, *alone, *ratios, 1.3))
            print(*rows[-1], flush=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    header = (
        *("rows", "busy", "fit_cpu_seconds", "evaluate_cpu_seconds", "fit_seconds"),
        *("evaluate_seconds", "fit_cpu_ratio", "evaluate_cpu_ratio", "fit_ratio"),
        *("evaluate_ratio", "bar_of_cpu_ratios"),
    )
    write_table("busy_neighbors", header, rows)


if __name__ == "__main__":
    main()
