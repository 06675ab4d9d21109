"""First pass over a table: size, target, statistics of its columns, and a sample of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from looms._optional import require
from looms._typing import AnyArray
from looms.datasets._rows import RowReader
from looms.datasets._sparse import whole_target
from looms.datasets._table import Table, check_target, no_rows

if TYPE_CHECKING:
    import pandas as pd

#: Number of rows in the sample, to which a preprocessor is fitted.
SAMPLE = 20_000
#: Largest size of the sample in bytes, as numbers.
_BYTES = 2**27
#: Largest number of distinct values of a column that are counted.
MOST_VALUES = 1000


@dataclass
class ColumnSummary:
    """Statistics of a column of numbers, or dates in days; for other columns the values.

    Attributes
    ----------
    n_gaps : number of missing cells.
    n, mean, least, greatest : number of the other cells, their mean, and their range.
    squares : sum of their squared differences from the mean.
    values : number of rows with each value of a text column; None for numbers, and beyond
        ``MOST_VALUES`` values.
    """

    n_gaps: int = 0
    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    least: float = np.inf
    greatest: float = -np.inf
    values: dict[str, int] | None = field(default_factory=dict)

    @property
    def std(self) -> float:
        """Standard deviation of the numbers; 0 if there are none."""
        return float(np.sqrt(self.squares / self.n)) if self.n else 0.0

    def add(self, column: pd.Series) -> None:
        """Add some rows."""
        pandas = require("pandas", "Reading tables")
        types, cells = pandas.api.types, column.dropna()
        self.n_gaps += len(column) - len(cells)
        if types.is_datetime64_any_dtype(cells):
            cells = (cells - pandas.Timestamp(0, tz=cells.dt.tz)) / pandas.Timedelta(days=1)
        elif not types.is_numeric_dtype(cells) or types.is_bool_dtype(cells):
            for value, times in cells.astype(str).value_counts().items():
                if self.values is not None:
                    self.values[value] = self.values.get(value, 0) + times
                    self.values = self.values if len(self.values) <= MOST_VALUES else None
            return
        self.values, floats = None, cells.to_numpy(dtype=float)
        if not len(floats):
            return
        # Means and squares of two parts give those of both: Chan, Golub & LeVeque 1983.
        n = self.n + len(floats)
        with np.errstate(over="ignore", invalid="ignore"):  # of huge numbers squares are infinite
            mean = floats.mean()
            difference = mean - self.mean
            squares = np.square(floats - mean).sum()
            squares += np.square(difference) * self.n * len(floats) / n
            self.squares += float(squares)
            self.mean += float(difference * len(floats) / n)
        self.n = n
        self.least = min(self.least, float(floats.min()))
        self.greatest = max(self.greatest, float(floats.max()))


@dataclass(frozen=True)
class FirstPass:
    """What one pass over a table finds.

    Attributes
    ----------
    n_rows, n_features : shape of X.
    y : target of all rows; None if there is no target.
    columns : statistics of the columns by name; empty for a sparse table.
    sample : rows drawn without replacement, in order; all rows if there are no more.
    places : places of the sampled rows in the table.
    notes : notes on columns, like those of `Table`.
    """

    n_rows: int
    n_features: int
    y: pd.Series | AnyArray | None
    columns: dict[str, ColumnSummary]
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
    >>> from looms.datasets import first_pass, open_table
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 6.0], "kind": ["a", "b", "a"]})
    >>> first = first_pass(open_table(frame, target="kind"))
    >>> first.n_rows, first.columns["size"].mean, first.y.tolist()
    (3, 3.0, ['a', 'b', 'a'])
    """
    rng = np.random.default_rng(random_state)
    n_sample = min(n_sample, max(1, _BYTES // (8 * max(reader.n_columns, 1))))
    n_rows, n_features, most = 0, 0, np.inf
    targets: list[Any] = []
    columns: dict[str, ColumnSummary] = {}
    notes: dict[str, str] = {}
    keys, parts = np.empty(0), []
    for block in reader.blocks(reader.usual_size):
        table = reader.table(block)
        n, n_features = table.X.shape[0], max(n_features, table.X.shape[1])
        targets.append(table.y)
        for remark in table.notes:
            notes.setdefault(remark.partition(",")[0], remark)
        if not sparse.issparse(table.X):
            for name in table.X:
                columns.setdefault(str(name), ColumnSummary()).add(table.X[name])
        # The rows of the least of as many random numbers are a uniform sample.
        own = rng.random(n)
        drawn = np.flatnonzero(own < most)
        if len(drawn):
            parts.append((reader.taken(block, drawn), n_rows + drawn, own[drawn]))
        keys = np.append(keys, own[drawn])
        if len(keys) > 2 * n_sample:
            keys = np.partition(keys, n_sample - 1)[:n_sample]
            most = keys.max()
        n_rows += n
    if not n_rows:
        raise no_rows(reader.path)
    kept = np.concatenate([part[2] for part in parts])
    chosen = kept <= np.sort(kept)[min(n_sample, n_rows) - 1]
    sample = reader.joined([part[0] for part in parts])
    rows = np.flatnonzero(chosen)
    if sparse.issparse(sample.X):  # as wide as the table, of which rows outside may be wider
        X = sample.X[rows]
        X.resize(len(rows), n_features)
    else:
        X = sample.X.iloc[rows].reset_index(drop=True)
    y = _whole_target(targets, reader)
    places = np.concatenate([part[1] for part in parts])[rows]
    sample = Table(X, None if y is None else y[places], sample.name)
    return FirstPass(
        n_rows, n_features, y, columns, sample, places, (*reader.notes, *notes.values())
    )


def _whole_target(targets: list[Any], reader: RowReader) -> pd.Series | AnyArray | None:
    """Targets of all rows; TableError for a gap or an infinite value."""
    if targets[0] is None:
        return None
    if isinstance(targets[0], np.ndarray):
        y = np.concatenate(targets)
        check_target(y, reader.path)
        return whole_target(y)
    y = require("pandas", "Reading tables").concat(targets, ignore_index=True)
    check_target(y, reader.path, f"the target {y.name!r}", "data row")
    return y
