"""Packages that readers of tables need: without one, an ImportError names the extra."""

from looms._optional import require

for _package in ("pandas", "pyarrow"):
    require(_package, "Reading tables")
