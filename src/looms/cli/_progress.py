"""Progress on stderr: a bar on a terminal; elsewhere a line for each candidate or split."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_of(machine: Any, names: list[str]) -> Iterator[None]:
    """Show the progress of ``machine.fit`` through candidates with these names.

    Nothing is shown where scikit-learn has no callbacks (before 1.9).
    """
    if not hasattr(machine, "set_callbacks"):
        yield
        return
    machine.set_callbacks(Bar(names) if _is_terminal() else Lines(names))
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


@contextmanager
def split_progress() -> Iterator[Any]:
    """Show the progress of an assessment: the callback to give to it."""
    if not _is_terminal():
        yield SplitLines()
        return
    with Progress(
        TextColumn("Splits"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        yield SplitBar(progress)


class SplitBar:
    """A bar that counts splits, with the latest figures and the time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def __call__(self, done: int, total: int, result: Any) -> None:
        """Take note of a split."""
        if result is None:  # a new assessment begins
            self._progress.reset(self._task)
        said = "" if result is None else _figures(result)
        self._progress.update(self._task, completed=done, total=total, description=said)


class SplitLines:
    """A line a split."""

    def __init__(self) -> None:
        self._at_start, self._began = 0, time.monotonic()

    def __call__(self, done: int, total: int, result: Any) -> None:
        """Say what a split gave, and how long the rest will take."""
        if result is None:
            self._at_start, self._began = done, time.monotonic()
            if done:
                typer.echo(f"{done} of {total} splits were in the store", err=True)
            return
        pace = (time.monotonic() - self._began) / (done - self._at_start)
        left = f", about {_duration(pace * (total - done))} left" if done < total else ""
        name = "All rows" if result.index < 0 else f"Split {result.index}"
        typer.echo(f"{name}: {_figures(result)} ({done} of {total}{left})", err=True)


@contextmanager
def refit_progress(name: str) -> Iterator[Any]:
    """Show the progress of many refits: the callback to give to them."""
    if not _is_terminal():
        yield RefitLines(name)
        return
    with Progress(
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class RefitLines:
    """A line at every quarter of the refits."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, done: int, total: int) -> None:
        """Take note of a refit."""
        if 4 * done // total > 4 * (done - 1) // total:
            typer.echo(f"{self._name}: {done} of {total}", err=True)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _figures(result: Any) -> str:
    if result.error is not None:
        return " ".join(f"raised {result.error}".split())
    loo = {name: f", LOO {score:.4f}" for name, score in result.loo_scores.items()}
    return "; ".join(
        f"{name} {score:.4f}{loo.get(name, '')}" for name, score in result.scores.items()
    )


def _duration(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 120:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
