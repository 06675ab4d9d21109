"""The experiments of H10: Figure 2, other validation sizes, cross-validation by the same folds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from typer.testing import CliRunner

from papers import nonconformity
from papers.__main__ import app
from papers.nonconformity import error_up_to, outer_folds, rows_trained_on

X, Y = make_classification(80, 4, flip_y=0.2, random_state=0)
GRID = {"C": [1.0, 100.0], "gamma": [0.1, 1.0]}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder for tables of a small data set."""
    monkeypatch.setattr(nonconformity, "uci", lambda name: (X, Y))
    monkeypatch.setattr(nonconformity, "GRID", GRID)
    monkeypatch.setattr(nonconformity, "RESULTS", tmp_path)
    monkeypatch.setattr(nonconformity, "FOLDS", tmp_path / "folds.csv")
    monkeypatch.setattr("benchmarks._report.RESULTS", tmp_path)
    return tmp_path


def papers(*arguments):
    return CliRunner().invoke(app, ["nonconformity", *arguments])


def test_error_up_to_each_bound():
    rng = np.random.default_rng(0)
    bound, wrong = rng.integers(8, size=60) / 10, rng.uniform(size=60) < 0.3
    values, errors = error_up_to(bound, wrong)
    np.testing.assert_array_equal(values, np.unique(bound))
    np.testing.assert_allclose(errors, [wrong[bound <= value].mean() for value in values])


@pytest.mark.slow
def test_cross_validation_joins_the_rows_that_are_there(results):
    options = ("--data", "bupa", "--folds", "2")
    assert papers(*options).exit_code == 0
    before = pd.read_csv(results / "folds.csv", comment="#")
    assert before["cv_error"].isna().all()
    assert papers(*options, "--cv").exit_code == 0
    after = pd.read_csv(results / "folds.csv", comment="#")
    columns = ["fold", "paper_error", "within_se_error", "linf_seconds", "nonconformity_seconds"]
    pd.testing.assert_frame_equal(after[columns], before[columns])
    for error, (A, a, B, b) in zip(after["cv_error"], outer_folds("bupa", 0), strict=False):
        rest = rows_trained_on(A, a)
        assert len(rest) == len(a) - len(a) // 5
        search = GridSearchCV(SVC(kernel="rbf"), GRID, cv=10).fit(A[rest], a[rest])
        assert error == pytest.approx(np.mean(search.predict(B) != b))
    table = pd.read_csv(results / "nonconformity.csv", comment="#").set_index("dataset")
    less = after["paper_error"].mean() - after["cv_error"].mean()
    assert table.loc["less cv", "paper"] == pytest.approx(less, abs=1e-4)


@pytest.mark.slow
def test_the_figure_and_the_sizes(results):
    pytest.importorskip("matplotlib").use("Agg")
    assert papers("--figure").exit_code == 0
    curve = pd.read_csv(results / "nonconformity_bound.csv", comment="#").groupby("splits")
    assert curve["samples"].max().to_dict() == {"first split": 8, "ten splits": 80}
    assert (results / "nonconformity_bound.png").exists()
    assert papers("--sizes", "0.4", "--data", "bupa").exit_code == 0
    sizes = pd.read_csv(results / "nonconformity_sizes.csv", comment="#")
    each = sizes[sizes["dataset"] == "bupa"].set_index("share")
    assert each["validation_rows"].to_dict() == {"paper": 14, "0.4": pytest.approx(29, abs=1)}
    less = sizes.query("share == '0.4' and dataset == 'less that of the paper'")["paper"].item()
    assert less == pytest.approx(each["paper"]["0.4"] - each["paper"]["paper"], abs=1e-4)
