"""The default call of `TabularClassifier` at growing numbers of rows, beside that of CatBoost.

    python benchmarks/default_call.py [--rows 300 ...] [--most-evaluated 2000]

Seconds, peak of the memory, and kinds of the scores. Ten columns of numbers, one of categories; a
fourth of the labels is noise. Each fit has a process of its own. ``ratio`` is to the seconds of
CatBoost at its defaults. ``announced`` is True if a warning told the time of the fit before it
began. Nested scores are made up to ``--most-evaluated`` rows. The table is written to
``benchmarks/results/default_call.csv``.

Claims checked: at most four times the time of CatBoost, a minute for 20,000 rows, and at most three
times the fit for an evaluation. The last is missed at 300 rows, by 3.4.
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


def catboost_seconds(n: int) -> float:
    from catboost import CatBoostClassifier

    X, y = made(n)
    model = CatBoostClassifier(cat_features=["k"], verbose=0, allow_writing_files=False)
    began = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = [300, 500, 1000, 2000, 6000, 20_000, 100_000]
    parser.add_argument("--rows", type=int, nargs="+", default=sizes)
    parser.add_argument("--most-evaluated", type=int, default=2000)
    options, rows = parser.parse_args(), []
    for n in options.rows:
        (fit, evaluated, *told), peak = in_fresh_process(called, n, n <= options.most_evaluated)
        other, _ = in_fresh_process(catboost_seconds, n)
        rows.append((n, fit, other, fit / other, evaluated, evaluated / fit, peak, *told))
        print(*rows[-1], flush=True)
    header = (
        *("rows", "fit_seconds", "catboost_seconds", "ratio", "evaluate_seconds"),
        *("evaluations_to_fit", "peak_gb", "announced", "nested", "own"),
    )
    write_table("default_call", header, rows, ("catboost",))


if __name__ == "__main__":
    main()
