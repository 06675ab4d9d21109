"""Tables of results beside the papers', as data frames and as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from looms._optional import require
from looms.assessment._result import Assessment
from looms.challenge._choices import Entry
from looms.challenge._factors import factor_weights
from looms.challenge._fetch import DATASETS
from looms.challenge._papers import paper_table
from looms.challenge._run import Results, with_figures

if TYPE_CHECKING:
    import pandas as pd


def experiments_table(results: Results, paper_name: str | None = None) -> pd.DataFrame:
    """Test balanced error rates of experiments, beside the paper's [C06 Table III].

    Parameters
    ----------
    results : dict of Experiment to Assessment
        What `run_plan` or `stored_plan` gave.
    paper_name : str, optional
        Which of the paper's sets this is.

    Returns
    -------
    table : DataFrame
        Index the names of the experiments. "ber", by the leave-one-out threshold, with
        "standard_error"; "loo_ber", its leave-one-out estimate; "paper", and "off", the
        difference to it in standard errors; "ber_at_zero" and "ber_best_on_test" by two other
        rules of the threshold, the latter with "best_off" too; "seconds" a split. If of some
        experiment every split raised, "failure" has the reason of the first beside its blanks.

    Notes
    -----
    [C06] does not say how it set the threshold of Table III, hence the three rules.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms.challenge import Runs, experiments_of, experiments_table, run_plan
    >>> from looms.challenge._data import ChallengeData
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
        figure = paper.get((experiment.criterion, experiment.weighting, experiment.kernel), np.nan)
        rows.append(
            {
                "criterion": experiment.criterion,
                "weighting": experiment.weighting,
                "kernel": experiment.kernel,
                "splits": len(result.splits) - len(result.failures),
                **dict.fromkeys(_RATES, np.nan),
                **(_rates(result, figure) if experiment in able else {"paper": figure}),
                "seconds": result.seconds.mean(),
            }
        )
    table = pandas.DataFrame(rows, index=_names(results))
    if len(able) < len(results):
        table["failure"] = [
            "" if experiment in able else next(iter(result.failures.values()))
            for experiment, result in results.items()
        ]
    return table


def factors_table(results: Results, paper_name: str | None = None) -> pd.DataFrame:
    """Weights of the factors of the experiments, beside the paper's [C06 Table IV].

    Parameters
    ----------
    results : dict of Experiment to Assessment
        Two or more, of the criteria and kernels of Table III; those of which every split raised
        are left out.
    paper_name : str, optional
        Which of the paper's sets this is.

    Returns
    -------
    table : DataFrame
        Index the factors. "weight", of ours; "paper", as printed; "paper_same_rows", from the
        paper's Table III by the same regression on the same experiments.
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
        theirs = [rates[e.criterion, e.weighting, e.kernel] for e in experiments]
        if np.isfinite(theirs).sum() > 1:
            table["paper_same_rows"] = pandas.Series(factor_weights(experiments, theirs))
    return table


def entries_table(entries: Sequence[Entry], paper_name: str | None = None) -> pd.DataFrame:
    """Entries, their means by kind, and the paper's [C06 Tables V, VI; G06].

    Parameters
    ----------
    entries : sequence of Entry
        Result of `loo_entries`, `nested_entries` or `game_entries`.
    paper_name : str, optional
        Which of the papers' sets this is.

    Returns
    -------
    table : DataFrame
        "held_out" is the number of the held-out part, "mean", "s.e." (over the parts) or
        "paper". A guess error below zero is a guess too good. In the paper's rows the guess
        error has no printed sign: it is the guess less the test figure.
    """
    _check_paper_name(paper_name)
    pandas = require("pandas", "A table of entries")
    rows = [
        {
            "held_out": str(e.held_out),
            "choice_by": e.choice_by,
            "guess_by": e.guess_by,
            "experiment": e.experiment.name,
            **{name: getattr(e, name) for name in _FIGURES},
        }
        for e in entries
    ]
    for kind in dict.fromkeys((e.choice_by, e.guess_by) for e in entries):
        values = np.array(
            [
                [getattr(e, f) for f in _FIGURES]
                for e in entries
                if (e.choice_by, e.guess_by) == kind
            ]
        )
        rows.append(_row("mean", kind, "", values.mean(axis=0)))
        if len(values) > 1:
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            rows.append(_row("s.e.", kind, "", error))
    if paper_name is not None:
        choices = {_papers_name(e.choice_by) for e in entries}
        rows += _paper_entries(paper_name, choices, {_papers_name(e.guess_by) for e in entries})
    return pandas.DataFrame(
        rows, columns=["held_out", "choice_by", "guess_by", "experiment", *_FIGURES]
    )


#: Columns of an experiment that its results give.
_RATES = (
    "ber",
    "standard_error",
    "loo_ber",
    "paper",
    "off",
    "ber_at_zero",
    "ber_best_on_test",
    "best_off",
)


def _rates(result: Assessment, figure: float) -> dict[str, float]:
    """Rates of an experiment, beside the paper's figure."""
    mean, error = result.mean, result.error_over_splits  # as the papers print it
    return {
        "ber": mean["ber"],
        "standard_error": error["ber"],
        "loo_ber": mean["ber"] + result.optimism["ber"],
        "paper": figure,
        "off": _over(mean["ber"] - figure, error["ber"]),
        "ber_at_zero": mean["ber_at_zero"],
        "ber_best_on_test": mean["ber_best_on_test"],
        "best_off": _over(mean["ber_best_on_test"] - figure, error["ber_best_on_test"]),
    }


