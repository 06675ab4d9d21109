"""Turns a file into what the models take: a table or blocks of it, columns and target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse

from looms._checks import take_rows
from looms._memory import free_memory, gigabytes
from looms._threads import available_threads
from looms._typing import AnyArray
from looms._words import count, listed, row_name
from looms.blocks import RowBlocks
from looms.cli._errors import InputError
from looms.cli._options import Source
from looms.cli._output import note, refused, warning, writing
from looms.datasets import open_table, read_table
from looms.datasets._large import SAMPLE, TableBlocks, first_pass
from looms.datasets._rows import RowReader
from looms.datasets._table import Table, did_you_mean
from looms.duplicates import duplicate_groups
from looms.folds import group_numbers, joined_groups
from looms.selection._low_rank import LARGEST_RANK
from looms.tables import TablePreprocessor
from looms.tables._cells import POINT, Marks, missing_in
from looms.tables._columns import marks_in
from looms.tables._frames import Column
from looms.tables._kinds import CATEGORIES, converted, read_column
from looms.tables._preprocessor import matrix_of, remarks_in
from looms.tables._remarks import CHANGED, sentence
from looms.tables._target import Features, Target, labels_of, target_of, text

if TYPE_CHECKING:
    import pandas as pd

    from looms.cli._request import FitRequest

#: Rows in a working block of a dense table, and of a sparse one, which every sweep reads again.
_SIZE, _SPARSE_SIZE = 512, 2048
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def read(
    source: Source, target: str | None, keep: Sequence[str] = (), drop_missing: bool = False
) -> Table:
    """The table of a file, read according to the options, with notes on what was detected.

    ``drop_missing`` leaves out rows without a target.
    """
    options = source.options() | {"drop_missing_targets": drop_missing}
    table = read_table(source.file, target, keep=keep, **options)
    tell(source, table.notes)
    return table


def tell(source: Source, remarks: Iterable[str]) -> None:
    """Notes on what was detected in a file."""
    for remark in remarks:
        note(f"{source.file.name}: {remark}")


def open_file(source: Source, target: str | None, keep: Sequence[str] = ()) -> RowReader:
    """Reader of a file in blocks, according to the options, with notes on what was detected."""
    reader = open_table(source.file, target, keep=keep, **source.options())
    tell(source, reader.notes)
    return reader


def understood(
    request: FitRequest, X: Features, y: Column | None, drop: Sequence[str]
) -> tuple[Features, Target, Marks]:
    """Rows without the columns to leave out, the target with a note on the task, and the marks."""
    whole, X = X, drop_columns(request.file, X, drop, request.target)
    if y is None:
        raise no_target(request.file, X)
    marks = marks_in(whole, y, decimal=request.decimal)
    target = target_of(y, request.task, marks, request.order)
    note(f"{target.task}: {target.reason}")
    return X, target, marks


def drop_columns(
    path: Path, X: Features, drop: Sequence[str] | None, target: str | None
) -> Features:
    """Rows of a table without the columns that --drop names."""
    for name in drop or ():
        if name == target:
            raise InputError(f"{path}: --drop {name} is the target, which is no feature anyway")
        if name not in getattr(X, "columns", ()):
            error = _no_column(path, X, name, "--drop")
            several = "; give --drop once for each column" * ("," in name)
            raise InputError(f"{error}{several}")
    return X.drop(columns=drop) if drop else X


def no_target(path: Path, X: Features) -> InputError:
    """Error for a table without a target."""
    columns = listed(getattr(X, "columns", []), 20)
    advice = "for npz data put their .labels file in the same folder"
    if columns:
        advice = f"name the column to predict with --target ({columns})"
    return InputError(f"{path}: there is no target; {advice}")


def labels_of_groups(path: Path, X: Features, name: str | None) -> AnyArray | None:
    """(n_rows,) labels of a column: whole numbers, which have an order, or text."""
    advice = "label", "give every row a group, one of its own if it belongs to no other"
    column = _whole_column(path, X, "--groups", name, *advice)
    return None if column is None else labels_of(column)


def times_of_rows(
    path: Path, X: Features, name: str | None, marks: Marks = POINT
) -> AnyArray | None:
    """(n_rows,) times in a column, exact whole numbers, other numbers, or dates as days; refuses
    text, and a single time."""
    column = _whole_column(path, X, "--time", name, "time", "leave these rows out")
    if column is None:
        return None
    if column.dtype.kind in "iuM" and column.nunique() > 1:  # as exact as they are
        return np.asarray(column)
    read = read_column(column, name, marks)
    kinds, texts = read.kinds, read.values
    if read.sign and read.sign[0] in ("rounded", "code"):  # as long as they are
        with suppress(ValueError):
            return np.array([int(text) for text in texts], dtype=object)
    if len(kinds) != 1 or kinds[0] in CATEGORIES or not read.varies:
        cell = f"{str(column.iloc[0])!r} in {row_name(column, 0)}"
        why = f"holds {cell}, which is neither a number nor a date"
        if not read.varies:
            why = "is the same in every row"
        elif len(kinds) > 1:
            why = "has dates in which either number may be the day"
        raise InputError(f"{path}: --time {name} {why}; write dates as 2021-12-31, or numbers")
    return read.values


def weights_of_rows(
    path: Path, X: Features, name: str | None, marks: Marks = POINT
) -> AnyArray | None:
    """(n_rows,) weights of a column; refuses text."""
    advice = "weight", "give every row a weight, 0 to leave it out"
    column = _whole_column(path, X, "--sample-weight", name, *advice)
    with refused(f"{path}: --sample-weight {name}: "):
        return None if column is None else converted(column, name, "number", marks)


def _whole_column(
    path: Path, X: Features, option: str, name: str | None, what: str, advice: str
) -> pd.Series | None:
    """The column that an option names, if any; refuses one that is missing or has gaps."""
    if name is None:
        return None
    if name not in getattr(X, "columns", []):
        raise _no_column(path, X, name, option)
    gaps = missing_in(X[name])
    if gaps.any():
        raise InputError(
            f"{path}: {option} {name} has no {what} in {count(int(gaps.sum()), 'row')} of "
            f"{len(gaps)}, first in {row_name(X, int(gaps.argmax()))}; {advice}"
        )
    return X[name]


def _no_column(path: Path, X: Features, name: str, option: str) -> InputError:
    """Error for an option that names no column."""
    columns = getattr(X, "columns", [])
    rest = f" besides the target ({listed(columns, 20)}). {did_you_mean(name, columns)}"
    rest = rest.rstrip(". ") if len(columns) else ": the file has no named columns"
    return InputError(f"{path}: there is no column {name!r} for {option}{rest}")


@dataclass
class Prepared:
    """Rows to fit, as they were read.

    Rows of one label in ``groups`` are held out together; ``weight`` are their weights. ``rows``
    are the numbers of the rows in the file, from 1; ``marks`` are those of numbers in text. For a
    table larger than memory, ``X`` is a
    sample of the rows, ``ranges`` are those of all, and ``blocks`` are all rows, prepared.
    """

    X: Features
    target: Target
    rows: AnyArray
    groups: AnyArray | None = None
    weight: AnyArray | None = None
    marks: Marks = POINT
    ranges: dict[str, list[float]] | None = None
    blocks: RowBlocks | None = None

    @cached_property
    def preprocessor(self) -> TablePreprocessor:
        """A preprocessor that is fitted to the rows."""
        return TablePreprocessor(decimal=self.marks).fit(self.X, ranges=self.ranges)


def prepare_file(request: FitRequest) -> Prepared:
    """The rows of a file; notes on how it is understood go to stderr."""
    path, drop = request.file, list(request.drop or ())
    used = {
        "--groups": (request.groups, "groups"),
        "--time": (request.time, "orders"),
        "--sample-weight": (request.sample_weight, "weighs"),
    }
    for option, (name, does) in used.items():
        if name is not None and name == request.target:
            raise InputError(f"{path}: {option} {name} is the target; name another column")
        if name in drop:
            note(f"{name!r} only {does} rows; it is not a feature")
            drop.remove(name)
    table = read(request, request.target, drop_missing=request.drop_missing_targets)
    X, target, marks = understood(request, table.X, table.y, drop)
    groups = labels_of_groups(path, X, request.groups)
    weight = weights_of_rows(path, X, request.sample_weight, marks)
    times = times_of_rows(path, X, request.time, marks)
    named = {name for name, _ in used.values()} - {None}
    X = X.drop(columns=list(named)) if named else X
    rows = np.arange(X.shape[0]) if issparse(X) else X.index.to_numpy()
    if times is not None:
        if not request.groups and len(np.unique(times)) < len(times):
            note(f"--time {request.time}: rows of one time are held out together")
            _, first, number = np.unique(times, return_index=True, return_inverse=True)
            groups = text(table.X[request.time])[first][number]
        order = np.argsort(times, kind="stable")
        X, rows = X.iloc[order], rows[order]
        target = replace(target, y=target.y[order])
        groups, weight = take_rows(groups, order), take_rows(weight, order)
    prepared = Prepared(X, target, rows + 1, groups, weight, marks)
    if request.duplicates == "group":
        equal = duplicate_groups(matrix_of(prepared.preprocessor, X))
        prepared.groups = joined_groups(group_numbers(groups, len(rows)), equal)
    return prepared


def tell_columns(preprocessor: TablePreprocessor, target: Target) -> None:
    """Notes on columns and labels that may be other than they look; warnings of what is lost."""
    for remark in remarks_in(preprocessor):
        (warning if remark.topic in CHANGED else note)(sentence(remark))
    for text_of_labels in target.notes:
        note(text_of_labels)


def prepare_large(
    request: FitRequest, memory: str | None, beside: Path, stack: ExitStack
) -> Prepared:
    """Table of a file, with columns prepared according to a sample of the rows.

    The matrix is in memory if the sample is the whole table; else it is blocks of rows, for a
    dense table in a file of a folder ``beside`` the model, which the ``stack`` removes. Refuses
    what takes more memory than allowed, such as 2GB.
    """
    most = free_memory()
    if memory is not None:
        amount = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([KMGT]?)B?"
        match = re.fullmatch(amount, memory.strip(), re.IGNORECASE)
        if match is None:
            raise InputError(f"--memory {memory} is not an amount of memory, such as 2GB or 500MB")
        most = int(float(match[1]) * _UNITS[match[2].upper()])
    reader, path = open_file(request, request.target), request.file
    first = first_pass(reader, decimal=request.decimal, drop=request.drop or ())
    sample, target, marks = understood(request, first.sample.X, first.y, request.drop or ())
    rows = np.arange(1, first.n_rows + 1)
    prepared = Prepared(sample, target, rows, marks=marks, ranges=first.ranges)
    n_sampled, in_memory = len(first.places), issparse(sample)
    if n_sampled == first.n_rows:
        return prepared
    size = _SPARSE_SIZE if in_memory else None
    blocks = TableBlocks(reader, prepared.preprocessor, first, size)
    n_outputs = 1 if target.task == "regression" else len(np.unique(target.y))
    given = request.n_landmarks or "auto"
    rank = int(given) if given.isdecimal() else LARGEST_RANK
    needed = bytes_needed(blocks.shape, n_outputs, rank)
    if most is not None and needed > most:
        fits = [m for m in range(1, rank) if bytes_needed(blocks.shape, n_outputs, m) <= most]
        fit = f"--n-landmarks {fits[-1]} fits" if fits else "no number fits: allow more by --memory"
        raise InputError(
            f"{path}: {count(first.n_rows, 'row')} and --n-landmarks {given} take about "
            f"{gigabytes(needed)} of memory, and {gigabytes(most)} may be used; {fit}"
        )
    on_disk = f" and, meanwhile, {gigabytes(8 * prod(blocks.shape))} next to the model"
    note(
        f"{path.name}: {first.n_rows:,} rows in blocks; columns are prepared by a sample of "
        f"{n_sampled:,} rows; about {gigabytes(needed)} of memory{'' if in_memory else on_disk}"
    )
    note(f"rows in blocks are not saved: for intervals or sets, fit up to {SAMPLE:,} rows")
    prepared.blocks = blocks
    if not in_memory:
        with writing(beside, "--output"):
            folder = stack.enter_context(TemporaryDirectory(prefix=".looms-", dir=beside))
            prepared.blocks = blocks.stored(Path(folder) / "X.npy", _SIZE)
    return prepared


def bytes_needed(shape: tuple[int, int], n_outputs: int, rank: int) -> int:
    """Approximate memory of a fit: the program, m × m matrices, working blocks, columns of rows,
    and the quarter of the rows on which a search runs before all of them.

    The counts of matrices and columns are from fits with 2,000,000 rows and with 1000 landmarks.
    Two classes have one output.
    """
    (n_rows, n_features), threads = shape, available_threads()
    columns = 20 + 10 * (1 if n_outputs == 2 else n_outputs)
    matrices = (30 + 4 * threads) * (rank + 1) ** 2
    at_work = 8 * threads * _SIZE * rank
    subset = n_features * max(n_rows // 4, 20 * rank)
    return 420 * 10**6 + 8 * (matrices + at_work + subset + columns * n_rows)
