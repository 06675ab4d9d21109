"""Notes on columns that may not be what they were taken for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from looms._optional import require
from looms._words import listed
from looms.cli._target import FEWEST_ROWS, MOST_CLASSES
from looms.datasets._columns import number_like
from looms.tables._kinds import Kind

if TYPE_CHECKING:
    import pandas as pd

#: Name of a column of whole numbers that may be identifiers.
_IDENTIFIER = re.compile(
    r"(?i:(?:^|[^a-z])(?:id|no|nr|number))$|[a-z](?:I[Dd]|No|N[Rr]|Number)$"
    r"|(?i:^(?:patient|person|subject|participant|customer|user)s?$)"
)

#: Order of the numbers in kinds of date.
_ORDERS = {
    "date": "",
    "day-first date": ", the day before the month,",
    "month-first date": ", the month before the day,",
}


def words_among_numbers(
    X: pd.DataFrame, kinds: Mapping[str, tuple[Kind, ...]], columns: pd.DataFrame
) -> tuple[list[str], str]:
    """Columns treated as text although most of their cells are numbers, and what to do about them.

    ``kinds`` are `column_kinds` of ``X``, ``columns`` its floats and text.
    """
    categorical = require("pandas", "A table of mixed columns").CategoricalDtype
    broken = []
    for name, of in kinds.items():
        if of == ("category",) and not isinstance(X[name].dtype, categorical):
            like = number_like(columns[name])
            wrong = columns[name].notna().to_numpy() & ~like
            if like.sum() > wrong.sum() > 0:
                broken.append((name, int(wrong.sum()), int(wrong.argmax())))
    if not broken:
        return [], ""
    name, n_wrong, first = broken[0]
    others = f", and so are {listed([each[0] for each in broken[1:]])}" if broken[1:] else ""
    return [each[0] for each in broken], (
        f"column {name!r} is treated as text, with a feature for each value, because {n_wrong} of "
        f"its cells {'is not a number' if n_wrong == 1 else 'are not numbers'}, first "
        f"{str(columns[name].iloc[first])!r} in data row {X.index[first] + 1}{others}; correct "
        "such cells or leave them empty"
    )


def column_notes(
    X: pd.DataFrame,
    kinds: Mapping[str, tuple[Kind, ...]],
    columns: pd.DataFrame,
    known: Collection[str],
) -> Iterator[str]:
    """Notes on columns that are dates, constants, or identifiers (except known ones).

    ``kinds`` are `column_kinds` of ``X``, ``columns`` its floats and text.
    """
    constant = [name for name, of in kinds.items() if not of]
    if constant:
        yield f"left out, because they have the same value in every row: {listed(constant)}"
    unclear = [name for name, of in kinds.items() if len(of) > 1]
    if unclear:
        yield (
            f"{listed(unclear)}: treated as text, because in these dates either number may be the "
            "day; write them as 2021-12-31 to have them read as dates"
        )
    certain = {name: of[0] for name, of in kinds.items() if len(of) == 1}
    yield from date_notes(
        certain,
        "; leave it out by --drop unless new rows have the same dates, and if rows resemble the "
        "next ones, hold out windows of time by --time",
    )
    countable = [
        name
        for name, kind in certain.items()
        if name not in known
        and len(X) >= FEWEST_ROWS
        and (kind == "category" or (kind == "number" and (columns[name] % 1 == 0).all()))
    ]
    counts = {name: X[name].value_counts(dropna=False) for name in countable}
    alike = [name for name in countable if len(counts[name]) == len(X)]
    if alike:
        yield (
            f"a different value in every row: {listed(alike)}; if this is an identifier, which "
            "says nothing about new rows, leave it out by --drop"
        )
    repeated = [
        name
        for name in countable
        if len(counts[name]) > MOST_CLASSES
        and counts[name][counts[name] > 1].sum() > len(X) / 2
        and (certain[name] == "category" or _IDENTIFIER.search(name) or _in_blocks(X[name]))
    ]
    if repeated:
        option = f"--groups {shlex.quote(repeated[0])}" if len(repeated) == 1 else "--groups"
        yield (
            f"many values, and most rows share theirs: {listed(repeated)}; if rows of one value "
            "belong together, such as those of a patient, leaving out one row keeps the others, "
            f"and the figures flatter: hold them out together by {option}"
        )


def _in_blocks(column: pd.Series) -> bool:
    """True if the rows with each value follow one another, like the visits of each patient."""
    return bool((column != column.shift()).sum() == column.nunique())


def date_notes(kinds: Mapping[str, str], advice: str = "") -> Iterator[str]:
    """Notes on columns that are read as dates (kinds of `looms.tables`), with the advice."""
    for kind, order in _ORDERS.items():
        names = [name for name, of in kinds.items() if of == kind]
        if names:
            as_dates = f"read as {'a date' if len(names) == 1 else 'dates'}{order}"
            yield f"{listed(names)}: {as_dates} and used as a number of days{advice}"
