"""looms diagnose: overfitting, deviance, goodness of fit and influential rows of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from looms import diagnostics
from looms._checks import check_share
from looms._classes import written_labels
from looms._optional import require
from looms._typing import AnyArray
from looms._words import count, score_text
from looms.cli._errors import InputError
from looms.cli._model import IN_FILE, SavedModel, fitting, load, rows_for
from looms.cli._options import Bounds, Column, command
from looms.cli._output import (
    check_can_write,
    check_can_write_csv,
    console,
    csv_text,
    note,
    print_blocks,
    refused,
    write_or_print,
    write_output,
)
from looms.cli._progress import Meter
from looms.cli._source import Reading, Source
from looms.diagnostics._goodness_of_fit import GoodnessOfFit, least_replicates
from looms.diagnostics._statistics import Deviance, ExcessError, Influence
from looms.duplicates import duplicate_groups, n_unexpected_duplicates, numbered
from looms.estimators._model import scores_of
from looms.report.overview import TextTable
from looms.tables._target import matched_classes, target_of

#: Largest number of influential rows on the screen; the CSV file has all.
MOST_ROWS = 10
#: First line of the output.
_HEADER = "row,(.+,)?predicted,predicted_without,deviance,"
#: Bootstrap samples in words, by --resampling.
DRAWN = {
    "labels": "with labels drawn by the fitted probabilities",
    "held-out": "with labels drawn by the held-out probabilities",
    "pairs": "of the rows",
}
#: Statistics with a figure; the last needs a bootstrap.
FIGURES = ("error_rates", "deviance", "influence", "goodness_of_fit")


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
        Folds to leave out instead of single rows or groups.
    """

    bootstrap: Annotated[int, Bounds(0)] = 400
    resampling: Literal["labels", "held-out", "pairs"] = "labels"
    alpha: float = 0.05
    seed: Annotated[int, Bounds(0)] = 0
    jobs: int = 1
    cv: Annotated[int | None, Bounds(2), "FOLDS"] = None

    def __post_init__(self) -> None:
        """Refuse impossible options, before any work."""
        with refused():
            check_share(self.alpha, "alpha")
        least = least_replicates(self.alpha)
        if 0 < self.bootstrap < least:
            raise InputError(
                f"--bootstrap {self.bootstrap} cannot reach level {self.alpha:g}, which takes at "
                f"least {least} samples; take 400 to 1000, or 0 for none"
            )


@dataclass(frozen=True)
class Subject:
    """A model and the rows that it is diagnosed on.

    Attributes
    ----------
    model : a model of tables, a kernel model, or a pipeline that ends in one.
    X, y : rows and their classes.
    groups : (n_rows,) labels, the same for rows left out together; None for each row by itself.
    rows : (n_rows,) their numbers.
    name : what the rows are of: a file, or the fit.
    rows_are : what the numbers are, as `looms.cli._model.IN_FILE` has it.
    """

    model: Any
    X: Any
    y: AnyArray
    groups: AnyArray | None
    rows: AnyArray
    name: str
    rows_are: str = IN_FILE


@dataclass(frozen=True)
class Diagnosis:
    """Statistics of the rows of a subject, which have the numbers that it gives.

    ``unit`` is what is left out at a time: "row", "group" or "fold".
    """

    unit: str
    error_rates: ExcessError
    deviance: Deviance
    influence: Influence
    goodness_of_fit: GoodnessOfFit | None


