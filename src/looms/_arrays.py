"""Arrays of NumPy and tensors of torch, which are imported where they are met.

Sums over blocks of rows are made of six operations, chosen by where the rows live: blocks of kernel
values, products ΦΦᵀ and ΦY, and small solves, of NumPy's arrays or of tensors on their device.
Cholesky factors and triangular inverses are of (m + 1)² sums, which come back to the host.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np

from looms._optional import require
from looms._typing import AnyArray

#: A torch.Tensor, whose type is known where torch is installed.
Tensor: TypeAlias = Any


def torch() -> Any:
    """The module torch; ImportError with the extra that installs it."""
    return require("torch", "Rows in tensors", "torch")


def is_tensor(X: Any) -> bool:
    """True for a torch.Tensor."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(X, module.Tensor)


def namespace(X: Any) -> Any:
    """The module, NumPy or torch, with the functions of an array."""
    return torch() if is_tensor(X) else np


def empty(shape: tuple[int, ...], like: Any) -> Any:
    """Array of the type and on the device of another."""
    return like.new_empty(shape) if is_tensor(like) else np.empty(shape)


def filled(shape: tuple[int, ...], value: float, like: Any) -> Any:
    """Array of a number, of the type and on the device of another."""
    return like.new_full(shape, value) if is_tensor(like) else np.full(shape, value)


def columns(X: Any, mask: Any) -> Any:
    """Columns of a matrix where a mask is true; NumPy takes four times as long by an index."""
    return X[:, mask] if is_tensor(X) else np.compress(mask, X, axis=1)


def on_host(X: Any) -> Any:
    """NumPy array of a tensor; anything else as it is."""
    return X.detach().cpu().numpy() if is_tensor(X) else X


def on_device(X: AnyArray, like: Tensor) -> Any:
    """Tensor on the device of another, floats in its type; an array of labels as it is."""
    if X.dtype.kind not in "fiub":
        return X
    dtype = like.dtype if X.dtype.kind == "f" and like.is_floating_point() else None
    return torch().as_tensor(X, dtype=dtype, device=like.device)
