"""The table that every reader returns, and checks that all readers share."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas

from looms._files import FileError
from looms._typing import AnyArray
from looms._words import count, listed

if TYPE_CHECKING:
    from scipy import sparse


class TableError(FileError):
    """Error for a file that cannot be read as a table.

    Examples
    --------
    >>> from looms.datasets import TableError, read_table
    >>> try:
    ...     read_table("missing.csv")
    ... except TableError as error:
    ...     print(error)
    missing.csv: there is no such file. Check the name and the folder.
    """


class MissingTargetError(TableError):
    """Target that is missing in some rows of a table."""


@dataclass(frozen=True)
class Table:
    """Features and target of one file.

    Attributes
    ----------
    X : pandas.DataFrame or scipy.sparse.csr_array
        Features: a data frame for dense formats, with pandas' missing values; a sparse array for
        svmlight and npz files.
    y : pandas.Series or ndarray or None
        Target, without missing values. None if there is no target and no file of labels.
    name : str
        Name of the file without folder and suffixes.
    notes : tuple of str
        The detected separator, decimal mark and encoding, if unusual, and columns of numbers that
        were left as text.
    kept : dict of str to list
        Cells of the columns to keep, as the text in the file, None for a gap.
    words : dict of tuple
        For each column of text, the place in the file, from 0, and the text of the first cell that
        is not a number; empty for formats that declare types.
    """

    X: pandas.DataFrame | sparse.csr_array
    y: pandas.Series | AnyArray | None
    name: str
    notes: tuple[str, ...] = ()
    kept: dict[str, list[str | None]] = field(default_factory=dict)
    words: Mapping[str, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """Columns of a file, typed and as text.

    Attributes
    ----------
    frame : pandas.DataFrame
        Columns as numbers, dates, text and so on.
    text : callable
        Returns the cells of a column, by its name, as the text in the file; None for a gap.
    notes : tuple of str
        Notes like those of `Table`.
    noted : tuple of str
        For each note of a part of the rows, the column that it is on.
    words : mapping of tuple
        As in `Table`.
    """

    frame: pandas.DataFrame
    text: Callable[[str], list[str | None]]
    notes: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    words: Mapping[str, tuple[int, str]] = field(default_factory=dict)


def check_columns(columns: Sequence[str], path: Path) -> None:
    """Raise TableError for column names that are empty or appear twice."""
    twice = [name for name, times in Counter(columns).items() if times > 1]
    if twice:
        raise TableError(
            path,
            f"more than one column is called {listed(twice, 20)}",
            "Give every column a name of its own.",
        )
    nameless = [place for place, name in enumerate(columns, start=1) if not name.strip()]
    if nameless:
        raise TableError(
            path,
            f"column {nameless[0]} has no name",
            "Name it, or remove it if it only numbers the rows "
            "(pandas writes such a column unless told index=False).",
        )


def split_target(
    columns: Columns,
    target: str | None,
    path: Path,
    keep: Sequence[str] = (),
    drop_missing: bool = False,
) -> Table:
    """Features and target from the columns of a file; ``drop_missing`` is of targets."""
    if not len(columns.frame):
        raise no_rows(path)
    table = divided(columns, target, path, keep)
    if target is None:
        return table
    X: Any = table.X
    y: Any = table.y
    known = y.notna().to_numpy()
    if drop_missing and 0 < known.sum() < len(known):  # if none is, the check of the target tells
        remark = (
            f"{count(int((~known).sum()), 'row')} of {len(known)} left out, because the target "
            f"{target!r} is missing there"
        )
        kept = {name: list(compress(cells, known)) for name, cells in table.kept.items()}
        y = y[known]
        table = replace(table, X=X[known], y=y, notes=(*table.notes, remark), kept=kept)
    check_target(y, path, f"the target {target!r}", "data row")
    return table


def divided(columns: Columns, target: str | None, path: Path, keep: Sequence[str] = ()) -> Table:
    """Features and target of some rows, the target not checked."""
    frame, notes = columns.frame, columns.notes
    for name in keep:
        if name not in frame.columns:
            raise _column_missing(list(frame.columns), name, "keep", path)
    kept = {name: columns.text(name) for name in keep}
    if target is None:
        return Table(frame, None, table_name(path), notes, kept, columns.words)
    if target not in frame.columns:
        raise _column_missing(list(frame.columns), target, "be the target", path)
    X = frame.drop(columns=target)
    if not X.shape[1]:
        raise TableError(
            path,
            f"there is no column besides the target {target!r}",
            "Give a file with at least one column of features.",
        )
    return Table(X, frame[target], table_name(path), notes, kept, columns.words)


def no_rows(path: Path) -> TableError:
    """Error for a table without rows."""
    return TableError(path, "there are no rows of data", "Give a file with rows of data.")


def check_target(
    y: pandas.Series | AnyArray, path: Path, name: str = "the target", rows: str = "row"
) -> None:
    """Raise TableError for a target with gaps or infinite values."""
    values = pandas.Series(y)
    infinite = values.isin([float("inf"), -float("inf")])
    for wrong, what, which in (
        (values.isna(), "missing", "is not known"),
        (infinite, "infinite", "is not a finite number"),
    ):
        if wrong.any():
            error = MissingTargetError if what == "missing" else TableError
            raise error(
                path,
                f"{name} is {what} in {wrong.sum()} of {len(values)} rows, "
                f"first in {rows} {int(wrong.to_numpy().argmax()) + 1}",
                f"Remove the rows whose target {which}.",
            )


def table_name(path: Path) -> str:
    """Name of a file without folder and suffixes (``.gz`` included)."""
    stem = Path(path.stem) if path.suffix == ".gz" else path
    return stem.stem or stem.name


def first_line(error: Exception) -> str:
    """First line of a library's message, shortened."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:160]


def labels_beside(path: Path) -> Path | None:
    """File of the labels in the folder of a file of data, if it exists."""
    stem = path.with_suffix("") if path.suffix == ".gz" else path
    for suffix in (".labels", ".labels.gz"):
        labels = stem.with_suffix(suffix)
        if labels != path and os.path.exists(labels):
            return labels
    return None


def did_you_mean(name: str, columns: Iterable[str]) -> str:
    """A question after columns of a similar name, and a blank; empty without any."""
    lowered = {column.lower(): column for column in reversed(list(columns))}
    close = [lowered[each] for each in difflib.get_close_matches(name.lower(), list(lowered), 3)]
    return f"Did you mean {listed(close)}? " if close else ""


def _column_missing(columns: list[str], name: str, role: str, path: Path) -> TableError:
    meant = did_you_mean(name, columns)
    if pandas.to_numeric(pandas.Series(columns), errors="coerce").notna().all():
        meant = "The first line must hold the names of the columns, but it holds numbers. "
    return TableError(
        path,
        f"there is no column {name!r} to {role}",
        f"{meant}The columns are {listed(columns, 20)}.",
    )
