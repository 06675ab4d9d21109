"""Names of the features of a model, and of the columns that they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sklearn.pipeline import Pipeline

from looms.tables import TablePreprocessor
from looms.tables._preprocessor import features_made, places_of_gaps


class Features(NamedTuple):
    """Features that a model gets from the steps before it.

    Attributes
    ----------
    names : a readable name for every feature of the model.
    sources : the column of the table that each feature was made from; the feature itself if no
        table is known.
    named : True if the names are more than numbers.
    gaps : place of the feature that marks the gaps of a column, by column.
    preprocessor : of the columns, if it alone made the features of a table that is not sparse.
    """

    names: list[str]
    sources: list[str]
    named: bool
    gaps: dict[str, int]
    preprocessor: TablePreprocessor | None = None


def features_of(before: Pipeline, fitted: Any) -> Features:
    """Features of a model, named by the steps before it."""
    steps = list(_flattened(before))
    if len(steps) == 1 and isinstance(steps[0], TablePreprocessor):
        return _table_features(steps[0])
    first = steps[0] if steps else fitted
    numbered = [f"feature {k + 1}" for k in range(getattr(first, "n_features_in_", 0))]
    given = getattr(first, "feature_names_in_", None)
    names = numbered if given is None else given
    if steps:
        try:
            names = before.get_feature_names_out(names)
        except (AttributeError, ValueError):  # a step without names, or names that it lacks
            given, numbered = None, [f"feature {k + 1}" for k in range(fitted.n_features_in_)]
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


def _table_features(preprocessor: TablePreprocessor) -> Features:
    names, sources = map(list, zip(*features_made(preprocessor), strict=True))
    named = hasattr(preprocessor, "feature_names_in_")
    if not preprocessor.kinds_:  # of a sparse matrix
        names = sources = [f"column {name.removeprefix('x')}" for name in names]
        return Features(names, sources, named, {})
    return Features(names, sources, named, places_of_gaps(preprocessor), preprocessor)
