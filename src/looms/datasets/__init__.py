"""Readers of tables: features and target of a file."""

from looms.datasets._read import read_table
from looms.datasets._table import TableError

__all__ = ["TableError", "read_table"]
