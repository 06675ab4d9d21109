"""Readers of tables: features and target of a file, at once or in blocks."""

from looms.datasets import _packages  # noqa: F401  (first: the others import them)
from looms.datasets._read import open_table, read_table
from looms.datasets._table import TableError

__all__ = ["TableError", "open_table", "read_table"]
