"""A file: options for reading it, its table, and the columns that other options name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from looms._typing import AnyArray
from looms._words import count, listed, row_name
from looms.cli._errors import InputError
from looms.cli._options import Bytes
from looms.cli._output import note, refused
from looms.datasets import open_table, read_table
from looms.datasets._read import Format
from looms.datasets._rows import RowReader
from looms.datasets._table import Table, did_you_mean
from looms.tables._cells import POINT, Marks, missing_in
from looms.tables._kinds import CATEGORIES, converted, read_column
from looms.tables._target import Features, labels_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reading:
    """Options for reading a file; None means that the file tells.

    Parameters
    ----------
    format
        Format of the file, if its suffix does not tell.
    sep
        Character between cells of CSV files, or "tab"; detected by default.
    decimal
        Decimal mark of numbers in text; by default the fit decides it.
    encoding
        Encoding of CSV files, such as cp1252; detected by default.
    sheet
        Sheet of a spreadsheet: its name, or its number from 1.
    """

    format: Format | None = None
    sep: Annotated[str | None, "CHARACTER"] = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    sheet: str | None = None
    max_bytes: Bytes = 2**30  # as `looms.datasets.read_table` has it

    def options(self) -> dict[str, Any]:
        """The options by the names of Python."""
        tab = {"sep": "\t"} if self.sep in ("tab", r"\t") else {}
        names = [f.name for f in fields(Reading) if f.name != "decimal"]  # which columns have
        return {name: getattr(self, name) for name in names} | tab

    def of(self, file: Path) -> Source:
        """Another file, with these options for reading it."""
        return Source(file=file, **{f.name: getattr(self, f.name) for f in fields(Reading)})


@dataclass(frozen=True)
class Source(Reading):
    """A file, and options for reading it.

    Parameters
    ----------
    file
        The table to learn from.
    """

    file: Path = field(kw_only=True)

    def read(
        self, target: str | None, keep: Sequence[str] = (), drop_missing: bool = False
    ) -> Table:
        """The table of the file, with notes on what was detected.

        ``drop_missing`` leaves out rows without a target.
        """
        options = self.options() | {"drop_missing_targets": drop_missing}
        with refused():
            table = read_table(self.file, target, keep=keep, **options)
        self.tell(table.notes)
        return table

    def open(self, target: str | None, keep: Sequence[str] = ()) -> RowReader:
        """Reader of the file in blocks, with notes on what was detected."""
        with refused():
            reader = open_table(self.file, target, keep=keep, **self.options())
        self.tell(reader.notes)
        return reader

    def tell(self, remarks: Iterable[str]) -> None:
        """Notes on what was detected in the file."""
        for remark in remarks:
            note(f"{self.file.name}: {remark}")

    def without(self, X: Features, drop: Sequence[str] | None, target: str | None) -> Features:
        """Rows without the columns that --drop names."""
        for name in drop or ():
            if name == target:
                what = "is the target, which is no feature anyway"
                raise InputError(f"{self.file}: --drop {name} {what}")
            if name not in getattr(X, "columns", ()):
                several = "; give --drop once for each column" * ("," in name)
                raise InputError(f"{self._no_column(X, name, '--drop')}{several}")
        return X.drop(columns=drop) if drop else X

    def no_target(self, X: Features) -> InputError:
        """Error for a table without a target."""
        columns = listed(getattr(X, "columns", []), 20)
        advice = "for npz data put their .labels file in the same folder"
        if columns:
            advice = f"name the column to predict with --target ({columns})"
        return InputError(f"{self.file}: there is no target; {advice}")

    def labels_in(self, X: Features, name: str | None) -> AnyArray | None:
        """(n_rows,) labels of a column: whole numbers, which have an order, or text."""
        advice = "label", "give every row a group, one of its own if it belongs to no other"
        column = self._whole_column(X, "--groups", name, *advice)
        return None if column is None else labels_of(column)

    def weights_in(self, X: Features, name: str | None, marks: Marks = POINT) -> AnyArray | None:
        """(n_rows,) weights of a column; refuses text."""
        advice = "weight", "give every row a weight, 0 to leave it out"
        column = self._whole_column(X, "--sample-weight", name, *advice)
        with refused(f"{self.file}: --sample-weight {name}: "):
            return None if column is None else converted(column, name, "number", marks)

    def times_in(self, X: Features, name: str | None, marks: Marks = POINT) -> AnyArray | None:
        """(n_rows,) times in a column, exact whole numbers, other numbers, or dates as days.

        Refuses text, and a single time.
        """
        column = self._whole_column(X, "--time", name, "time", "leave these rows out")
        if column is None:
            return None
        if column.dtype.kind in "iuM" and column.nunique() > 1:  # as exact as they are
            return np.asarray(column)
        with refused():
            read = read_column(column, name, marks)
        if read.sign and read.sign[0] in ("rounded", "code"):  # as long as they are
            with suppress(ValueError):
                return np.array([int(text) for text in read.values], dtype=object)
        if len(read.kinds) == 1 and read.kinds[0] not in CATEGORIES and read.varies:
            return read.values
        cell = f"{str(column.iloc[0])!r} in {row_name(column, 0)}"
        why = f"holds {cell}, which is neither a number nor a date"
        if not read.varies:
            why = "is the same in every row"
        elif len(read.kinds) > 1:
            why = "has dates in which either number may be the day"
        advice = "write dates as 2021-12-31, or numbers"
        raise InputError(f"{self.file}: --time {name} {why}; {advice}")

    def _whole_column(
        self, X: Features, option: str, name: str | None, what: str, advice: str
    ) -> pd.Series | None:
        """The column that an option names, if any; refuses one that is missing or has gaps."""
        if name is None:
            return None
        if name not in getattr(X, "columns", []):
            raise self._no_column(X, name, option)
        gaps = missing_in(X[name])
        if gaps.any():
            raise InputError(
                f"{self.file}: {option} {name} has no {what} in {count(int(gaps.sum()), 'row')} of "
                f"{len(gaps)}, first in {row_name(X, int(gaps.argmax()))}; {advice}"
            )
        return X[name]

    def _no_column(self, X: Features, name: str, option: str) -> InputError:
        """Error for an option that names no column."""
        columns = getattr(X, "columns", [])
        rest = f" besides the target ({listed(columns, 20)}). {did_you_mean(name, columns)}"
        rest = rest.rstrip(". ") if len(columns) else ": the file has no named columns"
        return InputError(f"{self.file}: there is no column {name!r} for {option}{rest}")
