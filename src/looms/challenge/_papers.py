"""Printed results of the papers.

``c06_table3`` has blanks where the print cannot be read. In ``g06_game`` a guess is the 100-fold
figure or the leave-one-out one, by which the choice was made; the validation set gives none.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Literal

from looms._optional import require

if TYPE_CHECKING:
    import pandas as pd

PaperTable = Literal["c06_table3", "c06_table4", "c06_tables5_6", "g06_game"]


def paper_table(name: PaperTable) -> pd.DataFrame:
    """Table of the papers, with the names of looms.

    Parameters
    ----------
    name : {"c06_table3", "c06_table4", "c06_tables5_6", "g06_game"}
        Test balanced error rates of 70 experiments [C06 Table III]; the weights of their factors
        [C06 Table IV]; the two submissions [C06 Tables V and VI]; the baselines of the Model
        Selection Game [G06].

    Returns
    -------
    table : DataFrame
        Rates in [0, 1]; NaN where the print cannot be read.

    Examples
    --------
    >>> from looms.challenge._papers import paper_table
    >>> float(paper_table("c06_table3")["ada"].min())
    0.1649
    """
    pandas = require("pandas", "The papers' tables")
    with resources.files("looms.challenge").joinpath(f"papers/{name}.csv").open() as file:
        table: pd.DataFrame = pandas.read_csv(file)
    return table
