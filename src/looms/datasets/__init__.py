"""Readers of tables: features and target of a file, at once or in blocks."""

from looms._optional import require

for _package in ("pandas", "pyarrow"):  # without one, an ImportError names the extra
    require(_package, "Reading tables")

from looms.datasets._read import open_table, read_table  # noqa: E402
from looms.datasets._table import TableError  # noqa: E402

__all__ = ["TableError", "open_table", "read_table"]
