"""Checks of arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np

from looms._advice import setting
from looms._typing import AnyArray
from looms._words import row_name


def check_known(
    name: Any, kind: str, known: Iterable[str], more: str = "", shown: Iterable[str] = ()
) -> None:
    """Raise ValueError, with the nearest known name, and all or those ``shown``, unless ``name`` is
    one of them."""
    known = list(known)
    if not isinstance(name, str) or name not in known:
        near = [candidate for candidate in known if candidate.lower() == str(name).lower()]
        near = near or get_close_matches(str(name), known, 1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        listed = ", ".join(shown or known)
        raise ValueError(f"Unknown {setting(kind)} {name!r}{meant}; known are {listed}{more}.")


def check_count(value: Any, name: str, least: int = 1, others: str = "") -> None:
    """Raise ValueError unless ``value`` is an integer from ``least`` on; ``others`` may be too."""
    proper = isinstance(value, Integral) and not isinstance(value, bool)
    if not (proper and int(value) >= least):
        number = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{setting(name)} must be {number}{others}, got {value!r}.")


def check_share(value: Any, name: str) -> None:
    """Raise ValueError unless ``value`` is a number between 0 and 1, both excluded."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        percent = isinstance(value, Real) and 10 <= float(value) < 100
        meant = f" Did you mean {float(value) / 100:g}?" if percent else ""
        raise ValueError(
            f"{setting(name)} must be a number above 0 and below 1, got {value!r}.{meant}"
        )


def check_estimator(estimator: Any) -> None:
    """Raise TypeError unless there is something to fit."""
    if not hasattr(estimator, "fit"):
        raise TypeError(
            "estimator must be an estimator of looms or scikit-learn, such as KernelClassifier(), "
            f"got {estimator!r}."
        )


def take_rows(values: Any, rows: Any) -> Any:
    """Rows of an array; None without an array."""
    return None if values is None else values[rows]


def ensure_list(parameter: Any) -> list[Any]:
    """A list or tuple as a list; any other value as a list of one."""
    return list(parameter) if isinstance(parameter, (list, tuple)) else [parameter]


