"""The statistics of a diagnosed classifier, as text, as rows and as figures."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from looms._optional import require
from looms._typing import AnyArray
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._output import check_can_write, console, score_text, show_table
from looms.diagnostics import Deviance, ExcessError, GoodnessOfFit, Influence

#: Largest number of influential rows on the screen; the CSV file has all.
MOST_ROWS = 10
#: Files of the figures, and the statistics that they show.
FIGURES = {
    "excess_error.png": "errors",
    "deviance.png": "deviance",
    "influence.png": "influence",
    "goodness_of_fit.png": "fit",
}


@dataclass(frozen=True)
class Subject:
    """A machine and the rows that it is diagnosed on.

    Attributes
    ----------
    model : a model of tables, a pipeline that ends in a machine, or the machine.
    X, y : rows and their classes.
    groups : (n_rows,) labels, the same for rows left out together; None for each row by itself.
    description : the machine in words.
    name : name of the file.
    """

    model: Any
    X: Any
    y: AnyArray
    groups: AnyArray | None
    description: str
    name: str


@dataclass(frozen=True)
class Diagnosis:
    """Statistics of a subject; rows are numbered from 1.

    ``unit`` is what is left out at a time: "row", "group" or "fold".
    """

    subject: Subject
    unit: str
    errors: ExcessError
    deviance: Deviance
    influence: Influence
    fit: GoodnessOfFit | None


def show(diagnosis: Diagnosis) -> None:
    """Print the statistics as tables on stdout."""
    spread, changes, fit = diagnosis.deviance, diagnosis.influence, diagnosis.fit
    fits, n, unit = spread.fits, len(diagnosis.subject.y), diagnosis.unit
    echo = console().print
    of_groups = "" if unit == "row" else f" in {count(len(fits.labels), unit)}"
    echo(f"{diagnosis.subject.description}; {diagnosis.subject.name}, {n} rows{of_groups}")
    rates = [
        (str(label), str(rows), *map(score_text, of_class))
        for label, rows, *of_class in diagnosis.errors.table.itertuples()
    ]
    names = ["class", "rows", "apparent", fits.method, "excess"]
    show_table("Error rate", names, rates, names[:1])

    values = [("deviance", spread.deviance), ("CV score", spread.cv_score)]
    values += [] if fit is None else [("EIC", fit.eic)]
    shown = [(name, f"{value:.2f}", score_text(value / n)) for name, value in values]
    if fit is not None:
        shown.append((f"critical at {fit.alpha:g}", f"{fit.critical_value:.2f}", ""))
    show_table("Deviance", ["", "value", "a row"], shown, [""])
    if fit is not None:
        echo(
            f"Goodness of fit: {fit.verdict}, "
            f"p = {fit.p_value:.3g}; the deviance is at percentile {fit.percentile:.1f} of "
            f"{len(fit.bootstrapped)} bootstrap samples of {fit.resampling}"
        )

    flagged, n_cases = changes.flagged, len(changes.values)
    by_chance = f"about {changes.alpha * n_cases:.3g} of {n_cases} would be by chance"
    critical = changes.critical_values
    above = f"at p < {changes.alpha:g}" if np.ptp(critical) else f"above {critical[0]:.2f}"
    title = f"Influence {above}: {count(len(flagged), unit)} ({by_chance})"
    if not len(flagged):
        echo(title)
        return
    most = [
        (str(name), str(about), f"{value:.2f}", f"{p:.2g}")
        for name, about, value, p, _ in changes.table.loc[flagged[:MOST_ROWS]].itertuples()
    ]
    names = [unit, "class" if unit == "row" else "rows", "influence", "p"]
    show_table(title, names, most, ["class", "group"])
    if len(flagged) > MOST_ROWS:
        echo(f"and {len(flagged) - MOST_ROWS} more, which --output lists")


def rows_of(diagnosis: Diagnosis) -> Any:
    """A data frame with a row per sample, numbered from 1."""
    fits, spread, changes = diagnosis.errors.fits, diagnosis.deviance, diagnosis.influence
    of_cases = changes.table.iloc[fits.group]
    more = {} if fits.unit == "sample" else {fits.unit: fits.labels[fits.group]}
    return fits.table(
        **more,
        predicted=fits.predicted,
        predicted_without=fits.predicted_without,
        deviance=spread.contributions,
        cv_score=spread.cv_contributions,
        **{name: of_cases[name].to_numpy() for name in ("influence", "p_value", "flagged")},
    ).rename_axis("row")


def check_figures(folder: Path, names: list[str], force: bool) -> None:
    """Refuse, before any work, a folder to which the figures cannot be written."""
    require("matplotlib.figure", "--plot", extra="plot")
    if folder.is_dir():
        for name in names:
            check_can_write(folder / name, force, option="--plot", holds="\ufffdPNG")
    elif folder.exists():
        raise InputError(f"{folder} is not a folder; name one for the figures")
    else:
        check_can_write(folder, force, option="--plot")


def drawn(diagnosis: Diagnosis) -> dict[str, bytes]:
    """The figures as PNG files, by name."""
    figures = {}
    for name, statistic in FIGURES.items():
        result = getattr(diagnosis, statistic)
        if result is not None:
            drawing = require("matplotlib.figure", "--plot").Figure(layout="constrained")
            result.plot(drawing.subplots())
            content = BytesIO()
            drawing.savefig(content, format="png", dpi=150)
            figures[name] = content.getvalue()
    return figures
