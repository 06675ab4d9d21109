"""The columns of a table, decided once by the rows of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from looms._checks import check_known
from looms._optional import require
from looms._typing import AnyArray
from looms._words import row_name
from looms.tables._cells import POINT, Marks, marks_of, other_mark, tell_point
from looms.tables._dates import times_of
from looms.tables._frames import (
    Column,
    check_names,
    columns_of,
    name_as_text,
    names_in,
    places_of,
    rows,
)
from looms.tables._kinds import (
    CATEGORIES,
    DATES,
    KINDS,
    Kind,
    Read,
    converted,
    read_column,
)

if TYPE_CHECKING:
    import pandas as pd

#: Decimal mark, alone or with the separator of thousands; None if cells are to tell.
Decimal: TypeAlias = str | tuple[str, str] | None


class Columns(Mapping[str, Kind]):
    """Kinds of the columns of a table, and how numbers are written in it.

    They are decided once, by the rows of a fit (`of`). Cells of new rows are then read one by one,
    by `read`, so that what a cell means depends neither on its neighbors nor on the format of the
    file.

    Parameters
    ----------
    kinds : mapping of str to str
        "number", "date", "day-first date", "month-first date", "truth" or "category" of each
        column.
    decimal : {".", ","}, default="."
        Decimal mark of numbers in text.
    thousands : sequence of str, default=()
        Columns whose numbers the other mark may separate into thousands.

    Raises
    ------
    ValueError
        If a kind or a mark is none of these.

    Notes
    -----
    Text is of two types. Cells as they are written in a file, which `looms.datasets` gives as
    pandas columns of the type ``ArrowDtype(pyarrow.large_string())``, are numbers if all of them
    are. Other text, such as that of a data frame or a Parquet file, is a category, or dates. Both
    hold gaps: empty text, ``?``, ``NA``, ``NULL`` and the like.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = Columns.of(pd.DataFrame({"size": [1, 2, None], "ward": ["01", "NA", "A3"]}))
    >>> dict(columns)
    {'size': 'number', 'ward': 'category'}
    >>> columns.read(pd.DataFrame({"ward": ["01"], "size": ["2.5"]}))
    {'size': array([2.5]), 'ward': array(['01'], dtype=object)}
    """

    decimal: str
    thousands: tuple[str, ...]
    _kinds: dict[str, Kind]

    def __init__(
        self, kinds: Mapping[str, Kind], decimal: str = ".", thousands: Iterable[str] = ()
    ) -> None:
        for name, kind in kinds.items():
            check_known(kind, f"kind of {name!r}", KINDS)
        check_known(decimal, "decimal", (".", ","))
        self._kinds, self.decimal = {name_as_text(n): kind for n, kind in kinds.items()}, decimal
        self.thousands = tuple(name for name in self._kinds if name in set(thousands))

    @classmethod
    def of(cls, X: Any, decimal: Decimal = None) -> Columns:
        """Columns of a table, decided by its rows.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or ndarray, (n_samples, n_columns)
            The rows. Columns without names are called x0, x1, and so on.
        decimal : {".", ","} or pair of str, default=None
            Decimal mark of numbers in text; the other mark may separate thousands. A pair, such as
            ``(".", "")``, has the separator of thousands as well. By default the decimal mark is a
            comma if most cells of some column are numbers only with it, and of none only with a
            point; the other mark separates thousands in columns where some number has it.

        Returns
        -------
        columns : Columns
            All columns of the table.

        Raises
        ------
        ValueError
            If a column holds infinite numbers, or neither numbers, dates, text nor booleans.
        """
        X = rows(X)
        place = places_of(names_in(X), X.shape[1])
        columns = dict(zip(place, columns_of(X, [*place.values()]), strict=True))
        return read_columns(columns, decimal=decimal)[0]

    @property
    def marks(self) -> Marks:
        """Decimal mark and separator of thousands of the whole table."""
        return Marks(self.decimal, other_mark(self.decimal) if self.thousands else "")

    def marks_of(self, name: str) -> Marks:
        """Decimal mark and separator of thousands of a column."""
        return Marks(self.decimal, other_mark(self.decimal) if name in self.thousands else "")

    def read(self, X: Any, decimal: str | None = None) -> dict[str, AnyArray]:
        """Values of the columns of any rows.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, pyarrow.Table or ndarray, (n_samples, n_columns)
            A table with these columns, in any order; others are ignored. Cells may be text or
            typed.
        decimal : {".", ","}, default=None
            Decimal mark of these rows, if it is not that of the fit; the other mark may separate
            thousands.

        Returns
        -------
        values : dict of ndarray of shape (n_samples,)
            Floats of numbers, and of dates as days since 1970; text of the others; NaN for gaps.

        Raises
        ------
        ValueError
            If columns are missing, or a cell is of another kind than its column: the message has
            the column and the row.
        """
        X = rows(X)
        columns = self if decimal is None else Columns(self, decimal, self)
        return columns.read_at(X, names_in(X))

    def read_at(self, X: Any, names: Sequence[str] | None) -> dict[str, AnyArray]:
        """Values of the columns of rows whose columns have these names, as in `read`."""
        place = places_of(names, X.shape[1])
        check_names([*self], place)
        columns: list[Column] = columns_of(X, [place[name] for name in self])
        given = zip(self.items(), columns, strict=True)
        return {
            name: converted(column, name, kind, self.marks_of(name))
            for (name, kind), column in given
        }

    def typed(self, X: Any, decimal: str | None = None) -> pd.DataFrame:
        """Rows with types, for other libraries.

        Parameters
        ----------
        X : table
            As in `read`.
        decimal : {".", ","}, default=None
            As in `read`.

        Returns
        -------
        typed : pandas.DataFrame
            Floats, times, booleans and text, with pandas' missing values, and the index of ``X``.

        Raises
        ------
        ValueError
            As in `read`.
        """
        pandas = require("pandas", "Columns.typed")
        typed: dict[str, Any] = self.read(X, decimal)
        for name, values in typed.items():
            if self[name] in DATES:
                typed[name] = times_of(values)
            elif self[name] == "truth":
                words = {"True": True, "False": False}
                wrong = np.flatnonzero([isinstance(v, str) and v not in words for v in values])
                if len(wrong):
                    where = row_name(X, int(wrong[0]))
                    cell = values[wrong[0]]
                    raise ValueError(
                        f"column {name!r} is True or False, and {where} holds {cell!r}"
                    )
                typed[name] = pandas.array([words.get(value) for value in values], "boolean")
        return pandas.DataFrame(typed, index=getattr(X, "index", None))

    def only(self, names: Any) -> Columns:
        """The columns with some names, in this order."""
        return Columns({name: self[name] for name in names}, self.decimal, self.thousands)

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Columns):
            theirs = other._kinds, other.decimal, other.thousands
            return (self._kinds, self.decimal, self.thousands) == theirs
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        marks = f", decimal={self.decimal!r}" if self.decimal != "." else ""
        marks += f", thousands={self.thousands!r}" if self.thousands else ""
        return f"Columns({self._kinds}{marks})"

    @property
    def categories(self) -> list[str]:
        """Names of the columns of which each value becomes a feature."""
        return [name for name, kind in self.items() if kind in CATEGORIES]

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers and dates."""
        return [name for name, kind in self.items() if kind not in CATEGORIES]


