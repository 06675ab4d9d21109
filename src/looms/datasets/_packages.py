"""Packages that readers of tables need; without one, an ImportError names the extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looms._optional import require

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa
    from pyarrow import compute as pc
else:
    pandas = require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading tables")
    pc = require("pyarrow.compute", "Reading tables")

__all__ = ["pa", "pandas", "pc"]
