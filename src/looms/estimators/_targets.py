"""Targets in the form that models take: one column is one target, and labels are plain."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from looms._checks import check_target, target_values
from looms._number_text import number_like
from looms._typing import AnyArray
from looms._words import row_name
from looms.estimators._warnings import warn
from looms.tables._cells import Marks, is_written
from looms.tables._target import written_target


def plain_targets(
    y: Any, classes: bool, marks: Marks | None = None, known: AnyArray | None = None
) -> Any:
    """Targets as models take them: one column without its second dimension, labels plain.

    Those of pandas keep index and name.

    Raises
    ------
    ValueError
        If there are gaps, or text and other values, or ``classes`` are no labels.
    TypeError
        For one text, such as the name of a column, or a dict.

    Warns
    -----
    DataConversionWarning
        If they are one column.
    """
    if y is None:
        return None
    if type(y) in (str, bytes, dict):
        raise TypeError(
            f"X is a table and y its targets, got {type(y).__name__} for y: for a column of a "
            "table, give table.drop(columns=name) and table[name]."
        )
    y = written_target(y, classes, marks, known) if is_written(y) else y
    check_target(y)
    y = _one_target(y)
    return _plain_labels(y) if classes else y


def _one_target(y: Any) -> Any:
    """The one target of a frame, array or list of one column; others as they are."""
    shape = y.shape if hasattr(y, "shape") else np.shape(np.asarray(y, dtype=object))
    if len(shape) != 2 or shape[1] != 1 or issparse(y):
        return y
    warn(
        "A column-vector y was passed when a 1d array was expected: it is taken as one target, so "
        "predictions have one dimension. Give y.ravel(), or one column of a frame by its name.",
        DataConversionWarning,
    )
    if hasattr(y, "iloc"):
        return y.iloc[:, 0]
    return y.to_series() if hasattr(y, "to_series") else np.asarray(y)[:, 0]


def _plain_labels(y: Any) -> Any:
    """Numbers and booleans that objects hold, and text; ValueError for labels of other types."""
    values = np.asarray(y)
    if values.dtype.kind == "T":
        return np.array(values.tolist())
    if isinstance(y, list | tuple) and values.dtype.kind == "f":
        values = np.asarray(y, dtype=object)  # whole numbers of which floats lose some
    if values.dtype != object or values.ndim > 1:
        dtype = getattr(y, "dtype", None)
        nullable = hasattr(dtype, "na_value") and not hasattr(dtype, "categories")
        return y.astype(values.dtype) if nullable else y  # which would become floats
    labels = values.tolist()
    if all(isinstance(label, str) for label in labels):
        return y
    whole = all(isinstance(label, Integral) for label in labels)
    least, most = (min(labels), max(labels)) if whole else (0, 0)
    unsigned = most >= 2**63
    if least < (0 if unsigned else -(2**63)) or most >= 2**64:
        raise ValueError(
            f"y holds {Decimal(max(labels, key=abs)):.3g}, but classes that are whole numbers have "
            "64 bits: convert y, for example by y.astype(str)."
        )
    plain = np.array(labels, dtype=np.uint64 if unsigned else None)
    booleans = {isinstance(label, bool | np.bool_) for label in labels}
    if plain.dtype.kind not in "biuf" or len(booleans) > 1:
        types = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"y holds objects of the type {' and '.join(types)}, but classes are text, booleans or "
            "whole numbers: convert y, for example by y.astype(str)."
        )
    return y.astype(plain.dtype) if hasattr(y, "iloc") else plain


def order_of(y: Any) -> AnyArray | None:
    """Classes in the order that the type of ``y``, or its one column, gives them; else None."""
    if hasattr(y, "iloc") and y.ndim == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    dtype: Any = getattr(y, "dtype", None)
    return np.asarray(dtype.categories) if getattr(dtype, "ordered", None) is True else None


def check_labels(y: Any) -> None:
    """ValueError for numbers that are not whole, and so are no classes."""
    values = np.asarray(y)
    if values.dtype.kind == "f" and (values != np.trunc(values)).any():
        raise ValueError(
            "Unknown label type: continuous. Classes are text, booleans or whole numbers; "
            "TabularRegressor and KernelRegressor predict other numbers."
        )


def check_numbers(y: Any, classifier: str) -> None:
    """ValueError for targets that are no numbers, or out of range; `classifier` is one to take."""
    if (values := target_values(y)).dtype.kind in "mM":
        raise ValueError(
            "y must be numbers for regression, but it holds dates or times: give numbers, such as "
            "days since the first."
        )
    if values.dtype == object:
        try:
            with suppress(TypeError, ValueError):  # which others tell of
                values.astype(np.float64)
        except OverflowError:
            raise ValueError("y has numbers out of range, above 1.8e308: divide y.") from None
    infinite = values.dtype.kind == "f" and np.isinf(values).reshape(len(values), -1).any(axis=1)
    if np.any(infinite):
        raise ValueError(
            f"y is infinite in {np.count_nonzero(infinite)} of {len(values)} rows, the first is "
            f"{row_name(y, int(np.argmax(infinite)))}: correct the value, or leave the row out."
        )
    for first in values.ravel()[:1]:
        if isinstance(first, str):
            numbers = number_like(values.ravel().tolist()).all()
            remedy = "convert it to numbers" if numbers else f"use {classifier} for classes"
            raise ValueError(
                f"y must be numbers for regression, but it contains {str(first)!r}; {remedy}."
            )