def marks_in(X: Any, *columns: Any, decimal: Decimal = None) -> Marks:
    """Marks of numbers in the text of a table and of columns beside it, as of `Columns.of`."""
    if sparse.issparse(X):
        return POINT
    X = rows(X)
    return marks_of([*columns_of(X, range(X.shape[1])), *columns], decimal)


def read_columns(
    columns: Mapping[str, Column], given: Mapping[str, Kind] | None = None, decimal: Decimal = None
) -> tuple[Columns, dict[str, Read]]:
    """Columns of a table, and their values, each cell converted once.

    Parameters
    ----------
    columns : the columns by their names.
    given : kinds of all of them, and of `Columns` the marks, if they are known.
    decimal : as in `Columns.of`.
    """
    marks = given.marks if isinstance(given, Columns) else marks_of(columns.values(), decimal)
    read = {
        name: read_column(column, name, marks, given[name] if given else None)
        for name, column in columns.items()
    }
    doubtful = [name for name, found in read.items() if found.sign and found.sign[0] == "doubt"]
    if doubtful and tell_point(columns.values()):
        read |= {name: read[name]._replace(sign=None) for name in doubtful}
    kinds = {name: column.kind for name, column in read.items()}
    if isinstance(given, Columns):
        return Columns(kinds, given.decimal, given.thousands), read
    thousands = [name for name, column in read.items() if column.thousands]
    return Columns(kinds, marks.decimal, thousands), read
