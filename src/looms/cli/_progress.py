"""Progress on stderr: a bar on a terminal, elsewhere lines."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from looms._words import score_text
from looms.assessment._split_run import SplitResult
from looms.cli._errors import echo, is_quiet, visible
from looms.cli._request import Prepared, tell_columns
from looms.report.text import CRITERIA
from looms.tables import TablePreprocessor

#: Number of rows from which the time of an evaluation grows with its third power.
CUBIC_FROM = 800
#: Number of evaluations that a search takes on all rows, after those on fewer rows.
USUAL_EVALUATIONS = 3
#: Seconds between lines on a search, where there is no bar.
SECONDS_PER_LINE = 10.0


class Meter:
    """Counter of candidates, splits or refits, for use as a context manager.

    It is a callback of scikit-learn for candidates. These are tuned on a table of ``n_rows``, and
    the time of an evaluation grows with this ``power`` of the rows. Of a table there are notes on
    labels and columns, once, before the search. It also has the callbacks `split` for an
    assessment and `refit` for diagnostics.
    """

    def __init__(
        self, title: str, n_rows: int = 0, power: int = 3, table: Prepared | None = None
    ) -> None:
        self._title, self._n_rows, self._power, self._table = title, n_rows, power, table
        self._at_start, self._began = 0, time.monotonic()
        self._last = self._said = self._began
        self._seconds: list[float] = []
        self._values: list[float] = []
        self._landmarks: int | None = None
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        if _is_terminal() and not is_quiet():
            counts = BarColumn(bar_width=20), MofNCompleteColumn()
            parts = self._title, *counts, "{task.description}", TimeElapsedColumn()
            self._bar = Progress(*parts, console=Console(file=sys.stderr), transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int, text: str, line: str | None, after: float = 0.0) -> None:
        """Set the bar, with a text next to it; if there is no bar, write a line.

        The line is left out if another one was written less than ``after`` seconds ago.
        """
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=text)
        elif line is not None and not is_quiet() and now - self._said >= after:
            self._said = now
            echo(line)

    def split(self, done: int, total: int, result: SplitResult | None) -> None:
        """Scores of a split, and the time left; no result means that an assessment begins."""
        if result is None:
            self._at_start, self._began = done, time.monotonic()
            stored = f"{done} of {total} splits were in the store"
            self.show(done, total, "", stored if done else None)
            return
        left, loo = self._left_of(done, total), result.loo_scores
        name = "All rows" if result.index < 0 else f"Split {result.index}"
        of_loo = {name: f", own {score_text(score)}" for name, score in loo.items()}
        scores = "; ".join(
            f"{key} {score_text(score)}{of_loo.get(key, '')}"
            for key, score in result.scores.items()
        )
        if result.error is not None:
            scores = visible(" ".join(f"raised {result.error}".split()))
        self.show(done, total, scores + left, f"{name}: {scores} ({done} of {total}{left})")

    def refit(self, done: int, total: int) -> None:
        """Number of refits, with a line at every quarter."""
        quarter = 4 * done // total > 4 * (done - 1) // total
        left = self._left_of(done, total).removeprefix(", ")
        self.show(done, total, left, f"{self._title}: {done} of {total}" if quarter else None)

    def _left_of(self, done: int, total: int) -> str:
        """Time left, as text, if all steps take equally long; empty at the end."""
        pace = (time.monotonic() - self._began) / max(done - self._at_start, 1)
        return f", about {duration(pace * (total - done))} left" if done < total else ""

    def on_outer_fold(self, estimator: object, done: int, total: int) -> None:
        """Number of models fitted again without a fold, to score them on it, and the time left."""
        if done == 1:
            self._began = self._last
        self._last = time.monotonic()
        left = self._left_of(done, total)
        line, after = f"Scores: fit without a fold {done} of {total}{left}", SECONDS_PER_LINE
        if done == total:
            line, after = f"Scores: {total} fits, each without a fold, which it predicts", 0.0
        self.show(done, total, f"fits without a fold{left}", line, after)

    def on_columns(self, estimator: object, preprocessor: TablePreprocessor) -> None:
        """Notes on the columns, as this preprocessor was fitted to them."""
        if self._table is not None:
            tell_columns(preprocessor, self._table)
            self._table = None

    def setup(self, estimator: object, context: Any) -> None:
        """Nothing to prepare, and nothing to tidy up."""

    teardown = setup

    def on_fit_task_begin(self, estimator: object, context: Any) -> None:
        """Name of a candidate that begins."""
        if _is_candidate(context):
            k, self._n_candidates = context.task_id, context.parent.max_subtasks
            kernel, comma, criterion = context.task_name.rpartition(", ")
            self._name = f"{kernel}{comma}{CRITERIA.get(criterion, (criterion,))[0]}"
            self._began = self._last = time.monotonic()
            self._n = self._total = self._on_all = 0
            self._landmarks, self._of_all = None, np.inf
            line = f"Candidate {k + 1} of {self._n_candidates}: {self._name}"
            self.show(k, self._n_candidates, self._name, line)

    def on_stage(self, estimator: object, n: int, n_landmarks: int | None) -> None:
        """Rows of the search that begins, and landmarks of one in place of the kernel matrix."""
        now = time.monotonic()
        self._on_all = USUAL_EVALUATIONS if self._landmarks is None else 1
        self._landmarks = n_landmarks if self._power == 3 else None
        self._n, self._values, self._pace, self._last = n, [], np.inf, now
        if n == self._n_rows and self._landmarks is None:  # the longest, of few evaluations
            self._show_search(now, "whole kernel matrix" if self._power == 3 else "all rows")

    def on_evaluation(self, estimator: object, n: int, value: float) -> None:
        """Rows, evaluations and best value of the running search, and the time left."""
        now = time.monotonic()
        if n != self._n:  # of a search that does not tell its stages
            self._n, self._values, self._pace = n, [], np.inf
        self._total += 1
        self._values.append(value)
        # The shortest: the time to the first on fewer rows, and to some later, holds other work.
        if n == self._n_rows or len(self._values) > 1:
            self._pace = min(self._pace, now - self._last)
        self._last = now
        if n >= CUBIC_FROM and self._landmarks is None and self._pace < np.inf:
            self._of_all = self._pace * (self._n_rows / n) ** self._power
        self._show_search(now, f"evaluation {self._total}, best {min(self._values):.4g}")

    def _show_search(self, now: float, what: str) -> None:
        """Where the search is, and the time left for all candidates, if it is known.

        It is based on the mean time of the candidates before. For the first one it is the time of
        the usual evaluations on all rows, each n³ in the number of rows (n on landmarks), once a
        stage has enough rows for this to hold. If landmarks suffice, it is one of them.
        """
        k, elapsed, seconds = len(self._seconds), now - self._began, 0.0
        after = self._n_candidates - k - 1
        if self._seconds:
            seconds = (after + 1) * sum(self._seconds) / k - elapsed
        elif self._on_all and self._of_all < np.inf:
            done = len(self._values) if self._n == self._n_rows else 0
            to_go = (1 if self._landmarks else self._on_all - done) * self._of_all
            seconds = to_go + after * (elapsed + to_go)
        left = f", about {duration(seconds)} left" if seconds > 0 else ""
        on = self._n if self._landmarks is None else f"{self._landmarks} landmarks"
        text = f"{self._name}: {on} of {self._n_rows} rows, {what}{left}"
        line = f"Candidate {k + 1} of {self._n_candidates}: {text} ({duration(elapsed)})"
        self.show(k, self._n_candidates, text, line, SECONDS_PER_LINE)

    def on_fit_task_end(self, estimator: object, context: Any) -> None:
        """Number of finished candidates."""
        if _is_candidate(context):
            self._last = time.monotonic()
            self._seconds.append(self._last - self._began)
            self.show(len(self._seconds), self._n_candidates, "", None)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _is_candidate(context: Any) -> bool:
    return context.parent is not None and context.parent.parent is None


def duration(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 120:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
