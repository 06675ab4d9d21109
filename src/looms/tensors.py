"""Rows in torch tensors, on the CPU or a device, where they are also processed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from looms._arrays import Tensor, is_tensor, on_device, on_host, torch
from looms._checks import check_known
from looms._typing import AnyArray, Array
from looms.blocks import ArrayBlocks, Work

__all__ = ["TensorBlocks"]

Method = TypeVar("Method", bound=Callable[..., Any])


class TensorBlocks(ArrayBlocks):
    """Blocks of a tensor, processed one at a time on the tensor's device.

    Sums over a block come to the host, where they are added up in float64.

    Parameters
    ----------
    X : (n_rows, n_features) tensor of finite numbers, neither copied nor changed.
    dtype : type in which blocks are processed, "float64" or "float32"; by default that of ``X`` if
        it is one of these, else float64. Inner products and distances are float64 in both cases.
    size : rows in a block.

    Notes
    -----
    For a machine on m landmarks, held-out outputs with float32 blocks differ from those in float64
    by less than √m ε k̄ / μ standard deviations of the targets (root mean square), where ε = 1.2e-7
    and k̄ is the mean of k(x, x). So use float32 only if μ / k̄ is well above √m ε. A block takes
    about ten times 4 or 8 bytes per row and landmark.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from looms import LSSVMRegressorCV
    >>> X = torch.linspace(-3, 3, 9000, device="cuda")[:, None]  # doctest: +SKIP
    >>> model = LSSVMRegressorCV(rank=50).fit(X, X.sin()[:, 0])  # doctest: +SKIP
    >>> model.predict(X).device  # doctest: +SKIP
    device(type='cuda', index=0)
    """

    def __init__(self, X: Tensor, dtype: str | None = None, size: int = 4096) -> None:
        if X.ndim != 2:
            raise ValueError(
                f"Samples must be rows of a matrix, got a tensor of {X.ndim} dimensions."
            )
        if dtype is None:
            dtype = "float32" if X.dtype == torch().float32 else "float64"
        check_known(dtype, "dtype", ("float64", "float32"))
        if not torch().isfinite(X).all():
            raise ValueError("X contains NaN or infinity.")
        super().__init__(X.detach(), size)
        self.dtype = dtype

    def results(self, work: Work, *columns: Array) -> Iterator[Any]:
        like = self.X.new_empty(0, dtype=getattr(torch(), self.dtype))
        arrays = {f.name: getattr(work, f.name) for f in fields(cast(Any, work))}
        moved = {k: on_device(a, like) for k, a in arrays.items() if isinstance(a, np.ndarray)}
        moved_work = replace(cast(Any, work), **moved)
        along = [
            on_device(column, like) if column.dtype.kind == "f" else column for column in columns
        ]
        for rows in self.places():
            X = self.X[rows].double()
            try:
                results = moved_work(X, *(column[rows] for column in along))
            except torch().linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(str(error)) from None
            yield tuple(tuple(on_host(a.double()) for a in arrays) for arrays in results)

    def rows(self, places: AnyArray) -> Array:
        return np.asarray(on_host(self.X[places].double()))

    def part(self, rows: AnyArray) -> TensorBlocks:
        return TensorBlocks(self.X[rows], self.dtype, self.size)


def rows_of_tensors(X: Any, y: Any, sample_weight: Any, rank: Any) -> tuple[Any, Any, Any]:
    """Arguments of `fit`, with tensors of targets and weights as arrays, and of rows in blocks.

    Without a rank the rows come to the host, too.
    """
    if is_tensor(X):
        X = on_host(X) if rank is None else TensorBlocks(X)
    return X, on_host(y), on_host(sample_weight)


def following_tensors(method: Method) -> Method:
    """Decorated method of an estimator and X; for a tensor X it returns tensors on its device."""

    @wraps(method)
    def followed(self: Any, X: Any) -> Any:
        if not is_tensor(X):
            return method(self, X)
        on_landmarks = getattr(self, "landmarks_", None) is not None
        return on_device(method(self, TensorBlocks(X) if on_landmarks else on_host(X)), X)

    return cast(Method, followed)
