"""Running the command line in this process."""

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
def pets(tmp_path):
    """A small table of two classes, mixed columns and gaps."""
    n = 40
    frame = pd.DataFrame(
        {
            "weight": [4.0 + (i % 7) + 20.0 * (i % 2) for i in range(n)],
            "colour": [("black", "white", None)[i % 3] for i in range(n)],
            "indoors": [i % 5 == 0 for i in range(n)],
            "kind": [("cat", "dog")[i % 2] for i in range(n)],
        }
    )
    frame.loc[3, "weight"] = None
    path = tmp_path / "pets.csv"
    frame.to_csv(path, index=False)
    return path
