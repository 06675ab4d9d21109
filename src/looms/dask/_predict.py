"""Lazy predictions for dask collections."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from looms._threads import one_blas_thread, openmp_threads
from looms._typing import AnyArray
from looms.dask._blocks import is_dask, partitions
from looms.dask._cluster import dask_module

Method = TypeVar("Method", bound=Callable[..., Any])


def lazy_for_dask(method: Method) -> Method:
    """Decorated method of an estimator and X, which uses `predict` for dask collections."""

    @wraps(method)
    def predict_partitions(self: Any, X: Any) -> Any:
        return predict(self, X, method.__name__) if is_dask(X) else method(self, X)

    return cast(Method, predict_partitions)


def predict(model: Any, X: Any, method: str = "predict") -> Any:
    """Predictions for a dask collection, computed lazily, partition by partition.

    Parameters
    ----------
    model : fitted estimator
        A model, or a pipeline that ends with one.
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        Partitions may be empty; the model receives those of a table as tables.
    method : str, default="predict"
        Method of the model: "predict", "predict_proba", "decision_function" or any other that
        returns an array with a row for each row of X.

    Returns
    -------
    predictions : dask.array.Array of shape (n_samples,) or (n_samples, n_outputs)
        Its chunks are the partitions of X.

    Examples
    --------
    >>> import dask.array
    >>> from looms import KernelRegressor
    >>> model = KernelRegressor("linear", mu=1e-3).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0])
    >>> X = dask.array.arange(3.0, chunks=2).reshape(3, 1)
    >>> predict(model, X).chunks
    ((2, 1),)
    """
    array = dask_module("dask.array")
    delayed = dask_module().delayed
    parts = partitions(X)
    if hasattr(X, "columns"):
        row, sizes = X._meta_nonempty.iloc[:1], [np.nan] * len(parts)
    else:
        row, sizes = np.zeros((1, X.shape[1]), X.dtype), X.chunks[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the values of that row, which mean nothing
        like = getattr(model, method)(row)[:0]
    task, shared = delayed(_predicted), delayed(model, traverse=False)
    lazy = [
        array.from_delayed(task(shared, method, part, like), (n, *like.shape[1:]), like.dtype)
        for part, n in zip(parts, sizes, strict=True)
    ]
    return array.concatenate(lazy)


def _predicted(model: Any, method: str, part: Any, like: AnyArray) -> AnyArray:
    if not part.shape[0]:
        return like
    with one_blas_thread(), openmp_threads(0):
        return np.asarray(getattr(model, method)(part))
