"""Diagnosis of a machine on the rows of a table: statistics, tables, figures and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline

from looms._optional import require
from looms._typing import AnyArray
from looms.cli._apply import check_can_write
from looms.cli._errors import InputError
from looms.cli._options import Task
from looms.cli._progress import refit_progress
from looms.cli._render import _figure, _table, console
from looms.cli._say import csv_text, note, warnings_as_notes, write_output
from looms.cli._task import choose_task, labels
from looms.datasets._table import Table
from looms.diagnostics import (
    Deviance,
    ExcessError,
    GoodnessOfFit,
    Influence,
    deviance,
    excess_error,
    goodness_of_fit,
    influence,
    left_out_fits,
)

#: Influential rows on the screen; the CSV file holds all.
MOST_ROWS = 10

_T = TypeVar("_T")


@dataclass(frozen=True)
class Subject:
    """A machine and the rows that it is diagnosed on.

    Attributes
    ----------
    model : pipeline of a preprocessor and a machine.
    X, y : rows and their classes.
    description : the machine in words.
    name : name of the file.
    """

    model: Pipeline
    X: Any
    y: AnyArray
    description: str
    name: str

    @classmethod
    def of(cls, table: Table, before: Any, machine: Any, description: str, file: Path) -> Self:
        """From a table and the two steps; refuses a target as `classes_of` does."""
        y = classes_of(table, file)
        return cls(
            Pipeline([("table", before), ("machine", machine)]), table.X, y, description, file.name
        )


def classes_of(table: Table, file: Path) -> AnyArray:
    """The labels; refuses a target that is not of classes, or of too few rows of one."""
    try:
        task, reason = choose_task(table.y, Task.AUTO)
    except InputError as error:
        problem = str(error).partition(";")[0]
        raise InputError(f"{file}: diagnostics are of classes, and {problem}") from None
    if task is not Task.CLASSIFICATION:
        problem = reason.partition(";")[0]
        raise InputError(f"{file}: diagnostics are of classes, and {problem}")
    y = labels(table.y)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"{file}: the target has one class only, {y[0]!r}: nothing to diagnose")
    if counts.min() < 2:
        alone = classes.tolist()[int(counts.argmin())]
        raise InputError(
            f"{file}: Class {alone!r} has one member, and without it there is no such class to "
            "learn; leave it out, or merge it with another"
        )
    return y


@dataclass(frozen=True)
class Plan:
    """Options of the statistics."""

    n_bootstrap: int
    resampling: str
    alpha: float
    random_state: int
    n_jobs: int

    def check(self) -> None:
        """Refuse what cannot be done, before any work."""
        if not 0 < self.alpha < 1:
            raise InputError(f"--alpha must be between 0 and 1, both excluded, not {self.alpha:g}")
        if self.n_bootstrap and (self.n_bootstrap + 1) * self.alpha < 1 - 1e-9:
            raise InputError(
                f"--bootstrap {self.n_bootstrap} cannot reach level {self.alpha:g}, which takes "
                f"{np.ceil(1 / self.alpha - 1e-9) - 1:.0f} samples at least; take 400 to 1000, or "
                "0 for none"
            )
        if self.n_jobs == 0:
            raise InputError("--jobs 0 would run nothing; use 1, or -1 for one a core")


@dataclass(frozen=True)
class Diagnosis:
    """Statistics of a subject; rows are named from 1."""

    subject: Subject
    errors: ExcessError
    deviance: Deviance
    influence: Influence
    fit: GoodnessOfFit | None


def diagnosed(subject: Subject, plan: Plan) -> Diagnosis:
    """All statistics of a subject; progress goes to stderr."""
    model, X, y, jobs = subject.model, subject.X, subject.y, plan.n_jobs
    rows = np.arange(1, len(y) + 1)

    def left_out(progress: Any) -> tuple[ExcessError, Deviance, Influence]:
        fits = replace(left_out_fits(model, X, y, n_jobs=jobs, progress=progress), names=rows)
        return excess_error(fits), deviance(fits), influence(fits, alpha=plan.alpha)

    def bootstrap(progress: Any) -> GoodnessOfFit:
        return goodness_of_fit(
            model,
            X,
            y,
            plan.n_bootstrap,
            alpha=plan.alpha,
            resampling=plan.resampling,
            random_state=plan.random_state,
            n_jobs=jobs,
            progress=progress,
        )

    errors, spread, changes = _run("Leave-one-out refits", left_out)
    fit = _run("Bootstrap", bootstrap) if plan.n_bootstrap else None
    return Diagnosis(subject, errors, spread, changes, fit)


def show(diagnosis: Diagnosis) -> None:
    """Print the statistics as tables on stdout."""
    errors, spread, changes = diagnosis.errors, diagnosis.deviance, diagnosis.influence
    fit, n = diagnosis.fit, len(diagnosis.subject.y)
    echo = console().print
    echo(f"{diagnosis.subject.description}; {diagnosis.subject.name}, {n} rows")
    table = _table("Error rate")
    table.add_column("class")
    for name in ("rows", "apparent", "leave-one-out", "excess"):
        table.add_column(name, justify="right")
    for label, rows, *rates in errors.table.itertuples():
        table.add_row(str(label), str(rows), *map(_figure, rates))
    echo(table)

    table = _table("Deviance")
    for name in ("", "value", "a row"):
        table.add_column(name, justify="right" if name else "left")
    for name, value in (("deviance", spread.deviance), ("CV score", spread.cv_score)):
        table.add_row(name, f"{value:.2f}", _figure(value / n))
    if fit is not None:
        table.add_row(f"critical at {fit.alpha:g}", f"{fit.critical_value:.2f}", "")
    echo(table)
    if fit is not None:
        echo(
            f"Goodness of fit: {fit.verdict}, "
            f"p = {fit.p_value:.3g}; the deviance is at percentile {fit.percentile:.1f} of "
            f"{len(fit.bootstrapped)} bootstrap samples of {fit.resampling}"
        )

    flagged = changes.flagged
    by_chance = f"about {changes.alpha * n:.3g} of {n} would be by chance"
    title = f"Influence above {changes.critical_value:.2f}: {len(flagged)} rows ({by_chance})"
    if not len(flagged):
        echo(title)
        return
    table = _table(title)
    for name in ("row", "class", "influence", "p"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for row, label, value, p, _ in changes.table.loc[flagged[:MOST_ROWS]].itertuples():
        table.add_row(str(row), str(label), f"{value:.2f}", f"{p:.2g}")
    echo(table)
    if len(flagged) > MOST_ROWS:
        echo(f"and {len(flagged) - MOST_ROWS} more, which --output lists")


@dataclass(frozen=True)
class Outputs:
    """Where figures and rows go.

    Attributes
    ----------
    table : CSV file, or None.
    folder : of the figures, or None.
    bootstrapped : whether the figure of the bootstrap is among them.
    """

    table: Path | None
    folder: Path | None
    bootstrapped: bool

    def check(self, force: bool, *inputs: Path) -> None:
        """Refuse, before any work, what could not be written at the end."""
        if self.table is not None:
            check_can_write(self.table, force, *inputs, holds="row,")
        if self.folder is None:
            return
        require("matplotlib.figure", "--plot", extra="plot")
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is no folder; name one for the figures")
        if not self.folder.exists() and not self.folder.parent.is_dir():
            raise InputError(f"{self.folder}: there is no folder {self.folder.parent}; make it")
        if self.folder.is_dir():
            for name in self._names():
                if (self.folder / name).exists() and not force:
                    raise InputError(
                        f"{self.folder / name} exists; use --force to overwrite it, or --plot for "
                        "another folder"
                    )

    def write(self, diagnosis: Diagnosis) -> None:
        """Everything is made before anything is written."""
        drawn = {} if self.folder is None else _drawn(diagnosis)
        if self.table is not None:
            write_output(self.table, csv_text(rows_of(diagnosis)).encode())
            note(f"a row for each sample is in {self.table}")
        if self.folder is not None:
            self.folder.mkdir(exist_ok=True)
            for name in self._names():
                write_output(self.folder / name, drawn[name])
            note(f"{len(drawn)} figures are in {self.folder}")

    def _names(self) -> list[str]:
        names = ["excess_error.png", "deviance.png", "influence.png"]
        return [*names, "goodness_of_fit.png"] if self.bootstrapped else names


def rows_of(diagnosis: Diagnosis) -> Any:
    """A data frame with a row a sample, numbered from 1."""
    fits, spread = diagnosis.errors.fits, diagnosis.deviance
    table = diagnosis.influence.table.rename_axis("row")
    table.insert(1, "predicted", fits.predicted)
    table.insert(2, "predicted_without", fits.predicted_without)
    table.insert(3, "deviance", spread.contributions)
    table.insert(4, "cv_score", spread.cv_contributions)
    return table


def _run(name: str, compute: Callable[[Any], _T]) -> _T:
    try:
        with warnings_as_notes(), refit_progress(name) as progress:
            return compute(progress)
    except np.linalg.LinAlgError:  # a ValueError too, and not the fault of the table
        raise
    except ValueError as error:
        raise InputError(str(error)) from error


def _drawn(diagnosis: Diagnosis) -> dict[str, bytes]:
    """The figures as PNG files, by name."""
    results: dict[str, Any] = {
        "excess_error.png": diagnosis.errors,
        "deviance.png": diagnosis.deviance,
        "influence.png": diagnosis.influence,
        "goodness_of_fit.png": diagnosis.fit,
    }
    figures = {}
    for name, result in results.items():
        if result is None:
            continue
        figure = require("matplotlib.figure", "--plot", extra="plot").Figure(layout="constrained")
        result.plot(figure.subplots())
        content = BytesIO()
        figure.savefig(content, format="png", dpi=150)
        figures[name] = content.getvalue()
    return figures
