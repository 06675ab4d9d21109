"""Names of the features of a model, and of the columns that they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from looms._checks import check_known
from looms.tables import TablePreprocessor
from looms.tables._frames import places_of
from looms.tables._preprocessor import features_made, places_of_gaps


class Features(NamedTuple):
    """Features that a model gets from the steps before it.

    Attributes
    ----------
    names : a readable name for every feature of the model.
    sources : the column of the table that each feature was made from; the feature itself if no
        table is known.
    named : True if the names are more than numbers.
    n_columns : number of columns of the table, with those that the model does not use.
    places : their names in its order; none of a sparse matrix, whose columns are numbered.
    gaps : place of the feature that marks the gaps of a column, by column.
    preprocessor : of the columns, if it alone made the features of a table that is not sparse.
    prepared : True if other steps made the features.
    """

    names: list[str]
    sources: list[str]
    named: bool
    n_columns: int
    places: list[str]
    gaps: dict[str, int]
    preprocessor: TablePreprocessor | None = None
    prepared: bool = False

    @property
    def columns(self) -> dict[str, list[int]]:
        """Features by the column that they were made from."""
        columns: dict[str, list[int]] = {}
        for k, source in enumerate(self.sources):
            columns.setdefault(source, []).append(k)
        return columns

    def column(self, given: Any) -> str:
        """Name of a column by its name, or its place in the table; ValueError if there is none."""
        by_place = isinstance(given, int | np.integer) and not isinstance(given, bool)
        if by_place:
            if not 0 <= given < self.n_columns:
                raise ValueError(f"column must be 0 to {self.n_columns - 1}, got {given}.")
            given = self.places[int(given)] if self.places else _column(given)
        if not isinstance(given, str):
            raise ValueError(
                f"A column is named, or numbered from 0, and two are a tuple; got {given!r}."
            )
        if (by_place or given in self.places) and given not in self.sources:
            raise ValueError(f"The model does not use column {given!r}.")
        made = ", which steps before the model made: columns of the table cannot be named"
        check_known(given, "column", self.columns, made * self.prepared)
        return given


def features_of(before: Pipeline, model: Any) -> Features:
    """Features of a fitted model, named by the steps before it."""
    steps = list(_flattened(before))
    if len(steps) == 1 and isinstance(steps[0], TablePreprocessor):
        return _table_features(steps[0])
    first, n = steps[0] if steps else model, model.fitted_.n_features
    given = getattr(first, "feature_names_in_", None)
    numbered = _numbered(getattr(first, "n_features_in_", 0))
    names = numbered if given is None else given
    if steps:
        try:
            names = before.get_feature_names_out(names)
        except Exception:  # in whatever way a step says that it has none
            names = []
    if len(names) != n:  # or has other ones
        given, names, numbered = None, _numbered(n), _numbered(n)
    names = [str(name) for name in names]
    named = given is not None or not set(names) <= set(numbered)
    return Features(names, names, named, len(names), names, {}, prepared=bool(steps))


def _numbered(n: int) -> list[str]:
    return [f"feature {k + 1}" for k in range(n)]


def _flattened(steps: Pipeline) -> Iterator[Any]:
    for _, step in steps.steps:
        if isinstance(step, Pipeline):
            yield from _flattened(step)
        else:
            yield step


def _table_features(preprocessor: TablePreprocessor) -> Features:
    names, sources = map(list, zip(*features_made(preprocessor), strict=True))
    named, n_columns = hasattr(preprocessor, "feature_names_in_"), preprocessor.n_features_in_
    if not preprocessor.kinds_:  # of a sparse matrix
        names = sources = [_column(name.removeprefix("x")) for name in names]
        return Features(names, sources, named, n_columns, [], {}, prepared=True)
    places = list(places_of(getattr(preprocessor, "feature_names_in_", None), n_columns))
    gaps = places_of_gaps(preprocessor)
    return Features(names, sources, named, n_columns, places, gaps, preprocessor)


def _column(number: Any) -> str:
    return f"column {number}"
