"""Probabilities and thresholds of the classifiers, from their leave-one-out outputs."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import f1_score

from looms import KernelClassifier
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import CALIBRATIONS, class_probabilities
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


@each_classifier
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_probabilities_are_the_calibrated_outputs(Estimator, y):
    found = []
    for calibration in CALIBRATIONS:
        model = Estimator("linear", calibration=calibration).fit(X, y, sample_weight=WEIGHT)
        calibrator = fit_calibrator(model.loo_, calibration)
        outputs = model.decision_function(X_NEW) + model.threshold_
        p = model.predict_proba(X_NEW)
        assert_allclose(p, class_probabilities(calibrator, outputs), rtol=1e-12)
        assert p.shape == (40, len(model.classes_))
        assert_allclose(p.sum(axis=1), 1.0)
        assert_allclose(model.predict_log_proba(X_NEW), np.log(p), rtol=1e-12)
        assert not any(np.allclose(p, other) for other in found)
        found.append(p)


MODELS = {
    **{c: KernelClassifier("linear", mu=1e-3, calibration=c) for c in CALIBRATIONS},
    "tuned": KernelClassifier("linear"),
    "hinge": KernelClassifier("linear", loss="hinge", mu=0.1),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pos_label", [None, "yes", "no"])
def test_the_threshold_is_a_probability_of_the_positive_class(name, pos_label):
    plain, positive = clone(MODELS[name]).fit(X, TWO), pos_label or "yes"
    for threshold in (0.3, 0.7):
        model = clone(plain).set_params(threshold=threshold, pos_label=pos_label).fit(X, TWO)
        assert list(model.classes_) == ["no", "yes"]
        p = model.predict_proba(X_NEW)
        assert_array_equal(p, plain.predict_proba(X_NEW))
        expected = p[:, list(model.classes_).index(positive)] > threshold
        assert_array_equal(model.predict(X_NEW) == positive, expected)
        assert (model.predict(X_NEW) != plain.predict(X_NEW)).any()


@pytest.mark.parametrize("rule", ["f1", Cost(1, 6), AtLeast("recall", 0.95), 0.3], ids=str)
def test_a_label_that_is_first_in_order_makes_the_rule_that_of_the_classes_exchanged(rule):
    exchanged = np.where(TWO == "no", "z", "yes")  # "yes" < "z": the positive class comes last
    model = KernelClassifier("linear", mu=1e-3, threshold=rule)
    first = clone(model).set_params(pos_label="no").fit(X, TWO)
    last = clone(model).fit(X, exchanged)
    assert first.threshold_ == pytest.approx(-last.threshold_, rel=1e-6)
    assert_array_equal(first.predict(X_NEW) == "no", last.predict(X_NEW) == "z")
    assert_allclose(first.predict_proba(X_NEW), last.predict_proba(X_NEW)[:, ::-1], rtol=1e-6)
    other = clone(model).fit(X, TWO)
    if rule != "f1":
        assert first.threshold_ != pytest.approx(other.threshold_, rel=1e-3)
    last_in_order = clone(model).set_params(pos_label="yes").fit(X, TWO)
    assert last_in_order.threshold_ == other.threshold_


def test_without_calibration_there_are_none():
    model = KernelClassifier("linear", mu=1e-3, calibration=None).fit(X, TWO)
    assert not hasattr(model, "predict_proba")
    assert model.calibrator_ is None
    assert not hasattr(model.set_params(calibration="sigmoid"), "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_log_proba(X)
    calibrated = KernelClassifier("linear", mu=1e-3).fit(X, TWO)
    assert_array_equal(model.predict(X), calibrated.predict(X))


class TestThresholds:
    RULES = (
        "balanced",
        "f1",
        FBeta(3.0),
        Cost(1, 6),
        AtLeast("precision", 0.8),
        AtLeast("recall", 0.95),
    )

    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_any_rule(self, rule):
        model = KernelClassifier("linear", mu=1e-3, threshold=rule).fit(X, TWO, WEIGHT)
        assert model.threshold_ == find_threshold(model.loo_, rule)[0]
        assert model.threshold_ != 0
        assert clone(model).threshold == rule

    def test_a_metric(self):
        ours, theirs = (
            KernelClassifier("linear", mu=1e-3, threshold=rule).fit(X, TWO)
            for rule in (f1_score, "f1")
        )
        assert ours.threshold_ == theirs.threshold_

    @each_classifier
    def test_a_precision_out_of_reach_is_said_last(self, Estimator):
        y = np.r_[np.zeros(30), np.ones(10)]
        y[0], x = 1, np.arange(40.0)[:, None]
        x[3] = 80.0
        model = Estimator("linear", threshold=AtLeast("precision", 1.0))
        with pytest.warns(UserWarning, match="No threshold reaches") as caught:
            model.fit(x, y)
        assert {w.filename for w in caught} == {__file__}
        assert model.threshold_ == find_threshold(model.loo_, AtLeast("precision", 1.0))[0]
        other = clone(model)
        with pytest.raises(UserWarning, match="No threshold reaches"):
            other.fit(x, y)  # warnings are errors here
        assert_array_equal(other.predict(x), model.predict(x))
