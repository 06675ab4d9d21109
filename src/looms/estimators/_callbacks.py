"""scikit-learn's callback protocol (1.9, experimental) where it exists."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning

from looms._typing import AnyArray, Array, Matrix
from looms.copies import n_unexpected_copies
from looms.optimise import Outcome, Point
from looms.selection import Objective
from looms.selection._candidates import Candidate

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = [
    "BoundWarning",
    "CallbackSupportMixin",
    "CallbackWatcher",
    "CopiesWarning",
    "OneClassWarning",
    "finish",
    "warn_of_copies",
    "with_callbacks",
]

_ROUNDING = 1e-10  # of targets; a criterion below its square has nothing left to fall
_PACKAGES = tuple(
    f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], Path(sklearn.__path__[0]))
)


class BoundWarning(UserWarning):
    """A hyper-parameter of the chosen candidate ended at the edge of what was searched."""


class CopiesWarning(UserWarning):
    """Many rows are copies of others, which leaving out one of them leaves in."""


class OneClassWarning(UserWarning):
    """A machine that chose its hyper-parameters takes all of its samples for one class."""


class CallbackWatcher:
    """Passes the course of a selection on to the callbacks of an estimator.

    One task a candidate, in it one task an iteration of the optimiser. A callback that
    asks to stop at the end of an iteration ends the search of that candidate; at the end
    of a candidate, no further one is tried. A callback with a method ``on_evaluation`` hears of
    each evaluation of the criterion, too: of the estimator, the number of samples, the value.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._data = {"estimator": estimator, "X": X, "y": y}
        if sample_weight is not None:
            self._data["metadata"] = {"sample_weight": sample_weight}
        self._root: Any = None
        self._candidate: Any = None

    def begins(self, n_candidates: int) -> None:
        estimator = self._data["estimator"]
        if hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=n_candidates)
            self._root.call_on_fit_task_begin(**self._data)

    def candidate_begins(self, kernel: Any, criterion: Any) -> None:
        if self._root is not None:
            name = f"{type(kernel).__name__}, {criterion}"
            self._candidate = self._root.subcontext(task_name=name, max_subtasks=None)
            self._candidate.call_on_fit_task_begin(**self._data)

    def evaluation_done(self, objective: Objective, point: Point) -> None:
        estimator = self._data["estimator"]
        for callback in getattr(estimator, "_skl_callbacks", []):
            if hasattr(callback, "on_evaluation"):
                callback.on_evaluation(estimator, objective.n_samples, point.value)

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
        """To be called when all fitted attributes are set: callbacks may predict and score."""
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._data, reconstruction_attributes={})


def finish(watcher: CallbackWatcher, chosen: Candidate, targets: Array) -> None:
    """Tell the callbacks of a machine that is fitted, then warn of what looks wrong with it.

    Last of all, since callbacks may raise and warnings may be errors.
    """
    watcher.ends()
    exact = chosen.value <= _ROUNDING**2 * float(np.mean(targets**2))  # all left is rounding
    worrying = {Outcome.MAX_ITER} if exact else {Outcome.MAX_ITER, Outcome.NO_PROGRESS}
    level = level_of_user()
    if chosen.outcome in worrying:
        warnings.warn(
            f"Search for hyper-parameters: {chosen.outcome.value}.",
            ConvergenceWarning,
            stacklevel=level,
        )
    for message in chosen.at_bounds:
        warnings.warn(f"{message}.", BoundWarning, stacklevel=level)


def warn_of_copies(X: Matrix, groups: AnyArray, remedy: str) -> None:
    """CopiesWarning if rows repeat others where that is no accident."""
    n_copies = n_unexpected_copies(X, groups)
    if n_copies:
        warnings.warn(
            f"{n_copies} of {len(groups)} rows are copies of other rows, equal in every feature. "
            "Leaving a row out leaves its copies in: leave-one-out flatters, and hyper-parameters "
            f"chosen by it drift to a nearest neighbor. {remedy}",
            CopiesWarning,
            stacklevel=level_of_user(),
        )


def level_of_user() -> int:
    """``stacklevel`` with which the caller warns at the line that called looms or scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame, level = frame.f_back, level + 1
    return level
