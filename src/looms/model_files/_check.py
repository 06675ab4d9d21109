"""Checks of a model that was built from a file: that its parts agree, and use no files.

Names say what a file may build. Numbers in it may still lead products of sparse matrices beyond an
array, which is checked here. Other numbers are not: what contradicts itself may raise an error in a
prediction, or make it slow or wrong.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

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
    for name, values in _FIXED.get(type(part), {}).items():
        _require(getattr(part, name) in values, f"{name} is set")
    if is_dataclass(part):
        lacking = {field.name for field in fields(part)} - vars(part).keys()
        _require(not lacking, f"{', '.join(sorted(lacking))} is not there")
    if hasattr(part, "__post_init__"):
        part.__post_init__()
    return list(getattr(part, "__dict__", {}).values())


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
