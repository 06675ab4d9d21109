"""Tables of results as Markdown and as plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from looms._optional import require

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def markdown(table: pd.DataFrame) -> str:
    """Data frame as a Markdown table, with four decimals.

    Parameters
    ----------
    table : DataFrame
        Any table; an index with a name becomes the first column.
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


def plot_table(table: pd.DataFrame, title: str = "") -> Figure:
    """Plot of a table of `experiments_table`, `factors_table` or `entries_table`.

    Parameters
    ----------
    table : DataFrame
        The table.
    title : str, default=""
        Title above the plot.

    Returns
    -------
    figure : matplotlib.figure.Figure
        The figure, which is not shown; ``figure.savefig(path)`` writes it.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    require("matplotlib", "A plot", "plot")
    figure: Figure = require("matplotlib.figure", "A plot", "plot").Figure(layout="constrained")
    axes = figure.add_subplot()
    if "ber_best_on_test" in table:
        _draw_experiments(axes, table)
    elif "weight" in table:
        _draw_factors(axes, table)
    else:
        _draw_entries(axes, table)
    figure.set_size_inches(7, max(4.0, 1.5 + 0.22 * len(table)) if "held_out" not in table else 5.5)
    axes.set_title(title)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_experiments(axes: Axes, table: pd.DataFrame) -> None:
    places = range(len(table))
    error = 2 * table["standard_error"]
    axes.errorbar(table["ber"], places, xerr=error, fmt="o", label="LOO threshold, ± 2 s.e.")
    axes.plot(table["ber_best_on_test"], places, "o", mfc="none", label="threshold best on test")
    if table["paper"].notna().any():
        axes.plot(table["paper"], places, "kx", label="paper")
    _name_rows(axes, table)
    axes.set_xlabel("test balanced error rate")


def _draw_factors(axes: Axes, table: pd.DataFrame) -> None:
    axes.barh(range(len(table)), table["weight"], alpha=0.6, label="looms")
    if "paper" in table:
        axes.plot(table["paper"], range(len(table)), "kx", label="paper")
    axes.axvline(0, color="0.5", lw=0.8)
    _name_rows(axes, table)
    axes.set_xlabel("weight in the standardized error")


def _draw_entries(axes: Axes, table: pd.DataFrame) -> None:
    single = table[table["held_out"].str.isdigit()]
    for (choice, guess), group in single.groupby(["choice_by", "guess_by"], sort=False):
        name = f"guess by {guess}" if choice != guess else f"choice by {choice}"
        axes.plot(group["guess"], group["ber_test"], "o", alpha=0.7, label=name)
    paper = table[(table["held_out"] == "paper") & table["ber_test"].notna()]
    if len(paper):
        axes.plot(paper["guess"], paper["ber_test"], "kx", label="paper")
    start = float(single["guess"].mean())
    axes.axline((start, start), slope=1, color="0.5", lw=0.8)
    axes.set_xlabel("guess")
    axes.set_ylabel("test balanced error rate")


def _name_rows(axes: Axes, table: pd.DataFrame) -> None:
    axes.set_yticks(range(len(table)), table.index)
    axes.invert_yaxis()
