"""Tables of results next to those of the papers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from looms._optional import require
from looms.assessment._result import Assessment
from papers.challenge._choices import Entry
from papers.challenge._data import DATASETS
from papers.challenge._papers import factor_weights, paper_table
from papers.challenge._plans import FIELDS, PaperExperiment
from papers.challenge._run import Results, with_figures

if TYPE_CHECKING:
    import pandas as pd


def experiments_table(results: Results, paper_name: str | None = None) -> pd.DataFrame:
    """Test balanced error rates of experiments, next to the paper's [C06 Table III].

    Parameters
    ----------
    results : dict of PaperExperiment to Assessment
        Result of `run_plan` or `stored_plan`.
    paper_name : str, optional
        Name of the paper's set that this is.

    Returns
    -------
    table : DataFrame
        The index has the names of the experiments. The columns are "ber", with the leave-one-out
        threshold, and its "standard_error"; "loo_ber", its leave-one-out estimate; "ber_train",
        on the training rows; "paper", and "off", the difference from it in standard errors;
        "ber_train_threshold", "ber_at_zero" and "ber_best_on_test", with three other thresholds:
        the best on the training rows, 0, and the best on the test part (with "best_off"); and
        "seconds" per split. If every split of some experiment raised, "failure" has the reason of
        the first, and the other columns are blank.

    Notes
    -----
    [C06] does not say how it set the threshold of Table III; hence the four rules.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from papers.challenge import Runs, experiments_of, experiments_table, run_plan
    >>> from papers.challenge._data import ChallengeData
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> data = ChallengeData("breast", X[::3], 2 * y[::3] - 1, "standardize")
    >>> results = run_plan(Runs(data), experiments_of("table3")[:1], n_splits=3)
    >>> experiments_table(results)["splits"].to_dict()
    {'press-linear': 3}
    """
    _check_paper_name(paper_name)
    pandas = require("pandas", "A table of experiments")
    paper = _paper_rates(paper_name)
    able = with_figures(results)
    rows = []
    for experiment, result in results.items():
        figure = paper.get(experiment, np.nan)
        rows.append(
            {
                **asdict(experiment),
                "splits": len(result.splits) - len(result.failures),
                **dict.fromkeys(_RATES, np.nan),
                **(_rates(result, figure) if experiment in able else {"paper": figure}),
                "seconds": result.seconds.mean(),
            }
        )
    names = pandas.Index([experiment.name for experiment in results], name="experiment")
    table = pandas.DataFrame(rows, index=names)
    if len(able) < len(results):
        table["failure"] = [
            "" if experiment in able else next(iter(result.failures.values()))
            for experiment, result in results.items()
        ]
    return table


def factors_table(results: Results, paper_name: str | None = None) -> pd.DataFrame:
    """Weights of the factors of the experiments, next to the paper's [C06 Table IV].

    Parameters
    ----------
    results : dict of PaperExperiment to Assessment
        Results of two or more experiments with the criteria and kernels of Table III; those that
        raised in every split are left out.
    paper_name : str, optional
        Name of the paper's set that this is.

    Returns
    -------
    table : DataFrame
        The index has the factors. The columns are "weight", from these results; "paper", as
        printed; and "paper_same_rows", by the same regression on the same experiments of the
        paper's Table III.
    """
    _check_paper_name(paper_name)
    pandas = require("pandas", "A table of factors")
    results = with_figures(results)
    experiments = list(results)
    ours = factor_weights(experiments, [results[e].mean["ber"] for e in experiments])
    table = pandas.DataFrame({"weight": ours})
    table.index.name = "factor"
    if paper_name is not None:
        table["paper"] = paper_table("c06_table4").set_index("factor")[paper_name]
        rates = _paper_rates(paper_name)
        theirs = [rates[e] for e in experiments]
        if np.isfinite(theirs).sum() > 1:
            table["paper_same_rows"] = pandas.Series(factor_weights(experiments, theirs))
    return table


#: Figures of an entry, in the order of the papers.
ENTRY_FIGURES = ("guess", "ber_train", "ber_valid", "ber_test", "guess_error", "test_score")


def entries_table(entries: Sequence[Entry], paper_name: str | None = None) -> pd.DataFrame:
    """Entries, their means by kind, and the papers' entries [C06 Tables V, VI; G06].

    Parameters
    ----------
    entries : sequence of Entry
        Result of `loo_entries`, `nested_entries` or `game_entries`.
    paper_name : str, optional
        Name of the papers' set that this is.

    Returns
    -------
    table : DataFrame
        "held_out" is the number of the held-out part, "mean", "s.e." (over the parts) or
        "paper". A guess error below zero means that the guess was too good. The papers print no
        sign of the guess error; in their rows it is the guess minus the test figure.
    """
    _check_paper_name(paper_name)
    pandas = require("pandas", "A table of entries")
    keys = ["held_out", "choice_by", "guess_by", "experiment"]
    columns = [*keys, *ENTRY_FIGURES]
    ours = pandas.DataFrame(map(vars, entries), columns=columns)
    ours["experiment"] = [e.experiment.name for e in entries]
    tables = [ours.astype({"held_out": str})]
    for (choice_by, guess_by), group in ours.groupby(keys[1:3], sort=False):
        figures = group[columns[4:]]
        parts = pandas.DataFrame({"mean": figures.mean(), "s.e.": figures.sem()}).T
        parts = parts.rename_axis("held_out").reset_index()
        parts = parts.assign(choice_by=choice_by, guess_by=guess_by, experiment="")
        tables.append(parts[: len(group)])  # one entry has no standard error
    if paper_name is not None:
        tables.append(_paper_entries(paper_name, entries))
    return pandas.concat([t for t in tables if len(t)] or tables)[columns].reset_index(drop=True)


#: Columns that come from the results of an experiment.
_RATES = (
    "ber",
    "standard_error",
    "loo_ber",
    "ber_train",
    "paper",
    "off",
    "ber_train_threshold",
    "ber_at_zero",
    "ber_best_on_test",
    "best_off",
)


def _rates(result: Assessment, figure: float) -> dict[str, float]:
    """Rates of an experiment, next to the paper's figure."""
    mean, error = result.mean, result.table[list(result.scores)].sem()  # as the papers print it
    return {
        "ber": mean["ber"],
        "standard_error": error["ber"],
        "loo_ber": mean["ber"] + result.optimism["ber"],
        "ber_train": mean["ber_train"],
        "paper": figure,
        "off": _over(mean["ber"] - figure, error["ber"]),
        "ber_train_threshold": mean["ber_train_threshold"],
        "ber_at_zero": mean["ber_at_zero"],
        "ber_best_on_test": mean["ber_best_on_test"],
        "best_off": _over(mean["ber_best_on_test"] - figure, error["ber_best_on_test"]),
    }