@command
def diagnose(
    model: Path,
    *,
    data: Path | None = None,
    groups: Column = None,
    drop_missing_targets: bool = False,
    plan: Plan,
    plot: Path | None = None,
    output: Path | None = None,
    reading: Reading,
    force: bool = False,
) -> None:
    """Diagnose a classifier: overfitting, goodness of fit, influential rows.

    The model is refitted without each of the rows that it was fitted to, or of the rows of --data,
    with fixed hyper-parameters. If its error is much smaller on its training rows than on rows held
    out, it overfits. Of a model with boosted trees the kernels are taken, which need no refits;
    --bootstrap 0 saves 400 fits.

    The deviance judges probabilities: -2 log of the probability of the true class, summed over the
    rows; smaller is better. Goodness of fit compares it with that of rows drawn from the fitted
    model itself (--bootstrap). A row is influential if the deviance changes much without it.

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
        CSV file with a line for each row, by its number in the file, from 1 after any header.

    Examples
    --------
    looms diagnose clinic.looms.skops
    looms diagnose clinic.looms.skops --cv 10 --bootstrap 0
    looms diagnose clinic.looms.skops --bootstrap 0 --plot figures --output rows.csv
    looms diagnose clinic.looms.skops --data clinic.csv --groups patient
    """
    check_can_write_csv(output, force, data or model, model, holds=_HEADER)
    if plot is not None:
        require("matplotlib.figure", "--plot", extra="plot")
        if plot.exists() and not plot.is_dir():
            raise InputError(f"{plot} is not a folder; name one for the figures")
        files = [plot / f"{name}.png" for name in (FIGURES if plan.bootstrap else FIGURES[:-1])]
        for path in files if plot.is_dir() else [plot]:
            check_can_write(path, force, option="--plot", holds="\ufffdPNG")
    if groups and data is None:
        raise InputError("--groups is a column of --data; give both")
    saved = load(model, reading.max_bytes)
    if not saved.is_classifier:
        raise InputError(
            f"{model}: it is a regression, but diagnostics are for classes; influential rows are "
            "in its report, and in Python in "
            f"looms.diagnostics.case_deletion(looms.load({str(model)!r}))"
        )
    if data is None:
        subject = subject_of_fit(saved, model)
    else:
        subject = subject_of_file(saved, reading.of(data), groups, drop_missing_targets)
    X = numbered(subject.X)
    n_duplicates = n_unexpected_duplicates(X, duplicate_groups(X))
    if n_duplicates and subject.groups is None:
        rows = f"{n_duplicates} of {len(subject.y)} rows are duplicates of other rows"
        note(f"{rows}: leaving one out keeps its duplicates, so scores are optimistic")
    diagnosis = diagnosed(subject, plan, f"{data or model}: ")
    show(diagnosis, f"Model of {model}; {len(subject.y)} rows of {subject.name}", subject.rows_are)
    if data is None and saved.last.fitted_.tuned:
        scores = scores_of(saved.last)
        remedy = "looms fit without --no-evaluate repeats the tuning without each fold"
        if not scores.optimistic:
            error = score_text(1.0 - scores["accuracy"])
            remedy = f"with everything repeated the error is {error} ({scores.kind})"
        note(f"the model was tuned on these rows, so held-out errors are optimistic; {remedy}")
    if n_impossible := diagnosis.deviance.n_impossible:
        rows = count(n_impossible, "held-out row")
        note(f"{rows} got probability 0 of the true class, so the held-out deviance is infinite")
    figures = {}  # made before anything is written
    for name in FIGURES if plot is not None else ():
        if (result := getattr(diagnosis, name)) is not None:
            drawing = require("matplotlib.figure", "--plot").Figure(layout="constrained")
            result.plot(drawing.subplots())
            content = BytesIO()
            drawing.savefig(content, format="png", dpi=150)
            figures[f"{name}.png"] = content.getvalue()
    if output is not None:
        write_or_print(output, csv_text(rows_of(diagnosis)), "a line for each row is in")
    if plot is not None:
        plot.mkdir(exist_ok=True)
        for name, png in figures.items():
            write_output(plot / name, png)
        note(f"{len(figures)} figures are in {plot}")


def subject_of_fit(saved: SavedModel, path: Path) -> Subject:
    """The model of a model file, and the rows that it was fitted to."""
    if saved.known is None:
        raise InputError(f"{path}: the file holds no rows; name a file with rows by --data")
    model, fitted, groups = saved.last, saved.last.fitted_, None
    rows = fitted.rows.train
    y = written_labels(fitted.outcome.classes)[fitted.outcome.codes(fitted.loo.y)][rows]
    numbers = saved.rows[rows]
    if model.units_.grouped:  # labels are not in the file
        _, first, group = np.unique(
            model.units_.clusters[rows], return_index=True, return_inverse=True
        )
        width = len(str(numbers.max()))  # so that they are sorted by their rows
        groups = np.array([f"group of row {n:>{width}}" for n in numbers[first]])[group]
        note("the model file holds no names of groups, but --data FILE does")
    return Subject(saved.own(), saved.known[rows], y, groups, numbers, "its fit", saved.rows_are)


def subject_of_file(
    saved: SavedModel, source: Source, groups: str | None, drop_missing: bool
) -> Subject:
    """The model of a file, to be refitted to the rows of another, which have classes."""
    file, of_fit = source.file, saved.options.get("groups")
    table = rows_for(saved, source, [groups] if groups else [], drop_missing)
    y: Any = np.array(matched_classes(table.y, saved.classes))
    if not np.isin(y, saved.classes).all():
        without = f"{file}: diagnostics are for classes, but"
        try:
            target = target_of(table.y, "auto", saved.marks)
        except ValueError as error:
            raise InputError(f"{without} {getattr(error, 'problem', error)}") from None
        if target.task != "classification":
            raise InputError(f"{without} the target has {target.values}")
        y = target.y
    with refused():
        X = fitting(saved, table.X)
    name = groups or (of_fit if of_fit in getattr(table.X, "columns", []) else None)
    labels = source.labels_in(table.X, name)
    if name is not None and saved.table is not None and name not in saved.columns:
        X = X.drop(columns=name)
    elif name is None and saved.last.units_.grouped:
        note("rows that the fit held out together are left out one at a time here; see --groups")
    rows = getattr(table.X, "index", np.arange(len(y))) + 1
    return Subject(saved.model, X, y, labels, np.asarray(rows), file.name)


