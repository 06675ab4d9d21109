"""looms diagnose: excess error, deviance, goodness of fit and influence of a classifier."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from looms.cli._errors import InputError, reported
from looms.cli._options import (
    MAX_BYTES,
    DecimalOption,
    DropOption,
    EncodingOption,
    ForceOption,
    FormatOption,
    MaxBytesOption,
    Reading,
    SepOption,
    SheetOption,
    TargetOption,
)
from looms.cli._svm import SVMKernel, SVMRequest

if TYPE_CHECKING:
    from looms.cli._diagnosis import Plan, Subject

#: What the search advises, as options; C is the first of its two.
_BY_OPTION = {
    "give smaller values in param_grid": "give a smaller one by --C",
    "give larger values in param_grid": "give a larger one by --C",
    "give other values in param_grid": "give another by --gamma",
}


class Resampling(StrEnum):
    """What the bootstrap draws."""

    LABELS = "labels"
    PAIRS = "pairs"


def diagnose(
    file: Annotated[Path, typer.Argument(help="The table to learn from.", metavar="FILE")],
    target: TargetOption = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Model file of looms fit; without it, a tuned SVM."),
    ] = None,
    kernel: Annotated[
        SVMKernel | None, typer.Option("--kernel", "-k", help="Kernel of the SVM, default rbf.")
    ] = None,
    C: Annotated[
        float | None,
        typer.Option("--C", help="Cost of errors of the SVM, else chosen."),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option("--gamma", help="Inverse squared width of its kernel, else chosen."),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", "-b", min=0, help="Bootstrap samples; 0 for none.")
    ] = 400,
    resampling: Annotated[
        Resampling,
        typer.Option("--resampling", help="Draw labels by their probabilities, or rows (pairs)."),
    ] = Resampling.LABELS,
    alpha: Annotated[float, typer.Option("--alpha", help="Level of the tests.")] = 0.05,
    random_state: Annotated[
        int, typer.Option("--random-state", min=0, help="Seed of the bootstrap.")
    ] = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Refits at once; -1 for one a core.")
    ] = 1,
    drop: DropOption = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Folder for the figures, as PNG files.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="CSV file for a row a sample.")
    ] = None,
    format: FormatOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    max_bytes: MaxBytesOption = MAX_BYTES,
    force: ForceOption = False,
) -> None:
    """Diagnose a classifier: excess error, deviance, goodness of fit, influential rows.

    Without --model a support vector machine with probabilities by Platt's sigmoid; what of --C and
    --gamma is not given is chosen by leave-one-out. A model of looms fit is refitted to the rows
    of FILE, its hyper-parameters held.
    """
    with reported():
        from looms.cli._diagnosis import Outputs, Plan, diagnosed, show

        request = SVMRequest(kernel, C, gamma)
        request.check()
        if model is not None and request.given():
            raise InputError(
                f"{request.given()[0]} is for a support vector machine, and {model} brings its "
                "own machine; leave out one of them"
            )
        plan = Plan(bootstrap, str(resampling), alpha, random_state, jobs)
        reading = Reading(format, sep, decimal, encoding, sheet, max_bytes)
        outputs = Outputs(output, plot, bootstrap > 0)
        outputs.check(force, file, *([] if model is None else [model]))
        if model is None:
            subject = _svm(file, target, request, drop or [], reading, plan)
        else:
            subject = _model(file, target, model, drop or [], reading, plan)
        diagnosis = diagnosed(subject, plan)
        show(diagnosis)
        outputs.write(diagnosis)


def _svm(
    file: Path,
    target: str | None,
    request: SVMRequest,
    drop: list[str],
    reading: Reading,
    plan: Plan,
) -> Subject:
    import numpy as np

    from looms.cli._apply import check_target, read, without
    from looms.cli._columns import note_columns
    from looms.cli._diagnosis import Subject, classes_of
    from looms.cli._say import note, warnings_as_notes
    from looms.tables import table_preprocessor

    table = without(read(file, target, reading), drop, file)
    check_target(table, file)
    y = classes_of(table, file)
    plan.check()
    note_columns(table.X)
    chosen = request.open()
    try:
        before = table_preprocessor(table.X)
        if chosen:
            with warnings_as_notes(_BY_OPTION):
                request = request.tuned(before.fit_transform(table.X), y, plan.n_jobs)
    except np.linalg.LinAlgError:  # a ValueError too, and not the fault of the table
        raise
    except ValueError as error:  # what preprocessor and machine refuse
        raise InputError(str(error)) from error
    if chosen:
        note(
            f"{' and '.join(chosen)} {'was' if len(chosen) == 1 else 'were'} chosen on these rows "
            "by leave-one-out, so the errors flatter the machine; looms assess gives honest ones"
        )
    return Subject.of(table, before, request.machine(), request.description(), file)


def _model(
    file: Path,
    target: str | None,
    model: Path,
    drop: list[str],
    reading: Reading,
    plan: Plan,
) -> Subject:
    from looms import SVCCV
    from looms.cli._apply import load, rows_for
    from looms.cli._diagnosis import Subject
    from looms.cli._say import note

    if drop:
        raise InputError("--drop is for an SVM; the model knows its columns")
    saved = load(model, reading.max_bytes)
    if saved.metadata["task"] != "classification":
        raise InputError(f"{model}: it is a regression, and diagnostics are of classes")
    if target not in (None, saved.metadata["target"]):
        raise InputError(f"{model}: it predicts {saved.metadata['target']!r}, not {target!r}")
    plan.check()
    table = rows_for(saved, file, reading, with_target=True)
    note(f"the machine of {model} is refitted to these rows, its hyper-parameters held")
    machine = saved.model[-1]
    kind = "Support vector" if isinstance(machine, SVCCV) else "Least-squares"
    return Subject.of(table, saved.model[:-1], machine, f"{kind} machine of {model}", file)
