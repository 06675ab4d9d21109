"""What several test modules share."""

import os
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes: a thread for each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest


def _gradient(function, x, step=1e-3):
    """Gradient of a scalar function of an array by fourth-order central differences."""
    x = np.asarray(x, dtype=np.float64)
    gradient = np.empty_like(x)
    steps = np.broadcast_to(step, x.shape)
    for index in np.ndindex(x.shape):

        def at(multiple, index=index):
            moved = x.copy()
            moved[index] += multiple * steps[index]
            return function(moved)

        gradient[index] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * steps[index])
    return gradient


def _read_only(array):
    array = np.array(array, dtype=np.float64)
    array.flags.writeable = False
    return array


@pytest.fixture(scope="session")
def numerical_gradient():
    return _gradient


@pytest.fixture(scope="session")
def read_only():
    return _read_only


def _write_frame(frame, path):
    name = path.name
    if name.endswith((".xlsx", ".ods")):
        frame.to_excel(str(path), index=False)  # of a Path it takes any for .xlsx
    elif name.endswith(".feather"):  # with its index, which pandas refuses
        import pyarrow.feather

        pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), str(path))
    elif name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    return path


@pytest.fixture(scope="session")
def write_frame():
    """Write a data frame of pandas in the format of a path's suffix; returns the path."""
    return _write_frame


@pytest.fixture(scope="session")
def data_folder():
    """Folder of the real data sets; the test is skipped where there is none."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LOOMS_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no real data here: set LOOMS_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def one_line():
    """Check that a command ended with this code and a line on stderr that holds this text."""

    def check(result, code, text):
        assert result.exit_code == code, result.stderr
        last = result.stderr.strip().splitlines()[-1]
        assert last.startswith("Error: ")
        assert text in last
        assert "Traceback" not in result.stderr
        assert result.stdout == ""

    return check


@pytest.fixture
def few_partitions(request, monkeypatch):
    """The test of the order of rows draws a fifth of its partitions, and no order is significant.

    It is a third of what a report takes; tests that are about it use ``all_partitions``.
    """
    if "all_partitions" not in request.fixturenames:
        monkeypatch.setattr("looms.diagnostics._row_order.N_RANDOM", 39)


@pytest.fixture
def all_partitions():
    """Name for `few_partitions`."""


@pytest.fixture
def few_pictures(request, monkeypatch):
    """Pictures of a page are composed, and not written as SVG, which is three fifths of the page.

    Tests that are about them use ``all_pictures``.
    """
    if "all_pictures" in request.fixturenames:
        return
    figure = pytest.importorskip("matplotlib.figure").Figure
    savefig = figure.savefig

    def unless_of_a_page(self, file, **options):
        if options.get("format") != "svg":
            return savefig(self, file, **options)
        return file.write("<svg></svg>")

    monkeypatch.setattr(figure, "savefig", unless_of_a_page)


@pytest.fixture
def all_pictures():
    """Name for `few_pictures`."""


@pytest.fixture
def three_folds():
    """Candidates are compared in three folds, as in the models that an evaluation fits."""
    from looms.fitted._rows import few_choice_folds

    with few_choice_folds():
        yield
