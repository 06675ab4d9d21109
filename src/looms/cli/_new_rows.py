"""What is said of new rows that are unlike those a model was fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from looms.cli._say import note
from looms.model_files import SavedModel

#: Beyond the training range by this share of its width a value is far outside.
FAR = 0.25
#: Columns of either kind that get a note of their own.
MOST_COLUMNS = 5


def ranges(preprocessor: Any, X: Any) -> dict[str, list[float]]:
    """Least and largest value of every column of numbers or dates, these as days since 1970.

    Parameters
    ----------
    preprocessor : of `looms.tables.table_preprocessor`, fitted.
    X : data frame that it was fitted to.
    """
    columns = preprocessor["columns"]
    frame = columns.transform(X)
    return {
        name: [float(frame[name].min()), float(frame[name].max())]
        for name, kind in columns.kinds.items()
        if kind != "category"
    }


def note_unlike(saved: SavedModel, X: Any) -> None:
    """Say which columns hold values far outside their training range, or categories not met.

    Parameters
    ----------
    saved : a model of looms fit.
    X : rows that it takes; of a sparse matrix nothing is said.
    """
    if sparse.issparse(X):
        return
    found = sorted(_unlike(saved, X), key=lambda each: -each[0])
    for _, message in found[:MOST_COLUMNS]:
        note(message)
    if len(found) > MOST_COLUMNS:
        note(f"{len(found) - MOST_COLUMNS} more columns have such values")


def _unlike(saved: SavedModel, X: Any) -> Iterator[tuple[int, str]]:
    """Number of rows, and what to say, of every column that holds such values."""
    table = saved.model[0]
    kinds = table["columns"].kinds
    frame = table["columns"].transform(X)
    for name, (low, high) in saved.metadata["ranges"].items():
        values = frame[name].to_numpy()
        beyond = np.fmax(low - values, values - high)
        n = int((beyond > FAR * (high - low)).sum())
        if n:
            shown = (_shown(v, kinds[name]) for v in (low, high, values[np.nanargmax(beyond)]))
            yield (
                n,
                "{} of {} rows have {!r} far outside its training range, {} to {}, furthest {}; "
                "predictions there are extrapolated".format(n, len(frame), name, *shown),
            )
    encoder = table["matrix"].named_transformers_["categories"]
    names = [name for name, kind in kinds.items() if kind == "category"]
    for name, categories in zip(names, encoder.categories_ if names else [], strict=True):
        column = frame[name]
        foreign = ~column.isin(categories) & ~column.isna()
        if foreign.any():
            first = column[foreign].iloc[0]
            n = int(foreign.sum())
            yield (
                n,
                f"{n} of {len(frame)} rows have a value of {name!r} that no training row has, "
                f"first {first!r}: it tells the model nothing",
            )


def _shown(value: float, kind: str) -> str:
    if kind == "date":
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))
    return f"{value:.6g}"
