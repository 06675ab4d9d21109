"""Ranks, error ratios and times of the methods on one half of the suite, from the store of run.py.

    python -m benchmarks.tables.report [--half develop] [--max-rows 500] [--methods ...]

Three measures, each averaged over the splits of a table that all methods finished:

loss      log loss, or root mean squared error
tabarena  1 − AUC for two classes, log loss for more, or root mean squared error
error     error rate, of classes only

``mean_rank`` is among all methods, ``rank_beside_peers`` that of one method of looms among the
peers without its relatives.
``error_ratio`` is the geometric mean over tables of the measure to that of the best peer on that
table, which no single peer reaches: it is below 1 for a method better than an oracle that picks
the peer. Intervals are of 95 %, by 10,000 resamples of the tables. ``cpu_seconds`` are geometric
means of the fits, ``cpu_ratio`` those to CatBoost, ``evaluate_cpu_seconds`` of the evaluations.
Writes ``results/tables_HALF_ROWS.csv``, the measures of each table as ``..._each.csv``,
and the plot ``tables_HALF_ROWS.png``; ROWS are ``--max-rows``, or "all".
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from benchmarks._report import RESULTS, write_table
from benchmarks.tables._list import TABLES
from benchmarks.tables._methods import METHODS, PEERS
from benchmarks.tables.prepare import FOLDER, HALVES
from benchmarks.tables.run import ALL_ROWS, KEYS, records

SPLIT = ["table", "repeat", "fold", "seed"]
MEASURES = ("loss", "tabarena", "error")
RESAMPLES = 10_000
HEADER = (
    "measure",
    "method",
    "tables",
    "mean_rank",
    "mean_rank_low",
    "mean_rank_high",
    "rank_beside_peers",
    "error_ratio",
    "error_ratio_low",
    "error_ratio_high",
    "better_than_all_peers",
    "cpu_seconds",
    "cpu_ratio",
    "evaluate_cpu_seconds",
)


def splits(store: Path, half: str, max_rows: int, methods: list[str] | None) -> pd.DataFrame:
    """Finished splits of one half with their measures, one row a method."""
    frame = pd.DataFrame(records(store)).drop_duplicates(list(KEYS), keep="last")
    names = [table.name for table in TABLES if table.half == half]
    rows = frame.groupby(SPLIT)["n_part"].transform("max").clip(upper=max_rows)
    of_half = frame["table"].isin(names) & (frame["n_train"] == rows)
    if "failed" in frame:
        for _, row in frame[of_half & frame["failed"].notna()].iterrows():
            print(f"failed: {row['table']}, fold {row['fold']}, {row['method']}: {row['failed']}")
        of_half &= frame["failed"].isna()
    if methods is not None:
        of_half &= frame["method"].isin(methods)
    frame = frame[of_half]
    if frame.empty:
        raise SystemExit(f"No splits of the half {half} with {max_rows} rows in {store}.")
    optional = ["rmse", "log_loss", "auc", "error", "evaluate_cpu_seconds"]
    frame = frame.reindex(columns=[*frame.columns.union(optional)])
    return frame.assign(
        loss=frame["log_loss"].fillna(frame["rmse"]),
        tabarena=(1.0 - frame["auc"]).fillna(frame["log_loss"]).fillna(frame["rmse"]),
    )


def by_table(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """(n_tables, n_methods) means over the splits that all methods finished."""
    values = frame.pivot(index=SPLIT, columns="method", values=column).dropna()
    values = values[[name for name in METHODS if name in values]]
    return values.groupby(level="table").mean()


def interval(values: np.ndarray) -> tuple[float, float]:
    """Bootstrap interval of the mean."""
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def summary(
    measure: str, values: pd.DataFrame, cpu: pd.DataFrame, evaluations: pd.Series
) -> list[tuple]:
    """A row for each method."""
    peers = values[[name for name in PEERS if name in values]]
    ranks = values.rank(axis=1)
    cpu = cpu.loc[values.index]
    rows = []
    for method in values:
        others = peers.drop(columns=method, errors="ignore")
        own = values[method].to_numpy()[:, None]
        beside = 1.0 + (others < own).sum(axis=1) + 0.5 * (others == own).sum(axis=1)
        best = peers.min(axis=1).to_numpy()
        ratio = np.log(values[method].to_numpy()[best > 0] / best[best > 0])
        rows.append(
            (
                measure,
                method,
                len(values),
                float(ranks[method].mean()),
                *interval(ranks[method].to_numpy()),
                np.nan if method in PEERS else float(beside.mean()),
                float(np.exp(ratio.mean())),
                *(float(np.exp(end)) for end in interval(ratio)),
                int((values[method] < others.min(axis=1)).sum()),
                float(np.exp(np.log(cpu[method]).mean())),
                float(np.exp(np.log(cpu[method] / cpu["catboost"]).mean()))
                if "catboost" in cpu
                else np.nan,
                float(evaluations.get(method, np.nan)),
            )
        )
    return rows


def draw(rows: list[tuple], path: Path) -> None:
    """Error ratio and time of each method, by the first measure."""
    table = pd.DataFrame(rows, columns=HEADER).query("measure == @MEASURES[0]")
    table = table.sort_values("error_ratio", ascending=False)
    colors = ["tab:gray" if name in PEERS else "tab:blue" for name in table["method"]]
    figure, (errors, times) = plt.subplots(
        ncols=2, sharey=True, width_ratios=(2, 1), figsize=(8, 4), layout="constrained"
    )
    lines = table[["error_ratio_low", "error_ratio_high"]].to_numpy().T
    errors.hlines(table["method"], *lines, colors=colors)
    errors.scatter(table["error_ratio"], table["method"], c=colors)
    errors.axvline(1.0, color="black", linewidth=0.5)
    errors.set_xlabel("log loss or RMSE ÷ that of the best peer on each table")
    times.scatter(table["cpu_seconds"], table["method"], c=colors)
    times.set_xscale("log")
    times.set_xlabel("CPU seconds of a fit")
    figure.suptitle(f"{table['tables'].iloc[0]} tables; intervals of 95 % over tables")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="develop")
    parser.add_argument("--max-rows", type=int, default=ALL_ROWS, help="default all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default all in the store")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--store", type=Path, help="default store.jsonl in the folder")
    options = parser.parse_args()
    store = options.store or options.folder / "store.jsonl"
    frame = splits(store, options.half, options.max_rows, options.methods)
    cpu = by_table(frame, "cpu_seconds")
    left_out = sorted(set(frame["table"]) - set(cpu.index))
    if left_out:
        print(f"no split that all methods finished, left out: {', '.join(left_out)}")
    of_tables = frame[frame["table"].isin(cpu.index)].groupby(["method", "table"])
    log_seconds = np.log(of_tables["evaluate_cpu_seconds"].mean())
    evaluations = np.exp(log_seconds.groupby("method").mean())
    rows, each = [], []
    for measure in MEASURES:
        values = by_table(frame, measure)
        rows += summary(measure, values, cpu, evaluations)
        for name, own in values.iterrows():
            facts = frame[frame["table"] == name].iloc[0]
            each.append((measure, name, facts["n_train"], facts["n_classes"], *own))
    packages = ("lightgbm", "catboost", "xrfm")
    most = "all" if options.max_rows == ALL_ROWS else options.max_rows
    name = f"tables_{options.half}_{most}"
    header = ("measure", "table", "n_train", "n_classes", *cpu.columns)
    write_table(f"{name}_each", header, each, packages)
    write_table(name, HEADER, rows, packages)
    draw(rows, RESULTS / f"{name}.png")


if __name__ == "__main__":
    main()
