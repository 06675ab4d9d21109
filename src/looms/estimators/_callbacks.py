"""scikit-learn callbacks that follow a selection."""

from __future__ import annotations

import sys
from typing import Any

from looms.optimize._search import Point
from looms.selection._candidates import Candidate
from looms.selection._low_rank import LowRankObjective
from looms.selection._objective import HeldOutCriterion

# Callbacks came with scikit-learn 1.9, where they are experimental.
try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        return method


def say(estimator: Any, text: str) -> None:
    """Write a line on the progress of an estimator with ``verbose`` to stderr."""
    if getattr(estimator, "verbose", 0):
        sys.stderr.write(f"looms: {text}\n")
        sys.stderr.flush()


def tell(estimator: Any, event: str, *values: Any) -> None:
    """Call the method ``event`` of those callbacks of an estimator that have one."""
    for callback in getattr(estimator, "_skl_callbacks", ()):
        if hasattr(callback, event):
            getattr(callback, event)(estimator, *values)


class CallbackWatcher:
    """Reports the progress of a selection to the callbacks of an estimator.

    Each candidate is a task, with one task for each iteration of the optimizer. A callback that
    asks to stop at the end of an iteration ends the search of that candidate; at the end
    of a candidate, no further one is tried. ``on_evaluation`` of a callback, if it has one, is
    called at each evaluation of the criterion with the estimator, the number of samples and the
    value; ``on_stage`` before the evaluations on some of the samples, or all, with the estimator,
    their number, and that of the landmarks (None for the whole kernel matrix); ``on_outer_fold``
    with the estimator, the number of outer folds done, and their total. ``on_columns`` is called
    before all of this, by a model of tables, with the estimator and the fitted `TablePreprocessor`.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._n_candidates = self._n_done = 0
        self._data = {"estimator": estimator, "X": X, "y": y}
        if sample_weight is not None:
            self._data["metadata"] = {"sample_weight": sample_weight}
        self._root: Any = None
        self._candidate: Any = None

    def begins(self, n_candidates: int) -> None:
        self._n_candidates, estimator = n_candidates, self._data["estimator"]
        if hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=n_candidates)
            self._root.call_on_fit_task_begin(**self._data)

    def candidate_begins(self, name: str) -> None:
        if self._root is not None:
            self._candidate = self._root.subcontext(task_name=name, max_subtasks=None)
            self._candidate.call_on_fit_task_begin(**self._data)

    def stage_begins(self, objective: HeldOutCriterion) -> None:
        on_landmarks = isinstance(objective, LowRankObjective)
        n_landmarks = objective.samples.n_samples if on_landmarks else None
        tell(self._data["estimator"], "on_stage", objective.n_samples, n_landmarks)

    def evaluation_done(self, objective: HeldOutCriterion, point: Point) -> None:
        tell(self._data["estimator"], "on_evaluation", objective.n_samples, point.value)

    def iteration_done(self, objective: HeldOutCriterion, iteration: int, point: Point) -> bool:
        if self._root is None:
            return False
        task = self._candidate.subcontext(task_name=f"iteration, n={objective.n_samples}")
        task.call_on_fit_task_begin(**self._data)
        return bool(task.call_on_fit_task_end(**self._data))

    def candidate_ends(self, candidate: Candidate) -> bool:
        self._n_done += 1
        done = f"candidate {self._n_done} of {self._n_candidates}"
        say(self._data["estimator"], f"{done}: {candidate.name}, {candidate.seconds:.1f} s")
        if self._root is None:
            return False
        return bool(self._candidate.call_on_fit_task_end(**self._data))

    def ends(self) -> None:
        """Call this when all fitted attributes are set: callbacks may predict and score."""
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._data, reconstruction_attributes={})
