"""looms predict: predictions for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._errors import reported
from ._options import ForceOption, FormatOption

if TYPE_CHECKING:
    from ..datasets import Table
    from ..model_files import SavedModel


def predict(
    model: Annotated[Path, typer.Argument(help="A model file of looms fit.", metavar="MODEL")],
    file: Annotated[Path, typer.Argument(help="The rows to predict.", metavar="FILE")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV file to write; without it, standard output."),
    ] = None,
    format: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Predict rows: a CSV with the prediction and the decision values of each."""
    with reported():
        from ._apply import check_can_write, load, rows_for
        from ._say import note, to_stdout, write_output

        if output is not None:
            check_can_write(output, force)
        saved = load(model)
        table = rows_for(saved, file, format, with_target=False)
        text = _csv(saved, table, file)
        if output is None:
            to_stdout(text)
        else:
            write_output(output, text.encode())
            note(f"{table.X.shape[0]} predictions are in {output}")


def _csv(saved: SavedModel, table: Table, path: Path) -> str:
    """One row a prediction; larger decision values speak more for the (second) class."""
    import pandas as pd

    from ._apply import outputs

    predicted, decision = outputs(saved, table, path)
    columns = {"prediction": predicted}
    if saved.metadata["task"] == "classification":
        if decision.ndim == 1:
            columns["decision"] = decision
        else:
            classes = saved.model[-1].classes_
            columns |= {f"decision_{c}": decision[:, k] for k, c in enumerate(classes)}
    return str(pd.DataFrame(columns).to_csv(index=False, lineterminator="\n"))
