"""From a file to what the machines take: a table, its columns and its target."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from looms._optional import require
from looms._typing import AnyArray, Matrix
from looms._words import count, listed
from looms.blocks import RowBlocks
from looms.cli._errors import InputError
from looms.cli._options import Reading, Task
from looms.cli._output import MOST_NAMES, as_messages, note
from looms.datasets import open_table, read_table
from looms.datasets._rows import RowReader
from looms.datasets._table import Table
from looms.tables import table_preprocessor
from looms.tables._kinds import Kind, as_text, column_kinds
from looms.tables._transformers import TableColumns

if TYPE_CHECKING:
    import pandas as pd

#: A table as it is read, and a column of one.
Features: TypeAlias = "pd.DataFrame | sparse.csr_array"
Column: TypeAlias = "pd.Series | AnyArray"

#: Whole numbers with no more different values than this are taken for classes.
MOST_CLASSES = 20
#: In fewer rows different values are no sign of an identifier.
FEWEST_ROWS = 20

#: A number in some country's writing, with or without thousands.
_NUMBER = re.compile(
    r"[+-]?(\d+|\d{1,3}([.,'\s]\d{3})+|(?=[.,]\d))([.,]\d*)?(e[+-]?\d+)?", re.IGNORECASE
)
#: Name of a column of whole numbers that may be identifiers.
_IDENTIFIER = re.compile(r"(?i:(?:^|[^a-z])(?:id|no|nr|number))$|[a-z]I[Dd]$")
#: Order of the numbers in kinds of date.
_ORDERS = {
    "date": "",
    "day-first date": ", the day before the month,",
    "month-first date": ", the month before the day,",
}


def read(path: Path, target: str | None, reading: Reading, keep: Sequence[str] = ()) -> Table:
    """The table of a file, read as options say, with what was detected as notes."""
    with as_messages():
        table = read_table(path, target, keep=keep, **_options(reading))
    for remark in table.notes:
        note(f"{path.name}: {remark}")
    return table


def open_file(
    path: Path, target: str | None, reading: Reading, keep: Sequence[str] = ()
) -> RowReader:
    """Reader of a file in blocks, as options say, with what was detected as notes."""
    with as_messages():
        reader = open_table(path, target, keep=keep, **_options(reading))
    for remark in reader.notes:
        note(f"{path.name}: {remark}")
    return reader


def _options(reading: Reading) -> dict[str, Any]:
    return asdict(replace(reading, sep="\t" if reading.sep in ("tab", r"\t") else reading.sep))


def read_training(
    path: Path,
    target: str | None,
    drop: Sequence[str] | None,
    reading: Reading,
    groups: str | None = None,
) -> tuple[Table, AnyArray | None]:
    """The table of a file without the columns to drop, and the labels of the column of groups.

    Refuses one without a target, or with more rows than a kernel matrix can have here.
    """
    table = read(path, target, reading)
    table = replace(table, X=without(table.X, drop or (), path))
    labels = None if groups is None else labels_of_groups(path, table, groups)
    if groups is not None:
        table = replace(table, X=table.X.drop(columns=groups))
    if table.y is None:
        raise no_target(path, table.X)
    n_rows = table.X.shape[0]
    memory = physical_memory()
    if memory is not None and 8 * n_rows**2 > memory:
        raise InputError(
            f"{path}: the kernel matrix of {n_rows:,} rows takes {8e-9 * n_rows**2:,.0f} GB, and "
            f"this machine has {1e-9 * memory:,.0f}; give --rank 1000, for a machine on so many "
            "landmarks, or a sample of the rows"
        )
    return table, labels


def physical_memory() -> int | None:
    """Bytes of memory of this machine; None on Windows, which does not tell."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def without(X: Features, names: Sequence[str], path: Path) -> Features:
    """Rows of a table without the columns to leave out."""
    for name in names:
        if name not in getattr(X, "columns", ()):
            raise InputError(f"{path}: there is no column {name!r} to leave out")
    return X.drop(columns=list(names)) if names else X


def no_target(path: Path, X: Features) -> InputError:
    """Error for a table without a target."""
    columns = listed(getattr(X, "columns", []), 20)
    return InputError(
        f"{path}: there is no target; name the column to predict with --target"
        f"{f' ({columns})' if columns else ''}; for challenge and npz data put their "
        ".labels file beside them"
    )


def labels_of_groups(path: Path, table: Table, name: str) -> AnyArray:
    """(n_rows,) labels of a column as text; refuses gaps."""
    advice = "no label", "give every row its group, one of its own if it belongs to no other"
    return text(_whole_column(path, table, "--groups", name, *advice))


def times_of_rows(path: Path, table: Table, name: str) -> AnyArray:
    """(n_rows,) numbers of a column, dates as days; refuses gaps, text, and one time only."""
    column = _whole_column(path, table, "--time", name, "no time", "leave these rows out")
    frame = column.to_frame(str(name))
    with as_messages():
        kinds = column_kinds(frame)[str(name)]
    if kinds == ("category",) or len(kinds) != 1:
        why = f"holds {str(column.iloc[0])!r} in data row 1, which is neither number nor date"
        if not kinds:
            why = "is the same in every row"
        elif len(kinds) > 1:
            why = "has dates whose day and month may be either number"
        raise InputError(
            f"{path}: --time {name} {why}; write dates as 2021-12-31, or number the rows in their "
            "order"
        )
    times: AnyArray = TableColumns({str(name): kinds[0]}).fit_transform(frame)[str(name)].to_numpy()
    return times


