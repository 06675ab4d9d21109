"""What kind of target this is, and the target as the estimators take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._optional import require
from looms._typing import AnyArray
from looms.cli._errors import InputError
from looms.cli._options import Task
from looms.tables import as_text

#: Whole numbers with no more different values than this are taken for classes.
MOST_CLASSES = 20


def choose_task(y: Any, task: Task) -> tuple[Task, str]:
    """The task, and the reason to show.

    Parameters
    ----------
    y : Series or ndarray
        The target.
    task : Task
        What was asked for; AUTO decides by the target.

    Returns
    -------
    task : Task
        Classification or regression.
    reason : str
        Why.
    """
    if task is not Task.AUTO:
        return task, "as asked"
    n_values = len(np.unique(labels(y)))
    if n_values == 1:
        how = "the target has one value"
        return Task.REGRESSION if is_number(y) and not _whole(y) else Task.CLASSIFICATION, how
    how = "the target has {} different {}; choose with --task"
    if not is_number(y):
        return Task.CLASSIFICATION, how.format(n_values, "labels")
    if not _whole(y):
        return Task.REGRESSION, how.format(n_values, "numbers, not all whole")
    few = n_values <= MOST_CLASSES
    return Task.CLASSIFICATION if few else Task.REGRESSION, how.format(n_values, "whole numbers")


def is_number(y: Any) -> bool:
    """Whether the values are numbers, and not booleans."""
    types = require("pandas", "Reading tables").api.types
    return bool(types.is_numeric_dtype(y) and not types.is_bool_dtype(y))


def labels(y: Any) -> AnyArray:
    """Classes: integers if all are whole numbers, else text."""
    if is_number(y) and _whole(y):
        return np.asarray(y, dtype=np.int64)
    return text(y)


def text(values: Any) -> AnyArray:
    """Labels as text, in which labels of files and of models can be compared."""
    return as_text(require("pandas", "Reading tables").Series(values))


def numbers(y: Any) -> AnyArray:
    """Targets of a regression."""
    if not is_number(y):
        raise InputError(
            "the target of a regression must be numbers, and this one holds "
            f"{labels(y)[0]!r}; use --task classification"
        )
    return np.asarray(y, dtype=float)


def _whole(y: Any) -> bool:
    values = np.asarray(y, dtype=float)
    return bool(np.all(np.isfinite(values) & (values == np.round(values))))
