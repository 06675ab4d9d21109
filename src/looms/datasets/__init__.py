"""Readers: a file in, features and target out."""

from ._read import Format, read_table
from ._table import Table, TableError

__all__ = ["Format", "Table", "TableError", "read_table"]
