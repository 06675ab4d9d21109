"""Checks of a model that was built from a file: that a prediction stays within its arrays.

Names say what a file may build. Numbers in it may still lead routines beyond an array, or make
them allocate without limit; where those do not look themselves, it is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from looms.nonconformity import NonconformityClassifier
from looms.nonconformity._choice import Neighbors
from looms.nonconformity._svm_grid import SVMGrid
from looms.units import Units

#: Without parts. In a file types and functions are names, which are admitted.
_WHOLE = (
    *(str, int, float, type(None), slice, np.generic, Enum),
    *(type, np.ufunc, FunctionType, BuiltinFunctionType),
)
#: Parameters by which a prediction would use files, start processes, or format text.
_FIXED: dict[type, dict[str, tuple[Any, ...]]] = {
    Pipeline: {"memory": (None,)},
    ColumnTransformer: {"n_jobs": (None,), "verbose_feature_names_out": (True, False)},
}


def check(model: Any) -> None:
    """ValueError if a part of what was built from a file, at any depth, contradicts itself."""
    waiting, found = [model], dict[int, Any]()
    while waiting:
        part = waiting.pop()
        if id(part) in found or isinstance(part, _WHOLE):
            continue
        found[id(part)] = part
        try:
            waiting += _checked(part)
        except Exception as error:  # a file may hold anything where a fit leaves an array
            problem = str(error) if isinstance(error, ValueError) else repr(error)
            raise ValueError(f"{type(part).__name__}: {problem}") from error


def _checked(part: Any) -> list[Any]:
    """Parts of a part, which is checked."""
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    if isinstance(part, list | tuple | set):
        return list(part)
    if isinstance(part, np.ndarray):
        _require(part.dtype.itemsize > 0, "values have no size")
        return part.ravel().tolist() if part.dtype == object else []
    if isinstance(part, np.dtype):
        _require(part.kind in "biufO", f"{part} is not of numbers")
        return []
    if sparse.issparse(part):
        _require(part.format == "csr", f"{part.format} is another format than a fit leaves")
        part.check_format(full_check=True)  # products do not look at its indices
        return []
    kind = type(part)
    for name, values in _FIXED.get(kind, {}).items():
        _require(getattr(part, name) in values, f"{name} is set")
    if kind in _CHECKS:
        _CHECKS[kind](part)
    if is_dataclass(part):
        lacking = {field.name for field in fields(part)} - vars(part).keys()
        _require(not lacking, f"{', '.join(sorted(lacking))} is not there")
    if hasattr(part, "__post_init__"):
        part.__post_init__()
    return list(getattr(part, "__dict__", {}).values())


def _require(condition: bool | np.bool_, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _numbered(name: str, values: Any, n: int, least: int = 0) -> None:
    """Refuse what is no array of integers from ``least`` to below ``n``."""
    proper = values.dtype.kind in "iu" and bool(((values >= least) & (values < n)).all())
    _require(proper, f"{name} points beyond {n}")


def _encoder(one_hot: Any) -> None:
    """Check that each category is encoded in its columns.

    A one is written to the place of a category, and its number is not compared with the columns.
    """
    if "categories_" not in vars(one_hot):
        return
    n, widths = len(one_hot.categories_), one_hot._n_features_outs
    grouped, dropped = one_hot._infrequent_enabled, one_hot._drop_idx_after_grouping
    maps = one_hot._default_to_infrequent_mappings if grouped else [None] * n
    rare = one_hot._infrequent_indices if grouped else [None] * n
    _require(isinstance(widths, list), "_n_features_outs is no list")
    _require(dropped is None or dropped.shape == (n,), f"a category is not dropped of each of {n}")
    drops = [None] * n if dropped is None else dropped
    each = zip(one_hot.categories_, maps, rare, drops, widths, strict=True)
    for values, places, rare_ones, drop, width in each:
        texts = all(type(one) is str or one is None or one != one for one in values.tolist())
        _require(values.dtype == object and texts, "a category is no text")  # found by its value
        _require((places is None) == (rare_ones is None), "rare categories are not mapped")
        if places is not None:
            _numbered("a mapping of rare categories", places, len(values))
        last = len(values) - 1 if places is None else int(places.max())
        _require(drop is None or 0 <= drop <= last, "a category that is not there is dropped")
        _require(width == last + (drop is None), f"_n_features_outs says {width} columns")


def _units(units: Any) -> None:
    n = len(units.clusters)
    _require(units.number.shape == units.tested.shape, "tested is of other rows")
    _require(units.number.shape[1:] == (n,), f"number is not of {n} rows")
    _numbered("number", units.number, units.number.size, least=-1)
    _numbered("clusters", units.clusters, n)


def _grid(grid: Any) -> None:
    n = grid.n_classes
    _require(grid.coef.shape[-1] == n * (n - 1) // 2, f"coefficients are not of {n} classes")


def _neighbors(neighbors: Any) -> None:
    _numbered("labels", neighbors.labels, len(neighbors.labels))


def _validated(model: Any) -> None:
    if hasattr(model, "_validation_labels"):
        _numbered("_validation_labels", model._validation_labels, len(model.classes_))


_CHECKS: dict[type, Callable[[Any], None]] = {
    Neighbors: _neighbors,
    NonconformityClassifier: _validated,
    OneHotEncoder: _encoder,
    SVMGrid: _grid,
    Units: _units,
}
