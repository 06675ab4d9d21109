"""scikit-learn's callback protocol (1.9, experimental) where it exists."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from looms.optimise import Outcome, Point
from looms.selection import Candidate, Objective

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = ["BoundWarning", "CallbackSupportMixin", "CallbackWatcher", "with_callbacks"]


class BoundWarning(UserWarning):
    """A hyper-parameter of the chosen candidate ended at the edge of what was searched."""


class CallbackWatcher:
    """Passes the course of a selection on to the callbacks of an estimator.

    One task a candidate, in it one task an iteration of the optimiser. A callback that
    asks to stop at the end of an iteration ends the search of that candidate; at the end
    of a candidate, no further one is tried.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, n_candidates: int) -> None:
        self._data = {"estimator": estimator, "X": X, "y": y}
        self._root: Any = None
        self._candidate: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=n_candidates)
            self._root.call_on_fit_task_begin(**self._data)

    def candidate_begins(self, kernel: Any, criterion: Any) -> None:
        if self._root is not None:
            name = f"{type(kernel).__name__}, {criterion}"
            self._candidate = self._root.subcontext(task_name=name, max_subtasks=None)
            self._candidate.call_on_fit_task_begin(**self._data)

    def iteration_done(self, objective: Objective, iteration: int, point: Point) -> bool:
        if self._root is None:
            return False
        task = self._candidate.subcontext(task_name=f"iteration, n={objective.n_samples}")
        task.call_on_fit_task_begin(**self._data)
        return bool(task.call_on_fit_task_end(**self._data))

    def candidate_ends(self, candidate: Candidate) -> bool:
        if self._root is None:
            return False
        return bool(self._candidate.call_on_fit_task_end(**self._data))

    def ends(self) -> None:
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._data)


def warn_of(candidate: Candidate, *, exact: bool) -> None:
    """Warnings about the candidate that was chosen; ``exact`` if all that is left is rounding."""
    worrying = {Outcome.MAX_ITER} if exact else {Outcome.MAX_ITER, Outcome.NO_PROGRESS}
    if candidate.outcome in worrying:
        warnings.warn(
            f"Search for hyper-parameters: {candidate.outcome.value}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    for message in candidate.at_bounds:
        warnings.warn(f"{message}.", BoundWarning, stacklevel=3)
