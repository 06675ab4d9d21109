"""Readers: a file in, features and target out."""

from looms.datasets._read import Format, read_table
from looms.datasets._table import Table, TableError, table_name

__all__ = ["Format", "Table", "TableError", "read_table", "table_name"]
