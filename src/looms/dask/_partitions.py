"""Partitions of dask collections, with their rows as checked matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from looms._typing import AnyArray, Matrix
from looms.blocks import ArrayBlocks


def is_dask(values: Any) -> bool:
    """True for a dask collection; imports nothing."""
    return hasattr(values, "__dask_graph__")


def partitions(values: Any) -> list[Any]:
    """Delayed partitions of a dask collection, each with all columns of its rows."""
    if hasattr(values, "chunks") and values.ndim > 1:
        values = values.rechunk({1: -1})
    return list(np.ravel(values.to_delayed()))


@dataclass(frozen=True)
class Prepare:
    """Matrix of a partition: finite float64 numbers with contiguous rows.

    Attributes
    ----------
    names : column names of a table; None for arrays.
    n_features : number of columns; None if the preprocessor makes them.
    preprocessor : fitted transformer or None.
    size : rows in a block.
    """

    names: tuple[Any, ...] | None
    n_features: int | None
    preprocessor: Any
    size: int

    def __call__(self, k: int, part: Any) -> Matrix:
        here = f"Partition {k} of X"
        if self.names is not None and tuple(part.columns) != self.names:
            raise ValueError(
                f"{here} has columns {list(part.columns)}, but X has {list(self.names)}."
            )
        if self.preprocessor is not None:
            part = self.preprocessor.transform(part)
        if hasattr(part, "dtypes"):
            other = [name for name, dtype in part.dtypes.items() if dtype.kind not in "biuf"]
            if other:
                raise ValueError(
                    f"{here}: column {other[0]!r} has type {part[other[0]].dtype}, but numbers "
                    "are needed. Give a fitted preprocessor, such as one from "
                    "looms.tables.table_preprocessor, or leave the column out."
                )
            part = part.to_numpy(dtype=np.float64, na_value=np.nan)
        elif part.dtype.kind not in "biuf":
            raise ValueError(f"{here} has type {part.dtype}, but numbers are needed.")
        if sp.issparse(part):
            X = part.tocsr().astype(np.float64)
        else:
            X = np.ascontiguousarray(part, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != (self.n_features or X.shape[1]):
            raise ValueError(
                f"{here} has shape {X.shape}, but {self.n_features} columns are needed."
            )
        if not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise ValueError(
                f"{here} contains NaN or infinity: fill these, or give a fitted preprocessor."
            )
        return X

    def blocks(self, k: int, part: Any, n: int, labels: AnyArray | None = None) -> ArrayBlocks:
        """Blocks of a partition that should have n rows; rows with one label are in one block."""
        X = self(k, part)
        if X.shape[0] != n:
            raise ValueError(
                f"Partition {k} of X has {X.shape[0]} rows, but {n} are expected from its chunks "
                "or from an earlier pass."
            )
        blocks = ArrayBlocks(X, self.size, n_threads=1)
        return blocks if labels is None else blocks.holding(labels)
