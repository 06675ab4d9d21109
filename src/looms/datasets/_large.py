"""Tables larger than memory: a first pass over the rows, and blocks prepared in every sweep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from scipy import sparse

from looms._typing import AnyArray, Array, Matrix
from looms._words import rows_of_files
from looms.blocks import ArrayBlocks, RowBlocks, Work, in_threads
from looms.datasets._numbers import text_of
from looms.datasets._rows import Block, RowReader
from looms.datasets._sparse import whole_target
from looms.datasets._table import Table, TableError, check_target, no_rows, table_name
from looms.tables import TablePreprocessor
from looms.tables._preprocessor import matrix_of

#: Number of rows in the sample, to which a preprocessor is fitted.
SAMPLE = 20_000
#: Largest size of the sample in bytes, as numbers.
_BYTES = 2**27


@dataclass(frozen=True)
class FirstPass:
    """What one pass over a table finds.

    Attributes
    ----------
    n_rows, n_features : shape of X.
    y : target of all rows; None if there is no target.
    ranges : least and greatest value of each column of numbers, or of dates as days since 1970.
    sample : rows drawn without replacement, in order; all rows if there are no more.
    places : places of the sampled rows in the table.
    notes : notes on columns, like those of `Table`.
    """

    n_rows: int
    n_features: int
    y: pandas.Series | AnyArray | None
    ranges: dict[str, list[float]]
    sample: Table
    places: AnyArray
    notes: tuple[str, ...]


def first_pass(reader: RowReader, n_sample: int = SAMPLE, random_state: int = 0) -> FirstPass:
    """Go through a table once, and keep its target and a uniform sample of its rows.

    Parameters
    ----------
    reader : reader of the table.
    n_sample : number of rows in the sample; fewer if the table has very many columns.
    random_state : seed of the sample, which does not depend on the blocks.

    Raises
    ------
    TableError
        If there are no rows, if the target is missing or infinite in some row, or if reading the
        file fails (see `open_table`).

    Examples
    --------
    >>> import pandas as pd
    >>> from looms.datasets import open_table
    >>> from looms.datasets._large import first_pass
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 6.0], "kind": ["a", "b", "a"]})
    >>> first = first_pass(open_table(frame, target="kind"))
    >>> first.n_rows, first.ranges["size"], first.y.tolist()
    (3, [1.0, 6.0], ['a', 'b', 'a'])
    """
    rng = np.random.default_rng(random_state)
    n_sample = min(n_sample, max(1, _BYTES // (8 * max(reader.n_columns, 1))))
    n_rows, n_features, most = 0, 0, np.inf
    targets: list[Any] = []
    ranges: dict[str, list[float]] = {}
    notes: list[str] = []
    parts: list[_Part] = []
    for table in reader.tables():
        n, n_features = table.X.shape[0], max(n_features, table.X.shape[1])
        targets.append(table.y)
        notes += table.notes
        for name in () if sparse.issparse(table.X) else table.X:
            floats = _floats(table.X[name])
            if len(floats):
                least, greatest = ranges.get(name, (np.inf, -np.inf))
                ranges[name] = [min(least, float(floats.min())), max(greatest, float(floats.max()))]
        # The rows of the least of as many random numbers are a uniform sample.
        part = _Part(table.X, n_rows + np.arange(n), rng.random(n))
        parts += part.below(most)
        if sum(len(part.keys) for part in parts) > 2 * n_sample:
            parts, most = _least(parts, n_sample)
        n_rows += n
    if not n_rows:
        raise no_rows(reader.path)
    parts, _ = _least(parts, n_sample)
    places = np.concatenate([part.places for part in parts])
    y = None
    if isinstance(targets[0], np.ndarray):
        y = np.concatenate(targets)
        check_target(y, reader.path)
        y = whole_target(y)
    elif targets[0] is not None:
        y = pandas.concat(targets, ignore_index=True)
        check_target(y, reader.path, f"the target {y.name!r}", "data row")
    X = _joined([part.X for part in parts], n_features)
    sample = Table(X, None if y is None else y[places], table_name(reader.path))
    return FirstPass(n_rows, n_features, y, ranges, sample, places, (*reader.notes, *notes))


def _floats(column: pandas.Series) -> AnyArray:
    """Numbers of a column without gaps, dates as days since 1970; nothing for other columns."""
    types, cells = pandas.api.types, column.dropna()
    if types.is_datetime64_any_dtype(cells):
        cells = (cells - pandas.Timestamp(0, tz=cells.dt.tz)) / pandas.Timedelta(days=1)
    elif not types.is_numeric_dtype(cells) or types.is_bool_dtype(cells):
        return np.empty(0)
    return np.asarray(cells, dtype=float)


class _Part(NamedTuple):
    """Rows that may be in the sample: X, their places in the table, and random numbers."""

    X: Any
    places: AnyArray
    keys: AnyArray

    def below(self, most: float) -> list[_Part]:
        """The rows whose numbers are at most ``most``; nothing if there are none."""
        rows = np.flatnonzero(self.keys <= most)
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return [_Part(X, self.places[rows], self.keys[rows])] if len(rows) else []


def _least(parts: list[_Part], n: int) -> tuple[list[_Part], float]:
    """The rows of the ``n`` least numbers, and the greatest of these."""
    keys = np.concatenate([part.keys for part in parts])
    most = float(np.sort(keys)[:n][-1])
    return [kept for part in parts for kept in part.below(most)], most


def _joined(parts: list[Any], n_features: int) -> Any:
    """Rows of all parts: a data frame, or a sparse matrix as wide as the table."""
    if sparse.issparse(parts[0]):
        for X in parts:
            X.resize(X.shape[0], n_features)
        return sparse.vstack(parts, format="csr")
    columns = {name: [part[name] for part in parts] for name in parts[0]}

    def joined(cells: list[Any]) -> Any:
        if isinstance(cells[0].dtype, pandas.CategoricalDtype):  # categories may differ
            return pandas.api.types.union_categoricals(cells, ignore_order=True)
        numeric = [pandas.api.types.is_numeric_dtype(part) for part in cells]
        if any(numeric) and not all(numeric):  # whole numbers that floats round, in one part only
            cells = [
                pandas.Series([None if v != v else text_of(v) for v in part.tolist()], dtype=object)
                for part in cells
            ]
        return pandas.concat(cells, ignore_index=True)

    return pandas.DataFrame({name: joined(cells) for name, cells in columns.items()})


class TableBlocks(RowBlocks):
    """Rows of a table that is larger than memory, as the models take them.

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
    >>> from looms.datasets import open_table
    >>> from looms.datasets._large import TableBlocks, first_pass
    >>> from looms.tables import TablePreprocessor
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 6.0], "color": ["red", "blue", "red"]})
    >>> reader = open_table(frame)
    >>> first = first_pass(reader)
    >>> prepared = TablePreprocessor().fit(first.sample.X, ranges=first.ranges)
    >>> blocks = TableBlocks(reader, prepared, first, size=2)
    >>> blocks.shape, blocks.stops.tolist()
    ((3, 3), [0, 2, 3])
    """

    def __init__(
        self,
        reader: RowReader,
        preprocessor: TablePreprocessor,
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
            with rows_of_files():
                prepared = matrix_of(self._preprocessor, X)
        except (ValueError, TypeError) as error:
            raise TableError(
                self._reader.path,
                str(error),
                "The kinds of columns were taken from a sample of the rows.",
            ) from None
        return prepared

    def _changed(self, what: str) -> TableError:
        return TableError(
            self._reader.path,
            f"it has {what} now, and had {self.shape[0]:,} rows at first",
            "Do not change it meanwhile; an object must be one that can be read again.",
        )
