"""What every reader makes, and what every reader refuses."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from scipy import sparse


class TableError(ValueError):
    """A file that cannot be read as a table: which one, what is wrong, what to do.

    Parameters
    ----------
    path : path
        The file.
    problem : str
        What is wrong with it, without a full stop.
    advice : str
        What to do about it, as a sentence.
    """

    def __init__(self, path: Path, problem: str, advice: str) -> None:
        name = str(path) if str(path).isprintable() else repr(str(path))
        super().__init__(f"{name}: {problem}. {advice}")
        self.path = path
        self.problem = problem
        self.advice = advice


@dataclass(frozen=True)
class Table:
    """Features and target of one file.

    Attributes
    ----------
    X : pandas.DataFrame or scipy.sparse.csr_array
        The features: a data frame for dense formats, where missing values are missing as pandas
        has it; a sparse array for svmlight files and sparse challenge files.
    y : pandas.Series or ndarray or None
        The target, without missing values. None when no target was asked for or the file of the
        labels is not there.
    name : str
        The file's name without folder and suffixes.
    notes : tuple of str
        What a reader should know of the reading: the separator, decimal mark and encoding that
        were detected, if not the plain ones, and columns of numbers that were left as text.
    """

    X: pd.DataFrame | sparse.csr_array
    y: pd.Series | np.ndarray[Any, Any] | None
    name: str
    notes: tuple[str, ...] = ()


def check_columns(columns: Sequence[str], path: Path) -> None:
    """Refuse column names that are empty or appear twice."""
    twice = [name for name, times in Counter(columns).items() if times > 1]
    if twice:
        raise TableError(
            path,
            f"more than one column is called {listed(twice)}",
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
    frame: pd.DataFrame, target: str | None, path: Path, notes: tuple[str, ...] = ()
) -> Table:
    """Divide the columns of a data frame into features and target."""
    if not len(frame):
        raise TableError(path, "there are no rows of data", "Give a file with rows of data.")
    if target is None:
        return Table(frame, None, table_name(path), notes)
    if target not in frame.columns:
        raise _target_missing(list(frame.columns), target, path)
    y = frame[target]
    gaps = y.isna().to_numpy()
    if gaps.any():
        raise TableError(
            path,
            f"the target {target!r} is missing in {gaps.sum()} of {len(y)} rows, "
            f"first in data row {int(gaps.argmax()) + 1}",
            "Remove the rows whose target is not known.",
        )
    X = frame.drop(columns=target)
    if not X.shape[1]:
        raise TableError(
            path,
            f"there is no column beside the target {target!r}",
            "Give a file with at least one column of features.",
        )
    return Table(X, y, table_name(path), notes)


def refuse_target(target: str | None, path: Path, why: str) -> None:
    """Refuse the name of a target where the format itself says what the target is."""
    if target is not None:
        raise TableError(
            path, f"the target cannot be chosen: {why}", f"Leave out the target {target!r}."
        )


def table_name(path: Path) -> str:
    """Name of a file without folder and suffixes (``.gz`` included)."""
    stem = Path(path.stem) if path.suffix == ".gz" else path
    return stem.stem or stem.name


def listed(names: Sequence[str], limit: int = 20) -> str:
    """Names, quoted, with the surplus counted."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def _target_missing(columns: list[str], target: str, path: Path) -> TableError:
    lowered = {name.lower(): name for name in reversed(columns)}
    close = [lowered[name] for name in difflib.get_close_matches(target.lower(), list(lowered), 3)]
    meant = f"Did you mean {listed(close)}? " if close else ""
    if all(_is_number(name) for name in columns):
        meant = "The first line must hold the names of the columns, and it holds numbers. "
    return TableError(
        path,
        f"there is no column {target!r} to be the target",
        f"{meant}The columns are {listed(columns)}.",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
