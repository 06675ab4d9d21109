"""The request for intervals or sets, checked before any work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from looms.cli._errors import InputError
from looms.cli._options import IntervalMethod
from looms.model_files._files import SavedModel


@dataclass(frozen=True)
class CoverageRequest:
    """Intervals or sets to predict; without a coverage, neither."""

    coverage: Annotated[
        float | None,
        typer.Option(
            help="Share of rows to cover, such as 0.9: adds lower and upper, or a set of labels."
        ),
    ] = None
    method: Annotated[
        IntervalMethod | None,
        typer.Option(help="Intervals: jackknife+ (default), minmax, or scaled."),
    ] = None
    class_conditional: Annotated[
        bool, typer.Option("--class-conditional", help="Sets that cover this share of every class.")
    ] = False

    def __post_init__(self) -> None:
        """Refuse impossible options."""
        if self.coverage is None:
            for name in self._given():
                raise InputError(f"{name} goes with --coverage, such as --coverage 0.9")
        elif not 0 < self.coverage < 1:
            raise InputError(
                f"--coverage must be between 0 and 1, both excluded, not {self.coverage:g}"
            )

    def check_model(self, saved: SavedModel, path: Path) -> None:
        """Refuse options of the other task."""
        if self.coverage is None:
            return
        regression = saved.metadata["task"] == "regression"
        other = "--class-conditional" if regression else "--method"
        if other in self._given():
            task = "classification" if regression else "regression"
            raise InputError(f"{other} is for {task}, but {path} is for {saved.metadata['task']}")

    def _given(self) -> list[str]:
        given = {"--method": self.method, "--class-conditional": self.class_conditional}
        return [name for name, value in given.items() if value]