def _check_paper_name(paper_name: str | None) -> None:
    if paper_name is not None and paper_name not in DATASETS:
        raise ValueError(
            f"The papers have no set {paper_name!r}; theirs are {', '.join(DATASETS)}. Without a "
            "name the table has only the figures of looms."
        )


def _paper_rates(paper_name: str | None) -> dict[PaperExperiment, float]:
    if paper_name is None:
        return {}
    table = paper_table("c06_table3")
    experiments = itertools.starmap(PaperExperiment, table[list(FIELDS)].to_numpy())
    return dict(zip(experiments, table[paper_name], strict=True))


def _over(difference: float, error: float) -> float:
    return float(difference / error) if error > 0 else float("nan")


def _paper_entries(paper_name: str, entries: Sequence[Entry]) -> pd.DataFrame:
    """Entries that the papers print for the rules of choice and guess used here."""
    # The papers' rules are of a hundred splits, whatever the number of ours.
    choices, guesses = (
        {re.sub(r"(?<=^validation)\d+$", "100", rule) for rule in rules}
        for rules in ({e.choice_by for e in entries}, {e.guess_by for e in entries})
    )
    if choices == {"loo_ber"}:
        table = paper_table("c06_tables5_6")
        table = table[table["guess_by"].isin(guesses)]
        table = table.assign(choice_by="loo_ber", experiment="")
    else:
        table = paper_table("g06_game")
        table = table[table["choice_by"].isin(choices)]
        names = table["criterion"] + "-" + table["kernel"]
        table = table.assign(guess_by=table["choice_by"], experiment=names, ber_test=np.nan)
        table["test_score"] = np.nan
    table = table[table["dataset"] == paper_name]
    return table.assign(held_out="paper", guess_error=table["guess"] - table["ber_test"])
