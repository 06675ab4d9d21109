"""Tables larger than memory: target, sample and ranges, and blocks prepared in every sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas
from scipy import sparse

from looms._typing import AnyArray, Array, Matrix
from looms._words import rows_of_files
from looms.blocks import ArrayBlocks, RowBlocks, Work, joined_rows, threaded_map
from looms.datasets._rows import Block, RowReader
from looms.datasets._table import (
    Table,
    TableError,
    check_target,
    no_rows,
    table_name,
    whole_target,
)
from looms.tables import Columns, TablePreprocessor
from looms.tables._cells import EXACT
from looms.tables._columns import marks_in
from looms.tables._preprocessor import matrix_of

#: Number of rows in the sample, to which a preprocessor is fitted.
SAMPLE = 20_000
#: Largest size of the sample in bytes, as numbers.
_BYTES = 2**27


#: Rows that may be in the sample: X, their places in the table, and random numbers.
_Part: TypeAlias = tuple[Any, AnyArray, AnyArray]


@dataclass(frozen=True)
class FirstPass:
    """What is known of a table before it is prepared.

    Attributes
    ----------
    n_rows, n_features : shape of X.
    y : target of all rows; None if there is no target.
    sample : rows drawn without replacement, in order; all rows if there are no more.
    places : places of the sampled rows in the table.
    columns : kinds of the columns, decided by the sample; None for a sparse table.
    ranges : least and greatest value of each column of numbers, or of dates as days since 1970.
    """

    n_rows: int
    n_features: int
    y: pandas.Series | AnyArray | None
    sample: Table
    places: AnyArray
    columns: Columns | None
    ranges: dict[str, list[float]]


def first_pass(
    reader: RowReader,
    n_sample: int = SAMPLE,
    random_state: int = 0,
    decimal: str | None = None,
    drop: Sequence[str] = (),
) -> FirstPass:
    """Go through a table, and keep its target and a uniform sample of its rows.

    If the sample is not the whole table, a second pass takes the ranges of all rows, and refuses a
    cell that is not of the kind of its column.

    Parameters
    ----------
    reader : reader of the table.
    n_sample : number of rows in the sample; fewer if the table has very many columns.
    random_state : seed of the sample, which does not depend on the blocks.
    decimal : decimal mark of numbers in text, as in `Columns.of`.
    drop : columns that are not looked at.

    Raises
    ------
    TableError
        If there are no rows, if the target is missing or infinite in some row, if a column has
        another kind in some row than in the sample, or if reading the file fails (see
        `open_table`).

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
    n_rows, n_features = 0, 0
    targets: list[Any] = []
    parts: list[_Part] = []
    for table in reader.tables():
        n, n_features = table.X.shape[0], max(n_features, table.X.shape[1])
        targets.append(table.y)
        parts.append((table.X, n_rows + np.arange(n), rng.random(n)))
        if sum(len(keys) for *_, keys in parts) > 2 * n_sample:
            parts = _sampled_parts(parts, n_sample)
        n_rows += n
    if not n_rows:
        raise no_rows(reader.path)
    y: Any = None
    if isinstance(targets[0], np.ndarray):
        y = whole_target(np.concatenate(targets))
    elif targets[0] is not None:
        y = _joined(targets).rename(targets[0].name)
    if y is not None:
        check_target(y, reader.path)
    parts = _sampled_parts(parts, n_sample)
    places = np.concatenate([places for _, places, _ in parts])
    X = _sample([X for X, *_ in parts], n_features)
    columns = None
    ranges = {}
    if not sparse.issparse(X):
        with _table_errors(reader.path):
            marks = marks_in(X, *([] if y is None else [y]), decimal=decimal)
            columns = Columns.of(X.drop(columns=drop, errors="ignore"), marks)
        rows = [X] if len(places) == n_rows else (table.X for table in reader.tables())
        ranges = _ranges(columns, rows, reader.path)
    sample = Table(X, None if y is None else y[places], table_name(reader.path))
    return FirstPass(n_rows, n_features, y, sample, places, columns, ranges)


