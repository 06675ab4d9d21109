"""The table that every reader returns, and checks that all readers share."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import pyarrow as pa

from looms._advice import setting
from looms._files import FileError
from looms._typing import AnyArray
from looms._words import count, listed
from looms.tables._cells import EXACT, Marks, missing_in, number_of, text_of

if TYPE_CHECKING:
    from scipy import sparse

#: Type of columns of cells as they are written in a file of text.
WRITTEN = pandas.ArrowDtype(pa.large_string())


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


@dataclass(frozen=True)
class Table:
    """Features and target of one file.

    Attributes
    ----------
    X : pandas.DataFrame or scipy.sparse.csr_array
        Features: a data frame for dense formats, of cells as they are in the file: text as it is
        written, or typed; a sparse array for svmlight and npz files.
    y : pandas.Series or ndarray or None
        Target, without gaps. None if there is no target and no file of labels.
    name : str
        Name of the file without folder and suffixes.
    notes : tuple of str
        The detected separator and encoding, if unusual, and rows that were left out.
    kept : dict of str to list
        Cells of the columns to keep, as the text in the file, None for a cell that is not there.
    """

    X: pandas.DataFrame | sparse.csr_array
    y: pandas.Series | AnyArray | None
    name: str
    notes: tuple[str, ...] = ()
    kept: dict[str, list[str | None]] = field(default_factory=dict)


def check_columns(columns: Sequence[str], path: Path) -> None:
    """Raise TableError for column names that are empty or appear twice."""
    nameless = [place for place, name in enumerate(columns, start=1) if not name.strip()]
    if nameless:
        raise TableError(
            path,
            f"column {nameless[0]} has no name",
            "Name it, or remove it if it only numbers the rows (pandas writes such a column unless "
            "told index=False, R unless told row.names=FALSE). Lines above the names must go, too.",
        )
    twice = [name for name, times in Counter(columns).items() if times > 1]
    if twice:
        problem = f"more than one column is called {listed(twice, 20)}"
        raise TableError(path, problem, "Give every column a name of its own.")


def checked(table: Table, path: Path, drop_missing: bool) -> Table:
    """A whole table with its target checked; rows without one are left out if so asked."""
    X: Any = table.X
    y: Any = table.y
    if y is None:
        return table
    present = ~missing_in(pandas.Series(y))
    n = int(present.sum())
    if drop_missing and 0 < n < len(present):  # if none is, the check of the target tells
        remark = (
            f"{count(len(present) - n, 'row')} of {len(present)} left out, because {_called(y)} "
            "is missing there"
        )
        kept = {name: list(compress(cells, present)) for name, cells in table.kept.items()}
        y = y[present]
        table = replace(table, X=X[present], y=y, notes=(*table.notes, remark), kept=kept)
    check_target(y, path)
    return table if hasattr(y, "name") else replace(table, y=whole_target(y))


def split_target(
    frame: pandas.DataFrame, target: str | None, path: Path, keep: Sequence[str] = ()
) -> Table:
    """Features and target of some rows, the target not checked."""
    for name, role in [*((name, "to keep") for name in keep), (target, "to be the target")]:
        if name is not None and name not in frame.columns:
            raise _column_missing(list(frame.columns), name, role, path)
    kept = {name: _texts(frame[name]) for name in keep}
    if target is None:
        return Table(frame, None, table_name(path), kept=kept)
    X = frame.drop(columns=target)
    if not X.shape[1]:
        problem = f"there is no column besides the target {target!r}"
        raise TableError(path, problem, "Give a file with at least one column of features.")
    return Table(X, frame[target], table_name(path), kept=kept)


def _texts(column: pandas.Series) -> list[str | None]:
    """Cells as text; those that are text keep the blanks around them."""
    cells = zip(column, column.isna(), strict=True)
    return [None if gap else c if isinstance(c, str) else text_of(c) for c, gap in cells]


def no_rows(path: Path) -> TableError:
    """Error for a table without rows."""
    return TableError(path, "there are no rows of data", "Give a file with rows of data.")


def check_target(y: pandas.Series | AnyArray, path: Path) -> None:
    """Raise TableError for a target with gaps or infinite values."""
    rows = "data row" if getattr(y, "name", None) else "row"
    is_float = y.dtype.kind == "f"
    infinite = pandas.Series(y).isin([np.inf, -np.inf]).to_numpy() if is_float else np.array(False)
    drop = setting("drop_missing_targets", True)
    for wrong, what, remedy in (
        (missing_in(pandas.Series(y)), "missing", f"is not known, or leave them out by {drop}"),
        (infinite, "infinite", "is not a finite number"),
    ):
        if wrong.any():
            raise TableError(
                path,
                f"{_called(y)} is {what} in {wrong.sum()} of {len(y)} rows, first in {rows} "
                f"{int(wrong.argmax()) + 1}",
                f"Remove the rows whose target {remedy}.",
            )


def _called(y: Any) -> str:
    name = getattr(y, "name", None)
    return f"the target {name!r}" if name else "the target"


def whole_target(y: AnyArray) -> AnyArray:
    """Target, as integers if all are whole numbers."""
    whole = np.all(y == np.round(y)) and np.all(np.abs(y) < EXACT)
    return y.astype(np.int64) if whole else y


def table_name(path: Path) -> str:
    """Name of a file without folder and suffixes (``.gz`` included)."""
    stem = Path(path.stem) if path.suffix == ".gz" else path
    return stem.stem or stem.name


def first_line(error: Exception) -> str:
    """First line of a library's message, shortened."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:160]


def number(token: str) -> float:
    """Number that a token of a format that declares numbers is; ValueError with the reason if it is
    none.
    """
    value = number_of(token, Marks(), strict=True)
    unsigned = token.lstrip("+-").lower()
    if math.isnan(value) and unsigned != "nan":
        raise ValueError("is not a number")
    if math.isinf(value) and not unsigned.startswith("inf"):
        raise ValueError("is too large a number")
    return value


def shown(token: str) -> str:
    """A token in quotation marks, shortened."""
    return repr(token if len(token) <= 40 else f"{token[:37]}...")


def did_you_mean(name: str, columns: Iterable[str]) -> str:
    """A question after columns of a similar name, and a blank; empty without any."""
    lowered = {column.lower(): column for column in reversed(list(columns))}
    close = [lowered[match] for match in difflib.get_close_matches(name.lower(), list(lowered), 3)]
    return f"Did you mean {listed(close)}? " if close else ""


def _column_missing(columns: list[str], name: str, role: str, path: Path) -> TableError:
    meant = did_you_mean(name, columns)
    if pandas.to_numeric(pandas.Series(columns), errors="coerce").notna().all():
        meant = "The first line must hold the names of the columns, but it holds numbers. "
    if len(columns) == 1 and name in columns[0]:
        meant = f"Set the separator by {setting('sep', ...)}. "
    advice = f"{meant}The columns are {listed(columns, 20)}."
    return TableError(path, f"there is no column {name!r} {role}", advice)
