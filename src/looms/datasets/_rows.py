"""Rows of tables that may be larger than memory, read in blocks, each time from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas
import pyarrow as pa

from looms.datasets._table import Columns, Table, divided, no_rows

#: Largest size of a block in bytes, as numbers, and in rows, if no size is asked for.
_BYTES, _MOST_ROWS = 2**25, 2**13


class Block(NamedTuple):
    """Consecutive rows: the place of the first, from 0, and a function that makes their table.

    The index of a data frame counts the rows of the file. The target is not checked. For an
    svmlight file the target is floats, and X ends at the last column that these rows use.
    """

    first: int
    table: Callable[[], Table]


@dataclass(frozen=True)
class RowReader:
    """Rows of a table, read in blocks as often as needed, and never all in memory at once.

    Attributes
    ----------
    path : the file, or a name if the source is not a file.
    blocks : function of a size that returns an iterator over blocks of so many rows, the last with
        the rest. Several threads may make their tables at once.
    notes : notes on the whole file, like those of `read_table`.
    n_columns : number of columns in the file; 0 if no header tells.
    """

    path: Path
    blocks: Callable[[int], Iterator[Block]]
    notes: tuple[str, ...] = ()
    n_columns: int = 0

    def tables(self, size: int | None = None) -> Iterator[Table]:
        """Tables of consecutive rows, by default as many per table as take little memory."""
        return (block.table() for block in self.blocks(size or self.usual_size))

    @property
    def usual_size(self) -> int:
        """Number of rows of a block that takes little memory."""
        return max(1, min(_MOST_ROWS, _BYTES // (8 * max(self.n_columns, 1))))


@dataclass(frozen=True)
class Source:
    """Rows of named columns as they are stored, and their types.

    Attributes
    ----------
    path : as in `RowReader`.
    stored : function that returns pyarrow tables of any sizes, from the start at each call.
    columns : function that returns the typed columns of a pyarrow table, given the place of its
        first row.
    names : names of the columns, if they are known before a row is read.
    notes : as in `RowReader`.
    """

    path: Path
    stored: Callable[[], Iterable[Any]]
    columns: Callable[[Any, int], Columns]
    names: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    def whole(self) -> Columns:
        """Columns of all rows."""
        tables = list(self.stored())
        if not any(map(len, tables)):
            raise no_rows(self.path)
        columns = self.columns(pa.concat_tables(tables), 0)
        return replace(columns, notes=(*self.notes, *columns.notes))

    def reader(self, target: str | None, keep: Sequence[str]) -> RowReader:
        """Reader of blocks; ``target`` and ``keep`` are as in `read_table`."""

        def table(told: set[str], first: int, rows: Any) -> Table:
            columns = self.columns(rows, first)
            columns.frame.index = pandas.RangeIndex(first, first + len(rows))
            each = zip(columns.noted, columns.notes, strict=True)
            new = tuple(note for name, note in each if name not in told)
            told.update(columns.noted)
            return divided(replace(columns, notes=new), target, self.path, keep)

        def blocks(size: int) -> Iterator[Block]:
            first, told = 0, set[str]()  # a note on a column is told once
            for rows in _cut(self.stored(), size):
                yield Block(first, partial(table, told, first, rows))
                first += len(rows)

        return RowReader(self.path, blocks, self.notes, len(self.names))


def reader_of(table: Table, path: Path) -> RowReader:
    """Reader of a table in memory, for formats that are read at once."""
    n, n_columns = table.X.shape

    def rows(part: slice) -> Table:
        X: Any = table.X
        y: Any = table.y
        X = X.iloc[part] if hasattr(X, "iloc") else X[part]
        y = y.iloc[part] if hasattr(y, "iloc") else y if y is None else y[part]
        kept = {name: cells[part] for name, cells in table.kept.items()}
        return replace(table, X=X, y=y, notes=(), kept=kept)

    def blocks(size: int) -> Iterator[Block]:
        for first in range(0, n, size):
            yield Block(first, partial(rows, slice(first, first + size)))

    return RowReader(path, blocks, table.notes, n_columns if hasattr(table.X, "columns") else 0)


def _cut(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """Pyarrow tables of ``size`` rows, the last with the rest, from tables of any sizes."""
    waiting, n_rows = [], 0
    for each in tables:
        waiting.append(each)
        n_rows += len(each)
        if n_rows < size:
            continue
        table = pa.concat_tables(waiting)
        for start in range(0, n_rows - size + 1, size):
            yield table.slice(start, size)
        waiting, n_rows = [table.slice(n_rows - n_rows % size)], n_rows % size
    if n_rows:
        yield pa.concat_tables(waiting)
