"""Progress of a fit on stderr: a bar on a terminal, a line for each candidate elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_of(machine: Any, names: list[str]) -> Iterator[None]:
    """Show the progress of ``machine.fit`` through candidates with these names.

    Nothing is shown where scikit-learn has no callbacks (before 1.9).
    """
    if not hasattr(machine, "set_callbacks"):
        yield
        return
    machine.set_callbacks(Bar(names) if sys.stderr.isatty() else Lines(names))
    try:
        yield
    finally:
        machine.set_callbacks()


class Lines:
    """A line for each candidate; a callback of scikit-learn."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Say which candidate begins."""
        if _depth(context) == 1:
            number = context.task_id + 1
            name = self._names[context.task_id]
            typer.echo(f"Candidate {number} of {len(self._names)}: {name}", err=True)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Nothing to say."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to tidy up."""


class Bar:
    """A bar that counts candidates and names the one at work; a callback of scikit-learn."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )

    def setup(self, estimator: Any, context: Any) -> None:
        """Draw the bar."""
        self._task = self._progress.add_task("", total=len(self._names))
        self._progress.start()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Say what is at work."""
        if _depth(context) == 1:
            self._progress.update(self._task, description=self._names[context.task_id])
        elif _depth(context) == 2:
            name = self._names[context.parent.task_id]
            self._progress.update(self._task, description=f"{name}: {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Count a candidate that is done."""
        if _depth(context) == 1:
            self._progress.advance(self._task)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take the bar away."""
        self._progress.stop()


def _depth(context: Any) -> int:
    return 0 if context.parent is None else 1 + _depth(context.parent)