def _whole_column(
    path: Path, table: Table, option: str, name: str, nothing: str, advice: str
) -> pd.Series:
    """The column that an option names; refuses one that is not there or has gaps."""
    if name not in getattr(table.X, "columns", []):
        columns = listed(getattr(table.X, "columns", []), 20)
        raise InputError(
            f"{path}: there is no column {name!r} for {option}"
            + (f" beside the target ({columns})" if columns else ": the file has no named columns")
        )
    gaps = table.X[name].isna().to_numpy()
    if gaps.any():
        raise InputError(
            f"{path}: {option} {name} has {nothing} in {count(int(gaps.sum()), 'row')} of "
            f"{len(gaps)}, first in data row {int(gaps.argmax()) + 1}; {advice}"
        )
    return table.X[name]


@dataclass(frozen=True)
class Target:
    """Target as the estimators take it, the task with its reason, and notes on labels.

    Classes are integers if all are whole numbers, else text; a regression has floats.
    """

    y: AnyArray
    task: Task
    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """Table as it was read (``X``), as floats and text (``columns``), and as the machines take it.

    The preprocessor, of `looms.tables`, is fitted to it. A sparse table is so in all three. Rows
    of a label in ``groups`` are held out together. ``rows`` are the numbers of the rows in the
    file, from 1. Of a table that is larger than memory ``X`` and ``columns`` are a sample of the
    rows, the matrix all of them in blocks. ``ranges`` are those of columns of numbers and dates.
    """

    X: Features
    target: Target
    preprocessor: Pipeline
    columns: Features
    matrix: Matrix | RowBlocks
    notes: tuple[str, ...]
    rows: AnyArray
    groups: AnyArray | None = None
    ranges: dict[str, list[float]] = field(default_factory=dict)

    def in_order(self, times: AnyArray) -> Prepared:
        """The rows in order of time; those of one time are a group if there are no groups."""
        assert not isinstance(self.matrix, RowBlocks)
        order = np.argsort(times, kind="stable")
        groups = self.groups
        if groups is None and len(np.unique(times)) < len(times):
            groups = times
        return replace(
            self,
            X=self.X.iloc[order],
            target=replace(self.target, y=self.target.y[order]),
            columns=self.columns.iloc[order],
            matrix=self.matrix[order],
            rows=self.rows[order],
            groups=None if groups is None else groups[order],
        )


def prepare_file(
    path: Path,
    target: str | None,
    drop: Sequence[str] | None,
    reading: Reading,
    task: Task,
    groups: str | None,
    time: str | None,
) -> Prepared:
    """The table of a file, prepared; what it is taken for goes to stderr."""
    table, labels = read_training(path, target, drop, reading, groups)
    times = None
    if time is not None:
        times = times_of_rows(path, table, time)
        table = replace(table, X=table.X.drop(columns=time))
    known = target_of(table.y, task)
    note(f"{known.task}: {known.reason}")
    prepared = replace(prepare(table.X, known), groups=labels)
    if times is None:
        return prepared
    prepared = prepared.in_order(times)
    if labels is None and prepared.groups is not None:
        note(f"--time {time}: rows of one time are held out together")
    return prepared


def prepare(X: Features, target: Target) -> Prepared:
    """A table as it was read, its target known, as a matrix; surprises go to stderr."""
    with as_messages():
        kinds = None if sparse.issparse(X) else column_kinds(X)
        preprocessor = table_preprocessor(X, kinds)
        columns = preprocessor[:-1].fit_transform(X)
        matrix = preprocessor[-1].fit_transform(columns)
    notes = (*column_notes(X, kinds or {}, columns), *target.notes)
    for remark in notes:
        note(remark)
    rows = np.arange(1, X.shape[0] + 1)
    numbers = {} if sparse.issparse(X) else columns.select_dtypes("number")  # and dates, as days
    ranges = {name: [float(c.min()), float(c.max())] for name, c in numbers.items()}
    return Prepared(X, target, preprocessor, columns, matrix, notes, rows, ranges=ranges)


