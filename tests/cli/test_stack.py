"""Several kernels at the command line: the best of them, or a stack."""

import re
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

from looms.model_files import load_model


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, y = make_friedman1(60, n_features=5, noise=1.0, random_state=0)
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    frame = pd.DataFrame(X.round(6)).add_prefix("x")
    frame.assign(y=y.round(6), high=np.where(y > np.median(y), "yes", "no")).to_csv(
        path, index=False
    )
    return path


STACK = ("-k", "linear", "-k", "rbf", "--combine", "stack", "-o", "m.skops")


@pytest.mark.slow
def test_a_stack_is_shown_with_its_weights_and_predicts(looms, fit, table):
    result = fit(table, "-t", "y", "--drop", "high", *STACK, "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    machine = load_model("m.skops").model[-1]
    assert len(machine.members_) == 2
    for each in (result, looms("show", "m.skops")):
        assert re.search(r"5-fold RMSE +weight", each.stdout)
        assert all(f" {one.weight:.3f} " in each.stdout for one in machine.members_)
        largest = machine.candidates_[machine.best_index_].name
        assert f"Largest: {largest}, " in each.stdout
        assert "Stacked: 2 machines" in each.stdout
        assert "Chosen:" not in each.stdout
    assert "without each of 5 folds and weighed by the other folds" in result.stderr
    if find_spec("sklearn.callback"):  # what tells of progress came with scikit-learn 1.9
        assert "Tuned 10 machines again, each without an outer fold" in result.stderr  # 2 × 5
    assert looms("score", "m.skops", table).exit_code == 0
    predicted = looms("predict", "m.skops", table, "--coverage", "0.8")
    assert predicted.exit_code == 0, predicted.stderr
    refused = looms("predict", "m.skops", table, "--coverage", "0.8", "--method", "scaled")
    assert refused.exit_code == 2
    assert "--combine best" in refused.stderr.splitlines()[-1]


@pytest.mark.slow
def test_diagnostics_of_a_stack_are_refused(looms, fit, table, one_line):
    assert fit(table, "-t", "high", "--drop", "y", *STACK).exit_code == 0
    assert len(load_model("m.skops").model[-1].members_) == 2
    one_line(looms("diagnose", table, "--model", "m.skops"), 2, "fit with --combine best")


@pytest.mark.slow
def test_the_best_of_several_is_compared_in_folds(looms, fit, table):
    options = (table, "-t", "y", "--drop", "high", "-k", "linear", "-k", "rbf")
    result = fit(*options)
    assert result.exit_code == 0, result.stderr
    assert "without each of 5 folds and compared by the other folds" in result.stderr
    whole = looms("fit", *options, "--force")  # of few rows
    assert "the choice was repeated without each of 5 folds" in whole.stderr
    assert "5-fold RMSE" in result.stdout
    assert "weight" not in result.stdout
    assert "Chosen: " in result.stdout


@pytest.mark.slow
def test_auto_and_combine_reach_the_estimator(fit, table):
    options = ("-k", "auto", "--combine", "best", "-o", "m.skops")
    assert fit(table, "-t", "y", "--drop", "high", *options).exit_code == 0
    machine = load_model("m.skops").model[-1]
    assert (machine.kernel, machine.combine, machine.members_) == ("auto", "best", ())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-k", "auto", "-k", "rbf"], "give no other"),
        (["-k", "auto", "-m", "svm"], "--kernel auto is for --machine lssvm"),
        (["-k", "rbf", "--combine", "best", "-m", "svm"], "--combine is for --machine lssvm"),
        (["--combine", "stack", "--time", "x0"], "give --combine best"),
    ],
)
def test_what_makes_no_stack_is_refused(looms, table, one_line, options, text):
    one_line(looms("fit", table, "-t", "high", *options), 2, text)