def diagnosed(subject: Subject, plan: Plan, prefix: str = "") -> Diagnosis:
    """All statistics of a subject; progress goes to stderr, errors begin with a prefix."""
    data, fit = (subject.model, subject.X, subject.y), None
    options: Any = {"cv": plan.cv, "groups": subject.groups, "n_jobs": plan.jobs}
    with refused(prefix):
        with Meter("Leave-one-out refits") as meter:
            fits = diagnostics.left_out_fits(*data, progress=meter.refit, **options)
        fits = fits.named(subject.rows)
        errors, spread = diagnostics.excess_error(fits), diagnostics.deviance(fits)
        changes = diagnostics.influence(fits, alpha=plan.alpha)
        if plan.bootstrap:
            with Meter("Bootstrap") as meter:
                fit = diagnostics.goodness_of_fit(
                    *data,
                    plan.bootstrap,
                    alpha=plan.alpha,
                    resampling=plan.resampling,
                    random_state=plan.seed,
                    n_jobs=plan.jobs,
                    progress=meter.refit,
                )
    unit = "fold" if plan.cv else {"sample": "row", "group": "group"}[fits.unit]
    return Diagnosis(unit, errors, spread, changes, fit)


def show(diagnosis: Diagnosis, title: str, rows_are: str) -> None:
    """Print the statistics as tables on stdout, below a title."""
    spread, changes, fit = diagnosis.deviance, diagnosis.influence, diagnosis.goodness_of_fit
    fits, unit, n = spread.fits, diagnosis.unit, len(spread.fits.y)
    echo = console().print
    echo(title if unit == "row" else f"{title} in {count(len(fits.labels), unit)}")
    rates = [
        (str(label), str(rows), *map(score_text, of_class))
        for label, rows, *of_class in diagnosis.error_rates.table.itertuples()
    ]
    names = ["class", "rows", "training error", "held-out error", "difference"]
    print_blocks(TextTable(f"Error rates; held out: {fits.method}", names, rates, names[:1]))

    values = [("training rows", spread.deviance), ("held-out rows", spread.cv_score)]
    values += [] if fit is None else [("new rows, estimated by the bootstrap (EIC)", fit.eic)]
    shown = [(name, f"{value:.2f}", score_text(value / n)) for name, value in values]
    if fit is not None:
        part = "held-out" if fit.resampling == "held-out" else "training"
        shown.append(
            (f"limit for {part} rows, level {fit.alpha:g}", f"{fit.critical_value:.2f}", "")
        )
    title = "Deviance: −2 log of the probability of the true class, summed over the rows"
    print_blocks(TextTable(title, ["", "deviance", "per row"], shown, [""]))
    if fit is not None:
        echo(
            f"Goodness of fit: {fit.verdict}, p = {fit.p_value:.3g}; the deviance of the {part} "
            f"rows is larger than that of {fit.percentile:.1f} % of {len(fit.bootstrapped)} "
            f"bootstrap samples {DRAWN[fit.resampling]}{fit.by_kernels}"
        )

    flagged, n_cases = changes.flagged, len(changes.values)
    expected = changes.alpha * n_cases
    by_chance = f"{expected:.0f}" if expected >= 10 else f"{expected:.2g}"
    critical = changes.critical_values
    above = f"with p < {changes.alpha:g}" if np.ptp(critical) else f"by more than {critical[0]:.2f}"
    which = f"{count(len(flagged), unit)} of {n_cases}, each changes"
    if not len(flagged):
        which = f"none of {count(n_cases, unit)} changes"
    title = f"Influential: {which} the deviance {above} when left out (by chance about {by_chance})"
    if not len(flagged):
        echo(title)
        return
    most = [
        (str(name), str(about), f"{value:.2f}", f"{p:.2g}")
        for name, about, value, p, _ in changes.table.loc[flagged[:MOST_ROWS]].itertuples()
    ]
    if unit == "row":
        echo(f"Rows are called by their {rows_are}.")
    names = [unit, "class" if unit == "row" else "rows", "influence", "p"]
    print_blocks(TextTable(title, names, most, ["class", "group"]))
    if len(flagged) > MOST_ROWS:
        echo(f"and {len(flagged) - MOST_ROWS} more, which --output lists")


def rows_of(diagnosis: Diagnosis) -> Any:
    """A data frame with a line for each row, by its number."""
    fits, spread, changes = diagnosis.error_rates.fits, diagnosis.deviance, diagnosis.influence
    of_cases = changes.table.iloc[fits.group]
    more = {} if fits.unit == "sample" else {fits.unit: fits.labels[fits.group]}
    return fits.table(
        **more,
        predicted=fits.predicted,
        predicted_without=fits.predicted_without,
        deviance=spread.contributions,
        deviance_without=spread.cv_contributions,
        **{name: of_cases[name].to_numpy() for name in ("influence", "p_value", "flagged")},
    ).rename_axis("row")
