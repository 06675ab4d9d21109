"""looms diagnose: excess error, deviance, goodness of fit and influence of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from looms import SVCCV, NonconformityClassifier
from looms._checks import check_share
from looms._classes import class_indices
from looms._words import count
from looms.assessment._experiment import numbered
from looms.cli._diagnosis import (
    FIGURES,
    Diagnosis,
    Subject,
    check_figures,
    drawn,
    rows_of,
    show,
)
from looms.cli._errors import InputError
from looms.cli._model import Fitted, fitting, load, rows_for
from looms.cli._options import Bounds, Reading, command
from looms.cli._output import (
    as_messages,
    check_can_write,
    csv_text,
    note,
    refused,
    write_or_print,
    write_output,
)
from looms.cli._prepare import labels_of_groups
from looms.cli._progress import Meter
from looms.cli._target import Target, target_of
from looms.diagnostics import (
    deviance,
    excess_error,
    goodness_of_fit,
    influence,
    left_out_fits,
)
from looms.diagnostics._goodness_of_fit import least_replicates
from looms.diagnostics._problem import classes_and_labels
from looms.duplicates import duplicate_groups, n_unexpected_duplicates
from looms.estimators import machine_of


@dataclass(frozen=True)
class Plan:
    """Options of the statistics.

    Parameters
    ----------
    bootstrap
        Bootstrap samples; 0 for none.
    resampling
        Draw labels by fitted or held-out probabilities, or rows (pairs).
    alpha
        Level of the tests.
    seed
        Seed of the bootstrap.
    jobs
        Refits to run in parallel; -1 for one per core.
    cv
        Folds to leave out instead of single rows or groups; one refit per fold.
    """

    bootstrap: Annotated[int, Bounds(0)] = 400
    resampling: Literal["labels", "held-out", "pairs"] = "labels"
    alpha: float = 0.05
    seed: Annotated[int, Bounds(0)] = 0
    jobs: int = 1
    cv: Annotated[int | None, Bounds(2)] = None

    def __post_init__(self) -> None:
        """Refuse impossible options, before any work."""
        with refused():
            check_share(self.alpha, "alpha")
        least = least_replicates(self.alpha)
        if 0 < self.bootstrap < least:
            raise InputError(
                f"--bootstrap {self.bootstrap} cannot reach level {self.alpha:g}, which takes "
                f"at least {least} samples; take 400 to 1000, or 0 for none"
            )


@command
def diagnose(
    model: Path,
    *,
    data: Path | None = None,
    groups: str | None = None,
    drop_missing_targets: bool = False,
    plan: Plan,
    plot: Path | None = None,
    output: Path | None = None,
    reading: Reading,
    force: bool = False,
) -> None:
    """Diagnose a classifier: excess error, deviance, goodness of fit, influential rows.

    The model is refitted without each of the rows that it was fitted to, or of the rows of --data,
    with fixed hyper-parameters.

    Parameters
    ----------
    data
        File with rows to refit the model to; by default the rows that its file holds.
    groups
        Column of --data, such as the patient: rows with the same label are left out together. By
        default that of the fit.
    plot
        Folder for the figures, as PNG files.
    output
        CSV file with a row per sample.

    Examples
    --------
    looms diagnose clinic.looms.skops
    looms diagnose clinic.looms.skops --bootstrap 0 --plot figures --output rows.csv
    looms diagnose clinic.looms.skops --data clinic.csv --groups patient
    """
    check_can_write(output, force, *([] if data is None else [data]), model, holds="row,")
    if plot is not None:
        names = [name for name, of in FIGURES.items() if plan.bootstrap or of != "fit"]
        check_figures(plot, names, force)
    if groups and data is None:
        raise InputError("--groups is a column of --data; give both")
    saved = load(model, reading.max_bytes)
    if not saved.is_classifier:
        raise InputError(f"{model}: it is a regression, but diagnostics are for classes")
    if data is None:
        subject = _of_fit(saved, model)
    else:
        subject = _of_data(saved, model, data, reading, groups, drop_missing_targets)
    X = numbered(subject.X)
    n_duplicates = n_unexpected_duplicates(X, duplicate_groups(X))
    if n_duplicates and subject.groups is None:
        note(
            f"{n_duplicates} of {len(subject.y)} rows are duplicates of other rows: leaving one "
            "out keeps its duplicates, so leave-one-out scores are optimistic"
        )
    diagnosis = diagnosed(subject, plan)
    show(diagnosis)
    if n_impossible := diagnosis.deviance.n_impossible:
        note(
            f"{count(n_impossible, 'held-out row')} got probability 0 of the true class, "
            "so the CV score is infinite"
        )
    # Everything is made before anything is written.
    figures = {} if plot is None else drawn(diagnosis)
    if output is not None:
        write_or_print(output, csv_text(rows_of(diagnosis)), "a row for each sample is in")
    if plot is not None:
        plot.mkdir(exist_ok=True)
        for name, content in figures.items():
            write_output(plot / name, content)
        note(f"{len(figures)} figures are in {plot}")


def _of_fit(saved: Fitted, path: Path) -> Subject:
    """The machine of a model file, and the rows that it was fitted to."""
    if saved.known is None:
        raise InputError(f"{path}: the file holds no rows; name a file with rows by --data")
    machine = machine_of(saved.model)
    rows = np.flatnonzero(machine.fit_weight_)
    y = machine.classes_[class_indices(machine.loo_.y)][rows]
    groups = machine.units_.clusters[rows] if machine.units_.grouped else None
    with as_messages(prefix=f"{path}: "):
        classes_and_labels(y)
    of_rows = f"the {count(len(rows), 'row')} of its fit"
    return Subject(machine, machine.X_fit_[rows], y, groups, _described(saved, path), of_rows)


def _of_data(
    saved: Fitted,
    path: Path,
    file: Path,
    reading: Reading,
    groups: str | None,
    drop_missing: bool,
) -> Subject:
    """The model of a file, to be refitted to the rows of another."""
    table = rows_for(saved, reading.of(file), [groups] if groups else [], drop_missing)
    y, X = classes_of(table.y, file).y, fitting(saved, table.X, file)
    of_fit, labels = saved.metadata["options"].get("groups"), None
    if groups or of_fit in getattr(table.X, "columns", []):
        name = groups or of_fit
        labels = labels_of_groups(file, table, name)
        X = X if name in saved.metadata["columns"] else X.drop(columns=name, errors="ignore")
    elif hasattr(saved.last, "units_") and saved.last.units_.grouped:
        note("rows that the fit held out together are left out one at a time here; see --groups")
    return Subject(saved.model, X, y, labels, _described(saved, path), file.name)


def _described(saved: Fitted, path: Path) -> str:
    """The model of a file in words."""
    kinds = {SVCCV: "Support vector machine", NonconformityClassifier: "Machines"}
    return f"{kinds.get(type(saved.last), 'Model')} of {path}"


def classes_of(column: Any, file: Path) -> Target:
    """The target; refuses one without classes, or with too few rows in a class."""
    without = f"{file}: diagnostics are for classes, but"
    try:
        target = target_of(column, "auto")
    except InputError as error:
        raise InputError(f"{without} {getattr(error, 'problem', error)}") from None
    if target.task != "classification":
        raise InputError(f"{without} the target has {target.values}")
    with as_messages(prefix=f"{file}: "):
        classes_and_labels(target.y)
    return target


def diagnosed(subject: Subject, plan: Plan) -> Diagnosis:
    """All statistics of a subject; progress goes to stderr."""
    data = subject.model, subject.X, subject.y
    options: dict[str, Any] = {"cv": plan.cv, "groups": subject.groups, "n_jobs": plan.jobs}
    with as_messages(), Meter("Leave-one-out refits") as meter:
        fits = left_out_fits(*data, progress=meter.refit, **options)
        fits = fits.named(np.arange(1, len(subject.y) + 1))
        errors, spread = excess_error(fits), deviance(fits)
        changes = influence(fits, alpha=plan.alpha)
    unit = "fold" if plan.cv else {"sample": "row", "group": "group"}[fits.unit]
    if not plan.bootstrap:
        return Diagnosis(subject, unit, errors, spread, changes, None)
    options = {"alpha": plan.alpha, "resampling": plan.resampling, "random_state": plan.seed}
    with as_messages(), Meter("Bootstrap") as meter:
        options |= {"n_jobs": plan.jobs, "progress": meter.refit}
        fit = goodness_of_fit(*data, plan.bootstrap, **options)
    return Diagnosis(subject, unit, errors, spread, changes, fit)
