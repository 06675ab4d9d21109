"""Running the command line in this process."""

import re
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

from looms.cli._app import app


@pytest.fixture
def looms(tmp_path, monkeypatch):
    """Run ``looms`` with these arguments in an empty folder; the result has stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, encoding="utf-8"):
        return CliRunner(encoding).invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def fit(looms):
    """Run ``looms fit`` without outer folds, which take ten times as long and few tests need.

    There is one candidate, "rbf", unless others are named.
    """

    def run(*arguments):
        named = {"-c", "--candidates"} & {*map(str, arguments)}
        return looms("fit", *arguments, *(() if named else ("-c", "rbf")), "--no-evaluate")

    return run


def _pets(path):
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
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def pets(tmp_path):
    """A small table of two classes, mixed columns and gaps."""
    return _pets(tmp_path / "pets.csv")


@pytest.fixture(scope="session")
def pets_fitted(tmp_path_factory):
    """A folder with that table and its model: fitted once, and only read."""
    folder = tmp_path_factory.mktemp("pets")
    path, model = _pets(folder / "pets.csv"), folder / "pets.looms.skops"
    arguments = ["fit", path, "-t", "kind", "-c", "rbf", "--no-evaluate", "-o", model]
    assert CliRunner().invoke(app, [str(each) for each in arguments]).exit_code == 0
    return folder


@pytest.fixture
def pets_model(pets_fitted, pets):
    """The model of ``pets``, copied beside the table."""
    return shutil.copy(pets_fitted / "pets.looms.skops", pets.parent)


@pytest.fixture(scope="session")
def figures():
    """The last row of a table of scores that has neither standard errors nor baselines."""

    def read(output):
        output = re.sub(r"^ *(± s\.e\.|baseline).*$", "", output, flags=re.MULTILINE)
        rows = re.findall(r"^ *\S.*?((?: +[\d.–]+){3,5}) *$", output, re.MULTILINE)
        return [float(value.replace("–", "nan")) for value in rows[-1].split()]

    return read


@pytest.fixture(autouse=True)
def _few(few_partitions, few_pictures):
    """In every test of this room."""
