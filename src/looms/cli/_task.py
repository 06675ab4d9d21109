"""What kind of target this is, and the target as the estimators take it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from looms._optional import require
from looms._typing import AnyArray
from looms.cli._errors import InputError
from looms.cli._options import Task
from looms.tables import as_text

#: Whole numbers with no more different values than this are taken for classes.
MOST_CLASSES = 20

#: A number in some country's writing, with or without thousands.
_NUMBER = re.compile(
    r"[+-]?(\d+|\d{1,3}([.,'\s]\d{3})+|(?=[.,]\d))([.,]\d*)?(e[+-]?\d+)?", re.IGNORECASE
)


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

    Raises
    ------
    InputError
        If the target is text, and most of it looks like numbers, or most labels are in a single
        row: classes are then to be asked for.
    """
    if task is not Task.AUTO:
        return task, "as asked"
    counts = np.unique(labels(y), return_counts=True)[1]
    n_values, n_alone = len(counts), int((counts == 1).sum())
    if n_values == 1:
        how = "the target has one value"
        return Task.REGRESSION if is_number(y) and not _whole(y) else Task.CLASSIFICATION, how
    how = "the target has {} different {}; choose with --task"
    if is_number(y) and (not _whole(y) or n_values > MOST_CLASSES):
        what = "whole numbers" if _whole(y) else "numbers, not all whole"
        return Task.REGRESSION, how.format(n_values, what)
    if n_alone:
        how += f"; {n_alone} of them in one row only, which no machine without that row can know"
    if is_number(y):
        return Task.CLASSIFICATION, how.format(n_values, "whole numbers")
    _check_text(y, n_values, n_alone)
    return Task.CLASSIFICATION, how.format(n_values, "labels")


def _check_text(y: Any, n_values: int, n_alone: int) -> None:
    """Refuse to take text for classes that is more likely to be something else."""
    if isinstance(y.dtype, require("pandas", "Reading tables").CategoricalDtype):
        return
    values = text(y)
    like = number_like(values)
    codes = n_values <= MOST_CLASSES and all(value.isdecimal() for value in values[like])
    if like.sum() > len(values) / 2 and not codes:
        others = np.flatnonzero(~like)
        if len(others):
            shown = ", ".join(f"{values[row]!r} in data row {row + 1}" for row in others[:3])
            are = "is" if len(others) == 1 else "are"
            why = f"{len(others)} {are} not: {shown}{', ...' if len(others) > 3 else ''}"
            cure = "correct them or take their rows away"
        elif all(value.isdecimal() for value in values):
            why, cure = f"it is stored as text: {values[0]!r} in data row 1", "store it as numbers"
        else:
            why = f"its decimal mark is not clear: {values[0]!r} in data row 1"
            cure = "choose the mark by --decimal"
        raise InputError(
            f"the target is text, though {like.sum()} of its {len(values)} values look like "
            f"numbers, for {why}; {cure}, or use --task classification to make a class of each "
            "value"
        )
    if n_values > 2 and max(n_values / len(values), n_alone / n_values) > 0.5:
        raise InputError(
            f"the target has {n_values} different labels in {len(values)} rows, {n_alone} of them "
            "in one row only; name another column with --target, or use --task classification to "
            "make a class of each label"
        )


def number_like(values: Any) -> AnyArray:
    """Whether texts look like numbers, with a decimal point or comma; gaps do not."""
    return np.array(
        [isinstance(value, str) and _NUMBER.fullmatch(value) is not None for value in values]
    )


def is_number(y: Any) -> bool:
    """Whether the values are numbers, and not booleans."""
    types = require("pandas", "Reading tables").api.types
    return bool(types.is_numeric_dtype(y) and not types.is_bool_dtype(y))


def alike_labels(y: Any) -> list[list[str]]:
    """Labels that differ by case or by blanks around them only, in groups.

    Parameters
    ----------
    y : Series or ndarray
        The target.
    """
    groups: dict[str, list[str]] = {}
    for value in () if is_number(y) else sorted(set(map(str, y))):
        groups.setdefault(value.strip().casefold(), []).append(value)
    return [group for group in groups.values() if len(group) > 1]


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
        values = text(y)
        row = int(number_like(values).argmin())  # the first of all if all look like numbers
        raise InputError(
            f"the target of a regression must be numbers, and this one holds {values[row]!r}; use "
            f"--task classification, or correct data row {row + 1} and others like it, or choose "
            "the decimal mark of the file by --decimal"
        )
    return np.asarray(y, dtype=float)


def _whole(y: Any) -> bool:
    values = np.asarray(y, dtype=float)
    return bool(np.all(np.isfinite(values) & (values == np.round(values))))
