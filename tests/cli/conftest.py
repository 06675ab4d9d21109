"""Running the command line in this process."""

import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from looms.cli._app import app


@pytest.fixture
def looms(tmp_path, monkeypatch):
    """Run ``looms`` with these arguments in an empty folder; the result has stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def fit(looms):
    """Run ``looms fit`` without outer folds, which take ten times as long and few tests need."""

    def run(*arguments):
        return looms("fit", *arguments, "--nested", "none")

    return run


@pytest.fixture
def pets(tmp_path):
    """A small table of two classes, mixed columns and gaps."""
    n = 40
    frame = pd.DataFrame(
        {
            "weight": [4.0 + (i % 7) + 20.0 * (i % 2) for i in range(n)],
            "color": [("black", "white", None)[i % 3] for i in range(n)],
            "indoors": [i % 5 == 0 for i in range(n)],
            "kind": [("cat", "dog")[i % 2] for i in range(n)],
        }
    )
    frame.loc[3, "weight"] = None
    path = tmp_path / "pets.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def figures():
    """The last row of numbers of a table of figures that are no standard errors."""

    def read(output):
        output = re.sub(r"^ *± s\.e\..*$", "", output, flags=re.MULTILINE)
        rows = re.findall(r"^ *\S.*?((?: +[\d.–]+){3,5}) *$", output, re.MULTILINE)
        return [float(value.replace("–", "nan")) for value in rows[-1].split()]

    return read