_FIGURES = ("guess", "ber_test", "guess_error", "test_score")


def markdown(table: pd.DataFrame) -> str:
    """Data frame as a Markdown table, with four decimals.

    Parameters
    ----------
    table : DataFrame
        Any; an index with a name becomes the first column.
    """
    named = table.reset_index() if table.index.name else table
    rows = [[_cell(value) for value in row] for row in named.itertuples(index=False)]
    numeric = [kind.kind in "fi" for kind in named.dtypes]
    lines = [
        _line([str(name) for name in named.columns]),
        _line(["--:" if number else ":--" for number in numeric]),
        *map(_line, rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if np.isfinite(value) else ""
    return " ".join(str(value).replace("|", "\\|").split())


def _names(results: Results) -> pd.Index:
    pandas = require("pandas", "A table of experiments")
    return pandas.Index([e.name for e in results], name="experiment")


def _check_paper_name(paper_name: str | None) -> None:
    if paper_name is not None and paper_name not in DATASETS:
        raise ValueError(
            f"The papers have no set {paper_name!r}; theirs are {', '.join(DATASETS)}. Without a "
            "name the table has our figures alone."
        )


def _paper_rates(paper_name: str | None) -> dict[tuple[str, str, str], float]:
    if paper_name is None:
        return {}
    table = paper_table("c06_table3")
    keys = zip(table["criterion"], table["weighting"], table["kernel"], strict=True)
    return dict(zip(keys, table[paper_name], strict=True))


def _over(difference: float, error: float) -> float:
    return float(difference / error) if error > 0 else float("nan")


def _papers_name(rule: str) -> str:
    """Name in the papers, with their hundred splits, of a rule of choice or guess."""
    return "validation100" if re.fullmatch(r"validation\d+", rule) else rule


def _row(
    label: str, kind: tuple[str, str], experiment: str, figures: Sequence[float]
) -> dict[str, Any]:
    values = dict(zip(_FIGURES, map(float, figures), strict=True))
    return {
        "held_out": label,
        "choice_by": kind[0],
        "guess_by": kind[1],
        "experiment": experiment,
        **values,
    }


def _paper_entries(paper_name: str, choices: set[str], guesses: set[str]) -> list[dict[str, Any]]:
    if choices == {"loo_ber"}:
        table = paper_table("c06_tables5_6")
        table = table[(table["dataset"] == paper_name) & table["guess_by"].isin(guesses)]
        return [
            _row(
                "paper",
                ("loo_ber", r.guess_by),
                "",
                (r.guess, r.ber_test, r.guess - r.ber_test, r.test_score),
            )
            for r in table.itertuples()
        ]
    table = paper_table("g06_game")
    table = table[(table["dataset"] == paper_name) & table["choice_by"].isin(choices)]
    nan = float("nan")
    return [
        _row(
            "paper",
            (r.choice_by, r.choice_by),
            f"{r.criterion}-{r.kernel}",
            (r.guess, nan, nan, nan),
        )
        for r in table.itertuples()
    ]