def target_of(column: Column, task: Task) -> Target:
    """The target of a column as it was read; the task "auto" is decided by it.

    InputError if there is one value only; if a regression has no numbers; of an undecided task, if
    the target is text and most of it looks like numbers, or most labels are in a single row.
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
            f"the target has one value only, {y[:1].tolist()[0]!r}: name another column with "
            "--target, or give rows of other values too"
        )
    reason = "as asked"
    if task == "auto":
        many = numeric and (not whole or n_values > MOST_CLASSES)
        task = "regression" if many else "classification"
        what = "whole numbers" if whole else "numbers, not all whole" if numeric else "labels"
        reason = f"the target has {n_values} different {what}; choose with --task"
        if n_alone and not many:
            reason += (
                f"; {n_alone} of them in one row only, which no machine without that row can know"
            )
        if not numeric:
            _check_labels(column, y, n_values, n_alone)
    if task == "regression":
        return Target(floats, task, reason)
    alike: dict[str, list[str]] = {}
    for value in () if numeric else sorted(set(map(str, column))):
        alike.setdefault(value.strip().casefold(), []).append(value)
    groups = [", ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    remark = (
        f"labels that differ only by case or by blanks around them: "
        f"{'; '.join(groups[:MOST_NAMES])}; write those of one class alike (blanks are taken away, "
        "case makes another class)"
    )
    return Target(y, task, reason, (remark,) if groups else ())


def _check_labels(column: Column, labels: AnyArray, n_values: int, n_alone: int) -> None:
    """Refuse to take text for classes that is more likely to be something else."""
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
            cure = "correct them or take their rows away"
        elif all(value.isdecimal() for value in labels):
            why, cure = f"it is stored as text: {labels[0]!r} in data row 1", "store it as numbers"
        else:
            why = f"its decimal mark is not clear: {labels[0]!r} in data row 1"
            cure = "choose the mark by --decimal"
        raise InputError(
            f"the target is text, though {like.sum()} of its {len(labels)} values look like "
            f"numbers, for {why}; {cure}, or use --task classification to make a class of each "
            "value"
        )
    if n_values > 2 and max(n_values / len(labels), n_alone / n_values) > 0.5:
        raise InputError(
            f"the target has {n_values} different labels in {len(labels)} rows, {n_alone} of them "
            "in one row only; name another column with --target, or use --task classification to "
            "make a class of each label"
        )


def is_number(column: Column) -> bool:
    """True if the values are numbers, and not booleans."""
    types = require("pandas", "Reading tables").api.types
    return bool(types.is_numeric_dtype(column) and not types.is_bool_dtype(column))


def numbers(column: Column) -> AnyArray:
    """Target of a regression; refuses what is no number."""
    if not is_number(column):
        values = text(column)
        row = int(number_like(values).argmin())  # the first of all if all look like numbers
        raise InputError(
            f"the target of a regression must be numbers, and this one holds {values[row]!r}; use "
            f"--task classification, or correct data row {row + 1} and others like it, or choose "
            "the decimal mark of the file by --decimal"
        )
    return np.asarray(column, dtype=float)


def number_like(values: Iterable[object]) -> AnyArray:
    """True if texts look like numbers, with a decimal point or comma; gaps do not."""
    return np.array(
        [isinstance(value, str) and _NUMBER.fullmatch(value) is not None for value in values]
    )


def text(values: Column) -> AnyArray:
    """Labels as text, in which labels of files and of models can be compared."""
    return as_text(require("pandas", "Reading tables").Series(values))


def column_notes(
    X: pd.DataFrame, kinds: Mapping[str, tuple[Kind, ...]], columns: pd.DataFrame
) -> Iterator[str]:
    """Notes on columns that are dates, identifiers, constants, or numbers with a word among them.

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
    if broken:
        name, n_wrong, first = broken[0]
        others = f", and so are {listed([each[0] for each in broken[1:]])}" if broken[1:] else ""
        yield (
            f"column {name!r} is taken for text, a feature for each value, for {n_wrong} of its "
            f"cells {'is' if n_wrong == 1 else 'are'} no number, first "
            f"{str(columns[name].iloc[first])!r} in data row {first + 1}{others}; correct such "
            "cells or leave them empty"
        )
    constant = [name for name, of in kinds.items() if not of]
    if constant:
        yield f"left out, for they have the same value in every row: {listed(constant)}"
    unclear = [name for name, of in kinds.items() if len(of) > 1]
    if unclear:
        yield (
            f"{listed(unclear)}: taken for text, for these are dates whose day and month may be "
            "either number; write them as 2021-12-31 to have them read as dates"
        )
    certain = {name: of[0] for name, of in kinds.items() if len(of) == 1}
    yield from date_notes(
        certain,
        "; leave it out by --drop unless new rows are of the same days, and if rows tell of the "
        "next ones, hold out windows of time by --time",
    )
    known = {each[0] for each in broken}
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
            "says nothing of new rows, leave it out by --drop"
        )
    repeated = [
        name
        for name in countable
        if (certain[name] == "category" or _IDENTIFIER.search(name))
        and len(counts[name]) > MOST_CLASSES
        and counts[name].min() > 1
    ]
    if repeated:
        yield (
            f"many values, each in several rows: {listed(repeated)}; if rows of one value belong "
            "together, such as those of a patient, leaving out one row leaves the others in, and "
            "the figures flatter: hold them out together by --groups"
        )


def date_notes(kinds: Mapping[str, str], advice: str = "") -> Iterator[str]:
    """Notes on columns, of kinds of `looms.tables`, that are read as dates, with the advice."""
    for kind, order in _ORDERS.items():
        names = [name for name, of in kinds.items() if of == kind]
        if names:
            as_dates = f"read as {'a date' if len(names) == 1 else 'dates'}{order}"
            yield f"{listed(names)}: {as_dates} and used as a number of days{advice}"
