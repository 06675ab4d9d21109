"""Lowest versions of dependencies that are there for a reason."""

import re
import tomllib
from pathlib import Path

import pytest

import looms

PROJECT = Path(looms.__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize(
    ("name", "lowest"),
    [
        ("pyarrow", (14, 0, 1)),  # CVE-2023-47248: before, reading a Parquet file unpickles
        ("pandas", (2, 2)),  # before, it writes text in .ods files that no other program reads
        ("rich", (13, 8)),  # before, typer 0.26 cannot be installed beside it
    ],
)
def test_versions_that_do_harm_are_not_admitted(name, lowest):
    if not PROJECT.exists():
        pytest.skip("looms is installed without its pyproject.toml")
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    requirements = sum(project["optional-dependencies"].values(), project["dependencies"])
    (floor,) = [m[1] for r in requirements if (m := re.fullmatch(rf"{name}>=([\d.]+)", r))]
    assert tuple(map(int, floor.split("."))) >= lowest
