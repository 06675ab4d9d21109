"""Several kernels at the command line: the best of them, or a stack."""

import re
from importlib.util import find_spec
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated
from sklearn.datasets import make_friedman1

from looms import TabularRegressor
from looms.estimators._trees import BoostedTreesRegressor
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


STACK = ("-c", "linear", "-c", "rbf", "--target-transform", "none", "-o", "m.skops")


@pytest.mark.slow
def test_a_stack_is_shown_with_its_weights_and_predicts(looms, fit, table):
    result = fit(table, "-t", "y", "--drop", "high", *STACK, "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    machine = load_model("m.skops").model
    assert len(machine.members_) == 2
    for each in (result, looms("show", "m.skops")):
        assert re.search(r"5-fold RMSE +weight", each.stdout)
        assert all(f" {one.weight:.3f} " in each.stdout for one in machine.members_)
        largest = machine.candidates_[machine.best_index_].kernel_name
        assert f"Largest: {largest}, squared error, " in each.stdout
        assert "Stacked: 2 models" in each.stdout
        assert "Selected:" not in each.stdout
    assert "without each of 5 folds, and weighted on the other folds" in result.stderr
    if find_spec("sklearn.callback"):  # what tells of progress came with scikit-learn 1.9
        assert "Scores: 10 fits, each without a fold, which it predicts" in result.stderr  # 2 × 5
    assert looms("score", "m.skops", table).exit_code == 0
    X = pd.read_csv(table)
    for method in ("plus", "scaled"):
        options = ("--confidence-level", "0.8", "--method", method, "--digits", 17)
        predicted = looms("predict", "m.skops", table, *options)
        assert predicted.exit_code == 0, predicted.stderr
        ends = pd.read_csv(StringIO(predicted.stdout))[["lower", "upper"]]
        np.testing.assert_array_equal(ends, evaluated(machine).predict_interval(X, 0.8, method))
    machine.without([0, 1]).save("fewer.skops")
    shown = looms("show", "fewer.skops")
    assert shown.exit_code == 0, shown.stderr
    assert "Stacked: 2 models, by the weights of the fit" in shown.stdout


def test_boosted_trees_count_among_the_models_of_a_stack(looms, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    candidates = ["linear", BoostedTreesRegressor()]
    model = TabularRegressor(candidates, target="none").fit(X, X[:, 0] + np.sign(X[:, 1]))
    assert len(model.members_) == 2
    model.save(tmp_path / "m.skops")
    assert "Stacked: 2 models" in looms("show", str(tmp_path / "m.skops")).stdout
