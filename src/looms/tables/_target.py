"""Task of a target, with the reason, and notes on its labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from looms._advice import setting
from looms._number_text import number_like
from looms._optional import require
from looms._typing import AnyArray
from looms._words import row_name
from looms.tables._cells import POINT, Cells, Marks, is_written, marks_of, spelling_in
from looms.tables._frames import Column
from looms.tables._kinds import cells_of, read_column, texts_of

if TYPE_CHECKING:
    import pandas as pd

#: A table as it is read.
Features: TypeAlias = "pd.DataFrame | sparse.csr_array"
Task: TypeAlias = Literal["auto", "classification", "regression"]

#: Labels named in a remark.
_MOST_NAMES = 5
#: Whole numbers with at most this many different values are treated as classes, unless most of
#: the values are in a single row.
MOST_CLASSES = 20


#: A whole number in plain digits, which 64 bits hold.
_PLAIN = re.compile(r"(0|-?[1-9][0-9]{,17})(\.0+)?")


class TargetError(ValueError):
    """Error for a target without classes; ``problem`` is the message without the advice."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem = problem


@dataclass(frozen=True)
class Target:
    """Target in the form that estimators take, the task with its reason, and notes on labels.

    Classes are integers if all are whole numbers, else text; a regression has floats. ``values``
    tells how many there are, of which kind.
    """

    y: AnyArray
    task: Task
    reason: str
    notes: tuple[str, ...] = ()
    values: str = ""


def target_of(
    column: Column, task: Task, marks: Marks = POINT, order: Sequence[str] | None = None
) -> Target:
    """Target of a column; its values decide the task "auto".

    ``marks`` are those of numbers in text, ``order`` the classes in order, by default those of an
    ordered categorical column. ValueError if there is only one value; if a regression has no
    numbers; with an undecided task, if the target is text that mostly looks like numbers, or most
    labels are in a single row; or if a label is not in the order.
    """
    dtype: Any = column.dtype
    if order is None and getattr(dtype, "ordered", False) and task != "regression":
        order = text(dtype.categories.to_series()).tolist()
    if order is not None:
        task = "classification"
    numeric = _is_numeric(column, marks, task)
    floats = numbers(column, marks) if numeric or task == "regression" else np.empty(0)
    whole = numeric and bool(np.all(np.isfinite(floats) & (floats == np.round(floats))))
    if numeric and (task == "regression" or (task == "auto" and not whole)):
        y = floats
    else:
        y = _labels(column, numeric)
    counts = np.unique(y, return_counts=True)[1]
    n_values, n_alone = len(counts), int((counts == 1).sum())
    if len(y) == 1:
        raise ValueError("the table has one row with a target, and a model needs more")
    if n_values == 1:
        raise ValueError(f"the target has only one value, {y.tolist()[0]!r}: name another column")
    what = "whole numbers" if whole else "numbers, not all whole" if numeric else "labels"
    reason, values = "as asked", f"{n_values} different {what}"
    if task == "auto":
        alone = n_values > 2 and n_alone > n_values / 2
        many = numeric and (not whole or n_values > MOST_CLASSES or alone)
        task = "regression" if many else "classification"
        reason = f"the target has {values}; choose by {setting('task', ...)}"
        if n_alone and (alone or not many) and n_values <= MOST_CLASSES:
            reason += f"; {n_alone} of them in only one row"
        if not numeric:
            _check_labels(column, y, n_values, n_alone)
    if task == "regression":
        notes: tuple[str, ...] = ()
        sign = read_column(column, "the target", marks).sign if is_written(column) else None
        if sign and sign[0] == "doubt":
            _, row, cell = sign
            notes = (
                f"the target has {cell!r} in {row_name(column, row)}, which is read as "
                f"{floats[row]:g}; if the point separates thousands, set {setting('decimal', ...)}",
            )
        return Target(floats, task, reason, notes, values)
    alike: dict[str, list[str]] = {}
    for value in () if numeric else sorted(set(map(str, column))):
        alike.setdefault(value.strip().casefold(), []).append(value)
    groups = [", ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    remark = (
        f"labels that differ only by case or by blanks around them: "
        f"{'; '.join(groups[:_MOST_NAMES])}; write one class in one way (case makes another class)"
    )
    if order is not None:
        y, reason = _in_order(column, y, order), f"in the order {' < '.join(order)}"
    return Target(y, task, reason, (remark,) if groups else (), values)


def _in_order(column: Column, labels: AnyArray, order: Sequence[str]) -> Any:
    """Labels as an ordered categorical."""
    for row in np.flatnonzero(~np.isin(labels.astype(str), order))[:1]:
        raise ValueError(
            f"the target has {str(labels[row])!r} in {row_name(column, int(row))}, not in the "
            f"order {' < '.join(order)}"
        )
    pandas: Any = require("pandas", "Reading tables")
    names = {str(label): label for label in labels.tolist()}
    return pandas.Categorical(labels, [names.get(name, name) for name in order], ordered=True)


