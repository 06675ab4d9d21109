"""Names of the features of a machine, and of the columns that they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from looms.tables._transformers import SparseColumns, TableColumns


def feature_names(before: Pipeline, machine: Any) -> tuple[list[str], list[str], bool]:
    """Names of the features that a machine gets from the steps before it.

    Returns
    -------
    features : a readable name for every feature of the machine.
    sources : the column of the table that each feature was made from; the feature itself if no
        table is known.
    named : True if the names are more than numbers.
    """
    steps = list(_flattened(before))
    if steps and isinstance(steps[0], SparseColumns):
        columns = [f"column {column}" for column in steps[0].columns_]
        return columns, columns, False
    if list(map(type, steps)) == [TableColumns, ColumnTransformer]:
        pairs = list(_table_features(steps[1]))
        return [name for name, _ in pairs], [column for _, column in pairs], True
    if steps:
        try:
            names = [str(name) for name in before.get_feature_names_out()]
        except (AttributeError, ValueError):  # a step without names, or names that it lacks
            names = []
        if names == [f"x{k}" for k in range(len(names))]:  # those that scikit-learn makes up
            names = []
    else:
        names = [str(name) for name in getattr(machine, "feature_names_in_", [])]
    named = bool(names)
    names = names or [f"feature {k + 1}" for k in range(machine.n_features_in_)]
    return names, names, named


def _flattened(steps: Pipeline) -> Iterator[Any]:
    for _, step in steps.steps:
        if isinstance(step, Pipeline):
            yield from _flattened(step)
        else:
            yield step


def _table_features(transformers: ColumnTransformer) -> Iterator[tuple[str, str]]:
    """Name and column of every feature made by `looms.tables.table_preprocessor`."""
    for kind, transformer, chosen in transformers.transformers_:
        columns = [str(column) for column in chosen]
        if kind == "numbers":
            yield from ((column, column) for column in columns)
        elif kind == "gaps" and columns:
            for k in transformer.features_:
                yield f"{columns[k]} is missing", columns[k]
        elif kind == "categories" and columns:
            rare = getattr(transformer, "infrequent_categories_", [None] * len(columns))
            for column, values, few in zip(columns, transformer.categories_, rare, strict=True):
                for value in values:
                    if few is not None and value in few:
                        continue
                    missing = isinstance(value, float) and np.isnan(value)
                    yield (f"{column} is missing" if missing else f"{column} = {value}"), column
                if few is not None:
                    yield f"{column} is rare", column
