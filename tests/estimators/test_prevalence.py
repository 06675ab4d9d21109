"""Classifiers at stated prevalences of their classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier, at_prevalence

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 2))
X_NEW = rng.normal(size=(40, 2))
NOISY = X[:, 0] + 0.7 * rng.normal(size=90)
TWO = np.where(NOISY > 0.4, "yes", "no")
THREE = np.digitize(NOISY, [-0.5, 0.6])
WEIGHT = rng.uniform(0.3, 3.0, size=90)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "machine",
    [
        KernelClassifier("linear", mu=1e-3, class_weight="balanced"),
        KernelClassifier("linear", mu=1e-3, calibration="isotonic"),
        KernelClassifier("linear", loss="hinge", mu=0.01, class_weight="balanced"),
    ],
    ids=["balanced", "isotonic", "balanced svm"],
)
def test_training_prevalences_change_nothing(machine, y):
    machine.fit(X, y, sample_weight=WEIGHT)
    shares = np.array([WEIGHT[y == k].sum() for k in machine.classes_]) / WEIGHT.sum()
    prevalence = dict(zip(machine.classes_.tolist(), shares.tolist(), strict=True))
    model = at_prevalence(machine, prevalence)
    assert_allclose(model.training_prevalence_, shares)
    assert_allclose(model.predict_proba(X_NEW), machine.predict_proba(X_NEW), rtol=1e-9)
    largest = machine.predict_proba(X_NEW).argmax(axis=1)
    assert_array_equal(model.predict(X_NEW), machine.classes_[largest])


@pytest.mark.parametrize("priors", [[0.2, 0.5, 0.3], [0.01, 0.98, 0.01]])
def test_it_is_the_classifier_of_the_same_densities_with_these_priors(priors):
    even = GaussianNB(priors=[1 / 3] * 3).fit(X, THREE)
    other = GaussianNB(priors=priors).fit(X, THREE)
    model = at_prevalence(even, dict(enumerate(priors)), dict.fromkeys(range(3), 1 / 3))
    assert_allclose(model.predict_proba(X_NEW), other.predict_proba(X_NEW), rtol=1e-9)
    assert_array_equal(model.predict(X_NEW), other.predict(X_NEW))
    assert_allclose(model.decision_function(X_NEW), other.predict_log_proba(X_NEW))


def test_of_two_classes_the_threshold_moves_by_the_log_odds():
    machine = KernelClassifier("linear", mu=1e-3).fit(X, TWO)
    share = np.mean(TWO == "yes")
    model = machine.at_prevalence({"yes": 0.05})
    shift = np.log(0.05 / 0.95) - np.log(share / (1 - share))
    sigmoid, outputs = machine.calibrator_, machine.decision_function(X) + machine.threshold_
    log_odds = shift - (sigmoid.slope * outputs + sigmoid.intercept)
    assert_allclose(model.decision_function(X), log_odds, rtol=1e-9)
    threshold = (shift - sigmoid.intercept) / sigmoid.slope
    assert_array_equal(model.predict(X) == "yes", outputs > threshold)
    assert 0 < (model.predict(X) == "yes").sum() < (machine.predict(X) == "yes").sum()


def test_classes_that_are_not_named_have_the_rest_in_their_proportions():
    pipeline = make_pipeline(StandardScaler(), KernelClassifier("linear", mu=1e-3)).fit(X, THREE)
    model = at_prevalence(pipeline, {1: 0.8})
    counts = np.bincount(THREE)
    rest = 0.2 / (counts[0] + counts[2])
    assert_allclose(model.prevalence_, [rest * counts[0], 0.8, rest * counts[2]])


@pytest.mark.parametrize(
    ("prevalence", "message"),
    [
        ({"maybe": 0.1}, "'maybe'"),
        ({"yes": 1.0}, "1.0 for 'yes'"),
        ({"yes": 0.2, "no": 0.7}, "sum to 1, got 0.9"),
    ],
)
def test_prevalences_that_are_none_are_refused(prevalence, message):
    machine = KernelClassifier("linear", mu=1e-3).fit(X, TWO)
    with pytest.raises(ValueError, match=message):
        at_prevalence(machine, prevalence)


def test_of_other_classifiers_the_training_prevalences_must_be_given():
    other = GaussianNB().fit(X, TWO)
    other.model_ = KernelClassifier("linear", mu=1e-3).fit(
        X, TWO
    )  # whose probabilities are not those
    with pytest.raises(ValueError, match="training_prevalence must be given: GaussianNB"):
        at_prevalence(other, {"yes": 0.1})
    with pytest.raises(ValueError, match=r"the share of every class; \['no'\] are missing"):
        at_prevalence(other, {"yes": 0.1}, {"yes": 0.3})
    with pytest.raises(TypeError, match="must be a dict"):
        at_prevalence(other, 0.1, {"yes": 0.3, "no": 0.7})
