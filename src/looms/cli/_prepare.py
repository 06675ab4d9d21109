"""Turns a file into what the models take: a table or blocks of it, columns and target."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse

from looms._checks import some_of
from looms._memory import free_memory
from looms._threads import available_threads
from looms._typing import AnyArray
from looms._words import count, listed
from looms.blocks import RowBlocks
from looms.cli._errors import InputError
from looms.cli._options import Columns, Source
from looms.cli._output import as_messages, note, warning, writing
from looms.cli._target import Features, Target, is_number, target_of, text
from looms.datasets import open_table, read_table
from looms.datasets._large import SAMPLE, TableBlocks, first_pass
from looms.datasets._rows import RowReader
from looms.datasets._table import MissingTargetError, Table
from looms.duplicates import duplicate_groups
from looms.folds import group_numbers, joined_groups
from looms.selection._low_rank import LARGEST_RANK
from looms.tables import TablePreprocessor
from looms.tables._kinds import read_column
from looms.tables._preprocessor import remarks_in
from looms.tables._remarks import sentence

if TYPE_CHECKING:
    import pandas as pd

    from looms.cli._request import ModelRequest

#: Rows in a working block of a dense table, and of a sparse one, which every sweep reads again.
_SIZE, _SPARSE_SIZE = 512, 2048
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def read(
    source: Source, target: str | None, keep: Sequence[str] = (), drop_missing: bool | None = None
) -> Table:
    """The table of a file, read according to the options, with notes on what was detected.

    ``drop_missing`` leaves out rows without a target; None for a command without that option.
    """
    options = source.options() | {"drop_missing_targets": bool(drop_missing)}
    with offering_to_drop(drop_missing is not None), as_messages():
        table = read_table(source.file, target, keep=keep, **options)
    tell(source, table.notes)
    return table


def tell(source: Source, remarks: Iterable[str]) -> None:
    """Notes on what was detected in a file."""
    for remark in remarks:
        note(f"{source.file.name}: {remark}")


@contextmanager
def offering_to_drop(offered: bool = True) -> Iterator[None]:
    """Adds the option that leaves rows without a target out to an error about them."""
    try:
        yield
    except InputError as error:
        if not (offered and isinstance(error.__cause__, MissingTargetError)):
            raise
        raise InputError(f"{error} Or leave them out by --drop-missing-targets.") from error


def open_file(source: Source, target: str | None, keep: Sequence[str] = ()) -> RowReader:
    """Reader of a file in blocks, according to the options, with notes on what was detected."""
    with as_messages():
        reader = open_table(source.file, target, keep=keep, **source.options())
    tell(source, reader.notes)
    return reader


def read_training(
    source: Source, columns: Columns, groups: str | None
) -> tuple[Table, AnyArray | None]:
    """The table of a file without the columns to drop, and labels of groups, if a column has them.

    Refuses a table without a target.
    """
    path, labels = source.file, None
    table = read(source, columns.target, drop_missing=columns.drop_missing_targets)
    table = replace(table, X=without(table.X, columns.drop or (), path))
    if groups:
        labels = labels_of_groups(path, table, groups)
        table = replace(table, X=table.X.drop(columns=groups))
    if table.y is None:
        raise no_target(path, table.X)
    return table, labels


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
        f"{f' ({columns})' if columns else ''}; for npz data put their .labels "
        "file in the same folder"
    )


def labels_of_groups(path: Path, table: Table, name: str) -> AnyArray:
    """(n_rows,) labels of a column as text; refuses gaps."""
    advice = "no label", "give every row a group, one of its own if it belongs to no other"
    return text(_whole_column(path, table, "--groups", name, *advice))


def times_of_rows(path: Path, table: Table, name: str) -> AnyArray:
    """(n_rows,) numbers of a column, dates as days; refuses gaps, text, and a single time."""
    column = _whole_column(path, table, "--time", name, "no time", "leave these rows out")
    with as_messages():
        kinds, values, _ = read_column(column, name)
    if kinds == ("category",) or len(kinds) != 1:
        why = f"holds {str(column.iloc[0])!r} in data row 1, which is neither a number nor a date"
        if not kinds:
            why = "is the same in every row"
        elif len(kinds) > 1:
            why = "has dates in which either number may be the day"
        raise InputError(
            f"{path}: --time {name} {why}; write dates as 2021-12-31, or number the rows in order"
        )
    return values


def weights_of_rows(path: Path, table: Table, name: str) -> AnyArray:
    """(n_rows,) weights of a column; refuses gaps and text."""
    advice = "no weight", "give every row a weight, 0 to leave it out"
    column = _whole_column(path, table, "--sample-weight", name, *advice)
    if not is_number(column):
        raise InputError(
            f"{path}: --sample-weight {name} holds {str(column.iloc[0])!r} in data row 1: weights "
            "are numbers"
        )
    return np.asarray(column, dtype=float)


def _whole_column(
    path: Path, table: Table, option: str, name: str, nothing: str, advice: str
) -> pd.Series:
    """The column that an option names; refuses a column that is missing or has gaps."""
    if name not in getattr(table.X, "columns", []):
        columns = listed(getattr(table.X, "columns", []), 20)
        raise InputError(
            f"{path}: there is no column {name!r} for {option}"
            + (f" besides the target ({columns})" if columns else ": the file has no named columns")
        )
    gaps = table.X[name].isna().to_numpy()
    if gaps.any():
        raise InputError(
            f"{path}: {option} {name} has {nothing} in {count(int(gaps.sum()), 'row')} of "
            f"{len(gaps)}, first in data row {table.X.index[int(gaps.argmax())] + 1}; {advice}"
        )
    return table.X[name]


@dataclass(frozen=True)
class Prepared:
    """Rows to fit, as they were read.

    Rows of one label in ``groups`` are held out together; ``weight`` are their weights. ``rows``
    are the numbers of the rows in the file, from 1. For a table larger than memory, ``X`` is a
    sample of the rows, and ``blocks`` are all rows, prepared by ``preprocessor``; it is None if it
    has yet to be fitted.
    """

    X: Features
    target: Target
    rows: AnyArray
    groups: AnyArray | None = None
    weight: AnyArray | None = None
    preprocessor: TablePreprocessor | None = None
    blocks: RowBlocks | None = None

    @property
    def sparse(self) -> bool:
        """True for a sparse table."""
        return bool(issparse(self.X))

    @property
    def fit_options(self) -> dict[str, AnyArray]:
        """Groups and weights as options of ``fit``, if there are any."""
        given = {"groups": self.groups, "sample_weight": self.weight}
        return {name: value for name, value in given.items() if value is not None}

    def prepared_columns(self) -> TablePreprocessor:
        """A preprocessor that is fitted to the rows."""
        if self.preprocessor is not None:
            return self.preprocessor
        with as_messages():
            return TablePreprocessor().fit(self.X)


def prepare_file(source: Source, columns: Columns, request: ModelRequest) -> Prepared:
    """The rows of a file; notes on how it is understood go to stderr."""
    table, groups = read_training(source, columns, request.groups)
    known, X, weight, path = target_of(table.y, request.task), table.X, None, source.file
    note(f"{known.task}: {known.reason}")
    if request.sample_weight is not None:
        weight = weights_of_rows(path, replace(table, X=X), request.sample_weight)
        X = X.drop(columns=request.sample_weight)
    rows = np.arange(X.shape[0]) if issparse(X) else X.index.to_numpy()
    if request.time is not None:
        times = times_of_rows(path, table, request.time)
        order = np.argsort(times, kind="stable")
        X, known = X.drop(columns=request.time).iloc[order], replace(known, y=known.y[order])
        if not request.groups and len(np.unique(times)) < len(times):
            note(f"--time {request.time}: rows of one time are held out together")
            groups = times
        rows, groups, weight = rows[order], some_of(groups, order), some_of(weight, order)
    prepared = Prepared(X, known, rows + 1, groups, weight)
    if request.duplicates == "ignore":
        return prepared
    before = prepared.prepared_columns()
    labels = group_numbers(groups, len(rows))
    together = joined_groups(labels, duplicate_groups(before.transform(X)))
    return replace(prepared, groups=together, preprocessor=before)


def tell_columns(preprocessor: TablePreprocessor, target: Target) -> None:
    """Notes on columns and labels that may be other than they look."""
    for topic, remark in column_notes(preprocessor):
        (warning if topic == "words" else note)(remark)
    for remark in target.notes:
        note(remark)


def column_notes(preprocessor: TablePreprocessor) -> list[tuple[str, str]]:
    """Topic and text of the remarks on columns, with advice in terms of options."""
    remarks = remarks_in(preprocessor)
    return [(each.topic, sentence(each, _advice(each.columns))) for each in remarks]


def _advice(columns: Sequence[str]) -> dict[str, str]:
    """What to do about a remark on columns, by its topic, in terms of options."""
    option = f"--groups {shlex.quote(columns[0])}" if len(columns) == 1 else "--groups"
    return {
        "dates": "; leave it out by --drop unless new rows have the same dates, and if rows "
        "resemble the next ones, hold out windows of time by --time",
        "identifiers": "; if this is an identifier, which says nothing about new rows, leave it "
        "out by --drop",
        "repeated": f"hold them out together by {option}",
    }


def memory_of(option: str | None) -> int | None:
    """Number of bytes that an option such as 2GB means."""
    if option is None:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([KMGT]?)B?", option.strip(), re.I)
    if match is None:
        raise InputError(f"--memory {option} is not an amount of memory, such as 2GB or 500MB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def prepare_large(
    source: Source,
    columns: Columns,
    request: ModelRequest,
    memory: int | None,
    beside: Path,
    stack: ExitStack,
) -> Prepared:
    """Table of a file, with columns prepared according to a sample of the rows.

    The matrix is in memory if the sample is the whole table; else it is blocks of rows, for a
    dense table in a file of a folder ``beside`` the model, which the ``stack`` removes. Refuses
    what takes more memory than allowed.
    """
    reader, path = open_file(source, columns.target), source.file
    with offering_to_drop(), as_messages():
        first = first_pass(reader)
    tell(source, first.notes[len(reader.notes) :])
    if first.y is None:
        raise no_target(path, first.sample.X)
    sample = without(first.sample.X, columns.drop or (), path)
    known = target_of(first.y, request.task)
    note(f"{known.task}: {known.reason}")
    with as_messages():
        before = TablePreprocessor().fit(sample, ranges=first.ranges)
    prepared = Prepared(sample, known, np.arange(1, first.n_rows + 1), preprocessor=before)
    n_sampled = len(first.places)
    if n_sampled == first.n_rows:
        return prepared
    size = _SPARSE_SIZE if issparse(sample) else None
    with as_messages():
        blocks = TableBlocks(reader, before, first, size)
    n_classes = 1 if known.task == "regression" else len(np.unique(known.y))
    n_outputs = 1 if n_classes == 2 else n_classes
    given = request.n_landmarks or "auto"
    rank = int(given) if given.isdecimal() else LARGEST_RANK
    most = memory or free_memory()
    needed = bytes_needed(blocks.shape, n_outputs, rank)
    if most is not None and needed > most:
        fits = [m for m in range(1, rank) if bytes_needed(blocks.shape, n_outputs, m) <= most]
        cure = (
            f"--n-landmarks {fits[-1]} fits" if fits else "no number fits: allow more by --memory"
        )
        raise InputError(
            f"{path}: {count(first.n_rows, 'row')} and --n-landmarks {given} take about "
            f"{needed / 1e9:.2g} GB of memory, and {most / 1e9:.2g} may be used; {cure}"
        )
    on_disk = 0 if issparse(sample) else 8 * blocks.shape[0] * blocks.shape[1]
    note(
        f"{path.name}: {first.n_rows:,} rows in blocks; columns are prepared by a sample of "
        f"{n_sampled:,} rows; about {needed / 1e9:.2g} GB of memory"
        + (f" and, meanwhile, {on_disk / 1e9:.2g} GB next to the model" if on_disk else "")
    )
    note(
        "rows in blocks are not saved, so looms predict may have no --confidence-level; for "
        f"intervals or sets, fit a sample of up to {SAMPLE:,} rows"
    )
    if on_disk:
        with writing(beside, "--output"), as_messages():
            folder = stack.enter_context(TemporaryDirectory(prefix=".looms-", dir=beside))
            return replace(prepared, blocks=blocks.stored(Path(folder) / "X.npy", _SIZE))
    return replace(prepared, blocks=blocks)


def bytes_needed(shape: tuple[int, int], n_outputs: int, rank: int) -> int:
    """Approximate memory of a fit: the program, m × m matrices, working blocks, columns of rows,
    and the quarter of the rows on which a search runs before all of them.

    The counts of matrices and columns are from fits with 2,000,000 rows and with 1000 landmarks.
    """
    (n_rows, n_features), threads = shape, available_threads()
    matrices = (30 + 4 * threads) * (rank + 1) ** 2
    at_work = 8 * threads * _SIZE * rank
    subset = n_features * max(n_rows // 4, 20 * rank)
    return 420 * 10**6 + 8 * (matrices + at_work + subset + (20 + 10 * n_outputs) * n_rows)
