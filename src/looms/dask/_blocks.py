"""Rows of a dask collection in blocks.

A sweep is one task per partition and a tree of sums on the workers. The order of summation depends
on the partitions alone, so any number of workers gives the same bits. All that a task needs is in
the graph, so the scheduler can give the tasks of a lost worker to others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks, Work, joined_rows, tree_sum
from looms.dask._cluster import computed, dask_module

#: Largest number of rows of a subset that this process works on itself.
ROWS_HERE = 20_000

#: Sums over rows, and columns of them.
Swept: TypeAlias = tuple[tuple[Array, ...], tuple[Array, ...]]


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
            if not (hasattr(part, "iloc") or sp.issparse(part)):
                part = np.asarray(part)  # of polars, if scikit-learn is set to give such frames
        if hasattr(part, "dtypes"):
            text = [name for name, dtype in part.dtypes.items() if dtype.kind not in "biuf"]
            if text:
                raise ValueError(
                    f"{here}: column {text[0]!r} has type {part[text[0]].dtype}, but numbers "
                    "are needed. Give a fitted preprocessor, such as one from "
                    "looms.tables.TablePreprocessor, or leave the column out."
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


class DaskBlocks(RowBlocks):
    """Rows of a dask collection, in blocks of its partitions.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_rows, n_features)
        Numbers without missing values, unless there is a ``preprocessor``. Lengths of partitions
        may be unknown, and partitions may be empty. Chunks of arrays may be CSR matrices. Each
        sweep computes the partitions again: persist X if the workers have enough memory.
    size : int, default=512
        Rows in a block; only the last block of a partition may have fewer.
    preprocessor : transformer, default=None
        A fitted transformer (fitted on a sample, for instance) that turns the partitions of a
        table into numbers.
    client : distributed.Client, default=None
        The current client by default; without one, dask's scheduler in this process.

    Attributes
    ----------
    sizes : (n_partitions,) number of rows of each partition.

    Raises
    ------
    ValueError
        If X has no rows; during a sweep, if a partition does not match the others or is not
        numeric.
    TimeoutError
        During any computation, if the cluster has no worker for a minute, or only paused ones.

    Notes
    -----
    Unknown lengths are counted in one pass, which also checks all partitions. The last bits of
    sums depend on the partitions, but not on where they are computed. If all partitions have
    size · 2^k rows, the last one possibly fewer, the bits are those of `ArrayBlocks`.

    Examples
    --------
    >>> import dask.array
    >>> blocks = DaskBlocks(dask.array.arange(6.0, chunks=4).reshape(6, 1), size=3)
    >>> blocks.stops
    array([0, 3, 4, 6])
    >>> blocks.sweep(lambda X: ((X.sum(),), (2 * X[:, 0],)))
    ((np.float64(15.0),), (array([ 0.,  2.,  4.,  6.,  8., 10.]),))
    """

    def __init__(
        self, X: Any, size: int = 512, preprocessor: Any = None, client: Any = None
    ) -> None:
        delayed = dask_module().delayed
        if X.ndim != 2 or np.isnan(X.shape[1]):
            raise ValueError(
                f"X must have two dimensions and a known number of columns, got shape {X.shape}."
            )
        self.client = client
        self._labels: AnyArray | None = None
        self.size = size
        self._parts = partitions(X)
        names = tuple(X.columns) if hasattr(X, "columns") else None
        width = None if preprocessor is not None else int(X.shape[1])
        self._prepare = delayed(Prepare(names, width, preprocessor, size), traverse=False)
        if width is not None and names is None and not np.isnan(X.chunks[0]).any():
            self.sizes = np.array(X.chunks[0])
        else:
            shapes = [delayed(_shape)(self._prepare, k, part) for k, part in enumerate(self._parts)]
            self.sizes, widths = np.array(computed(delayed(list)(shapes), client)).T
            width = int(widths.max())
        if not self.sizes.any():
            raise ValueError(f"X has no rows: all of its {len(self.sizes)} partitions are empty.")
        self.shape = int(self.sizes.sum()), width
        if names is not None and preprocessor is None and all(isinstance(s, str) for s in names):
            self.feature_names = names
        self.stops = self._stops()

    def _stops(self) -> AnyArray:
        """Positions of the first rows of blocks; each partition begins a new block."""
        places = [np.arange(rows.start, rows.stop, self.size) for rows in self._slices()]
        return np.append(np.concatenate(places), self.shape[0])

    def holding(self, labels: AnyArray) -> DaskBlocks:
        """The same rows, with all rows of one label in a partition in one block."""
        blocks = copy(self)
        blocks._labels = labels
        return blocks

    def sweep(self, work: Work, *columns: Array) -> Swept:
        delayed = dask_module().delayed
        parts = self._mapped(delayed(_swept), work, columns)
        total: Swept = computed(tree_sum(parts, delayed(_joined_sums)), self.client)
        return total

    def places(self) -> Sequence[slice | AnyArray]:
        if self._labels is None:
            return super().places()
        return [
            block + rows.start
            for rows in self._slices()
            for block in ArrayBlocks(self._labels[rows], self.size)
            .holding(self._labels[rows])
            .places()
        ]

    def results(self, work: Work, *columns: Array) -> Iterator[Any]:
        dask = dask_module()
        for part in self._mapped(dask.delayed(_results), work, columns):
            yield from computed(part, self.client)

    def rows(self, places: AnyArray) -> Matrix:
        parts, _ = self._taken(places)
        return computed(dask_module().delayed(joined_rows)(parts), self.client)

    def __getitem__(self, rows: AnyArray) -> RowBlocks:
        if len(rows) <= ROWS_HERE:
            return ArrayBlocks(self.rows(rows), self.size)
        part = copy(self)
        part._labels = None
        part._parts, part.sizes = self._taken(rows)
        part._prepare = dask_module().delayed(
            Prepare(None, self.shape[1], None, self.size), traverse=False
        )
        part.shape = len(rows), self.shape[1]
        part.stops = part._stops()
        return part

    def _taken(self, places: AnyArray) -> tuple[list[Any], AnyArray]:
        """Tasks that take rows at increasing positions from partitions, and how many each takes."""
        take = dask_module().delayed(_taken)
        slices = self._slices()
        taken = [
            places[slice(*np.searchsorted(places, (s.start, s.stop)))] - s.start for s in slices
        ]
        parts = [
            take(self._prepare, k, part, n, taken[k])
            for k, (part, n) in enumerate(zip(self._parts, self.sizes, strict=True))
            if len(taken[k])
        ]
        return parts, np.array([len(rows) for rows in taken if len(rows)])

    def column(self, values: Any, name: str = "y") -> AnyArray:
        """Values of all rows, in their order, as an array in this process.

        Parameters
        ----------
        values : array-like or dask collection with n_rows rows
            In the order of the rows of X; its own partitions and index are ignored.
        name : str, default="y"
            Name used in messages.

        Raises
        ------
        ValueError
            If it does not have as many rows as X.
        """
        column: AnyArray = np.asarray(gathered(values, self.client))
        if len(column) != self.shape[0]:
            raise ValueError(f"{name} has {len(column)} rows, but X has {self.shape[0]}.")
        return column

    def aligned(self, values: AnyArray) -> Any:
        """(n_rows, ...) values as a dask array with the same chunks of rows as X."""
        array = dask_module("dask.array")
        chunks = (tuple(self.sizes.tolist()), *((n,) for n in values.shape[1:]))
        return array.from_array(values, chunks=chunks)

    def _mapped(self, function: Any, work: Work, columns: Sequence[Array]) -> Iterator[Any]:
        """Tasks on nonempty partitions; one task before them holds the work and its data."""
        shared = dask_module().delayed(work, traverse=False)
        for k, (part, rows) in enumerate(zip(self._parts, self._slices(), strict=True)):
            n = rows.stop - rows.start
            labels = None if self._labels is None else self._labels[rows]
            if n:
                pieces = [column[rows] for column in columns]
                yield function(shared, self._prepare, (k, part, n, labels), *pieces)

    def _slices(self) -> list[slice]:
        """Rows of each partition."""
        stops = np.cumsum(self.sizes).tolist()
        return [slice(a, b) for a, b in pairwise([0, *stops])]


def gathered(values: Any, client: Any = None) -> Any:
    """Values of a dask collection as an array in this process; other values unchanged."""
    if not is_dask(values):
        return values
    return computed(dask_module().delayed(_joined)(partitions(values)), client)


def blocks_and_arrays(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """A dask collection as blocks, its targets and weights as arrays; other values unchanged."""
    if is_dask(X):
        X = DaskBlocks(X)
    if isinstance(X, DaskBlocks):
        if y is None:
            raise ValueError("y is None: fit needs the target of each row.")
        y = X.column(y)
        if not (sample_weight is None or np.isscalar(sample_weight)):
            sample_weight = X.column(sample_weight, "sample_weight")
    return X, y, sample_weight


def _shape(prepare: Prepare, k: int, part: Any) -> tuple[int, int]:
    return prepare(k, part).shape if part.shape[0] else (0, 0)


def _swept(work: Work, prepare: Prepare, partition: tuple[Any, ...], *columns: Array) -> Swept:
    return prepare.blocks(*partition).sweep(work, *columns)


def _results(
    work: Work, prepare: Prepare, partition: tuple[Any, ...], *columns: Array
) -> list[Any]:
    return list(prepare.blocks(*partition).results(work, *columns))


def _joined_sums(a: Swept, b: Swept) -> Swept:
    """Joined sums and columns of two results, which stay unchanged as they may be reused."""
    sums = tuple(x + y for x, y in zip(a[0], b[0], strict=True))
    return sums, tuple(np.concatenate(pair) for pair in zip(a[1], b[1], strict=True))


def _taken(prepare: Prepare, k: int, part: Any, n: int, places: AnyArray) -> Matrix:
    return prepare.blocks(k, part, n).rows(places)


def _joined(parts: list[Any]) -> AnyArray:
    """Joined values of partitions; empty partitions do not affect the type."""
    arrays = [np.asarray(part) for part in parts]
    return np.concatenate([array for array in arrays if len(array)] or arrays)
