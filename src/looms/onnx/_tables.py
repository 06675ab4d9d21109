"""Preparation of the columns of a table, as nodes of an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._typing import Array
from looms.onnx._graph import Graph
from looms.tables import TablePreprocessor


def check_columns(preprocessor: Any) -> None:
    """ValueError for columns that are no numbers, and for other preparations.

    A graph takes one tensor of floats, and text and dates are none.
    """
    if preprocessor is None:
        return
    if not isinstance(preprocessor, TablePreprocessor):
        raise ValueError(
            f"{preprocessor!r} is no step of a graph of looms: put it before the model, in a "
            "pipeline, and fit the model with preprocess=None."
        )
    unsupported = [name for name, kind in preprocessor.kinds_.items() if kind != "number"]
    if unsupported:
        raise ValueError(
            "A graph takes one tensor of numbers, but columns of the table hold text, categories "
            f"or dates: {', '.join(map(repr, unsupported))}. Encode them as numbers before the "
            "fit, leave them out, or save the model with looms.model_files.save_model."
        )
    if not preprocessor.kinds_:
        raise ValueError(
            "A graph takes no sparse rows, and the columns were prepared as those of a sparse "
            "matrix: fit the model with preprocess=None, or to a dense array."
        )


def prepared(g: Graph, X: str, preprocessor: TablePreprocessor) -> str:
    """`TablePreprocessor.transform` of columns of numbers: medians for gaps, scales, marks."""
    X = g("Gather", X, np.array(_places(preprocessor)), axis=1)
    gap = g("IsNaN", X)
    filled = g("Where", gap, preprocessor.medians_[None], X)
    scaled = g("Div", g("Sub", filled, preprocessor.means_), preprocessor.scales_)
    marked = preprocessor._marked
    if not len(marked):
        return scaled
    marks = g("Gather", g.cast(gap, g.dtype), np.asarray(marked, dtype=np.int64), axis=1)
    return g("Concat", scaled, marks, axis=1)


def unprepared(preprocessor: TablePreprocessor, rows: Array) -> Array:
    """Rows of the table that are prepared as some rows are, with zeros in columns left out."""
    places, marked = _places(preprocessor), preprocessor._marked
    numbers = rows[:, : len(places)] * preprocessor.scales_ + preprocessor.means_
    gaps = rows[:, len(places) :] > 0
    numbers[:, marked] = np.where(gaps, np.nan, numbers[:, marked])
    X = np.zeros((len(rows), preprocessor.n_features_in_))
    X[:, places] = numbers
    return X


def _places(preprocessor: TablePreprocessor) -> list[int]:
    """Places of the columns that are kept."""
    names = getattr(preprocessor, "feature_names_in_", None)
    order = {name: k for k, name in enumerate(names)} if names is not None else {}
    return [order[name] if order else int(name[1:]) for name in preprocessor.kinds_]
