"""Rows of tables that may be larger than memory, read in blocks, each time from the start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from looms._optional import require
from looms._typing import AnyArray
from looms.datasets._table import Columns, Table, divided, table_name

#: Largest size of a block in bytes, as numbers, and in rows, if no size is asked for.
_BYTES, _MOST_ROWS = 2**25, 2**13


@dataclass(frozen=True)
class Block:
    """Consecutive rows in the form of their source, and the place of the first, from 0."""

    first: int
    rows: Any


class RowReader(ABC):
    """Rows of a table, read in blocks as often as needed, and never all in memory at once.

    Attributes
    ----------
    path : the file, or a name if the source is not a file.
    notes : notes on the whole file, like those of `Table`.
    n_columns : number of columns in the file; 0 if no header tells.
    """

    path: Path
    notes: tuple[str, ...] = ()
    n_columns: int = 0

    @abstractmethod
    def blocks(self, size: int) -> Iterator[Block]:
        """Rows as stored, ``size`` in every block except the last."""

    @abstractmethod
    def table(self, block: Block) -> Table:
        """Rows of a block as a table; the index of a data frame counts the rows of the file.

        Several threads may call it at once. The target is not checked. For an svmlight file the
        target is floats, and X ends at the last column that these rows use.
        """

    @abstractmethod
    def taken(self, block: Block, places: AnyArray) -> Any:
        """Some rows of a block as stored, by increasing places in the block."""

    @abstractmethod
    def joined(self, parts: Sequence[Any]) -> Table:
        """Table of rows that were taken from blocks."""

    def tables(self, size: int | None = None) -> Iterator[Table]:
        """Tables of consecutive rows, by default as many per table as take little memory."""
        return map(self.table, self.blocks(size or self.usual_size))

    @property
    def usual_size(self) -> int:
        """Number of rows of a block that takes little memory."""
        return max(1, min(_MOST_ROWS, _BYTES // (8 * max(self.n_columns, 1))))


class ColumnReader(RowReader):
    """Rows of named columns, as pyarrow tables.

    Parameters
    ----------
    path, target, keep : as in `read_table`.
    """

    def __init__(self, path: Path, target: str | None, keep: Sequence[str]) -> None:
        self.path, self.target, self.keep = path, target, tuple(keep)

    @abstractmethod
    def stored(self) -> Iterator[Any]:
        """Pyarrow tables, each with any number of rows."""

    @abstractmethod
    def columns(self, rows: Any, first: int) -> Columns:
        """Typed columns of a pyarrow table, whose first row is row ``first`` of the file."""

    def blocks(self, size: int) -> Iterator[Block]:
        """Blocks, whatever the sizes of the stored tables."""
        return cut(self.stored(), size)

    def table(self, block: Block) -> Table:
        """Features and target of a block."""
        columns = self.columns(block.rows, block.first)
        index = require("pandas", "Reading tables").RangeIndex
        columns.frame.index = index(block.first, block.first + len(columns.frame))
        return divided(columns, self.target, self.path, self.keep)

    def taken(self, block: Block, places: AnyArray) -> Any:
        """Rows of the pyarrow table."""
        return block.rows.take(places)

    def joined(self, parts: Sequence[Any]) -> Table:
        """Features and target."""
        pa = require("pyarrow", "Reading tables in blocks")
        columns = self.columns(pa.concat_tables(parts), 0)
        return divided(columns, self.target, self.path, self.keep)


class WholeTable(RowReader):
    """Rows of a table in memory, for formats that are not read in blocks."""

    def __init__(self, table: Table, path: Path) -> None:
        self.path, self.notes, self._table = path, table.notes, table
        self.n_columns = table.X.shape[1] if hasattr(table.X, "columns") else 0

    def blocks(self, size: int) -> Iterator[Block]:
        """Slices of the rows."""
        for first in range(0, self._table.X.shape[0], size):
            yield Block(first, slice(first, first + size))

    def table(self, block: Block) -> Table:
        """Rows of a slice."""
        kept = {name: cells[block.rows] for name, cells in self._table.kept.items()}
        return replace(self._rows(block.rows), kept=kept)

    def taken(self, block: Block, places: AnyArray) -> AnyArray:
        """Places in the table."""
        return block.first + places

    def joined(self, parts: Sequence[AnyArray]) -> Table:
        """Rows of the table."""
        return self._rows(np.concatenate(parts))

    def _rows(self, rows: slice | AnyArray) -> Table:
        X, y = self._table.X, self._table.y
        X = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        if y is not None:
            y = y.iloc[rows] if hasattr(y, "iloc") else y[rows]
        return Table(X, y, table_name(self.path))


def cut(tables: Iterable[Any], size: int) -> Iterator[Block]:
    """Blocks of ``size`` rows, the last with the rest, from pyarrow tables of any sizes."""
    pa = require("pyarrow", "Reading tables in blocks")
    first, waiting, n_rows = 0, [], 0
    for each in tables:
        waiting.append(each)
        n_rows += each.num_rows
        if n_rows < size:
            continue
        table = pa.concat_tables(waiting)
        for start in range(0, n_rows - size + 1, size):
            yield Block(first, table.slice(start, size))
            first += size
        waiting, n_rows = [table.slice(n_rows - n_rows % size)], n_rows % size
    if n_rows:
        yield Block(first, pa.concat_tables(waiting))
