"""Cost of a certificate beside that of the fit, in CPU seconds.

    python benchmarks/certificate_cost.py [--rows 300 1000 2000]

The table is written to ``benchmarks/results/certificate_cost.csv``.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

from _report import seconds, write_table
from sklearn.datasets import make_classification

from looms import KernelClassifier

cpu_seconds = partial(seconds, repeats=1, clock=time.process_time)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 2000])
    rows = []
    for n in parser.parse_args().rows:
        X, y = make_classification(n, 20, random_state=0)
        machine = KernelClassifier().fit(X, y)
        whole = cpu_seconds(lambda X=X, y=y: KernelClassifier().fit(X, y).evaluate())
        tuned = cpu_seconds(lambda X=X, y=y: KernelClassifier().fit(X, y))
        given = min(
            cpu_seconds(lambda X=X, y=y: KernelClassifier(mu=1e-3).fit(X, y)) for _ in range(3)
        )
        certificate = min(cpu_seconds(machine.certify) for _ in range(3))
        rows.append((n, whole, tuned, given, certificate, certificate / whole))
    header = ("rows", "fit_and_nested", "fit", "fit_of_given", "certificate", "share_of_first")
    write_table("certificate_cost", header, rows)


if __name__ == "__main__":
    main()
