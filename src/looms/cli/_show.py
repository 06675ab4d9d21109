"""looms show: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from looms.cli._errors import reported
from looms.cli._options import MAX_BYTES, MaxBytesOption


def show(
    model: Annotated[Path, typer.Argument(help="A model file of looms fit.", metavar="MODEL")],
    max_bytes: MaxBytesOption = MAX_BYTES,
) -> None:
    """Show what was asked, what was chosen, the candidates and the leave-one-out figures."""
    with reported():
        from looms.cli._apply import load
        from looms.cli._render import show_asked, show_choice

        saved = load(model, max_bytes)
        show_asked(saved.metadata)
        show_choice(saved.model, saved.metadata)
