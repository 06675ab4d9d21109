"""Columns of a table, whatever holds it: a data frame of pandas or polars, or an array."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_array

from looms._advice import setting
from looms._checks import readable_table
from looms._optional import require
from looms._typing import AnyArray
from looms._words import listed

if TYPE_CHECKING:
    import pandas as pd

#: A column as it is given; an array holds numbers.
Column: TypeAlias = "pd.Series | AnyArray"


def names_in(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, as text; None for an array.

    Raises
    ------
    ValueError
        If two columns have the same name.
    """
    if not hasattr(X, "columns"):
        return None
    names = [name_as_text(name) for name in X.columns]
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"two columns are named {twice!r}: rename one of them")
    return names


def name_as_text(name: object) -> str:
    """Name of a column as text: of a year 2019, also as a float, "2019"."""
    if isinstance(name, tuple):
        return str(tuple(map(name_as_text, name)))
    return str(int(name) if isinstance(name, float) and name.is_integer() else name)


def places_of(names: Sequence[str] | None, n: int) -> dict[str, int]:
    """Place of each of n columns by its name; x0, x1, and so on without names."""
    called = [f"x{k}" for k in range(n)] if names is None else names
    return {name: k for k, name in enumerate(called)}


def columns_of(X: Any, places: Sequence[int]) -> list[Column]:
    """Columns of a table at some places.

    Parameters
    ----------
    X : pandas.DataFrame, polars.DataFrame, or array of `rows`
        The table.
    places : sequence of int
        Which columns.

    Returns
    -------
    columns : list of ndarray or pandas.Series
        Arrays for numbers of polars and of an array, else pandas' own type.
    """
    if not hasattr(X, "columns"):
        if X.dtype.kind in "iuf":
            return [X[:, k] for k in places]
        pandas = require("pandas", "A table of mixed columns")
        return [pandas.Series(X[:, k]) for k in places]
    if hasattr(X, "iloc"):
        if 4 * len(places) < X.shape[1]:
            return [X.iloc[:, k] for k in places]
        columns = [column for _, column in X.items()]  # a quarter of the time
        return [columns[k] for k in places]
    return [_polars_column(X.to_series(k)) for k in places]


def _polars_column(column: Any) -> Column:
    """A column of polars, with NaN, NaT or None for a gap."""
    dtype = column.dtype
    exact = dtype.is_decimal() or (dtype.is_integer() and column.null_count())
    if dtype.is_numeric() and not exact:
        values: AnyArray = column.to_numpy()
        return values
    pandas = require("pandas", "A table of mixed columns")
    name = str(dtype)
    if name.startswith("Datetime"):
        return pandas.Series(column.to_numpy())
    cells = column.to_list()
    if name.startswith(("Categorical", "Enum")):
        return pandas.Series(pandas.Categorical(cells))
    return pandas.Series(cells, dtype=object)


def rows(X: Any) -> Any:
    """A data frame as it is (of pyarrow as one of pandas), or else an array of two dimensions."""
    X = readable_table(X)
    if hasattr(X, "columns"):
        return X
    if not hasattr(X, "dtype") and np.asarray(X, dtype=object).ndim == 2:
        numbers = np.asarray(X)  # of lists with text everything would become text
        X = np.asarray(X, dtype=object) if numbers.dtype.kind in "USO" else numbers
    X = check_array(X, dtype=None, ensure_all_finite=False)
    return X.astype(object) if X.dtype.kind in "US" else X


def check_names(names: Sequence[str], given: Iterable[str]) -> None:
    """ValueError if a table lacks columns; it names them, and what is most like the first."""
    given = list(given)
    absent = [name for name in names if name not in set(given)]
    if len(absent) == len(names) > 1:
        raise ValueError(
            f"none of the model's {len(names)} columns is in the table: the model takes "
            f"{listed(names)}, the table has {listed(given)}; check that "
            "it is the right table, and that its first line holds the names"
        )
    if absent:
        alike = [name for name in given if name.strip().lower() == absent[0].strip().lower()]
        alike = alike or difflib.get_close_matches(absent[0], given, 1, 0.75)
        hint = f" ({alike[0]!r} is there)" if alike else ""
        shown = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
        are = "is" if len(absent) == 1 else "are"
        raise ValueError(
            f"of the model's {len(names)} columns {len(absent)} {are} missing: {shown}{hint}; add "
            f"what is missing, empty where not known, or fit without it"
            f"{setting('drop columns', text='')}"
        )
