"""A machine and a table diagnosed: the statistics, what is shown of them and what is written."""

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
from looms.datasets import Table
from looms.diagnostics import (
    Deviance,
    ExcessError,
    GoodnessOfFit,
    Influence,
    deviance,
    excess_error,
    goodness_of_fit,
    influence,
)

#: So many influential rows are shown; all are in the CSV file.
MOST_ROWS = 10

_T = TypeVar("_T")


@dataclass(frozen=True)
class Subject:
    """What is diagnosed.

    Attributes
    ----------
    model : pipeline of a preprocessor and a machine.
    X, y : rows and their classes.
    description : the machine in words.
    name : of the file.
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
        said = reason.partition(";")[0]
        raise InputError(f"{file}: diagnostics are of classes, and {said}")
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
    """How to diagnose."""

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
    """What was found."""

    subject: Subject
    errors: ExcessError
    deviance: Deviance
    influence: Influence
    fit: GoodnessOfFit | None


def diagnosed(subject: Subject, plan: Plan) -> Diagnosis:
    """All statistics of a subject; progress goes to stderr."""
    model, X, y, jobs = subject.model, subject.X, subject.y, plan.n_jobs
    errors = _run(
        "Leave-one-out errors", lambda p: excess_error(model, X, y, n_jobs=jobs, progress=p)
    )
    spread = _run(
        "Leave-one-out deviance", lambda p: deviance(model, X, y, n_jobs=jobs, progress=p)
    )
    changes = _run(
        "Influence",
        lambda p: influence(model, X, y, alpha=plan.alpha, n_jobs=jobs, progress=p),
    )
    fit = plan.n_bootstrap and _run(
        "Bootstrap",
        lambda p: goodness_of_fit(
            model,
            X,
            y,
            plan.n_bootstrap,
            alpha=plan.alpha,
            resampling=plan.resampling,
            random_state=plan.random_state,
            n_jobs=jobs,
            progress=p,
        ),
    )
    rows = np.arange(1, len(subject.y) + 1)
    return Diagnosis(
        subject,
        replace(errors, names=rows),
        replace(spread, names=rows),
        replace(changes, names=rows),
        fit or None,
    )


def show(diagnosis: Diagnosis) -> None:
    """The figures as tables on stdout."""
    n = len(diagnosis.subject.y)
    console().print(f"{diagnosis.subject.description}; {diagnosis.subject.name}, {n} rows")
    _show_errors(diagnosis.errors)
    _show_deviance(diagnosis.deviance, diagnosis.fit)
    _show_influence(diagnosis.influence)


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
    changes, spread = diagnosis.influence.table, diagnosis.deviance
    changes.index.name = "row"
    changes.insert(1, "predicted", diagnosis.errors.predicted)
    changes.insert(2, "predicted_without", diagnosis.errors.predicted_without)
    changes.insert(3, "deviance", spread.contributions)
    changes.insert(4, "cv_score", spread.cv_contributions)
    return changes


def _run(name: str, compute: Callable[[Any], _T]) -> _T:
    try:
        with warnings_as_notes(), refit_progress(name) as progress:
            return compute(progress)
    except np.linalg.LinAlgError:  # a ValueError too, and not the fault of the table
        raise
    except ValueError as error:
        raise InputError(str(error)) from error


def _show_errors(found: ExcessError) -> None:
    table = _table("Error rate")
    table.add_column("class")
    for name in ("rows", "apparent", "leave-one-out", "excess"):
        table.add_column(name, justify="right")
    for label, (rows, *rates) in zip(
        found.table.index, found.table.itertuples(index=False), strict=True
    ):
        table.add_row(str(label), str(rows), *map(_figure, rates))
    console().print(table)


def _show_deviance(found: Deviance, fit: GoodnessOfFit | None) -> None:
    table = _table("Deviance")
    for name in ("", "value", "a row"):
        table.add_column(name, justify="right" if name else "left")
    n = len(found.contributions)
    for name, value in (("deviance", found.deviance), ("CV score", found.cv_score)):
        table.add_row(name, f"{value:.2f}", _figure(value / n))
    if fit is not None:
        table.add_row(f"critical at {fit.alpha:g}", f"{fit.critical_value:.2f}", "")
    console().print(table)
    if fit is not None:
        console().print(
            f"Goodness of fit: {fit.verdict}, "
            f"p = {fit.p_value:.3g}; the deviance is at percentile {fit.percentile:.1f} of "
            f"{len(fit.bootstrapped)} bootstrap samples of {fit.resampling}"
        )


def _show_influence(found: Influence) -> None:
    rows, n = found.flagged, len(found.values)
    by_chance = f"about {found.alpha * n:.3g} of {n} would be by chance"
    title = f"Influence above {found.critical_value:.2f}: {len(rows)} rows ({by_chance})"
    if not len(rows):
        console().print(title)
        return
    table = _table(title)
    for name in ("row", "class", "influence", "p"):
        table.add_column(name, justify="left" if name == "class" else "right")
    shown = found.table.loc[rows[:MOST_ROWS]]
    for row, label, value, p, _ in shown.itertuples():
        table.add_row(str(row), str(label), f"{value:.2f}", f"{p:.2g}")
    console().print(table)
    if len(rows) > MOST_ROWS:
        console().print(f"and {len(rows) - MOST_ROWS} more, which --output lists")


def _drawn(diagnosis: Diagnosis) -> dict[str, bytes]:
    """The figures as PNG files, by name."""
    figures = {
        "excess_error.png": diagnosis.errors,
        "deviance.png": diagnosis.deviance,
        "influence.png": diagnosis.influence,
        "goodness_of_fit.png": diagnosis.fit,
    }
    return {name: _png(found) for name, found in figures.items() if found is not None}


def _png(found: Any) -> bytes:
    figure = require("matplotlib.figure", "--plot", extra="plot").Figure(layout="constrained")
    found.plot(figure.subplots())
    content = BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()
