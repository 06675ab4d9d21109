"""Checks of the fitted state of transformers.

A transformer that is not fitted has no state to check.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.impute import MissingIndicator

from looms._typing import AnyArray
from looms.model_files._values import indices, is_of, numbers, positive, require
from looms.tables import Columns


def scaler(transformer: Any) -> None:
    """Check that there is one number per feature, and that divisors are positive."""
    for name in ("mean_", "var_", "scale_", "max_abs_"):
        if getattr(transformer, name, None) is not None:
            numbers(transformer, name, transformer.n_features_in_)
    if getattr(transformer, "scale_", None) is not None:
        positive(transformer, "scale_", None)


def imputer(transformer: Any) -> None:
    """Check the number or text that fills the gaps of each feature, and which gaps are marked."""
    if "statistics_" not in vars(transformer):
        return
    n, statistics = transformer.n_features_in_, transformer.statistics_
    proper = isinstance(statistics, np.ndarray) and statistics.dtype.kind in "fO"
    proper = proper and statistics.shape == (n,)
    require(proper, f"statistics_ is not of {n} values")
    for name in ("_fit_dtype", "_fill_dtype"):
        kind = getattr(transformer, name, statistics.dtype)
        proper = isinstance(kind, np.dtype) and kind.kind in "biufO"
        require(proper, f"{name} is of no numbers or texts")
        allowed = Real | str if kind.kind == "O" else Real
        proper = all(isinstance(value, allowed) for value in statistics.tolist())
        require(proper, f"statistics_ holds what is not of {name}")
    indicator = transformer.indicator_
    if not transformer.add_indicator:
        require(indicator is None, "indicator_ is set")
        return
    proper = isinstance(indicator, MissingIndicator) and "features_" in vars(indicator)
    require(proper and indicator.n_features_in_ == n, f"indicator_ is not of {n} features")


def missing(indicator: Any) -> None:
    """Check the indices of the features with gaps."""
    if "features_" in vars(indicator):
        n = indicator._n_features
        require(n == indicator.n_features_in_, f"_n_features is {n}")
        indices(indicator, "features_", n)


def encoder(one_hot: Any) -> None:
    """Check sorted categories, and the columns that they are encoded to.

    Encoding writes to columns without checking their number, and searches categories as if
    sorted; both are derived from the categories and the rare ones among them.
    """
    require(one_hot.dtype is np.float64, "dtype is not float64")
    if "categories_" not in vars(one_hot):
        return
    n = one_hot.n_features_in_
    require(_is_list(one_hot.categories_, n), f"categories_ is not of {n} columns")
    kinds = [None] * n
    rare, mappings = kinds, kinds
    if one_hot._infrequent_enabled:
        rare, mappings = one_hot._infrequent_indices, one_hot._default_to_infrequent_mappings
        lists = _is_list(rare, n) and _is_list(mappings, n)
        require(lists, f"the rare categories are not of {n} columns")
    n_outs = []
    for values, places, mapping in zip(one_hot.categories_, rare, mappings, strict=True):
        _categories(values)
        expected = None if places is None else _mapping(places, len(values))
        same = mapping is None if expected is None else np.array_equal(mapping, expected)
        require(same, "a mapping of rare categories is wrong")
        n_outs.append(len(values) if expected is None else int(expected.max()) + 1)
    sizes = {
        "drop_idx_": [len(values) for values in one_hot.categories_],
        "_drop_idx_after_grouping": n_outs.copy(),
    }
    for name, n_places in sizes.items():
        dropped = getattr(one_hot, name)
        if one_hot.drop is None:
            require(dropped is None, f"{name} is set")
            continue
        proper = isinstance(dropped, np.ndarray) and dropped.dtype == object
        require(proper and dropped.shape == (n,), f"{name} is not of {n} columns")
        for place, bound in zip(dropped.tolist(), n_places, strict=True):
            proper = isinstance(place, int | np.integer) and 0 <= place < bound
            require(place is None or proper, f"{name} points beyond the categories")
    if one_hot.drop is not None:
        for k, place in enumerate(one_hot._drop_idx_after_grouping):
            n_outs[k] -= place is not None
    require(one_hot._n_features_outs == n_outs, f"_n_features_outs is not {n_outs}"[:100])


def _is_list(value: Any, n: int) -> bool:
    return isinstance(value, list) and len(value) == n


def _categories(values: Any) -> None:
    """Check that texts increase; the last may be the gap."""
    proper = isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1
    require(proper and len(values) > 0, "categories_ holds no list of texts")
    texts = values.tolist()
    if isinstance(texts[-1], float) and np.isnan(texts[-1]):
        texts.pop()
    require(all(type(text) is str for text in texts), "a category is not text")
    increasing = all(a < b for a, b in itertools.pairwise(texts))
    require(increasing, "categories_ is not in order")


def _mapping(rare: Any, n: int) -> AnyArray:
    """Column of each of ``n`` categories: in order, then one for the ``rare`` ones."""
    proper = isinstance(rare, np.ndarray) and rare.ndim == 1 and rare.dtype.kind in "iu"
    proper = proper and 0 < len(rare) == len(np.unique(rare)) and rare.min() >= 0 and rare.max() < n
    require(proper, "the places of rare categories point beyond them")
    is_rare = np.isin(np.arange(n), rare)
    return np.where(is_rare, n - len(rare), np.cumsum(~is_rare) - 1)


def pipeline(steps: Any) -> None:
    """Check names and estimators."""
    require(steps.memory is None, "memory names a folder, to write to and to read from")
    require(steps.transform_input is None, "transform_input is set")
    require(isinstance(steps.steps, list) and len(steps.steps) > 0, "steps is not a list")
    for name, step in steps.steps:
        require(isinstance(name, str), "a step of it has no name")
        _step(step)


def columns(transformer: Any) -> None:
    """Check estimators, each with existing columns."""
    for name in ("n_jobs", "transformer_weights"):
        require(getattr(transformer, name) is None, f"{name} is set")
    _step(transformer.remainder)
    named = isinstance(transformer.verbose_feature_names_out, bool)
    require(named, "verbose_feature_names_out is a format")
    fitted = "transformers_" in vars(transformer)
    for _, step, _ in [*transformer.transformers, *(transformer.transformers_ if fitted else ())]:
        _step(step)
    if not fitted:
        return
    n = transformer.n_features_in_
    remainder = transformer._remainder
    require(isinstance(remainder, tuple) and len(remainder) == 3, "_remainder is not a step")
    _step(remainder[1])
    same = remainder[1] == transformer.remainder or isinstance(remainder[1], BaseEstimator)
    require(same, "_remainder differs from remainder")
    places = transformer._transformer_to_input_indices
    require(isinstance(places, dict), "the columns of the steps are missing")
    names = getattr(transformer, "feature_names_in_", ())
    for name, step, chosen in transformer.transformers_:
        _places(chosen, n, names)
        require(step == "drop" or name in places, f"step {name!r} has no columns")
    for chosen in [*places.values(), *transformer._columns, remainder[2]]:
        _places(chosen, n, names)
    for part in transformer.output_indices_.values():
        bounds = isinstance(part, slice) and (type(part.start), type(part.stop)) == (int, int)
        require(bounds and part.step is None, "output_indices_ holds no places")


def _places(chosen: Any, n: int, names: Collection[str]) -> None:
    """Check columns by name or by index below ``n``, a list or a single one."""
    one_by_one = chosen if isinstance(chosen, list) else [chosen]
    proper = all(
        place in names if isinstance(place, str) else type(place) is int and -n <= place < n
        for place in one_by_one
    )
    require(proper, f"columns of a step are not of {n}")


def _step(step: Any) -> None:
    proper = isinstance(step, BaseEstimator) or step in ("passthrough", "drop", None)
    require(proper, f"a step of it is {type(step).__name__}, no estimator")


def function(transformer: Any) -> None:
    """Check that any function is one that the caller admits."""
    require(not isinstance(transformer.func, type), "func is a type")


def table(transformer: Any) -> None:
    """Check kinds, ranges and values of the columns, and that they are as many as the features."""
    if "kinds_" not in vars(transformer):
        return
    columns, ranges, n = transformer.kinds_, transformer.ranges_, transformer.n_features_in_
    require(isinstance(columns, Columns), "kinds_ are no columns")
    if columns:
        names = getattr(transformer, "feature_names_in_", [f"x{k}" for k in range(n)])
        require(len(set(names)) == n and set(columns) <= set(names), "kinds_ is not of columns")
        m = len(columns.numbers)
        for name in ("medians_", "means_", "scales_"):
            numbers(transformer, name, m)
        indices(transformer, "_marked", max(m, 1))
        _values(transformer)
    else:
        require(not hasattr(transformer, "feature_names_in_"), "columns are named")
        kept = indices(transformer, "_kept", n)
        require(bool((np.diff(kept) > 0).all()), "_kept is not in order")
        numbers(transformer, "scales_", len(kept))
    positive(transformer, "scales_", None)
    require(ranges.keys() == set(columns.numbers), "ranges_")
    for bounds in ranges.values():
        proper = is_of(bounds, list[float]) and len(bounds) == 2 and np.isfinite(bounds).all()
        require(proper and bounds[0] <= bounds[1], "ranges_ is not of pairs of numbers")
    require(is_of(transformer._found, list[tuple[str, list[str], str]]), "_found is not of remarks")


def _values(transformer: Any) -> None:
    """Check that the values of the categories are different texts, and None for gaps."""
    values, rare = transformer._values, transformer._rare
    names = transformer.kinds_.categories
    require([*values] == names and [*rare] == names, "_values is not of the categories")
    for name in names:
        every = [*values[name], *rare[name]]
        proper = all(one is None or type(one) is str for one in every)
        require(proper and len(set(every)) == len(every) > 0, "_values holds no different texts")


def table_columns(columns: Any) -> None:
    """Check the kind of each column, and the marks."""
    require(all(type(name) is str for name in columns), "a column has no name")
    type(columns)(columns, columns.decimal, columns.thousands)
