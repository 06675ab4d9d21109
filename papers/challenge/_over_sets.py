"""Dimensions of a data set, and tables of several sets combined, with means and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from looms._optional import require
from papers.challenge._data import ChallengeData
from papers.challenge._papers import paper_table
from papers.challenge._tables import ENTRY_FIGURES

if TYPE_CHECKING:
    import pandas as pd


def dimensions_table(data: ChallengeData) -> pd.DataFrame:
    """Dimensions and composition of a data set, next to the paper's [C06 Table II].

    Parameters
    ----------
    data : ChallengeData
        The data set, before its preparation.

    Returns
    -------
    table : DataFrame
        The index is "looms", and for sets of the paper also "paper". The columns are "positive"
        and "negative", the number of rows in each class; "p_positive", the share of positive rows;
        "columns"; "varying", the number of columns that are not constant; and "sparsity", the
        share of zeros among all entries.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.challenge._data import ChallengeData
    >>> data = ChallengeData("made", np.array([[1.0, 0, 7], [0, 0, 7]]), np.array([1, -1]), "table")
    >>> dimensions_table(data)[["columns", "varying", "sparsity"]].round(2).to_dict("records")
    [{'columns': 3, 'varying': 1, 'sparsity': 0.5}]
    """
    pandas = require("pandas", "A table of dimensions")
    n, d = data.X.shape
    if sparse.issparse(data.X):
        varying = int((data.X.max(axis=0) != data.X.min(axis=0)).sum())
        zeros = n * d - data.X.count_nonzero()
    else:
        frame = pandas.DataFrame(data.X)
        varying = int((frame.nunique(dropna=False) > 1).sum())
        zeros = int((frame == 0).to_numpy().sum())
    positive = int((data.y > 0).sum())
    figures = (positive, n - positive, positive / n, d, varying, zeros / (n * d))
    paper = paper_table("c06_table2").set_index("dataset")
    table = pandas.DataFrame([figures], index=["looms"], columns=paper.columns)
    if data.paper_name is not None:
        table = pandas.concat([table, paper.loc[[data.paper_name]].set_axis(["paper"])])
    return table.rename_axis(data.name)


def overall_table(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One table of several data sets, with means and ranks over the sets.

    Parameters
    ----------
    tables : mapping of the name of each set to its table
        All made by `experiments_table`, or all by `entries_table`.

    Returns
    -------
    table : DataFrame
        For experiments, a row for each one that all tables have: "ber" of each set under the name
        of the set, their "mean" over the sets, and "rank", the mean over the sets of the rank
        among these experiments; also "paper_mean" and "paper_rank", if the paper has figures for
        all of them.
        For entries, as in [C06 Tables V, VI], a row for each set and rule, and for each rule that
        all sets have an "overall" row with the mean over the sets; "rank" is the rank of the test
        score among the rules of the same set. The guess error of an overall row is the mean of
        the absolute guess errors, as printed.

    Raises
    ------
    ValueError
        If the tables are of different or other kinds, or share no experiment.

    Examples
    --------
    >>> import pandas as pd
    >>> one, other = ([0.1, 0.2], [0.3, 0.2])
    >>> overall_table(
    ...     {
    ...         name: pd.DataFrame({"ber": rates, "paper": float("nan")}, ["press-rbf", "wmw-rbf"])
    ...         for name, rates in {"a": one, "b": other}.items()
    ...     }
    ... )["rank"].to_dict()
    {'press-rbf': 1.5, 'wmw-rbf': 1.5}
    """
    pandas = require("pandas", "A table over several sets")
    if all("held_out" in table for table in tables.values()):
        return _overall_entries(tables)
    if not all({"ber", "paper"} <= set(table) for table in tables.values()):
        raise ValueError(
            "Tables of several sets must be of one kind, all of experiments or all of entries."
        )
    rates, paper = (
        pandas.concat({name: table[column] for name, table in tables.items()}, axis=1, join="inner")
        for column in ("ber", "paper")
    )
    rates = rates.dropna()
    if rates.empty:
        raise ValueError("The tables share no experiment that has a rate in all of them.")
    columns = {"mean": rates.mean(axis=1), "rank": rates.rank().mean(axis=1)}
    paper = paper.loc[rates.index]
    if paper.notna().all().all():
        columns |= {"paper_mean": paper.mean(axis=1), "paper_rank": paper.rank().mean(axis=1)}
    made: pd.DataFrame = rates.assign(**columns)
    return made.rename_axis("experiment")


def _overall_entries(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    pandas = require("pandas", "A table over several sets")
    sources = {"mean": "looms", "paper": "paper"}
    rows = pandas.concat(
        [
            table[table["held_out"].isin(list(sources))].assign(dataset=name)
            for name, table in tables.items()
        ]
    )
    rows["of"] = rows["held_out"].map(sources)
    rows["rank"] = rows.groupby(["dataset", "of"])["test_score"].rank()
    keys, figures = ["of", "choice_by", "guess_by"], [*ENTRY_FIGURES, "rank"]
    rules = rows.assign(guess_error=np.abs(rows["guess_error"])).groupby(keys, sort=False)
    overall = rules[figures].mean()[rules.size() == len(tables)].reset_index()
    table: pd.DataFrame = pandas.concat([rows, overall.assign(dataset="overall")])
    return table[["dataset", *keys, *figures]].reset_index(drop=True)
