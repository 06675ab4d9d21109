"""looms fit: tune a kernel machine on a table and store it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    from looms.cli._training import Request
    from looms.datasets._table import Table


def fit(
    file: Annotated[Path, typer.Argument(help="The table to learn from.", metavar="FILE")],
    target: TargetOption = None,
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
        int, typer.Option("--random-state", min=0, help="Seed of the subsamples.")
    ] = 0,
    prior: PriorOption = False,
    copies: CopiesOption = Copies.APART,
    drop: DropOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", help="Model file, default the name of FILE + .looms.skops."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML page on the choice, how good it is, what to distrust."),
    ] = None,
    format: FormatOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    max_bytes: MaxBytesOption = MAX_BYTES,
    force: ForceOption = False,
) -> None:
    """Fit a kernel machine to a table, chosen by exact leave-one-out, and store it."""
    with reported():
        from looms.cli._apply import check_can_write, check_target, read, without
        from looms.cli._report import check_report
        from looms.cli._training import request_of
        from looms.datasets._table import table_name

        request = request_of(
            *(machine, kernel, criterion, optimizer, threshold, weight, max_iter, random_state),
            *(prior, calibration, copies),
        )
        reading = Reading(format, sep, decimal, encoding, sheet, max_bytes)
        output = output or Path(f"{table_name(file)}.looms.skops")
        check_can_write(output, force, file, holds="model")
        if output.suffix not in (".skops", ""):
            raise InputError(
                f"{output}: the name of a model file ends in .skops, not in {output.suffix}"
            )
        check_report(report, machine, force, file, output, "the model")
        table = without(read(file, target, reading), drop or [], file)
        check_target(table, file)
        _run(table, target, task, request, file, output, report)


def _run(
    table: Table,
    target: str | None,
    task: Task,
    request: Request,
    file: Path,
    output: Path,
    report: Path | None,
) -> None:
    from looms.cli._columns import note_columns
    from looms.cli._render import show_choice
    from looms.cli._report import write_report
    from looms.cli._say import note, say_cautions
    from looms.cli._task import choose_task
    from looms.cli._training import train
    from looms.model_files import save_model
    from looms.report import cautions

    chosen, reason = choose_task(table.y, task)
    note(f"{chosen}: {reason}")
    note_columns(table.X)
    fitted = train(table, target, chosen, request)
    metadata = {**fitted.metadata, "file": file.name}
    save_model(output, fitted.model, metadata)
    show_choice(fitted.model, metadata)
    say_cautions(cautions(fitted.model, table.X))
    note(
        "leave-one-out chose this machine, so its figures flatter it; looms assess gives honest "
        "ones"
    )
    note(f"the model is in {output}")
    if report is not None:
        write_report(report, fitted.model, table, target, file)
