"""Leaving out rows that a feature settles: the same machine as on the other rows alone."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import looms
from looms.calibration import log_loss, loo_probabilities
from looms.challenge import ChallengeData, Experiment, ReducedLSSVMClassifierCV, Runs, estimator_of
from looms.criteria import balanced_error_rate
from looms.threshold import (
    BalancedError,
    Cost,
    FBeta,
    RequiredPrecision,
    balanced_error_threshold,
    find_threshold,
)

WEIGHTS_ARE_NO_COPIES = (
    "hyper-parameters are chosen by leaving one sample out: a sample of weight k is left out as a "
    "whole, while of k copies one is left out and the others stay, so the choice differs"
)


# Some checks fit random labels and constant features: the search then ends at a bound.
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@parametrize_with_checks(
    [ReducedLSSVMClassifierCV("linear", calibration=None)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NO_COPIES,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_NO_COPIES,
    },
)
def test_sklearn_contract(estimator, check):
    check(estimator)


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
    model = ReducedLSSVMClassifierCV(kernel, threshold="ber").fit(form(X), y)
    plain = looms.LSSVMClassifierCV(kernel, threshold="ber").fit(form(X[~settled]), y[~settled])
    assert model.settling_.tolist() == [2]
    assert model.mu_ == pytest.approx(plain.mu_, rel=1e-6)
    np.testing.assert_allclose(model.dual_coef_[~settled], plain.dual_coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(model.dual_coef_[settled], 0)
    np.testing.assert_allclose(model.loo_.outputs[~settled], plain.loo_.outputs, atol=1e-6)
    # All settled rows count as right, in the rate and in the threshold.
    threshold, rate = balanced_error_threshold(model.whole_loo_)
    assert model.threshold_ == threshold
    assert rate == balanced_error_rate(*model.whole_loo_, threshold=threshold)
    assert rate < balanced_error_threshold(plain.loo_)[1]


def test_settled_rows_are_negative():
    X, y, settled = made()
    model = ReducedLSSVMClassifierCV("linear", threshold="ber").fit(X, y)
    assert (model.predict(X[settled]) == -1).all()
    far = np.array([[50.0, 50, 0, 0, 0], [50, 50, 1, 0, 0]])
    assert model.predict(far).tolist() == [1, -1]
    plain = looms.LSSVMClassifierCV("linear", threshold="ber").fit(X, y)
    assert plain.predict(far).tolist() == [1, 1]


def test_nothing_to_settle():
    X, y, _ = made()
    X = X[:, [0, 1, 3]]
    model = ReducedLSSVMClassifierCV("linear", threshold="ber").fit(X, y)
    plain = looms.LSSVMClassifierCV("linear", threshold="ber").fit(X, y)
    assert len(model.settling_) == 0
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_one_class_left_alone_leaves_all():
    X, y, _ = made()
    X = np.column_stack([X, y < 0])
    assert len(ReducedLSSVMClassifierCV("linear").fit(X, y).settling_) == 0


def test_given_threshold_and_weights():
    X, y, settled = made()
    weight = np.linspace(1, 2, len(y))
    model = ReducedLSSVMClassifierCV("linear", threshold=0.25).fit(X, y, weight)
    plain = looms.LSSVMClassifierCV("linear").fit(X[~settled], y[~settled], weight[~settled])
    assert model.threshold_ == 0.25
    assert model.mu_ == pytest.approx(plain.mu_, rel=1e-6)


@pytest.mark.parametrize("threshold", ["ber", 0.25])
def test_callbacks_at_the_end_of_a_fit_see_it_whole(threshold):
    """Also of a fit after another one, whose features settled otherwise."""
    callback = pytest.importorskip("sklearn.callback")
    seen = []

    class Last:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
            if fitted_estimator is not None:
                loo = fitted_estimator.loo_.outputs
                seen.append((fitted_estimator.decision_function(X), loo))

    X, y, settled = made()
    model = ReducedLSSVMClassifierCV("linear", threshold=threshold).set_callbacks(Last())
    assert isinstance(Last(), callback.FitCallback)
    for columns in ([0, 1, 3, 4, 2], [0, 1, 2, 3, 4], [0, 1, 3, 4]):
        model.fit(X[:, columns], y)
        decision, loo = seen.pop()
        np.testing.assert_array_equal(decision, model.decision_function(X[:, columns]))
        np.testing.assert_array_equal(loo, model.loo_.outputs)
        assert ((loo == model.floor_) == (settled & (2 in columns))).all()
    assert not [name for name in vars(model) if name.startswith("_settl")]


RULES = ["ber", BalancedError(), "f1", FBeta(2.0), Cost(1, 5), RequiredPrecision(0.6)]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_counts_the_settled_rows(rule):
    X, y, settled = made()
    weight = np.linspace(1, 2, len(y))
    model = ReducedLSSVMClassifierCV(["linear", "rbf"], threshold=rule).fit(X, y, weight)
    np.testing.assert_array_equal(model.whole_loo_.sample_weight, weight)
    threshold, loss = find_threshold(model.whole_loo_, rule)
    best = model.candidates_[model.best_index_]
    assert model.threshold_ == best.threshold == threshold
    assert best.score == pytest.approx(loss, abs=1e-12)
    if rule in ("ber", BalancedError()):
        assert loss < find_threshold(model.loo_, rule)[1]
    assert (model.predict(X[settled]) == -1).all()


@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.parametrize("threshold", [-100.0, "ber", 100.0])
def test_settled_rows_are_just_below_all_others(threshold):
    X, y, settled = made()
    model = ReducedLSSVMClassifierCV("linear", threshold=threshold).fit(X, y)
    plain = looms.LSSVMClassifierCV("linear").fit(X[~settled], y[~settled])
    loo = model.loo_
    assert (loo.outputs[settled] == model.floor_).all()
    lowest = min(loo.outputs[~settled].min(), model.threshold_)
    assert model.floor_ == lowest - 1
    assert (model.decision_function(X[settled]) < 0).all()
    # All that reads leave-one-out outputs sees the machine, at the weights of its fit.
    np.testing.assert_array_equal(loo.sample_weight, np.where(settled, 0, 1))
    ours = log_loss(loo, loo_probabilities(loo, "sigmoid"))
    theirs = log_loss(plain.loo_, loo_probabilities(plain.loo_, "sigmoid"))
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("class_conditional", [False, True])
def test_prediction_sets(class_conditional):
    X, y, settled = made()
    model = ReducedLSSVMClassifierCV("linear").fit(X, y)
    plain = looms.LSSVMClassifierCV("linear").fit(X[~settled], y[~settled])
    far = np.column_stack([np.linspace(-3, 50, 40), np.linspace(-3, 50, 40), np.zeros((40, 3))])
    options = {"coverage": 0.8, "class_conditional": class_conditional}
    expected = plain.predict_set(far, **options)
    assert expected.any(axis=0).all()
    np.testing.assert_array_equal(model.predict_set(far, **options), expected)
    far[:, 2] = 1
    sets = model.predict_set(far, **options)
    assert (sets == [True, False]).all()
    assert (model.classes_[sets.argmax(axis=1)] == model.predict(far)).all()


def test_leave_one_out_scores_of_splits_count_the_settled_rows():
    X, y, _ = made()
    data = ChallengeData("sylva", X, y, "sylva")
    experiment = Experiment("press", "none", "linear")
    runs = Runs(data)
    splits = runs.run(experiment, 2).splits
    for split, (train, _) in zip(splits, runs.parts(2), strict=True):
        machine = estimator_of(data, experiment).fit(X[train], y[train])[-1]
        rate = balanced_error_rate(*machine.whole_loo_, threshold=machine.threshold_)
        assert split.loo_scores["ber"] == pytest.approx(rate, abs=1e-12)
        assert rate < balanced_error_rate(*machine.loo_, threshold=machine.threshold_)
