"""looms assess: honest performance of a kernel machine on a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from looms.cli._errors import InputError, reported
from looms.cli._options import (
    MAX_BYTES,
    CalibrationOption,
    Copies,
    CopiesOption,
    CriterionOption,
    DecimalOption,
    DropOption,
    EncodingOption,
    ForceOption,
    FormatOption,
    KernelOption,
    Machine,
    MachineOption,
    MaxBytesOption,
    MaxIterOption,
    Method,
    OptimizerOption,
    PriorOption,
    Reading,
    SepOption,
    SheetOption,
    TargetOption,
    Task,
    TaskOption,
    ThresholdOption,
    WeightOption,
)

if TYPE_CHECKING:
    from looms.assessment._result import Assessment
    from looms.cli._training import Request
    from looms.datasets._table import Table


def assess(
    file: Annotated[Path, typer.Argument(help="The table to learn from.", metavar="FILE")],
    target: TargetOption = None,
    splits: Annotated[
        int, typer.Option("--splits", "-n", min=2, help="Number of outer splits.")
    ] = 100,
    test_size: Annotated[
        float, typer.Option("--test-size", help="Share of the rows that test; for k-fold 1/k.")
    ] = 0.1,
    method: Annotated[
        Method, typer.Option("--method", help="Random splits, repeated k-fold, .632+ bootstrap.")
    ] = Method.SHUFFLE,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", help="Folder that keeps finished splits; the same again runs the rest."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Splits at once; -1 for one a core.")
    ] = 1,
    task: TaskOption = Task.AUTO,
    machine: MachineOption = Machine.LSSVM,
    kernel: KernelOption = None,
    criterion: CriterionOption = None,
    optimizer: OptimizerOption = None,
    threshold: ThresholdOption = None,
    calibration: CalibrationOption = None,
    weight: WeightOption = None,
    max_iter: MaxIterOption = None,
    random_state: Annotated[
        int, typer.Option("--random-state", min=0, help="Seed of splits and subsamples.")
    ] = 0,
    prior: PriorOption = False,
    copies: CopiesOption = Copies.APART,
    drop: DropOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="CSV file for a row a split.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML page on the machine of all rows and how good it is."),
    ] = None,
    format: FormatOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    max_bytes: MaxBytesOption = MAX_BYTES,
    force: ForceOption = False,
) -> None:
    """Assess the whole selection on outer splits, whose test rows it never sees."""
    with reported():
        from looms.assessment import AssessmentInterrupted
        from looms.cli._apply import check_can_write, check_target, read, without
        from looms.cli._columns import note_columns
        from looms.cli._report import check_report, write_report
        from looms.cli._say import csv_text, note, to_stdout, write_output
        from looms.cli._task import choose_task
        from looms.cli._training import request_of, train

        request = request_of(
            *(machine, kernel, criterion, optimizer, threshold, weight, max_iter, random_state),
            *(prior, calibration, copies),
        )
        reading = Reading(format, sep, decimal, encoding, sheet, max_bytes)
        if jobs == 0:
            raise InputError("--jobs 0 would run nothing; use 1, or -1 for one a core")
        if output is not None:
            check_can_write(output, force, file, holds="split,n_train,n_test,")
        check_report(report, machine, force, file, output, "the row a split")
        table = without(read(file, target, reading), drop or [], file)
        check_target(table, file)
        options = {
            "n_splits": splits,
            "test_size": test_size,
            "method": method.value,
            "store": store,
            "n_jobs": jobs,
            "random_state": random_state,
            "copies": copies.value,
        }
        chosen, reason = choose_task(table.y, task)
        note(f"{chosen}: {reason}")
        note_columns(table.X)
        try:
            result = _assessed(table, chosen, request, options)
        except AssessmentInterrupted as interrupt:
            if interrupt.result is not None:
                to_stdout(f"{interrupt.result.summary()}\n")
            raise
        to_stdout(f"{result.summary()}\n")
        if output is not None:
            write_output(output, csv_text(result.table).encode())
            note(f"a row for each split is in {output}")
        if report is not None:
            fitted = train(table, target, chosen, request)
            write_report(report, fitted.model, table, target, file, result)


def _assessed(table: Table, task: Task, request: Request, options: dict[str, Any]) -> Assessment:
    from sklearn.pipeline import Pipeline

    from looms.assessment import StoreError
    from looms.assessment import assess as assess_splits
    from looms.cli._progress import split_progress
    from looms.cli._say import note, warnings_as_notes
    from looms.cli._threshold import threshold_of
    from looms.cli._training import targets
    from looms.tables import table_preprocessor

    y = targets(table, task, request)
    if threshold_of(request.threshold) not in (None, 0.0):
        note(f"--threshold {request.threshold}: positive is {max(y)}")
    try:
        steps = [("table", table_preprocessor(table.X)), ("machine", request.estimator(task))]
        with warnings_as_notes(), split_progress() as progress:
            return assess_splits(Pipeline(steps), table.X, y, progress=progress, **options)
    except StoreError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from error
