"""Progress on stderr: a bar on a terminal; elsewhere a line for each candidate or split."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from looms.cli._text import visible

#: Rows from which the time of an evaluation grows with their third power.
CUBIC_FROM = 800
#: Evaluations that a search takes on all rows, after those on fewer.
USUAL_EVALUATIONS = 3


@contextmanager
def progress_of(machine: Any, names: list[str], n_rows: int) -> Iterator[None]:
    """Show the progress of ``machine.fit`` to so many rows through candidates with these names.

    Nothing is shown where scikit-learn has no callbacks (before 1.9).
    """
    if not hasattr(machine, "set_callbacks"):
        yield
        return
    machine.set_callbacks(Bar(names, n_rows) if _is_terminal() else Lines(names))
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
    """A bar that counts candidates and shows the search of the one at work.

    A callback of scikit-learn. The time left is what the candidates before took, on average; for
    the first it is that of the usual evaluations on all rows, each n³ in the number of rows, once
    a stage has rows enough for this to hold, and nothing before.
    """

    def __init__(self, names: list[str], n_rows: int) -> None:
        self._names, self._n_rows = names, n_rows
        self._seconds: list[float] = []
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
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
            self._name = self._names[context.task_id]
            self._began = self._last = time.monotonic()
            self._n, self._total, self._values = 0, 0, [np.inf]
            self._progress.update(self._task, description=self._name)

    def on_evaluation(self, estimator: Any, n: int, value: float) -> None:
        """Show the stage, the evaluations of the candidate, the best value and the time left."""
        now = time.monotonic()
        if n != self._n:
            self._n, self._values, self._pace = n, [], np.inf
        self._total += 1
        self._values.append(value)
        # The shortest: the time to the first on fewer rows, and to some later, holds other work.
        if n == self._n_rows or len(self._values) > 1:
            self._pace = min(self._pace, now - self._last)
        self._last = now
        kernel, criterion = self._name.split(", ")
        self._progress.update(
            self._task,
            description=f"{kernel}: {n} of {self._n_rows} rows, evaluation {self._total}, "
            f"{criterion} {min(self._values):.4g}{self._left(now)}",
        )

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Count a candidate that is done."""
        if _depth(context) == 1:
            self._seconds.append(time.monotonic() - self._began)
            self._progress.advance(self._task)

    def _left(self, now: float) -> str:
        """The time left, as text; nothing where it is not known."""
        after, elapsed = len(self._names) - len(self._seconds) - 1, now - self._began
        if self._seconds:
            seconds = (after + 1) * sum(self._seconds) / len(self._seconds) - elapsed
        elif self._n >= CUBIC_FROM and self._pace < np.inf:
            done = len(self._values) if self._n == self._n_rows else 0
            to_go = (USUAL_EVALUATIONS - done) * self._pace * (self._n_rows / self._n) ** 3
            seconds = to_go + after * (elapsed + to_go)
        else:
            return ""
        return f", about {_duration(seconds)} left" if seconds > 0 else ""

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
        return visible(" ".join(f"raised {result.error}".split()))
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
