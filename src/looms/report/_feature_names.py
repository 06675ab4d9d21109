"""Names of the features of a machine, and of the columns that they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from looms.tables._transformers import SparseColumns, TableColumns


class Features(NamedTuple):
    """Features that a machine gets from the steps before it.

    Attributes
    ----------
    names : a readable name for every feature of the machine.
    sources : the column of the table that each feature was made from; the feature itself if no
        table is known.
    named : True if the names are more than numbers.
    gaps : places of the numbers of a column, and of the feature that marks its gaps, by column.
    """

    names: list[str]
    sources: list[str]
    named: bool
    gaps: dict[str, tuple[int, int]]


def features_of(before: Pipeline, machine: Any) -> Features:
    """Features of a machine, named by the steps before it."""
    steps = list(_flattened(before))
    if steps and isinstance(steps[0], SparseColumns):
        columns = [f"column {column}" for column in steps[0].columns_]
        return Features(columns, columns, False, {})
    if list(map(type, steps)) == [TableColumns, ColumnTransformer]:
        made = list(_table_features(steps[1]))
        numbers = {column: k for k, (kind, _, column) in enumerate(made) if kind == "numbers"}
        marks = {column: k for k, (kind, _, column) in enumerate(made) if kind == "gaps"}
        gaps = {column: (numbers[column], k) for column, k in marks.items()}
        return Features([name for _, name, _ in made], [column for *_, column in made], True, gaps)
    first = steps[0] if steps else machine
    numbered = [f"feature {k + 1}" for k in range(getattr(first, "n_features_in_", 0))]
    given = getattr(first, "feature_names_in_", None)
    names = numbered if given is None else given
    if steps:
        try:
            names = before.get_feature_names_out(names)
        except (AttributeError, ValueError):  # a step without names, or names that it lacks
            given, numbered = None, [f"feature {k + 1}" for k in range(machine.n_features_in_)]
            names = numbered
    names = [str(name) for name in names]
    named = given is not None or not set(names) <= set(numbered)
    return Features(names, names, named, {})


def _flattened(steps: Pipeline) -> Iterator[Any]:
    for _, step in steps.steps:
        if isinstance(step, Pipeline):
            yield from _flattened(step)
        else:
            yield step


def _table_features(transformers: ColumnTransformer) -> Iterator[tuple[str, str, str]]:
    """Kind, name and column of every feature made by `looms.tables.table_preprocessor`."""
    for kind, transformer, chosen in transformers.transformers_:
        columns = [str(column) for column in chosen]
        if kind == "numbers":
            yield from ((kind, column, column) for column in columns)
        elif kind == "gaps" and columns:
            for k in transformer.features_:
                yield kind, f"{columns[k]} is missing", columns[k]
        elif kind == "categories" and columns:
            rare = getattr(transformer, "infrequent_categories_", [None] * len(columns))
            for column, values, few in zip(columns, transformer.categories_, rare, strict=True):
                for value in values:
                    if few is not None and value in few:
                        continue
                    missing = isinstance(value, float) and np.isnan(value)
                    name = f"{column} is missing" if missing else f"{column} = {value}"
                    yield kind, name, column
                if few is not None:
                    yield kind, f"{column} is rare", column