def check_flag(name: str, value: Any) -> None:
    """ValueError unless ``value`` is True or False: a string such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{setting(name)} must be True or False, got {value!r}.")


def readable_table(X: Any) -> Any:
    """Table that can be read: one of pyarrow as a data frame of pandas, without its metadata.

    Raises
    ------
    TypeError
        For the name of a file and other values that are no table in memory that can be read.
    """
    if type(X) in (str, bytes, dict) or isinstance(X, PathLike):  # sparse matrices may be dicts
        remedy = "make a data frame of it" if isinstance(X, dict) else "read the file first"
        raise TypeError(f"X must be a table, such as a data frame, got {X!r:.60}: {remedy}.")
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch):
        return X.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    kind = type(X).__name__
    if kind == "LazyFrame":  # which computes its columns if it is asked for them
        raise TypeError("the table is a LazyFrame, whose rows are not there yet: collect it first.")
    if hasattr(X, "columns") and not (hasattr(X, "iloc") or hasattr(X, "to_series")):
        raise TypeError(
            f"the table is of the type {kind}, which cannot be read: give a data frame of pandas "
            "or polars, a table of pyarrow, an array or a sparse matrix."
        )
    return X


def remark_on_order(**arguments: Any) -> str | None:
    """Sentence on arguments whose index, as in pandas, has the labels of that of the first one with
    an index, in another order; None if there are none.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"dose": [1.0, 2.0]})
    >>> remark_on_order(X=X, y=X["dose"], groups=X["dose"][::-1])  # doctest: +ELLIPSIS
    'X and groups have the same index in another order, ...: give groups.loc[X.index].'
    """
    indices = {name: values.index for name, values in arguments.items() if has_index(values)}
    if len(indices) < 2:
        return None
    (first, index), *rest = indices.items()
    odd = [name for name, labels in rest if _is_reordered(index, labels)]
    if not odd:
        return None
    names = " and ".join([first, *odd])
    if index.is_unique:
        remedy = "give " + " and ".join(f"{name}.loc[{first}.index]" for name in odd)
    else:
        remedy = (
            f"some labels are those of several rows, so put {names} into one table, and sort it"
        )
    return (
        f"{names} have the same index in another order, but rows are matched by their places: "
        f"{remedy}."
    )


def has_index(values: Any) -> bool:
    """True for what has an index of labels in memory, as in pandas."""
    return hasattr(values, "iloc") and hasattr(values.index, "get_indexer")


def _is_reordered(a: Any, b: Any) -> bool:
    return bool(len(a) == len(b) and not a.equals(b) and a.isin(b).all() and b.isin(a).all())


def drop_index(values: Any) -> Any:
    """Array of what has an index, as in pandas; other values unchanged."""
    return np.asarray(values) if has_index(values) else values


def label_array(values: Any) -> AnyArray:
    """Array of labels or other values; those of a list keep their types.

    Masked values are None.

    Examples
    --------
    >>> label_array([1, "1"]).tolist()
    [1, '1']
    """
    if isinstance(values, list | tuple):
        return np.fromiter(values, dtype=object, count=len(values))
    if isinstance(values, np.ma.MaskedArray):
        cells = values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    return squeeze_column(values)


def squeeze_column(values: Any) -> AnyArray:
    """Array of values, without the second dimension of a single column."""
    array = np.asarray(values)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def value_numbers(values: AnyArray) -> AnyArray:
    """(n,) number of each value, from 0, in the order of the sorted values, or in the order of
    appearance if these cannot be sorted. TypeError for a list or the like.

    Examples
    --------
    >>> value_numbers(np.array(["b", "a", "b"])), value_numbers(np.array(["b", 7], dtype=object))
    (array([1, 0, 1]), array([0, 1]))
    """
    if values.dtype.kind in "biufmMSU":
        return np.asarray(np.unique(values, return_inverse=True)[1])
    distinct: Iterable[Any] = dict.fromkeys(values.tolist())
    with suppress(TypeError):  # 1 and "1" are two, and neither is less
        distinct = sorted(distinct)
    numbers = {value: k for k, value in enumerate(distinct)}
    return np.array([numbers[value] for value in values.tolist()], dtype=np.intp)


def gaps_in(values: Any) -> AnyArray:
    """(n,) whether each value, such as a label, or any in its row, is None, NaN or NA."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        gaps = np.isnan(array)
    else:  # among text, an array of other than objects has a NaN as text
        cells = np.asarray(values, dtype=object)
        gaps = np.array([_is_gap(cell) for cell in cells.ravel().tolist()], dtype=bool)
        gaps = gaps.reshape(cells.shape)
    return np.asarray(gaps.any(axis=tuple(range(1, gaps.ndim))))


def _is_gap(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    unequal = value != value  # an array, if the value is one
    return unequal is True or (unequal is not False and np.ndim(unequal) == 0 and bool(unequal))


def target_values(y: Any) -> AnyArray:
    """A target as an array; ValueError for lists of different lengths."""
    try:
        return np.asarray(y)
    except ValueError:
        raise ValueError(
            "y holds lists of different lengths: give one value for each row, or equally many."
        ) from None


def check_target(y: Any) -> None:
    """ValueError for a target with gaps, text beside other values, or lists of unequal lengths."""
    target_values(y)
    gaps = gaps_in(y)
    if gaps.any():
        n = int(gaps.sum())
        raise ValueError(
            f"y has no value in {n} of {len(gaps)} rows, the first is "
            f"{row_name(y, int(gaps.argmax()))}: leave {'it' if n == 1 else 'them'} out of X and y."
        )
    values = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if values.dtype == object and values.size == len(values):
        texts = np.array([isinstance(value, str) for value in values.ravel()], dtype=bool)
        odd = int((texts != texts[0]).argmax()) if len(texts) else 0
        if odd:
            examples = (f"{str(values.flat[row])!r} in {row_name(y, row)}" for row in (0, odd))
            raise ValueError(
                f"y has text and other values: {' and '.join(examples)}. Convert y to one type."
            )