def _ranges(columns: Columns, tables: Iterable[Any], path: Path) -> dict[str, list[float]]:
    """Least and greatest value of each column of numbers or dates."""
    ranges: dict[str, list[float]] = {}
    for X in tables:
        with _table_errors(path):
            read = columns.read(X)
        for name, kind in columns.items():
            values = np.empty(0) if kind in ("truth", "category") else np.asarray(read[name])
            values = values[~np.isnan(values)]
            if len(values):
                least, greatest = ranges.get(name, (np.inf, -np.inf))
                ranges[name] = [min(least, float(values.min())), max(greatest, float(values.max()))]
    return ranges


@contextmanager
def _table_errors(path: Path) -> Iterator[None]:
    """Context that turns errors of columns into errors of the file."""
    try:
        with rows_of_files():
            yield
    except (ValueError, TypeError) as error:
        advice = "The kinds of columns were taken from a sample of the rows."
        raise TableError(path, str(error), advice) from None


def _sampled_parts(parts: list[_Part], n: int) -> list[_Part]:
    """Rows with the ``n`` least of their random numbers, which are a uniform sample."""
    most = np.sort(np.concatenate([keys for *_, keys in parts]))[:n][-1]
    chosen = [(X, places, keys, np.flatnonzero(keys <= most)) for X, places, keys in parts]
    return [(_take_rows(X, k), places[k], keys[k]) for X, places, keys, k in chosen if len(k)]


def _take_rows(X: Any, rows: AnyArray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _sample(parts: list[Any], n_features: int) -> Any:
    """Rows of all parts: a data frame, or a sparse matrix as wide as the table."""
    if sparse.issparse(parts[0]):
        for X in parts:
            X.resize(X.shape[0], n_features)
        return sparse.vstack(parts, format="csr")
    return pandas.DataFrame({name: _joined([part[name] for part in parts]) for name in parts[0]})


def _joined(parts: list[pandas.Series]) -> pandas.Series:
    """Parts of a column; whole numbers stay exact where some parts have gaps."""
    if isinstance(parts[0].dtype, pandas.CategoricalDtype):  # categories may differ
        return pandas.Series(pandas.api.types.union_categoricals(parts, ignore_order=True))
    whole = [part for part in parts if part.dtype.kind in "iu"]
    if len(whole) < len(parts) and any((part.abs() > EXACT).any() for part in whole):
        parts = [part.astype(object) for part in parts]
    return pandas.concat(parts, ignore_index=True)


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
    >>> prepared = TablePreprocessor(kinds=first.columns).fit(first.sample.X, ranges=first.ranges)
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

        def block_result(block: Block) -> tuple[int, Any]:
            X = self._prepared(block.table().X)
            stop = block.first + X.shape[0]
            if stop > self.shape[0]:
                raise self._changed(f"more than {self.shape[0]:,} rows")
            rows = slice(block.first, stop)
            return stop, work(X, *(column[rows] for column in columns))

        end = 0
        for stop, result in threaded_map(
            block_result, self._reader.blocks(self._size), self._n_threads
        ):
            yield result
            end = stop
        if end < self.shape[0]:
            raise self._changed(f"{end:,} rows")

    def rows(self, places: AnyArray) -> Matrix:
        """Rows of X at increasing places, in one pass over the file."""
        parts = []
        for block in self._reader.blocks(self._size):
            first = block.first
            inside = places[(places >= first) & (places < first + self._size)] - first
            if len(inside):
                parts.append(self._prepared(block.table().X)[inside])
        return joined_rows(parts)

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
        with _table_errors(self._reader.path):
            return matrix_of(self._preprocessor, X)

    def _changed(self, what: str) -> TableError:
        return TableError(
            self._reader.path,
            f"it has {what} now, and had {self.shape[0]:,} rows at first",
            "Do not change it meanwhile; an object must be one that can be read again.",
        )
