"""Values that the fit of a preprocessor did not see: far outside its ranges, or new categories."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from looms._advice import setting
from looms._typing import AnyArray, Matrix
from looms._words import count, listed
from looms.tables._cells import (
    Cells,
    Marks,
    is_number_by_either,
    may_be_grouped,
    may_hold_text,
    number_of,
    other_mark,
)
from looms.tables._frames import columns_of, names_in, places_of
from looms.tables._preprocessor import Parts, TablePreprocessor
from looms.tables._remarks import DATES, date_remarks

#: A value is far outside if it exceeds the training range by this share of its width.
FAR = 0.25
#: Largest number of notes on columns, and of columns in a note.
MOST_NOTES = MOST_COLUMNS = 5


class Note(NamedTuple):
    """Remark on new rows, which is serious if it holds for all, or a number may be another."""

    text: str
    serious: bool = False


@dataclass
class _Far:
    """Values of a column far outside its range: in how many and which rows, and the furthest."""

    rows: Any
    n: int = 0
    beyond: float = 0.0
    furthest: float = 0.0


class UnseenValues:
    """Values of rows that the fit of a preprocessor did not see, counted block by block.

    Parameters
    ----------
    preprocessor : TablePreprocessor
        Fitted.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.

    Notes
    -----
    A value counts if it lies outside ``ranges_`` by more than a quarter of their width, a category
    if `TablePreprocessor.fit` did not meet it. In sparse matrices only the rows are counted.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1, 2, None], "color": ["red", "blue", "red"]})
    >>> unseen = UnseenValues(TablePreprocessor().fit(table))
    >>> matrix = unseen.add(pd.DataFrame({"size": [1, 5], "color": ["blue", "blue"]}))
    >>> matrix.shape
    (2, 4)
    >>> print(unseen.notes()[0].text[:67])
    in 1 of 2 rows 'size' is far outside its training range, 1 to 2, fu
    """

    def __init__(self, preprocessor: TablePreprocessor) -> None:
        self.n_rows = self._n_empty = 0
        self._preprocessor = preprocessor
        self._other_mark: tuple[int, str] | None = None
        self._unclear: tuple[int, str] | None = None
        self._numbers = preprocessor.kinds_.numbers
        self._valued: dict[str, bool] = dict.fromkeys(preprocessor.kinds_, False)
        self._far = {name: _Far(hashlib.sha256()) for name in self._numbers}
        self._unseen: dict[str, tuple[int, object]] = {}
        self._seen = {
            name: {*preprocessor._values[name], *preprocessor._rare[name]} - {None}
            for name in preprocessor.kinds_.categories
        }

    def add(self, X: Any) -> Matrix:
        """Matrix of some rows, which are counted.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The next rows, as for `TablePreprocessor.transform`.

        Returns
        -------
        matrix : ndarray or sparse matrix of shape (n_samples, n_features)
            What `TablePreprocessor.transform` gives; each cell is converted once.

        Raises
        ------
        ValueError
            As in `TablePreprocessor.transform`.
        """
        return self._preprocessor._matrix(self.count(X))

    def count(self, X: Any) -> Parts | Matrix:
        """Parts of some rows, which are counted, without their matrix."""
        parts = self._preprocessor._parts(X)
        self._add_marks(X)
        self.n_rows += (parts.numbers if isinstance(parts, Parts) else parts).shape[0]
        if isinstance(parts, Parts):
            empty = np.array(np.isnan(parts.numbers).all(axis=1))
            for name, values in zip(self._numbers, parts.numbers.T, strict=True):
                self._add_numbers(name, values)
            for name, texts in zip(self._seen, parts.texts.T, strict=True):
                is_text = np.array([isinstance(text, str) for text in texts], dtype=bool)
                self._add_texts(name, texts[is_text].tolist())
                empty &= ~is_text
            self._n_empty += int(empty.sum())
        return parts

    def _add_marks(self, X: Any) -> None:
        """Look for text of numbers with another decimal mark than in the fit, and for unclear ones.

        Each is read by itself; but where there are such, an unclear one may be another number.
        """
        columns = self._preprocessor.kinds_
        mark = other_mark(columns.decimal)
        numbers = [name for name, kind in columns.items() if kind == "number"]
        text = {}
        for name, column in zip(numbers, _pandas_columns(X, numbers), strict=False):
            if may_hold_text(column):
                text[name] = Cells(column)
        for name, cells in text.items() if self._other_mark is None else ():
            marks = columns.marks_of(name)
            if cells.holds(mark):
                found = cells.first(partial(_needs_other_mark, marks))
                self._other_mark = found or self._other_mark
        for name, cells in text.items() if self._other_mark and not self._unclear else ():
            if name not in columns.thousands and cells.holds(columns.decimal):
                self._unclear = cells.first(may_be_grouped) or self._unclear

    def _add_numbers(self, name: str, values: AnyArray) -> None:
        low, high = self._preprocessor.ranges_[name]
        self._valued[name] |= not np.isnan(values).all()
        beyond = np.fmax(low - values, values - high)
        far = beyond > FAR * (high - low)
        outside = self._far[name]
        outside.rows.update(far.tobytes())
        outside.n += int(far.sum())
        if far.any() and np.nanmax(beyond) > outside.beyond:
            outside.beyond = float(np.nanmax(beyond))
            outside.furthest = float(values[np.nanargmax(beyond)])

    def _add_texts(self, name: str, given: list[str]) -> None:
        self._valued[name] |= bool(given)
        seen = self._seen[name]
        unseen = [text for text in given if text not in seen]
        if unseen:
            n, first = self._unseen.get(name, (0, unseen[0]))
            self._unseen[name] = n + len(unseen), first

    @property
    def mark_note(self) -> str:
        """Sentence on numbers with another decimal mark than in the fit, if one may be another."""
        if self._other_mark is None or self._unclear is None:
            return ""
        return (
            f"{self._other_mark[1]!r} has another decimal mark than in the fit, and "
            f"{self._unclear[1]!r}, which is read as in the fit, may be another number: name the "
            f"mark by {setting('decimal', ...)}"
        )

    @property
    def new_values(self) -> dict[str, object]:
        """The first value that no training row has, of each column with such values."""
        return {name: first for name, (_, first) in self._unseen.items()}

    def notes(self) -> tuple[Note, ...]:
        """Notes on dates, empty columns, values far outside their range, and new categories.

        Returns
        -------
        notes : tuple of Note
            Those on most rows first, and a count of the rest.
        """
        kinds = self._preprocessor.kinds_
        notes = [Note(remark.text) for remark in date_remarks(kinds)]
        empty = [name for name, valued in self._valued.items() if not valued]
        if empty:
            text = f"no row has a value of {listed(empty)}: typical values are used instead"
            notes.append(Note(text))
        if 0 < self._n_empty < self.n_rows:
            of_all = f"{self._n_empty} of {count(self.n_rows, 'row')}"
            notes.append(Note(f"{of_all} hold nothing: typical values are used instead"))
        if self._other_mark is not None:
            cell = self._other_mark[1]
            usual = f"{cell!r} is read with another decimal mark than in the fit"
            notes.append(Note(self.mark_note or usual, serious=bool(self.mark_note)))
        remarks = sorted(self._counted_remarks(), key=lambda counted: -counted[0])
        notes += [Note(text, self._in_all(n)) for n, text in remarks[:MOST_NOTES]]
        if len(remarks) > MOST_NOTES:
            notes.append(Note(f"{len(remarks) - MOST_NOTES} more such notes are not shown"))
        return tuple(notes)

    def _in_all(self, n: int) -> bool:
        return n == self.n_rows > 1

    def _counted_remarks(self) -> Iterator[tuple[int, str]]:
        """Number of rows and remark, for values far outside their range and for new categories."""

        def where(n: int) -> str:
            of_all = count(self.n_rows, "row")
            return f"in all of {of_all}" if self._in_all(n) else f"in {n} of {of_all}"

        far: dict[bytes, tuple[int, list[str]]] = {}  # by the rows, which several columns may share
        for name, outside in self._far.items():
            if outside.n:
                limits = (*self._preprocessor.ranges_[name], outside.furthest)
                kind = self._preprocessor.kinds_[name]
                least, most, furthest = (_shown(value, kind) for value in limits)
                far.setdefault(outside.rows.digest(), (outside.n, []))[1].append(
                    f"{name!r} is far outside its training range, {least} to {most}, furthest "
                    f"{furthest}"
                )
        for n, remarks in far.values():
            more = len(remarks) - MOST_COLUMNS
            named = " and ".join(remarks[:MOST_COLUMNS]) + f" and {more} more" * (more > 0)
            yield n, f"{where(n)} {named}; predictions there are extrapolated"
        for name in self._seen:
            if name in self._unseen:
                n, first = self._unseen[name]
                what = "has a value that no training row has"
                tells = "it counts as rare, or as none"
                yield n, f"{where(n)} {name!r} {what}, first {first!r}: {tells}"


def _pandas_columns(X: Any, names: Sequence[str]) -> list[Any]:
    """Columns of a data frame of pandas, by their names as text; none of another table."""
    if not hasattr(X, "iloc"):
        return []
    place = places_of(names_in(X), X.shape[1])
    return columns_of(X, [place[name] for name in names]) if place.keys() >= set(names) else []


def _needs_other_mark(marks: Marks, cell: object) -> bool:
    """True for text that is a number only with the other decimal mark."""
    if not isinstance(cell, str) or not is_number_by_either(cell):
        return False
    return math.isnan(number_of(cell, marks, strict=True)) and not math.isnan(
        number_of(cell, marks)
    )


def _shown(value: float, kind: str) -> str:
    if kind in DATES:
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))
    return f"{value:.6g}"
