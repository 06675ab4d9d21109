"""looms predict: predictions for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from looms.cli._errors import reported
from looms.cli._options import (
    MAX_BYTES,
    DecimalOption,
    EncodingOption,
    ForceOption,
    FormatOption,
    IntervalMethod,
    MaxBytesOption,
    Reading,
    SepOption,
    SheetOption,
)

if TYPE_CHECKING:
    from looms.cli._coverage import CoverageRequest
    from looms.datasets._table import Table
    from looms.model_files._files import SavedModel


#: First line of what is written: columns that tell the rows, then those of `_predictions`.
_HEADER = r"(.+,)?prediction(,decision_.*|,lower,upper)?$"


def predict(
    model: Annotated[Path, typer.Argument(help="A model file of looms fit.", metavar="MODEL")],
    file: Annotated[Path, typer.Argument(help="The rows to predict.", metavar="FILE")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", help="CSV file to write; without it, standard output."
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            help="Share of rows to cover, such as 0.9: adds lower and upper, or a set of labels.",
        ),
    ] = None,
    method: Annotated[
        IntervalMethod | None,
        typer.Option("--method", help="Intervals: jackknife+ (default), minmax, or scaled."),
    ] = None,
    class_conditional: Annotated[
        bool, typer.Option("--class-conditional", help="Sets that cover the share in every class.")
    ] = False,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column of FILE that names the rows; without it they are numbered from 1."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Column of FILE to write, too; may be given again."),
    ] = None,
    digits: Annotated[
        int, typer.Option("--digits", min=1, max=17, help="Significant digits; 17 for all.")
    ] = 6,
    format: FormatOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    max_bytes: MaxBytesOption = MAX_BYTES,
    force: ForceOption = False,
) -> None:
    """Predict rows: a CSV with the prediction, decision values and probabilities of each.

    Each row begins with its number in FILE, or what --id says, by which it can be joined to FILE.

    The larger decision_CLASS, the more speaks for that class; of two classes the second has one.
    The prediction goes by them; it need not be the class of the greatest probability_CLASS.

    With --coverage an interval from lower to upper, or a set: labels with | between them, none
    for a row that is typical of no class. Rows that chose the hyper-parameters too make them a
    little too small.
    """
    with reported():
        from looms.cli._apply import check_can_write, load, rows_for
        from looms.cli._coverage import CoverageRequest
        from looms.cli._new_rows import note_unlike
        from looms.cli._say import count, note, to_stdout, write_output

        request = CoverageRequest(coverage, method, class_conditional)
        request.check()
        if output is not None:
            check_can_write(output, force, file, model, holds=_HEADER)
        saved = load(model, max_bytes)
        request.check_model(saved, model)
        reading = Reading(format, sep, decimal, encoding, sheet, max_bytes)
        kept = [*([] if id is None else [id]), *(keep or [])]
        table = rows_for(saved, file, reading, with_target=False, kept=kept)
        numbered = {"row": range(1, table.X.shape[0] + 1)} if id is None else {}
        text = _csv(numbered | table.kept, _predictions(saved, table, request), digits)
        note_unlike(saved, table.X)
        if output is None:
            to_stdout(text)
        else:
            write_output(output, text.encode())
            note(f"{count(table.X.shape[0], 'prediction')} in {output}")


def _predictions(saved: SavedModel, table: Table, request: CoverageRequest) -> dict[str, Any]:
    """What each model has: the prediction, decision values, probabilities, bounds."""
    from looms.cli._apply import outputs, probabilities

    predicted, decision = outputs(saved, table.X)
    columns = {"prediction": predicted}
    if saved.metadata["task"] == "classification":
        classes = saved.model[-1].classes_
        decided = classes[1:] if decision.ndim == 1 else classes
        values = decision.reshape(len(predicted), -1)
        columns |= {f"decision_{c}": values[:, k] for k, c in enumerate(decided)}
        likely = probabilities(saved, table.X)
        if likely is not None:
            columns |= {f"probability_{c}": likely[:, k] for k, c in enumerate(classes)}
    return columns | request.columns(saved, table.X)


def _csv(rows: dict[str, Any], predictions: dict[str, Any], digits: int) -> str:
    """One row a prediction; refuses a column kept that has the name of another."""
    import pandas as pd

    from looms.cli._errors import InputError
    from looms.cli._say import csv_text

    for name in rows.keys() & predictions.keys():
        raise InputError(f"predict writes a column {name!r} of its own; keep it by another name")
    frame = pd.DataFrame(rows | predictions)
    return csv_text(frame, index=False, float_format=f"%.{digits}g")
