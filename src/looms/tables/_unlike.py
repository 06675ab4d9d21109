"""Rows unlike those that a preprocessor was fitted to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from looms._typing import AnyArray, Matrix
from looms._words import count, listed
from looms.tables._preprocessor import Parts, TablePreprocessor
from looms.tables._remarks import DATES, date_remarks

#: A value is far outside if it exceeds the training range by this share of its width.
FAR = 0.25
#: Beginning of a note on all rows.
IN_ALL = "in all of "
#: Largest number of notes on columns, and of columns in a note.
MOST_NOTES = MOST_COLUMNS = 5


@dataclass
class _Far:
    """Values of a column far outside its range: in how many and which rows, and the furthest."""

    rows: Any
    n: int = 0
    beyond: float = 0.0
    furthest: float = 0.0


class Unlike:
    """Rows unlike those that a preprocessor was fitted to, counted block by block.

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
    >>> unlike = Unlike(TablePreprocessor().fit(table))
    >>> matrix = unlike.add(pd.DataFrame({"size": [1, 5], "color": ["blue", "blue"]}))
    >>> matrix.shape
    (2, 4)
    >>> print(unlike.notes()[0][:67])
    in 1 of 2 rows 'size' is far outside its training range, 1 to 2, fu
    """

    def __init__(self, preprocessor: TablePreprocessor) -> None:
        self.n_rows, self._preprocessor = 0, preprocessor
        self._numbers = preprocessor.kinds_.numbers
        self._valued: dict[str, bool] = dict.fromkeys(preprocessor.kinds_, False)
        self._far = {name: _Far(hashlib.sha256()) for name in self._numbers}
        self._foreign: dict[str, tuple[int, object]] = {}
        self._known = {
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
        self.n_rows += (parts.numbers if isinstance(parts, Parts) else parts).shape[0]
        if isinstance(parts, Parts):
            for name, values in zip(self._numbers, parts.numbers.T, strict=True):
                self._add_numbers(name, values)
            for name, texts in zip(self._known, parts.texts.T, strict=True):
                self._add_texts(name, texts)
        return parts

    def _add_numbers(self, name: str, values: AnyArray) -> None:
        low, high = self._preprocessor.ranges_[name]
        self._valued[name] |= not np.isnan(values).all()
        beyond = np.fmax(low - values, values - high)
        far = beyond > FAR * (high - low)
        of = self._far[name]
        of.rows.update(far.tobytes())
        of.n += int(far.sum())
        if far.any() and np.nanmax(beyond) > of.beyond:
            of.beyond = float(np.nanmax(beyond))
            of.furthest = float(values[np.nanargmax(beyond)])

    def _add_texts(self, name: str, texts: AnyArray) -> None:
        given = [text for text in texts if isinstance(text, str)]
        self._valued[name] |= bool(given)
        known = self._known[name]
        foreign = [text for text in given if text not in known]
        if foreign:
            n, first = self._foreign.get(name, (0, foreign[0]))
            self._foreign[name] = n + len(foreign), first

    @property
    def new_values(self) -> dict[str, object]:
        """The first value that no training row has, of each column with such values."""
        return {name: first for name, (_, first) in self._foreign.items()}

    def notes(self) -> tuple[str, ...]:
        """Sentences on dates, empty columns, values far outside their range, and new categories.

        Returns
        -------
        notes : tuple of str
            Those on most rows first, and a count of the rest.
        """
        kinds = self._preprocessor.kinds_
        notes = [remark.text for remark in date_remarks(kinds)]
        empty = [name for name, valued in self._valued.items() if not valued]
        if empty:
            notes.append(f"no row has a value of {listed(empty)}: typical values are used instead")
        remarks = sorted(self._counted(), key=lambda each: -each[0])
        notes += [remark for _, remark in remarks[:MOST_NOTES]]
        if len(remarks) > MOST_NOTES:
            notes.append(f"{len(remarks) - MOST_NOTES} more such notes are not shown")
        return tuple(notes)

    def _counted(self) -> Iterator[tuple[int, str]]:
        """Notes on values far outside and new categories, each with its number of rows."""

        def where(n: int) -> str:
            of_all = count(self.n_rows, "row")
            return f"{IN_ALL}{of_all}" if n == self.n_rows > 1 else f"in {n} of {of_all}"

        far: dict[bytes, tuple[int, list[str]]] = {}  # by the rows, which several columns may share
        for name, of in self._far.items():
            if of.n:
                limits = (*self._preprocessor.ranges_[name], of.furthest)
                kind = self._preprocessor.kinds_[name]
                least, most, furthest = (_shown(value, kind) for value in limits)
                far.setdefault(of.rows.digest(), (of.n, []))[1].append(
                    f"{name!r} is far outside its training range, {least} to {most}, furthest "
                    f"{furthest}"
                )
        for n, each in far.values():
            more = len(each) - MOST_COLUMNS
            named = " and ".join(each[:MOST_COLUMNS]) + f" and {more} more" * (more > 0)
            yield n, f"{where(n)} {named}; predictions there are extrapolated"
        for name in self._known:
            if name in self._foreign:
                n, first = self._foreign[name]
                what = "has a value that no training row has"
                tells = "it counts as rare, or as none"
                yield n, f"{where(n)} {name!r} {what}, first {first!r}: {tells}"


def _shown(value: float, kind: str) -> str:
    if kind in DATES:
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))
    return f"{value:.6g}"
