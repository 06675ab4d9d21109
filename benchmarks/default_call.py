"""The default call of `TabularClassifier` at growing numbers of rows.

    python benchmarks/default_call.py [--rows 300 1000 1001 6000 100000] [--most-evaluated 1001]

Seconds, peak of the memory, and kinds of the scores. Ten columns of numbers, one of categories; a
fourth of the labels is noise. Each fit has a process of its own. ``announced`` is True if a warning
told the time of the fit before it began. Nested scores are made up to ``--most-evaluated`` rows.
The table is written to ``benchmarks/results/default_call.csv``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _report import in_fresh_process, write_table

from looms import TabularClassifier


def made(n: int) -> tuple[pd.DataFrame, Any]:
    """Columns and classes of n rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 10)), columns=list("abcdefghij"))
    X["k"] = rng.choice(["u", "v", "w"], n)
    signal = np.sin(2 * X["a"]) + X["b"] * X["c"] + (X["k"] == "u")
    return X, np.where(signal + rng.normal(size=n) > 0.3, "yes", "no")


def called(n: int, evaluates: bool) -> tuple[float, float, bool, str, str]:
    """Seconds of a fit and of its evaluation, whether the time was told, and kinds of scores."""
    X, y = made(n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model = TabularClassifier().fit(X, y)
        fitted = time.perf_counter()
    own = model.evaluate(nested=False).kind
    began_anew = time.perf_counter()
    nested = model.evaluate().kind if evaluates else "not made"
    evaluated = time.perf_counter() - began_anew if evaluates else float("nan")
    announced = any("A fit to" in str(each.message) for each in caught)
    return fitted - began, evaluated, announced, nested, own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 1001, 6000, 100_000])
    parser.add_argument("--most-evaluated", type=int, default=1001)
    options, rows = parser.parse_args(), []
    for n in options.rows:
        (fit, evaluated, *told), peak = in_fresh_process(called, n, n <= options.most_evaluated)
        rows.append((n, fit, evaluated, peak, *told))
    header = ("rows", "fit_seconds", "evaluate_seconds", "peak_gb", "announced", "nested", "own")
    write_table("default_call", header, rows)


if __name__ == "__main__":
    main()
