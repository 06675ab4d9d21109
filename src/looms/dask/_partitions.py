"""Partitions of dask collections, and their rows as checked matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from looms._typing import AnyArray, Matrix
from looms.blocks import ArrayBlocks


def is_dask(values: Any) -> bool:
    """True for a collection of dask; imports nothing."""
    return hasattr(values, "__dask_graph__")


def partitions(values: Any) -> list[Any]:
    """Delayed partitions of a dask collection, each with all columns of its rows."""
    if hasattr(values, "chunks") and values.ndim > 1:
        values = values.rechunk({1: -1})
    return list(np.ravel(values.to_delayed()))


@dataclass(frozen=True)
class Prepare:
    """Matrix of a partition: finite float64 numbers in rows that lie one after another.

    Attributes
    ----------
    names : of the columns of a table; None for arrays.
    n_features : columns; None if the preprocessor makes them.
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
                f"{here} has the columns {list(part.columns)}, X has {list(self.names)}."
            )
        if self.preprocessor is not None:
            part = self.preprocessor.transform(part)
        if hasattr(part, "dtypes"):
            other = [name for name, dtype in part.dtypes.items() if dtype.kind not in "biuf"]
            if other:
                raise ValueError(
                    f"{here}: column {other[0]!r} is of type {part[other[0]].dtype}, and numbers "
                    "are needed. Give a fitted preprocessor, such as "
                    "looms.tables.table_preprocessor makes, or leave the column out."
                )
            part = part.to_numpy(dtype=np.float64, na_value=np.nan)
        elif part.dtype.kind not in "biuf":
            raise ValueError(f"{here} is of type {part.dtype}, and numbers are needed.")
        if sp.issparse(part):
            X = part.tocsr().astype(np.float64)
        else:
            X = np.ascontiguousarray(part, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != (self.n_features or X.shape[1]):
            raise ValueError(
                f"{here} is of shape {X.shape}, and {self.n_features} columns are needed."
            )
        if not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise ValueError(
                f"{here} contains NaN or infinity: fill the gaps, or give a fitted preprocessor."
            )
        return X

    def blocks(self, k: int, part: Any, n: int, labels: AnyArray | None = None) -> ArrayBlocks:
        """Blocks of a partition that should have n rows, those of one label in one block."""
        X = self(k, part)
        if X.shape[0] != n:
            raise ValueError(
                f"Partition {k} of X has {X.shape[0]} rows, and {n} are needed: its chunks say "
                "so, or it had as many before."
            )
        blocks = ArrayBlocks(X, self.size, n_threads=1)
        return blocks if labels is None else blocks.holding(labels)
