"""What is said of the columns of a table before it is learnt from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from looms._optional import require
from looms.cli._say import note
from looms.cli._task import number_like
from looms.tables import as_text, date_kinds

#: So many columns are named in a note.
MOST_NAMES = 5
#: In fewer rows different values are no sign of an identifier.
FEWEST_ROWS = 20

#: What is said of kinds of date.
_ORDERS = {
    "date": "",
    "day-first date": ", the day before the month,",
    "month-first date": ", the month before the day,",
}


def note_columns(X: Any) -> None:
    """Say which columns are dates, identifiers, constants, or numbers with a word among them.

    Parameters
    ----------
    X : data frame or sparse matrix
        The features; of a sparse matrix nothing is said.
    """
    if sparse.issparse(X):
        return
    broken = list(_broken_numbers(X))
    if broken:
        name, n_wrong, row, cell = broken[0]
        others = f", and so are {listed([each[0] for each in broken[1:]])}" if broken[1:] else ""
        note(
            f"column {name!r} is taken for text, a feature for each value, for {n_wrong} of its "
            f"cells {'is' if n_wrong == 1 else 'are'} no number, first {cell!r} in data row "
            f"{row}{others}; correct such cells or leave them empty"
        )
    dropped = [str(name) for name in X.columns if X[name].nunique(dropna=False) < 2]
    if dropped:
        note(f"left out, for they have the same value in every row: {listed(dropped)}")
    dates = {str(n): date_kinds(X[n]) for n in X.columns if str(n) not in dropped}
    unclear = [name for name, kinds in dates.items() if len(kinds) > 1]
    if unclear:
        note(
            f"{listed(unclear)}: taken for text, for these are dates whose day and month may be "
            "either number; write them as 2021-12-31 to have them read as dates"
        )
    certain = {name: kinds[0] for name, kinds in dates.items() if len(kinds) == 1}
    note_dates(certain, "; leave it out by --drop unless new rows are of the same days")
    named = {each[0] for each in broken} | {name for name, kinds in dates.items() if kinds}
    alike = [str(name) for name in X.columns if name not in named and _is_identifier(X[name])]
    if alike:
        note(
            f"a different value in every row: {listed(alike)}; if this is an identifier, which "
            "says nothing of new rows, leave it out by --drop"
        )


def note_dates(kinds: Mapping[str, str], advice: str = "") -> None:
    """Say which columns, of kinds of `looms.tables`, are read as dates, and add the advice."""
    for kind, order in _ORDERS.items():
        names = [name for name, of in kinds.items() if of == kind]
        if names:
            read = f"read as {'a date' if len(names) == 1 else 'dates'}{order}"
            note(f"{listed(names)}: {read} and used as a number of days{advice}")


def _broken_numbers(X: Any) -> Iterator[tuple[Any, int, int, str]]:
    """Columns of text most of whose cells are numbers: name, others, first such row and cell."""
    pandas = require("pandas", "A table of mixed columns")
    for name in X.columns:
        if pandas.api.types.infer_dtype(X[name], skipna=True) not in ("string", "mixed-integer"):
            continue
        text = as_text(X[name])
        there = ~X[name].isna().to_numpy()
        numbers = number_like(text)
        wrong = there & ~numbers
        if wrong.any() and numbers.sum() > wrong.sum():
            first = int(wrong.argmax())
            yield name, int(wrong.sum()), first + 1, str(text[first])


def _is_identifier(column: Any) -> bool:
    """Whether text or whole numbers are different in every row."""
    if len(column) < FEWEST_ROWS or column.nunique(dropna=False) < len(column):
        return False
    kind = require("pandas", "A table of mixed columns").api.types.infer_dtype(column, skipna=True)
    if kind == "floating":
        values = np.asarray(column, dtype=float)
        return bool(np.all(values == np.round(values)))
    return kind in ("integer", "string", "mixed-integer", "categorical")


def listed(names: Iterable[Any], most: int = MOST_NAMES) -> str:
    """Names in quotation marks, those beyond the most counted."""
    shown = [repr(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
