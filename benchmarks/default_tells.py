"""What the report of the default model tells of five tables, and how long that takes.

One is real, mackerel; the others are made like tables of the literature: visits of patients with a
disease of the liver, of which each patient has several in a row; a clinic with three rows of each
patient; applications for a credit card, of which only those accepted have expenses; and crashes of
cars, of which few are deadly. Boosted trees are in the stack of all.

    python benchmarks/default_tells.py

The table is written to ``benchmarks/results/default_tells.csv``: CPU seconds of the fit, of the
report's cautions, of importance and of influence; numbers of columns with an importance beyond two
standard errors, of rows whose influence is told; and the cautions.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _report import data_or_exit, write_table

from looms import TabularClassifier
from looms.report.facts import Facts

Table = tuple[pd.DataFrame, np.ndarray]


def visits() -> Table:
    """1371 visits of 220 patients, with measurements that change slowly; who has died."""
    rng = np.random.default_rng(0)
    patient = np.sort(np.append(np.arange(220), rng.integers(0, 220, 1151)))
    state = rng.normal(size=(220, 6))
    died = state[:, 0] + 0.7 * state[:, 1] + rng.normal(size=220) > 0.8
    X = state[patient] + 0.45 * rng.normal(size=(len(patient), 6))
    table = pd.DataFrame(X, columns=["bili", "albumin", "alk", "ast", "platelet", "protime"])
    table["edema"] = np.where(X[:, 1] > 1, "yes", "no")
    table.loc[rng.random(len(table)) < 0.05, "platelet"] = None
    return table.round(2), np.where(died[patient], "died", "alive")


def clinic() -> Table:
    """Three rows of each of 150 patients."""
    rng = np.random.default_rng(1)
    patient, state = np.arange(450) // 3, rng.normal(size=(150, 4))
    relapse = state[:, 0] + state[:, 1] + rng.normal(size=150) > 0
    X = state[patient] + 0.1 * rng.normal(size=(450, 4))
    table = pd.DataFrame(X, columns=["hb", "crp", "age", "bmi"]).round(2)
    return table, np.where(relapse[patient], "relapse", "well")


def mackerel() -> Table:
    """Hauls along the track of a ship, with eggs or without."""
    table = pd.read_csv(data_or_exit("mackerel.csv")).drop(columns="egg.count")
    return table.drop(columns="target"), table["target"].to_numpy()


def credit_cards() -> Table:
    """1319 applications, of which 296 were refused; these have no expenses, and few others."""
    rng = np.random.default_rng(2)
    refused = np.arange(1319) < 296
    order = rng.permutation(1319)
    spent = np.where(refused | (rng.random(1319) < 0.02), 0.0, rng.lognormal(5, 1, 1319))
    income = rng.lognormal(1.2, 0.4, 1319)
    table = pd.DataFrame({"expenditure": spent, "income": income, "age": rng.normal(33, 10, 1319)})
    table["reports"] = rng.poisson(np.where(refused, 1.6, 0.13))
    table["owner"] = np.where(rng.random(1319) < np.where(refused, 0.3, 0.47), "yes", "no")
    return table.iloc[order].round(3), np.where(refused, "no", "yes")[order]


def crashes() -> Table:
    """18,351 crashes, of which one in twenty is deadly."""
    rng = np.random.default_rng(3)
    n = 18_351
    speed = rng.choice(
        ["1-9", "10-24", "25-39", "40-54", "55+"], n, p=[0.05, 0.4, 0.32, 0.15, 0.08]
    )
    belt, bag = rng.random(n) < 0.7, rng.random(n) < 0.55
    age, year = rng.integers(16, 90, n), rng.integers(1985, 2003, n)
    rank = pd.Series(speed).map({"1-9": 0, "10-24": 1, "25-39": 2, "40-54": 3, "55+": 4})
    signal = -6.3 + 1.1 * rank.to_numpy() - 1.1 * belt + 0.03 * (age - 40)
    dead = rng.random(n) < 1 / (1 + np.exp(-signal))
    columns = {"speed": speed, "belt": np.where(belt, "belted", "none"), "age": age, "year": year}
    table = pd.DataFrame(columns).assign(airbag=np.where(bag, "airbag", "none"))
    return table.assign(front=rng.random(n) < 0.6), np.where(dead, "dead", "alive")


TABLES = {
    "like pbcseq": visits,
    "clinic": clinic,
    "mackerel": mackerel,
    "like CreditCard": credit_cards,
    "like nassCDS": crashes,
}


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return call(), time.process_time() - began


def main() -> None:
    rows = []
    for name, make in TABLES.items():
        X, y = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, fit = timed(lambda X=X, y=y: TabularClassifier().fit(X, y))
            _, evaluation = timed(model.evaluate)
        trees = sum(one.weight for one in model.members_ if one.units is not None)
        facts = Facts(model, X, y)
        remarks, of_cautions = timed(lambda facts=facts: facts.remarks)
        importance, of_importance = timed(lambda facts=facts: facts.importance)
        deletion, of_influence = timed(lambda facts=facts: facts.deletion)
        needed = int(np.count_nonzero(importance.value > 2 * importance.standard_error))
        told = 0 if deletion is None else int(np.isfinite(deletion.rms_change).sum())
        titles = "; ".join(one["title"] for one in remarks)
        times = fit, evaluation, of_cautions, of_importance, of_influence
        sizes = importance.n_columns, needed, told
        rows.append((name, len(X), round(trees, 3), *times, *sizes, titles))
        print(*rows[-1], flush=True)
    seconds = [
        f"{what}_cpu_s" for what in ("fit", "evaluate", "cautions", "importance", "influence")
    ]
    header = ("table", "rows", "weight_of_trees", *seconds)
    more = ("columns", "columns_beyond_2_se", "rows_with_influence", "cautions")
    write_table("default_tells", (*header, *more), rows)


if __name__ == "__main__":
    main()