def _check_labels(column: Column, labels: AnyArray, n_values: int, n_alone: int) -> None:
    """Refuse to treat text as classes if it is more likely to be something else."""
    if isinstance(column.dtype, require("pandas", "Reading tables").CategoricalDtype):
        return

    def cell(row: int) -> str:
        return f"{labels[row]!r} in {row_name(column, row)}"

    like = number_like(labels)
    codes = n_values <= MOST_CLASSES and all(value.isdecimal() for value in labels[like])
    if like.sum() > len(labels) / 2 and not codes:
        odd, first = np.flatnonzero(~like), cell(0)
        if len(odd):
            shown = ", ".join(map(cell, odd[:3]))
            are = "is" if len(odd) == 1 else "are"
            why = f"{len(odd)} {are} not: {shown}{', ...' if len(odd) > 3 else ''}"
            cure = "correct them or remove their rows"
        elif all(value.isdecimal() for value in labels):
            why, cure = f"it is stored as text: {first}", "store it as numbers"
        elif labels[0].strip("+-0123456789.,eE"):
            why, cure = f"{first} has other signs", "write only numbers"
        else:
            why = f"its decimal mark is not clear: {first}"
            cure = f"choose the mark by {setting('decimal', ...)}"
        raise TargetError(
            f"the target is text, though {like.sum()} of its {len(labels)} values look like "
            f"numbers, because {why}",
            f"{cure}, or use {setting('task', 'classification')} to make each value a class",
        )
    if n_values > 2 and max(n_values / len(labels), n_alone / n_values) > 0.5:
        raise TargetError(
            f"the target has {n_values} different labels in {len(labels)} rows, {n_alone} of them "
            "in only one row",
            f"name another column, or use {setting('task', 'classification')} to make each label a "
            "class",
        )


def is_number(column: Column) -> bool:
    """True if the values are numbers by their type, and not booleans."""
    types = require("pandas", "Reading tables").api.types
    return bool(types.is_numeric_dtype(column) and not types.is_bool_dtype(column))


def numbers(column: Column, marks: Marks = POINT) -> AnyArray:
    """Target of a regression; refuses values that are not numbers."""
    if is_number(column):
        return np.asarray(column, dtype=float)
    cells, values = cells_of(column, "the target"), text(column)
    wrong = ~number_like(values)
    if cells is not None and (cells.written or not cells.are_text):
        floats = cells.numbers(marks)
        wrong = ~np.isfinite(floats)
        if not wrong.any():
            return floats
    row = int(wrong.argmax())  # the first of all if all look like numbers
    raise ValueError(
        f"the target of a regression must be numbers, but this one holds {values[row]!r}; use "
        f"{setting('task', 'classification')}, correct {row_name(column, row)} or choose the mark "
        f"by {setting('decimal', ...)}"
    )


def _is_numeric(column: Column, marks: Marks, task: Task = "classification") -> bool:
    """True for numbers; labels may be infinite or huge ones, which are text then."""
    name = getattr(column, "name", None) or "the target"
    cells_of(column, name)
    try:
        return is_number(column) or read_column(column, name, marks).kinds == ("number",)
    except ValueError:
        if task != "classification":
            raise
        return False


def labels_of(column: Column, marks: Marks = POINT) -> AnyArray:
    """Labels as they are written: integers if all are whole numbers in plain digits, else text."""
    return _labels(column, _is_numeric(column, marks))


def _labels(column: Column, numeric: bool) -> AnyArray:
    labels = text(column)
    if not (numeric and all(_PLAIN.fullmatch(label) for label in set(labels))):
        return labels
    return np.array([int(label.partition(".")[0]) for label in labels], dtype=np.int64)


def written_target(
    column: pd.Series,
    classes: bool,
    marks: Marks | None = None,
    classes_of_fit: AnyArray | None = None,
) -> pd.Series:
    """Labels or numbers of cells as they are written, NaN for gaps.

    ``marks`` are those of the table, by default those of the column. Labels are read by
    ``classes_of_fit``, if these are given.
    """
    cells, marks = Cells(column), marks or marks_of([column], None)
    values: Any
    if not classes:
        values = cells.numbers(marks) if cells.missing.any() else numbers(column, marks)
    elif cells.missing.any():
        values = text(column)
    elif classes_of_fit is None:
        values = labels_of(column, marks)
    else:
        values = matched_classes(column, classes_of_fit)
    return type(column)(values, index=column.index, name=column.name)


def matched_classes(column: Column, classes: AnyArray) -> list[Any]:
    """Class of each label, in whichever spelling; a label of no class stays text."""
    place = dict(zip(text(classes), classes, strict=True))
    labels = matched_labels(column, np.array([*place], dtype=object))
    return [place.get(label, label) for label in labels]


def text(values: Column) -> AnyArray:
    """Labels as text, so that labels of files and of models can be compared."""
    return texts_of(require("pandas", "Reading tables").Series(values))


def matched_labels(values: Column, classes: AnyArray) -> AnyArray:
    """Labels as text, those that are another spelling of a class as the class is written."""
    spellings = set(classes.tolist())
    return np.array([spelling_in(label, spellings) for label in text(values)], dtype=object)
