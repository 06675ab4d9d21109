"""Probabilities and thresholds of the classifiers, from their leave-one-out outputs."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import f1_score, log_loss, precision_score, recall_score
from sklearn.model_selection import LeaveOneOut as OneOut
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier, Search
from looms.calibration import fit_calibrator, loo_probabilities
from looms.calibration._calibrators import CALIBRATIONS, class_probabilities
from looms.calibration._sigmoid import fit_sigmoid
from looms.criteria._error_rates import balanced_error_rate
from looms.model_files import load_model, save_model
from looms.threshold import AtLeast, Cost, FBeta, find_threshold

N = 80
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
X_NEW = rng.normal(size=(40, 3))
NOISY = X[:, 0] + 0.8 * rng.normal(size=N)
WEIGHT = rng.uniform(0.3, 3.0, size=N)
TWO = np.where(NOISY > 0.5, "yes", "no")
THREE = np.digitize(NOISY, [-0.5, 0.6])

CLASSIFIERS = [partial(KernelClassifier, mu=1e-3), KernelClassifier]
each_classifier = pytest.mark.parametrize("Estimator", CLASSIFIERS, ids=["given", "tuned"])
each_calibration = pytest.mark.parametrize("calibration", CALIBRATIONS)


@each_classifier
@each_calibration
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_probabilities_are_the_calibrated_outputs(Estimator, calibration, y):
    model = Estimator("linear", calibration=calibration).fit(X, y, sample_weight=WEIGHT)
    calibrator = fit_calibrator(model.loo_, calibration)
    outputs = model.decision_function(X_NEW) + model.threshold_
    p = model.predict_proba(X_NEW)
    assert_allclose(p, class_probabilities(calibrator, outputs), rtol=1e-12)
    assert p.shape == (40, len(model.classes_))
    assert_allclose(p.sum(axis=1), 1.0)
    assert_allclose(model.predict_log_proba(X_NEW), np.log(p), rtol=1e-12)
    others = [Estimator("linear", calibration=c).fit(X, y, WEIGHT) for c in CALIBRATIONS]
    same = [np.allclose(other.predict_proba(X_NEW), p) for other in others]
    assert sum(same) == 1


def test_one_calibrator_is_fitted_for_each_candidate(monkeypatch):
    fitted = []

    def noted(*arguments):
        fitted.append(fit_calibrator(*arguments))
        return fitted[-1]

    monkeypatch.setattr("looms.fitted._outcome.fit_calibrator", noted)
    model = stacked_classifier(["linear", "rbf"], combine="best", cv=np.arange(len(X))).fit(X, TWO)
    assert len(fitted) == 2
    assert model.calibrator_ is fitted[model.best_index_]


@each_classifier
def test_the_sigmoid_is_fitted_to_leave_one_out_outputs(Estimator):
    model = Estimator("linear").fit(X, TWO, sample_weight=WEIGHT)
    sigmoid = model.calibrator_
    y = np.where(TWO == "yes", 1, -1)
    expected = fit_sigmoid(model.loo_.outputs, y, WEIGHT)
    assert_allclose([sigmoid.slope, sigmoid.intercept], [expected.slope, expected.intercept])


@each_classifier
def test_they_rise_with_the_decision(Estimator):
    for threshold in (0.5, "balanced", 0.2):
        model = Estimator("linear", threshold=threshold).fit(X, TWO)
        decision = model.decision_function(X_NEW)
        assert_array_equal(rankdata(model.predict_proba(X_NEW)[:, 1]), rankdata(decision))


@each_classifier
@each_calibration
def test_of_several_classes_the_one_predicted_is_the_most_probable(Estimator, calibration):
    model = Estimator("linear", calibration=calibration).fit(X, THREE, sample_weight=WEIGHT)
    far = np.vstack([X, X_NEW, 100 * X_NEW])
    likely = model.classes_[model.predict_proba(far).argmax(axis=1)]
    assert_array_equal(likely, model.predict(far))


@each_classifier
@each_calibration
@pytest.mark.parametrize("pos_label", [None, "yes", "no"])
def test_the_threshold_is_a_probability_of_the_positive_class(Estimator, calibration, pos_label):
    plain = Estimator("linear", calibration=calibration).fit(X, TWO)
    positive = pos_label or "yes"
    for threshold in (0.3, 0.7):
        model = Estimator(
            "linear", threshold=threshold, calibration=calibration, pos_label=pos_label
        ).fit(X, TWO)
        assert list(model.classes_) == ["no", "yes"]
        p = model.predict_proba(X_NEW)
        assert_array_equal(p, plain.predict_proba(X_NEW))
        expected = p[:, list(model.classes_).index(positive)] > threshold
        assert_array_equal(model.predict(X_NEW) == positive, expected)
        assert (model.predict(X_NEW) != plain.predict(X_NEW)).any()


@each_classifier
def test_a_label_that_is_first_in_order_makes_the_rule_that_of_the_classes_exchanged(Estimator):
    exchanged = np.where(TWO == "no", "z", "yes")  # "yes" < "z": the positive class comes last
    for rule in (
        "balanced",
        "f1",
        Cost(1, 6),
        AtLeast("precision", 0.8),
        AtLeast("recall", 0.95),
        0.3,
        0.5,
    ):
        first = Estimator("linear", threshold=rule, pos_label="no").fit(X, TWO)
        last = Estimator("linear", threshold=rule).fit(X, exchanged)
        assert first.threshold_ == pytest.approx(-last.threshold_, rel=1e-6)
        assert_array_equal(first.predict(X_NEW) == "no", last.predict(X_NEW) == "z")
        assert_allclose(first.predict_proba(X_NEW), last.predict_proba(X_NEW)[:, ::-1], rtol=1e-6)
        if rule in (Cost(1, 6), AtLeast("recall", 0.95), 0.3):
            other = Estimator("linear", threshold=rule).fit(X, TWO)
            assert first.threshold_ != pytest.approx(other.threshold_, rel=1e-3)
        last_in_order = Estimator("linear", threshold=rule, pos_label="yes").fit(X, TWO)
        assert (
            last_in_order.threshold_ == Estimator("linear", threshold=rule).fit(X, TWO).threshold_
        )


@each_classifier
def test_a_positive_class_is_one_of_two(Estimator):
    with pytest.raises(
        ValueError, match="pos_label=0 is for two classes, and there are 3: leave it"
    ):
        Estimator("linear", pos_label=0).fit(X, THREE)


@each_classifier
@each_calibration
def test_class_weights_move_a_probability_that_is_the_threshold(Estimator, calibration):
    plain, weighted = (
        Estimator("linear", threshold=0.3, calibration=calibration, class_weight=w).fit(X, TWO)
        for w in (None, {"yes": 4.0})
    )
    taken = [np.mean(m.predict(X_NEW) == "yes") for m in (plain, weighted)]
    assert taken[1] > taken[0]


@each_classifier
def test_a_weight_of_zero_takes_no_part(Estimator):
    weight = np.where(np.arange(N) < 20, 0.0, WEIGHT)
    whole = Estimator("linear").fit(X, TWO, sample_weight=weight)
    part = Estimator("linear").fit(X[20:], TWO[20:], sample_weight=WEIGHT[20:])
    assert_allclose(whole.predict_proba(X_NEW), part.predict_proba(X_NEW), rtol=1e-5)
    plain = Estimator("linear").fit(X, TWO)
    assert np.abs(plain.predict_proba(X_NEW) - part.predict_proba(X_NEW)).max() > 0.01


def test_a_model_that_learns_nothing_gives_the_share_of_each_class():
    y = np.repeat([0, 1], [60, 20])
    model = KernelClassifier("linear", mu=1e6).fit(X, y)
    assert fit_sigmoid(model.loo_.outputs, 2 * y - 1).slope > 0
    assert_allclose(model.predict_proba(X_NEW)[:, 1], 0.25, atol=0.02)


@each_classifier
def test_without_calibration_there_are_none(Estimator):
    model = Estimator("linear", calibration=None).fit(X, TWO)
    assert not hasattr(model, "predict_proba")
    assert model.calibrator_ is None
    assert not hasattr(model.set_params(calibration="sigmoid"), "predict_proba")
    model.set_params(calibration=None)
    with pytest.raises(AttributeError) as refused:
        model.predict_log_proba(X)
    assert "no probabilities with calibration=None" in str(refused.value.__cause__)
    assert_array_equal(model.predict(X), Estimator("linear").fit(X, TWO).predict(X))


@each_classifier
@pytest.mark.parametrize("calibration", ["platt", 3, ["sigmoid"]])
def test_unknown_calibration(Estimator, calibration):
    model = Estimator("linear").fit(X, TWO)
    before = model.calibrator_
    with pytest.raises(ValueError, match="known are sigmoid, isotonic, beta"):
        model.set_params(calibration=calibration).fit(X, TWO)
    assert model.calibrator_ is before


@each_calibration
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_model_files_keep_them(calibration, y, tmp_path):
    model = make_pipeline(StandardScaler(), KernelClassifier("linear", calibration=calibration))
    if y is TWO:
        model.set_params(kernelclassifier__threshold=FBeta(2.0))
    model.fit(X, y)
    save_model(tmp_path / "m.skops", model, {})
    loaded = load_model(tmp_path / "m.skops").model
    assert_array_equal(loaded.predict_proba(X_NEW), model.predict_proba(X_NEW))
    assert_array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
    assert loaded[-1].threshold == model[-1].threshold


def test_separable_classes_and_a_class_of_one():
    y = np.where(X[:, 0] > 0, 1, 0)
    model = KernelClassifier("linear", mu=1e-3).fit(X + 100 * y[:, None], y)
    p = model.predict_proba(np.vstack([X + 100, X - 1e9]))
    assert np.isfinite(model.predict_log_proba(X - 1e9)).all()
    assert (p[:N, 1] > 0.95).all()
    alone = KernelClassifier("linear", mu=1e-3).fit(X, np.arange(N) == 3)
    assert alone.predict_proba(X_NEW)[:, 1].mean() < 0.1


class TestThresholds:
    RULES = ("f1", FBeta(3.0), Cost(1, 6), AtLeast("precision", 0.8), AtLeast("recall", 0.95))

    @each_classifier
    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_any_rule(self, Estimator, rule):
        model = Estimator("linear", threshold=rule).fit(X, TWO, sample_weight=WEIGHT)
        assert model.threshold_ == find_threshold(model.loo_, rule)[0]
        assert model.threshold_ != 0
        assert clone(model).threshold == rule

    def test_requirements_are_met_leaving_one_out(self):
        y = TWO == "yes"
        model = KernelClassifier("linear", mu=1e-3, threshold=AtLeast("recall", 0.95)).fit(X, y)
        assert recall_score(y, model.loo_.outputs > model.threshold_) >= 0.95
        model = KernelClassifier("linear", mu=1e-3, threshold=AtLeast("precision", 0.8)).fit(X, y)
        assert precision_score(y, model.loo_.outputs > model.threshold_) >= 0.8

    @each_classifier
    @pytest.mark.slow
    def test_a_metric(self, Estimator):
        ours = Estimator("linear", threshold=f1_score).fit(X, TWO)
        assert ours.threshold_ == Estimator("linear", threshold="f1").fit(X, TWO).threshold_

    @each_classifier
    def test_a_precision_out_of_reach_is_said(self, Estimator):
        y = np.r_[np.zeros(30), np.ones(10)]
        y[0], x = 1, np.arange(40.0)[:, None]
        x[3] = 80.0
        model = Estimator("linear", threshold=AtLeast("precision", 1.0))
        with pytest.warns(
            UserWarning, match="No threshold reaches a leave-one-out precision of 1;"
        ):
            model.fit(x, y)
        assert model.threshold_ == find_threshold(model.loo_, AtLeast("precision", 1.0))[0]

    @each_classifier
    def test_that_warning_comes_last_and_points_to_the_user(self, Estimator):
        y = np.r_[np.zeros(30), np.ones(10)]
        y[0], x = 1, np.arange(40.0)[:, None]
        x[3] = 80.0
        model = Estimator("linear", threshold=AtLeast("precision", 1.0))
        with pytest.warns(UserWarning, match="No threshold reaches") as caught:
            model.fit(x, y)
        assert {w.filename for w in caught} == {__file__}
        other = clone(model)
        with pytest.raises(UserWarning, match="No threshold reaches"):
            other.fit(x, y)  # warnings are errors here
        assert_array_equal(other.predict(x), model.predict(x))

    @each_classifier
    @pytest.mark.parametrize("threshold", [True, False, np.True_])
    def test_true_is_no_threshold(self, Estimator, threshold):
        with pytest.raises(ValueError, match="known are a probability between 0 and 1, 'balanced'"):
            Estimator("linear", threshold=threshold).fit(X, TWO)

    def test_candidates_compete_by_what_the_threshold_is_for(self):
        candidates = [
            KernelClassifier(kernel, search=Search(criterion))
            for kernel in ["linear", "rbf"]
            for criterion in ["press", "wmw", "hinge"]
        ]
        options = {"combine": "best", "cv": np.arange(len(X))}
        model = stacked_classifier(candidates, threshold=Cost(1, 6), **options).fit(X, TWO)
        scores = [candidate.loss for candidate in model.candidates_]
        assert model.best_index_ == np.argmin(scores)
        assert scores[model.best_index_] == find_threshold(model.loo_, Cost(1, 6))[1]
        assert scores != [
            balanced_error_rate(*model.loo_, threshold=candidate.threshold)
            for candidate in model.candidates_
        ]

    @each_classifier
    @pytest.mark.parametrize("rule", [FBeta(), f1_score], ids=["rule", "metric"])
    def test_three_classes_have_none(self, Estimator, rule):
        with pytest.raises(ValueError, match="needs two classes, but y has 3"):
            Estimator("linear", threshold=rule).fit(X, THREE)


class TestWhatScikitLearnRefuses:
    """Both leave one out only here."""

    def test_calibration(self):
        refused = CalibratedClassifierCV(
            KernelClassifier("linear", mu=1e-3, calibration=None), cv=OneOut()
        )
        with pytest.raises(ValueError, match="LeaveOneOut cross-validation does not allow"):
            refused.fit(X, TWO)
        assert KernelClassifier("linear", mu=1e-3).fit(X, TWO).predict_proba(X).shape == (N, 2)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::UserWarning")  # it has many, of test splits of one class
    def test_threshold(self):
        model = KernelClassifier("linear", mu=1e-3, calibration=None)
        refused = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=OneOut())
        with pytest.raises(ValueError, match="impossible to optimize the decision threshold"):
            refused.fit(X[::8], TWO[::8])
        assert KernelClassifier("linear", mu=1e-3, threshold="balanced").fit(X, TWO).threshold_ != 0


def test_with_scorers_of_scikit_learn():
    scores = cross_val_score(
        KernelClassifier("linear", mu=1e-3), X, TWO, scoring="neg_log_loss", cv=4
    )
    assert (scores > -0.69).all()


@pytest.mark.slow
def test_log_loss_leaving_one_out_is_that_of_refits_on_real_data(data_folder):
    """Of whole pipelines, calibration and all, refitted without each of fifty samples."""
    table = pd.read_csv(data_folder / "haberman.csv")
    features, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy()
    features = StandardScaler().fit_transform(features)
    model = KernelClassifier(mu=1e-2).fit(features, y)
    p = loo_probabilities(model.loo_)
    refitted = []
    for i in range(50):
        others = np.arange(len(y)) != i
        # The ridge of the machine stays as it was while a sample is left out.
        kept = clone(model).set_params(mu=1e-2 * len(y) / (len(y) - 1), kernel=model.kernel_)
        kept.fit(features[others], y[others])
        refitted.append(kept.predict_proba(features[i : i + 1])[0])
    assert_allclose(p[:50], refitted, atol=0.01)
    assert log_loss(model.loo_.y, p) == pytest.approx(0.535, abs=0.03)
