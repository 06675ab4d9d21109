"""looms with all training rows beside the best scores published for TabArena, on three tables.

    OMP_NUM_THREADS=1 python -m benchmarks.tables.run --half develop --tables churn splice \\
        --methods looms --repeats 3
    OMP_NUM_THREADS=1 python -m benchmarks.tables.run --half report --tables pima \\
        --methods looms --repeats 10
    python -m benchmarks.tables.yardsticks

The splits are drawn as TabArena draws its own, three folds, in ten repeats for up to 2500 rows and
in three for more, but are not the same. churn and splice are of the half that the defaults of looms
were chosen on. ``published`` is the best of all its methods, most of them
tuned for hours and ensembled, some on a GPU: Erickson et al. (2025), TabArena, arXiv:2506.16791,
by its site in 2025. ``spread`` is the standard deviation over repeats.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from benchmarks._report import write_table
from benchmarks.tables.prepare import FOLDER
from benchmarks.tables.report import SPLIT
from benchmarks.tables.run import records

#: Table, measure, and the best published score.
PUBLISHED = {
    "churn": ("1 - auc", 0.0695),
    "pima": ("1 - auc", 0.1556),
    "splice": ("log_loss", 0.0993),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, default=FOLDER / "store.jsonl")
    frame = pd.DataFrame(records(parser.parse_args().store)).query("method == 'looms'")
    frame = frame[frame["n_train"] == frame["n_part"]].drop_duplicates(SPLIT, keep="last")
    frame["1 - auc"] = 1.0 - frame["auc"]
    rows = []
    for table, (measure, best) in PUBLISHED.items():
        own = frame[frame["table"] == table]
        means = own.groupby("repeat")[measure].mean()
        seconds = float(own["cpu_seconds"].mean())
        figures = float(means.mean()), float(means.std()), best, seconds
        rows.append((table, measure, int(own["n_train"].mean()), len(own), *figures))
    header = (
        *("table", "measure", "n_train", "splits", "looms", "spread", "published"),
        "cpu_seconds",
    )
    write_table("yardsticks", header, rows)


if __name__ == "__main__":
    main()
