"""looms fit: tune a kernel machine on a table and store it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from looms.cli._errors import InputError, reported
from looms.cli._options import ForceOption, FormatOption, Optimizer, Task, Threshold, Weight

if TYPE_CHECKING:
    from looms.cli._training import Request
    from looms.datasets import Table


def fit(
    file: Annotated[Path, typer.Argument(help="The table to learn from.", metavar="FILE")],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column to predict; not for svmlight, challenge."),
    ] = None,
    task: Annotated[Task, typer.Option("--task", help="What to learn.")] = Task.AUTO,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            "-k",
            help=(
                "linear, quadratic, cubic, boolean, rbf (default) or ard, or one of these after "
                "normalized_; give it again to compare."
            ),
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            "--criterion",
            "-c",
            help=(
                "press (default); for classes also hinge, squared_hinge, smoothed_error, wmw or "
                "cross_entropy; give it again to compare."
            ),
        ),
    ] = None,
    optimizer: Annotated[
        Optimizer, typer.Option("--optimizer", help="Optimiser of the hyper-parameters.")
    ] = Optimizer.LBFGS,
    threshold: Annotated[
        Threshold | None,
        typer.Option("--threshold", help="Of two classes: 0, or of least balanced error (ber)."),
    ] = None,
    weight: Annotated[
        Weight | None,
        typer.Option("--weight", help="Weight of the classes; balanced counts them alike."),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", min=1, help="Iterations allowed for each search.")
    ] = None,
    random_state: Annotated[
        int, typer.Option("--random-state", min=0, help="Seed of the subsamples.")
    ] = 0,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Column to leave out; may be given again.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Model file, default the name of FILE + .looms.skops."),
    ] = None,
    format: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Fit a kernel machine to a table, chosen by exact leave-one-out, and store it."""
    with reported():
        from looms.cli._apply import check_can_write, read
        from looms.cli._training import Request
        from looms.datasets import table_name

        request = Request(
            kernels=tuple(kernel or ["rbf"]),
            criteria=tuple(criterion or ["press"]),
            optimizer=optimizer,
            threshold=threshold,
            weight=weight,
            max_iter=max_iter,
            random_state=random_state,
        )
        request.check()
        output = output or Path(f"{table_name(file)}.looms.skops")
        check_can_write(output, force)
        table = _without(read(file, target, format), drop or [], file)
        _check_target(table, file)
        _run(table, target, task, request, file, output)


def _run(
    table: Table, target: str | None, task: Task, request: Request, file: Path, output: Path
) -> None:
    from looms.cli._render import show_choice
    from looms.cli._say import note
    from looms.cli._task import choose_task
    from looms.cli._training import train
    from looms.model_files import save_model

    chosen, reason = choose_task(table.y, task)
    note(f"{chosen}: {reason}")
    fitted = train(table, target, chosen, request)
    metadata = {**fitted.metadata, "file": file.name}
    save_model(output, fitted.model, metadata)
    show_choice(fitted.model, metadata)
    note(
        "leave-one-out chose this machine, so its figures flatter it a little; looms score gives "
        "those of rows that it never saw"
    )
    note(f"the model is in {output}")


def _without(table: Table, columns: list[str], path: Path) -> Table:
    """The table without some columns."""
    if not columns:
        return table
    absent = [name for name in columns if name not in getattr(table.X, "columns", [])]
    if absent:
        raise InputError(f"{path}: there is no column {absent[0]!r} to leave out")
    return replace(table, X=table.X.drop(columns=columns))


def _check_target(table: Table, path: Path) -> None:
    """Refuse a table without a target."""
    if table.y is None:
        names = list(map(str, table.X.columns)) if hasattr(table.X, "columns") else []
        columns = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise InputError(
            f"{path}: there is no target; name the column to predict with --target"
            f"{f' ({columns})' if columns else ''}; for challenge data put their .labels file "
            "beside them"
        )
