"""looms score: predictions for new rows against what is known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from looms.cli._errors import reported
from looms.cli._options import (
    MAX_BYTES,
    DecimalOption,
    EncodingOption,
    FormatOption,
    MaxBytesOption,
    Reading,
    SepOption,
    SheetOption,
)


def score(
    model: Annotated[Path, typer.Argument(help="A model file of looms fit.", metavar="MODEL")],
    file: Annotated[Path, typer.Argument(help="Rows with the target.", metavar="FILE")],
    format: FormatOption = None,
    sep: SepOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    max_bytes: MaxBytesOption = MAX_BYTES,
) -> None:
    """Score the model on rows whose target is known."""
    with reported():
        from looms.cli._apply import load, rows_for, scored
        from looms.cli._new_rows import note_trained_on, note_unlike
        from looms.cli._render import show_confusion, show_figures
        from looms.cli._say import count

        saved = load(model, max_bytes)
        reading = Reading(format, sep, decimal, encoding, sheet, max_bytes)
        table = rows_for(saved, file, reading, with_target=True)
        result = scored(saved, table)
        note_unlike(saved, table.X)
        note_trained_on(saved, table.X)
        show_figures({f"{count(table.X.shape[0], 'row')} of {file.name}": result.figures})
        if result.confusion is not None:
            show_confusion(*result.confusion)
