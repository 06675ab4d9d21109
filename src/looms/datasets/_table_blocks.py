"""Blocks of a table that is read and prepared again in every sweep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks, Work, in_threads
from looms.datasets._first_pass import FirstPass
from looms.datasets._rows import Block, RowReader
from looms.datasets._table import TableError


class Preprocessor(Protocol):
    """Fitted transformer of rows to floats, such as `looms.tables.table_preprocessor`."""

    def transform(self, X: Any) -> Matrix:
        """Matrix from the rows of a data frame or a sparse matrix."""


class TableBlocks(RowBlocks):
    """Rows of a table that is larger than memory, as the machines take them.

    The thread that asks for results reads the file in order, while other threads prepare and
    process the blocks already read; two blocks per thread are in memory.

    Parameters
    ----------
    reader : reader of the table.
    preprocessor : preprocessor fitted to a sample of its rows.
    first : result of a first pass over the table.
    size : number of rows in a block, by default as many as take little memory.
    n_threads : as in `ArrayBlocks`.

    Examples
    --------
    >>> import pandas as pd
    >>> from looms.datasets import TableBlocks, first_pass, open_table
    >>> from looms.tables import table_preprocessor
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 6.0], "color": ["red", "blue", "red"]})
    >>> reader = open_table(frame)
    >>> first = first_pass(reader)
    >>> prepared = table_preprocessor(first.sample.X).fit(first.sample.X)
    >>> blocks = TableBlocks(reader, prepared, first, size=2)
    >>> blocks.shape, blocks.stops.tolist()
    ((3, 3), [0, 2, 3])
    """

    def __init__(
        self,
        reader: RowReader,
        preprocessor: Preprocessor,
        first: FirstPass,
        size: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        size = size or reader.usual_size
        self._reader, self._preprocessor, self._size = reader, preprocessor, size
        self._n_features, self._n_threads = first.n_features, n_threads
        self.shape = first.n_rows, self._prepared(first.sample.X[:1]).shape[1]
        self.stops = np.append(np.arange(0, first.n_rows, size), first.n_rows)

    def results(self, work: Work, *columns: Array) -> Iterator[Any]:
        """Results of the blocks, in order.

        Raises
        ------
        TableError
            If a column has another kind in some row than in the sample, if the number of rows has
            changed, or as in `open_table`.
        """

        def on(block: Block) -> tuple[int, Any]:
            X = self._prepared(block.table().X)
            stop = block.first + X.shape[0]
            if stop > self.shape[0]:
                raise self._changed(f"more than {self.shape[0]:,} rows")
            rows = slice(block.first, stop)
            return stop, work(X, *(column[rows] for column in columns))

        end = 0
        for stop, result in in_threads(on, self._reader.blocks(self._size), self._n_threads):
            yield result
            end = stop
        if end < self.shape[0]:
            raise self._changed(f"{end:,} rows")

    def rows(self, places: AnyArray) -> Matrix:
        """Rows of X at increasing places, in one pass over the file."""
        parts = []
        for block in self._reader.blocks(self._size):
            first = block.first
            own = places[(places >= first) & (places < first + self._size)] - first
            if len(own):
                parts.append(self._prepared(block.table().X)[own])
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.vstack
        return stack(parts)

    def stored(self, path: Path, size: int = 512) -> ArrayBlocks:
        """Blocks of the prepared rows of a dense table, in a memory-mapped NumPy file.

        Sweeps then neither read nor prepare the table, which pays if there are many of them.

        Parameters
        ----------
        path : file to write, with 8 bytes for each entry of X.
        size : number of rows in a block.

        Raises
        ------
        OSError
            If the file cannot be written, for example because the disk is full.
        """
        header = {"descr": "<f8", "fortran_order": False, "shape": self.shape}
        with path.open("xb") as file:
            np.lib.format.write_array_header_2_0(file, header)
            for X in self.results(lambda X: X):
                file.write(np.ascontiguousarray(X, dtype="<f8").data)
        return ArrayBlocks(np.load(path, mmap_mode="r"), size, self._n_threads)

    def _prepared(self, X: Any) -> Matrix:
        if sparse.issparse(X):  # it ends at the last column that its rows use
            if X.shape[1] > self._n_features:
                raise self._changed(f"feature {X.shape[1]}")
            shape = X.shape[0], self._n_features
            X = sparse.csr_array((X.data, X.indices, X.indptr), shape=shape)
        try:
            return self._preprocessor.transform(X)
        except (ValueError, TypeError) as error:
            raise TableError(
                self._reader.path,
                str(error),
                "The kinds of columns were taken from a sample of the rows.",
            ) from None

    def _changed(self, what: str) -> TableError:
        return TableError(
            self._reader.path,
            f"it has {what} now, and had {self.shape[0]:,} rows at first",
            "Do not change it meanwhile; an object must be one that can be read again.",
        )
