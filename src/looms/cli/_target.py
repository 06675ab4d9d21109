"""Task of a target, kinds of the columns of a table, and notes where they may be wrong."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from looms._optional import require
from looms._typing import AnyArray
from looms._words import listed
from looms.cli._errors import InputError
from looms.cli._options import Task
from looms.cli._output import MOST_NAMES
from looms.datasets._columns import number_like
from looms.tables._kinds import Kind, as_text

if TYPE_CHECKING:
    import pandas as pd

#: A table as it is read, and a column of it.
Features: TypeAlias = "pd.DataFrame | sparse.csr_array"
Column: TypeAlias = "pd.Series | AnyArray"

#: Whole numbers with at most this many different values are treated as classes.
MOST_CLASSES = 20
#: With fewer rows, different values are not a sign of an identifier.
FEWEST_ROWS = 20

#: Name of a column of whole numbers that may be identifiers.
_IDENTIFIER = re.compile(
    r"(?i:(?:^|[^a-z])(?:id|no|nr|number))$|[a-z](?:I[Dd]|No|N[Rr]|Number)$"
    r"|(?i:^(?:patient|person|subject|participant|customer|user)s?$)"
)
#: Kinds of date, and the order of their numbers.
DATES = {
    "date": "",
    "day-first date": ", the day before the month,",
    "month-first date": ", the month before the day,",
}


class TargetError(InputError):
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


def target_of(column: Column, task: Task) -> Target:
    """The target from a column as it was read, which decides the task "auto".

    InputError if there is only one value; if a regression has no numbers; or, with an undecided
    task, if the target is text that mostly looks like numbers, or most labels are in a single row.
    """
    numeric = is_number(column)
    floats = numbers(column) if numeric or task == "regression" else np.empty(0)
    whole = numeric and bool(np.all(np.isfinite(floats) & (floats == np.round(floats))))
    if numeric and (task == "regression" or (task == "auto" and not whole)):
        y = floats
    else:
        y = np.asarray(column, dtype=np.int64) if whole else text(column)
    counts = np.unique(y, return_counts=True)[1]
    n_values, n_alone = len(counts), int((counts == 1).sum())
    if n_values == 1:
        raise InputError(
            f"the target has only one value, {y[:1].tolist()[0]!r}: name another column with "
            "--target, or add rows with other values"
        )
    what = "whole numbers" if whole else "numbers, not all whole" if numeric else "labels"
    reason, values = "as asked", f"{n_values} different {what}"
    if task == "auto":
        many = numeric and (not whole or n_values > MOST_CLASSES)
        task = "regression" if many else "classification"
        reason = f"the target has {values}; choose with --task"
        if n_alone and not many:
            reason += (
                f"; {n_alone} of them in only one row, so no machine without that row knows them"
            )
        if not numeric:
            _check_labels(column, y, n_values, n_alone)
    if task == "regression":
        return Target(floats, task, reason, values=values)
    alike: dict[str, list[str]] = {}
    for value in () if numeric else sorted(set(map(str, column))):
        alike.setdefault(value.strip().casefold(), []).append(value)
    groups = [", ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    remark = (
        f"labels that differ only by case or by blanks around them: "
        f"{'; '.join(groups[:MOST_NAMES])}; write labels of one class in the same way (blanks are "
        "removed, but case makes another class)"
    )
    return Target(y, task, reason, (remark,) if groups else (), values)


def _check_labels(column: Column, labels: AnyArray, n_values: int, n_alone: int) -> None:
    """Refuse to treat text as classes if it is more likely to be something else."""
    if isinstance(column.dtype, require("pandas", "Reading tables").CategoricalDtype):
        return
    like = number_like(labels)
    codes = n_values <= MOST_CLASSES and all(value.isdecimal() for value in labels[like])
    if like.sum() > len(labels) / 2 and not codes:
        others = np.flatnonzero(~like)
        if len(others):
            shown = ", ".join(f"{labels[row]!r} in data row {row + 1}" for row in others[:3])
            are = "is" if len(others) == 1 else "are"
            why = f"{len(others)} {are} not: {shown}{', ...' if len(others) > 3 else ''}"
            cure = "correct them or remove their rows"
        elif all(value.isdecimal() for value in labels):
            why, cure = f"it is stored as text: {labels[0]!r} in data row 1", "store it as numbers"
        elif labels[0].strip("+-0123456789.,eE"):
            why, cure = f"{labels[0]!r} in data row 1 has other signs", "write only numbers"
        else:
            why = f"its decimal mark is not clear: {labels[0]!r} in data row 1"
            cure = "choose the mark by --decimal"
        raise TargetError(
            f"the target is text, though {like.sum()} of its {len(labels)} values look like "
            f"numbers, because {why}",
            f"{cure}, or use --task classification to make each value a class",
        )
    if n_values > 2 and max(n_values / len(labels), n_alone / n_values) > 0.5:
        raise TargetError(
            f"the target has {n_values} different labels in {len(labels)} rows, {n_alone} of them "
            "in only one row",
            "name another column with --target, or use --task classification to make each label a "
            "class",
        )


def is_number(column: Column) -> bool:
    """True if the values are numbers, and not booleans."""
    types = require("pandas", "Reading tables").api.types
    return bool(types.is_numeric_dtype(column) and not types.is_bool_dtype(column))


def numbers(column: Column) -> AnyArray:
    """Target of a regression; refuses values that are not numbers."""
    if not is_number(column):
        values = text(column)
        row = int(number_like(values).argmin())  # the first of all if all look like numbers
        raise InputError(
            f"the target of a regression must be numbers, but this one holds {values[row]!r}; use "
            f"--task classification, or correct data row {row + 1} and others like it, or choose "
            "the decimal mark of the file by --decimal"
        )
    return np.asarray(column, dtype=float)


def text(values: Column) -> AnyArray:
    """Labels as text, so that labels of files and of models can be compared."""
    return as_text(require("pandas", "Reading tables").Series(values))


def words_among_numbers(
    X: pd.DataFrame, kinds: Mapping[str, tuple[Kind, ...]], columns: pd.DataFrame
) -> tuple[list[str], str]:
    """Columns treated as text although most of their cells are numbers, and what to do about them.

    ``kinds`` are `column_kinds` of ``X``, ``columns`` its floats and text.
    """
    categorical = require("pandas", "A table of mixed columns").CategoricalDtype
    broken = []
    for name, of in kinds.items():
        if of == ("category",) and not isinstance(X[name].dtype, categorical):
            like = number_like(columns[name])
            wrong = columns[name].notna().to_numpy() & ~like
            if like.sum() > wrong.sum() > 0:
                broken.append((name, int(wrong.sum()), int(wrong.argmax())))
    if not broken:
        return [], ""
    name, n_wrong, first = broken[0]
    others = f", and so are {listed([each[0] for each in broken[1:]])}" if broken[1:] else ""
    return [each[0] for each in broken], (
        f"column {name!r} is treated as text, with a feature for each value, because {n_wrong} of "
        f"its cells {'is not a number' if n_wrong == 1 else 'are not numbers'}, first "
        f"{str(columns[name].iloc[first])!r} in data row {X.index[first] + 1}{others}; correct "
        "such cells or leave them empty"
    )


def column_notes(
    X: pd.DataFrame,
    kinds: Mapping[str, tuple[Kind, ...]],
    columns: pd.DataFrame,
    known: Collection[str],
) -> Iterator[str]:
    """Notes on columns that are dates, constants, or identifiers (except known ones).

    ``kinds`` are `column_kinds` of ``X``, ``columns`` its floats and text.
    """
    constant = [name for name, of in kinds.items() if not of]
    if constant:
        yield f"left out, because they have the same value in every row: {listed(constant)}"
    unclear = [name for name, of in kinds.items() if len(of) > 1]
    if unclear:
        yield (
            f"{listed(unclear)}: treated as text, because in these dates either number may be the "
            "day; write them as 2021-12-31 to have them read as dates"
        )
    certain = {name: of[0] for name, of in kinds.items() if len(of) == 1}
    yield from date_notes(
        certain,
        "; leave it out by --drop unless new rows have the same dates, and if rows resemble the "
        "next ones, hold out windows of time by --time",
    )
    countable = [
        name
        for name, kind in certain.items()
        if name not in known
        and len(X) >= FEWEST_ROWS
        and (kind == "category" or (kind == "number" and (columns[name] % 1 == 0).all()))
    ]
    counts = {name: X[name].value_counts(dropna=False) for name in countable}
    alike = [name for name in countable if len(counts[name]) == len(X)]
    if alike:
        yield (
            f"a different value in every row: {listed(alike)}; if this is an identifier, which "
            "says nothing about new rows, leave it out by --drop"
        )
    repeated = [
        name
        for name in countable
        if len(counts[name]) > MOST_CLASSES
        and counts[name][counts[name] > 1].sum() > len(X) / 2
        and (certain[name] == "category" or _IDENTIFIER.search(name) or _in_blocks(X[name]))
    ]
    if repeated:
        option = f"--groups {shlex.quote(repeated[0])}" if len(repeated) == 1 else "--groups"
        yield (
            f"many values, and most rows share theirs: {listed(repeated)}; if rows of one value "
            "belong together, such as those of a patient, leaving out one row keeps the others, "
            f"and the figures flatter: hold them out together by {option}"
        )


def _in_blocks(column: pd.Series) -> bool:
    """True if the rows with each value follow one another, like the visits of each patient."""
    return bool((column != column.shift()).sum() == column.nunique())


def date_notes(kinds: Mapping[str, str], advice: str = "") -> Iterator[str]:
    """Notes on columns that are read as dates (kinds of `looms.tables`), with the advice."""
    for kind, order in DATES.items():
        names = [name for name, of in kinds.items() if of == kind]
        if names:
            as_dates = f"read as {'a date' if len(names) == 1 else 'dates'}{order}"
            yield f"{listed(names)}: {as_dates} and used as a number of days{advice}"
