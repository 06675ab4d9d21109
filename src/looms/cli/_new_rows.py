"""What is said of new rows that are unlike those a model was fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from looms.cli._columns import note_dates
from looms.cli._say import count, note
from looms.copies import copy_groups
from looms.model_files._files import SavedModel

#: Beyond the training range by this share of its width a value is far outside.
FAR = 0.25
#: Notes on columns, and columns in a note.
MOST_NOTES = MOST_COLUMNS = 5


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
    """Say which columns are dates, hold values far outside their range, or categories not met.

    Parameters
    ----------
    saved : a model of looms fit.
    X : rows that it takes; of a sparse matrix nothing is said.
    """
    if sparse.issparse(X):
        return
    note_dates(saved.model[0]["columns"].kinds)
    messages = sorted([*_extrapolated(saved, X), *_foreign(saved, X)], key=lambda each: -each[0])
    for _, message in messages[:MOST_NOTES]:
        note(message)
    if len(messages) > MOST_NOTES:
        note(f"{len(messages) - MOST_NOTES} more such notes are left out")


def note_trained_on(saved: SavedModel, X: Any) -> None:
    """Say how many rows are equal to rows that the model was fitted to.

    Parameters
    ----------
    saved : a model of looms fit. Of an svm only the support vectors are known.
    X : rows that it takes.
    """
    machine, new = saved.model[-1], saved.model[:-1].transform(X)
    known = machine.X_fit_ if hasattr(machine, "X_fit_") else machine.support_vectors_
    stacked = (sparse.vstack if sparse.issparse(new) else np.vstack)([known, new])
    groups = copy_groups(sparse.csr_array(stacked) if sparse.issparse(new) else stacked)
    n = int(np.isin(groups[known.shape[0] :], groups[: known.shape[0]]).sum())
    if n:
        note(
            f"{count(n, 'row')} of {new.shape[0]} equal in every feature what the model was fitted "
            "to: if they are the same rows, the figures flatter it; looms assess gives honest ones"
        )


def _extrapolated(saved: SavedModel, X: Any) -> Iterator[tuple[int, str]]:
    """Number of rows, and what to say, of the columns far outside their range in these rows."""
    table = saved.model[0]["columns"]
    frame = table.transform(X)
    columns: dict[bytes, list[str]] = {}
    for name, (low, high) in saved.metadata["ranges"].items():
        values = frame[name].to_numpy()
        beyond = np.fmax(low - values, values - high)
        far = beyond > FAR * (high - low)
        if far.any():
            limits = (low, high, values[np.nanargmax(beyond)])
            columns.setdefault(far.tobytes(), []).append(
                "{!r} is far outside its training range, {} to {}, furthest {}".format(
                    name, *(_shown(value, table.kinds[name]) for value in limits)
                )
            )
    for rows, each in columns.items():
        n, more = rows.count(1), len(each) - MOST_COLUMNS
        named = " and ".join(each[:MOST_COLUMNS]) + f" and {more} more" * (more > 0)
        yield n, f"in {n} of {count(len(frame), 'row')} {named}; predictions there are extrapolated"


def _foreign(saved: SavedModel, X: Any) -> Iterator[tuple[int, str]]:
    """Number of rows, and what to say, of every category that was not met."""
    table = saved.model[0]
    kinds = table["columns"].kinds
    frame = table["columns"].transform(X)
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
                f"in {n} of {count(len(frame), 'row')} {name!r} has a value that no training row "
                f"has, first {first!r}: it tells the model nothing",
            )


def _shown(value: float, kind: str) -> str:
    if kind.endswith("date"):
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))
    return f"{value:.6g}"
