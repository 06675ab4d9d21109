"""Leaving out rows that a feature settles: the same machine as on the other rows alone."""

import numpy as np
import pytest
from scipy import sparse

import looms
from looms.criteria._error_rates import balanced_error_rate
from looms.threshold import AtLeast, Cost, FBeta, find_threshold
from papers.challenge import Runs
from papers.challenge._data import ChallengeData
from papers.challenge._plans import PaperExperiment
from papers.challenge._reduced import ReducedClassifier
from papers.challenge._run import estimator_of


def reduced(kernel="linear", **options):
    return ReducedClassifier(looms.KernelClassifier(kernel, **options))


def made(n=120, seed=0):
    """Two columns of numbers, one binary one that settles, one that does not, an empty one."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1, -1)
    numbers = rng.normal(size=(n, 2)) + 0.6 * y[:, None]
    settles = (y < 0) & (rng.random(n) < 0.5)
    other = rng.random(n) < 0.5
    return np.column_stack([numbers, settles, other, np.zeros(n)]), y, settles


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_is_a_fit_to_the_other_rows(kernel, form):
    X, y, settled = made()
    model = reduced(kernel, threshold="balanced").fit(form(X), y)
    plain = looms.KernelClassifier(kernel, threshold="balanced").fit(form(X[~settled]), y[~settled])
    machine = model.model_
    assert model.settling_.tolist() == [2]
    assert machine.mu_ == pytest.approx(plain.mu_, rel=1e-6)
    np.testing.assert_allclose(machine.dual_coef_[~settled], plain.dual_coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(machine.dual_coef_[settled], 0)
    np.testing.assert_allclose(model.loo_.outputs[~settled], plain.loo_.outputs, atol=1e-6)
    # All settled rows count as right, in the rate and in the threshold.
    threshold, rate = find_threshold(model.loo_)
    assert model.threshold_ == threshold
    assert rate == balanced_error_rate(*model.loo_, threshold=threshold)
    assert rate < find_threshold(plain.loo_)[1]


def test_nothing_to_settle():
    X, y, _ = made()
    assert len(reduced().fit(np.column_stack([X, y < 0]), y).settling_) == 0  # all of a class
    X = X[:, [0, 1, 3]]
    model = reduced(threshold="balanced").fit(X, y)
    plain = looms.KernelClassifier("linear", threshold="balanced").fit(X, y)
    assert len(model.settling_) == 0
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-12)


def test_signs_decide_at_one_half_and_weights_count():
    X, y, settled = made()
    weight = np.linspace(1, 2, len(y))
    model = reduced().fit(X, y, weight)
    plain = looms.KernelClassifier("linear").fit(X[~settled], y[~settled], weight[~settled])
    assert model.threshold_ == 0.0
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, 1, -1))
    assert model.model_.mu_ == pytest.approx(plain.mu_, rel=1e-6)


RULES = ["balanced", FBeta(2.0), Cost(1, 5), AtLeast("precision", 0.6)]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_counts_the_settled_rows(rule):
    X, y, settled = made()
    weight = np.linspace(1, 2, len(y))
    model = reduced(threshold=rule).fit(X, y, weight)
    np.testing.assert_array_equal(model.loo_.sample_weight, weight)
    assert model.threshold_ == find_threshold(model.loo_, rule)[0]
    assert (model.predict(X[settled]) == -1).all()


@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.parametrize("threshold", [0.5, Cost(100, 1)])
def test_settled_rows_are_just_below_all_others(threshold):
    X, y, settled = made()
    model = reduced(threshold=threshold).fit(X, y)
    assert (model.loo_.outputs[settled] == model.floor_).all()
    assert model.floor_ == min(model.loo_.outputs[~settled].min(), model.threshold_) - 1
    assert (model.decision_function(X[settled]) < 0).all()


def test_other_probabilities_and_more_classes_are_refused():
    X, y, _ = made()
    with pytest.raises(ValueError, match=r"0\.5"):
        reduced(threshold=0.3).fit(X, y)
    with pytest.raises(ValueError, match="y has 3"):
        reduced().fit(X, np.arange(len(y)) % 3)


def test_leave_one_out_scores_of_splits_count_the_settled_rows():
    X, y, _ = made()
    data = ChallengeData("sylva", X, y, "sylva")
    experiment = PaperExperiment("press", "none", "linear")
    runs = Runs(data)
    splits = runs.run(experiment, 2).splits
    for split, (train, _) in zip(splits, runs.parts(2), strict=True):
        machine = estimator_of(data, experiment).fit(X[train], y[train])[-1]
        rate = balanced_error_rate(*machine.loo_, threshold=machine.threshold_)
        assert split.loo_scores["ber"] == pytest.approx(rate, abs=1e-12)
        assert rate < balanced_error_rate(*machine.model_.loo_, threshold=machine.threshold_)
        assert split.chosen["mu"] == machine.model_.mu_
