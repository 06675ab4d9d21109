"""Decisions agree with probabilities, in all classifiers that have both."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.base import clone
from sklearn.metrics import log_loss
from stacks import stacked_classifier

from looms import HeldOut, KernelClassifier, OneClassWarning
from looms.calibration import fit_calibrator
from looms.calibration._beta import Beta
from looms.calibration._calibrators import CALIBRATIONS, output_at
from looms.calibration._isotonic import Isotonic
from looms.calibration._sigmoid import Sigmoid
from looms.criteria._error_rates import balanced_error_rate
from looms.kernels import RBF

N = 90
rng = np.random.default_rng(1)
X = rng.normal(size=(N, 3))
NOISY = X[:, 0] + 0.9 * rng.normal(size=N)
TWO = np.where(NOISY > 0.6, "yes", "no")
THREE = np.digitize(NOISY, [-0.5, 0.6])
X_NEW = np.vstack([X, rng.normal(size=(200, 3)), 20 * rng.normal(size=(50, 3))])
SVM = {"kernel": RBF(0.1, gamma_bounds="fixed"), "loss": "hinge"}

MACHINES = {
    **{f"given-{c}": KernelClassifier("linear", mu=1e-3, calibration=c) for c in CALIBRATIONS},
    **{f"hinge-{c}": KernelClassifier(mu=0.1, calibration=c, **SVM) for c in CALIBRATIONS},
    "tuned": KernelClassifier(),
}
quietly = pytest.mark.filterwarnings("ignore::looms.BoundWarning")


@quietly
@pytest.mark.parametrize("name", MACHINES)
def test_the_class_that_is_predicted_is_the_most_probable(name):
    model = MACHINES[name].fit(X, TWO)
    decision, p = model.decision_function(X_NEW), model.predict_proba(X_NEW)
    assert 0 < (decision > 0).mean() < 1
    assert_array_equal(decision > 0, p[:, 1] > 0.5)
    assert_array_equal(model.predict(X_NEW), model.classes_[p.argmax(axis=1)])
    model = MACHINES[name].fit(X, THREE)
    largest = model.predict_proba(X_NEW).argmax(axis=1)
    assert_array_equal(model.decision_function(X_NEW).argmax(axis=1), largest)
    assert_array_equal(model.predict(X_NEW), model.classes_[largest])


CALIBRATORS = {
    "sigmoid": Sigmoid(-3.7, 1.3),
    "steep sigmoid": Sigmoid(-1e6, 0.7),
    "centered sigmoid": Sigmoid(-2.0, 0.0),
    "beta": Beta(Sigmoid(-2.3, 0.4), 0.7, 1.9, 0.31),
    "isotonic": Isotonic([-1.0, -0.3, 0.4, 0.9], [0.1, 0.2, 0.6, 0.9]),
    "isotonic step": Isotonic([-1.0, 0.1, np.nextafter(0.1, 1)], [0.2, 0.3, 0.8]),
    "isotonic, flat at a half": Isotonic([-1.0, -0.3, 0.4, 0.9], [0.1, 0.5, 0.5, 0.7]),
}


@pytest.mark.parametrize("name", CALIBRATORS)
def test_an_output_is_above_the_half_exactly_where_its_probability_is(name):
    calibrator = CALIBRATORS[name]
    outputs = np.random.default_rng(0).normal(size=500)
    half = output_at(calibrator, outputs)
    ulps = np.array([half])
    for direction in (-np.inf, np.inf):
        f = half
        for _ in range(50):
            ulps = np.append(ulps, f := np.nextafter(f, direction))
    f = np.concatenate(
        [outputs, ulps, half + np.geomspace(1e-15, 10), half - np.geomspace(1e-15, 10)]
    )
    assert_array_equal(f > half, calibrator.probability(f) > 0.5)


@pytest.mark.parametrize(
    ("calibrator", "sign"),
    [
        (Sigmoid(0.0, 1.0), 1),
        (Sigmoid(0.0, 0.0), 1),
        (Sigmoid(0.0, -1.0), -1),
        (Isotonic([0.0, 1.0], [0.1, 0.3]), 1),
        (Isotonic([0.0, 1.0], [0.6, 0.7]), -1),
    ],
)
def test_without_a_half_one_class_takes_all_and_the_order_of_outputs_stays(calibrator, sign):
    outputs = np.array([-3.0, 0.1, 0.100001, 5.0])
    half = output_at(calibrator, outputs)
    assert half == sign * 1024 * 5.0
    decision = 1000 * outputs - half
    assert_array_equal(decision > 0, calibrator.probability(1000 * outputs) > 0.5)
    assert (np.diff(decision) > 0).all()


def test_a_flat_sigmoid_decides_for_the_larger_class():
    y = np.repeat([0, 1], [60, 30])
    for labels, larger in ((y, 0), (1 - y, 1)):
        model = KernelClassifier("linear", mu=1e6).fit(X, labels)
        assert model.calibrator_.slope == 0
        assert set(model.predict(X_NEW)) == {larger}
        assert np.isfinite(model.decision_function(X_NEW)).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"mu": 1e-3}, {"mu": 1e-2, **SVM}], ids=["squares", "hinge"])
def test_class_weights_count_in_the_threshold_and_not_in_the_calibration(options):
    plain, model = (
        KernelClassifier(class_weight=weight, **options).fit(X, TWO)
        for weight in (None, "balanced")
    )
    weight = np.where(TWO == "yes", 0.5 / (TWO == "yes").mean(), 0.5 / (TWO == "no").mean())
    expected = fit_calibrator(HeldOut(model.loo_.y, model.loo_.outputs, weight))
    assert_allclose(model.threshold_, -expected.intercept / expected.slope)
    assert model.calibrator_ == fit_calibrator(model.loo_)
    rates = [balanced_error_rate(*m.loo_, threshold=m.threshold_) for m in (plain, model)]
    assert rates[1] < rates[0] - 0.01
    shares = [(m.predict(X) == "yes").mean() for m in (plain, model)]
    assert shares[1] > shares[0]


def rare(n, n_classes, seed=0):
    """Rows of which 9 % are of a class, and 3 % of another, beside one that is frequent."""
    rng = np.random.default_rng(seed)
    X, draw = rng.normal(size=(n, 4)), rng.random(n)
    y = np.where(draw < 0.09, 1, np.where(draw < 0.12, n_classes - 1, 0))
    X[:, 0] += 1.2 * (y == 1)
    X[:, 1] += 1.2 * (y == 2)
    return X, y


@pytest.mark.slow
@quietly
@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.parametrize(
    ("machine", "n_classes", "weighted"),
    pairwise(
        [
            KernelClassifier(mu=1e-2),
            stacked_classifier([KernelClassifier(k, mu=1e-2) for k in ["linear", RBF(0.1)]]),
            KernelClassifier("linear", loss="hinge", mu=1 / 3, cv=4),
        ],
        [2, 3],
        [False, True],
    ),
)
def test_class_weights_leave_probabilities_those_of_the_samples(machine, n_classes, weighted):
    X, y = rare(200, n_classes)
    weight = np.where(y == 1, 0.5, 1.0) if weighted else np.ones(len(y))
    model = clone(machine).set_params(class_weight="balanced").fit(X, y, sample_weight=weight)
    share = np.bincount(y, weights=weight) / weight.sum()
    guess = -share @ np.log(share)
    assert model.evaluate(nested=False)["log_loss"] < guess
    X_new, y_new = rare(4000, n_classes, seed=1)
    of_new = np.where(y_new == 1, 0.5, 1.0) if weighted else np.ones(len(y_new))
    p = model.predict_proba(X_new)
    assert_allclose(of_new @ p / of_new.sum(), share, rtol=0.3)
    assert log_loss(y_new, p, sample_weight=of_new) < guess
    assert_allclose(np.log(p), model.predict_log_proba(X_new), atol=1e-9)
    plain = clone(machine).fit(X, y, sample_weight=weight)
    assert np.mean(model.predict(X_new) > 0) > 1.5 * np.mean(plain.predict(X_new) > 0)


def test_balanced_classes_have_equal_sums_of_weights():
    X, y = rare(60, 3)
    weight = np.where(y == 1, 0.5, 1.0) * (np.arange(60) % 4)
    model = KernelClassifier("linear", mu=0.1, class_weight="balanced").fit(X, y, weight)
    sums = np.bincount(y, weights=model.fit_weight_)
    assert_allclose(sums, np.full(3, (weight > 0).sum() / 3))


@quietly
@pytest.mark.parametrize(
    "model",
    [
        KernelClassifier("linear", mu=1e-3, calibration=None),
        KernelClassifier(mu=0.1, calibration=None, **SVM),
    ],
)
def test_without_probabilities_the_threshold_is_zero(model):
    assert model.fit(X, TWO).threshold_ == 0


@pytest.mark.parametrize(("action", "times"), [("default", 1), ("always", 3), ("ignore", 0)])
def test_one_line_warns_once_of_the_same_as_the_filters_say(action, times):
    """The validation of scikit-learn makes `warnings` forget what it has told."""
    few, noise = np.arange(N) < 5, np.random.default_rng(5).normal(size=(N, 2))
    machine = KernelClassifier("linear", calibration=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action, OneClassWarning)
        for _ in range(3):
            machine.fit(noise, few)
    assert len(caught) == times
    if action == "default":
        with warnings.catch_warnings(record=True, action="default") as caught:
            machine.fit(noise, few)  # on another line
            machine.fit(noise, ~few)  # of another class
        assert len(caught) == 2
