"""NumPy arrays and torch tensors; torch is imported only when a tensor is met.

Sums over blocks of rows use operations chosen by where the rows are: blocks of kernel values,
products ΦΦᵀ and ΦY, and small solves, on NumPy arrays or on tensors on their device. Cholesky
factors and triangular inverses are taken of (m + 1)² sums, on the host.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np

from looms._optional import require
from looms._typing import AnyArray

#: A torch.Tensor, whose type is known only if torch is installed.
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
    """Empty array with the type and device of another."""
    return like.new_empty(shape) if is_tensor(like) else np.empty(shape)


def filled(shape: tuple[int, ...], value: float, like: Any) -> Any:
    """Array filled with a number, with the type and device of another."""
    return like.new_full(shape, value) if is_tensor(like) else np.full(shape, value)


def columns(X: Any, mask: Any) -> Any:
    """Columns of a matrix where a mask is true; NumPy is four times as slow with an index."""
    return X[:, mask] if is_tensor(X) else np.compress(mask, X, axis=1)


def on_host(X: Any) -> Any:
    """A tensor as a NumPy array; anything else unchanged."""
    return X.detach().cpu().numpy() if is_tensor(X) else X


def on_device(X: AnyArray, like: Tensor) -> Any:
    """Tensor on the device of another, floats in its type; an array of labels keeps its type."""
    if X.dtype.kind not in "fiub":
        return X
    dtype = like.dtype if X.dtype.kind == "f" and like.is_floating_point() else None
    return torch().as_tensor(X, dtype=dtype, device=like.device)
