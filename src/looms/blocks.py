"""Rows of a table in blocks, which an algorithm sweeps over as often as it needs.

A sweep calls one function on every block and adds up the results, in an order that depends on the
blocks alone. So any number of threads, processes or workers of a cluster gives the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from looms._memory import check_rows
from looms._threads import available_threads, one_blas_thread, openmp_threads
from looms._typing import AnyArray, Array, Matrix

__all__ = ["ArrayBlocks", "RowBlocks"]

T = TypeVar("T")

#: Function of a block, its rows of X and of each column. It returns arrays to be added up over the
#: blocks, and arrays with a row for each row of the block. It must be picklable if blocks are
#: processed elsewhere.
Work: TypeAlias = Callable[..., tuple[tuple[Array, ...], tuple[Array, ...]]]


class RowBlocks(ABC):
    """Rows of a table in blocks.

    Subclasses define `results`, a function applied to every block in order; `sweep` uses it.

    Attributes
    ----------
    shape : (n_rows, n_features).
    stops : (n_blocks + 1,) positions of the first row of each block, and n_rows.
    feature_names : names of the columns, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.blocks import ArrayBlocks, RowBlocks
    >>> isinstance(ArrayBlocks(np.eye(3)), RowBlocks)
    True
    """

    shape: tuple[int, int]
    stops: AnyArray
    feature_names: Sequence[str] | None = None

    @abstractmethod
    def results(self, work: Work, *columns: Array) -> Iterator[Any]:
        """``work(X[b], *(column[b] for column in columns))`` for every block b, in order."""

    @abstractmethod
    def rows(self, places: AnyArray) -> Matrix:
        """Rows of X at increasing positions."""

    def sweep(self, work: Work, *columns: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Sums over the blocks, and columns for all rows, of what ``work`` returns.

        Parameters
        ----------
        work : takes a block of X and of each column; returns a tuple of arrays to be added up, and
            a tuple of arrays with one row for each row of the block.
        columns : (n_rows, ...) arrays that accompany X.

        Returns
        -------
        sums : sums over the blocks, added in pairs, so that rounding grows with the logarithm of
            the number of blocks.
        columns : arrays of shape (n_rows, ...).
        """
        if not self.shape[0]:
            raise ValueError("There are no rows.")
        whole: list[Array] = []

        def summands() -> Iterator[tuple[Array, ...]]:
            results = self.results(work, *columns)
            for rows, (sums, parts) in zip(self.places(), results, strict=True):
                if not whole:
                    n = self.shape[0]  # in memory as the parts are, by rows or by columns
                    whole.extend(np.empty_like(part, shape=(n, *part.shape[1:])) for part in parts)
                for column, part in zip(whole, parts, strict=True):
                    column[rows] = part
                yield sums

        return tree_sum(summands(), _added), tuple(whole)

    def places(self) -> Sequence[slice | AnyArray]:
        """Rows of each block."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.stops)]

    def check_finite(self) -> None:
        """ValueError if rows that are at hand, in memory or a memory map, are not finite."""
        return

    def holding(self, labels: AnyArray) -> RowBlocks:
        """The same rows, with all rows of one label in one block, as far as they can be moved."""
        return self

    def __getitem__(self, rows: AnyArray) -> RowBlocks:
        """Blocks of some rows, held in memory."""
        return ArrayBlocks(self.rows(rows))


class ArrayBlocks(RowBlocks):
    """Blocks of a matrix in memory, or of a memory map.

    Parameters
    ----------
    X : (n_rows, n_features) array, memory map or CSR matrix; neither copied nor changed. Blocks
        that are not float64 are converted when they are processed.
    size : rows in a block; only the last block may have fewer.
    n_threads : number of blocks processed at once, each on one BLAS thread; by default the number
        of cores, or the limit set for BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = ArrayBlocks(np.arange(6.0).reshape(6, 1), size=4)
    >>> blocks.sweep(lambda X: ((X.sum(),), (2 * X[:, 0],)))
    ((np.float64(15.0),), (array([ 0.,  2.,  4.,  6.,  8., 10.]),))
    """

    def __init__(self, X: Matrix, size: int = 512, n_threads: int | None = None) -> None:
        self.X = X
        self.shape = X.shape
        self.stops = np.append(np.arange(0, X.shape[0], size), X.shape[0])
        self.size = size
        self.n_threads = n_threads
        self._order: AnyArray | None = None

    def results(self, work: Work, *columns: Array) -> Iterator[Any]:
        def block_result(rows: slice | AnyArray) -> Any:
            return work(self.rows(rows), *(column[rows] for column in columns))

        return threaded_map(block_result, self.places(), self.n_threads)

    def places(self) -> Sequence[slice | AnyArray]:
        if self._order is None:
            return super().places()
        return np.split(self._order, self.stops[1:-1])

    def holding(self, labels: AnyArray) -> Self:
        _, first, number, counts = np.unique(
            labels, return_index=True, return_inverse=True, return_counts=True
        )
        blocks = copy(self)
        blocks._order = np.lexsort((np.arange(len(labels)), first[number]))
        ends = np.cumsum(counts[np.argsort(first)])
        last = np.searchsorted(ends, self.stops[1:])  # the set that a block's end falls into
        blocks.stops = np.unique(np.append(0, ends[last]))
        return blocks

    def rows(self, places: slice | AnyArray) -> Matrix:
        X = self.X[places]
        return X.astype(np.float64, copy=False) if sp.issparse(X) else np.asarray(X, np.float64)

    def __getitem__(self, rows: AnyArray) -> ArrayBlocks:
        return ArrayBlocks(self.rows(rows), self.size, self.n_threads)

    def check_finite(self) -> None:
        """ValueError naming a row with NaN or infinity, if there is one."""
        for place in self.places():
            X = self.rows(place)
            bad = np.flatnonzero(~np.isfinite(X.data if sp.issparse(X) else X.sum(axis=1)))
            if len(bad):
                row = np.arange(self.shape[0])[place][0 if sp.issparse(X) else bad[0]]
                raise ValueError(
                    f"X contains NaN or infinity in row {row}{' or after' * sp.issparse(X)}: leave "
                    "such rows out, or fill the gaps."
                )


def blocks_of(X: Matrix | RowBlocks) -> RowBlocks:
    """Rows in blocks; a matrix becomes blocks."""
    return X if isinstance(X, RowBlocks) else ArrayBlocks(X)


def rows_in_memory(X: Matrix | RowBlocks) -> Matrix:
    """All rows as a matrix; MemoryError if they take more memory than is free."""
    if not isinstance(X, RowBlocks):
        return X
    check_rows(*X.shape)
    return X.rows(np.arange(X.shape[0]))


def joined_rows(parts: Sequence[Matrix]) -> Matrix:
    """Rows of matrices, one below the other; sparse if one of them is."""
    return sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.vstack(parts)


def threaded_map(
    function: Callable[[Any], T], arguments: Iterable[Any], n_threads: int | None = None
) -> Iterator[T]:
    """Results of a function in the order of its arguments, several at once, each in one thread.

    Only as many more are started as there are threads, so that few results wait in memory.
    Arguments are made in the calling thread, ahead of the others. The first exception ends it.
    """
    n = n_threads or available_threads()

    def alone(argument: Any) -> T:
        with openmp_threads(0):
            return function(argument)

    with one_blas_thread():
        if n < 2:
            yield from map(alone, arguments)
            return
        with ThreadPoolExecutor(n) as pool:
            pending: deque[Future[T]] = deque()
            try:
                for argument in arguments:
                    pending.append(pool.submit(alone, argument))
                    if len(pending) > 2 * n:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()


def tree_sum(summands: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Sum in pairs, by a tree that depends on the number of summands alone.

    Keeps as many partial sums as this number has binary digits.

    Examples
    --------
    >>> tree_sum(iter("abcde"), lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    partial: list[tuple[int, T]] = []  # sums of 2^k summands, with k
    for summand in summands:
        level = 0
        while partial and partial[-1][0] == level:
            summand, level = add(partial.pop()[1], summand), level + 1
        partial.append((level, summand))
    total = partial.pop()[1]
    while partial:
        total = add(partial.pop()[1], total)
    return total


def _added(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    """Sums of the arrays of two tuples, pair by pair."""
    return tuple(x + y for x, y in zip(a, b, strict=True))
