"""Rows of tables that may be larger than memory, read in blocks, each time from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas
import pyarrow as pa

from looms.datasets._table import Table, split_target

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
    """Rows of a table, read in blocks as often as needed.

    Attributes
    ----------
    path : the file, or a name if the source is not a file.
    parts : function of a size that returns an iterator over parts of so many rows, the last with
        the rest.
    table_of : function of the place of the first row and a part that makes its table. Several
        threads may call it at once.
    notes : notes on the whole file, like those of `read_table`.
    n_columns : number of columns in the file; 0 if no header tells.
    """

    path: Path
    parts: Callable[[int], Iterable[Any]]
    table_of: Callable[[int, Any], Table]
    notes: tuple[str, ...] = ()
    n_columns: int = 0

    def blocks(self, size: int) -> Iterator[Block]:
        """Blocks of so many rows, the last with the rest."""
        for k, part in enumerate(self.parts(size)):
            yield Block(k * size, partial(self.table_of, k * size, part))

    def tables(self, size: int | None = None) -> Iterator[Table]:
        """Tables of consecutive rows, by default as many per table as take little memory."""
        return (block.table() for block in self.blocks(size or self.usual_size))

    @property
    def usual_size(self) -> int:
        """Number of rows of a block that takes little memory."""
        return max(1, min(_MOST_ROWS, _BYTES // (8 * max(self.n_columns, 1))))


@dataclass(frozen=True)
class Source:
    """Rows of named columns as they are stored.

    Attributes
    ----------
    path, notes : as in `RowReader`.
    stored : function that returns pyarrow tables of any sizes, from the start at each call.
    cells : function that returns the data frame of a pyarrow table.
    names : names of the columns, if they are known before a row is read.
    """

    path: Path
    stored: Callable[[], Iterable[Any]]
    cells: Callable[[Any], pandas.DataFrame]
    names: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    def reader(self, target: str | None, keep: Sequence[str]) -> RowReader:
        """Reader of blocks; ``target`` and ``keep`` are as in `read_table`."""

        def table_of(first: int, rows: Any) -> Table:
            frame = self.cells(rows)
            frame.index = pandas.RangeIndex(first, first + len(rows))
            return split_target(frame, target, self.path, keep)

        def parts(size: int) -> Iterator[Any]:
            return _cut(self.stored(), size)

        return RowReader(self.path, parts, table_of, self.notes, len(self.names))


def reader_of(table: Table, path: Path) -> RowReader:
    """Reader of a table in memory."""
    X: Any = table.X
    y: Any = table.y

    def parts(size: int) -> Iterator[slice]:
        return (slice(first, first + size) for first in range(0, X.shape[0], size))

    def table_of(_: int, part: slice) -> Table:
        some_X = X.iloc[part] if hasattr(X, "iloc") else X[part]
        kept = {name: cells[part] for name, cells in table.kept.items()}
        return replace(table, X=some_X, y=y if y is None else y[part], kept=kept)

    return RowReader(path, parts, table_of, table.notes, len(getattr(X, "columns", ())))


def _cut(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """Pyarrow tables of ``size`` rows, the last with the rest, from tables of any sizes."""
    waiting, n_rows = [], 0
    for part in tables:
        waiting.append(part)
        n_rows += len(part)
        if n_rows < size:
            continue
        table = pa.concat_tables(waiting)
        for start in range(0, n_rows - size + 1, size):
            yield table.slice(start, size)
        waiting, n_rows = [table.slice(n_rows - n_rows % size)], n_rows % size
    if n_rows:
        yield pa.concat_tables(waiting)
