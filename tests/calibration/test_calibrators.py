"""Isotonic and beta calibration, calibrators by name, and probabilities of left-out samples."""

import pickle

import numpy as np
import pytest
from pairwise import pairwise
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from looms import HeldOut
from looms.calibration import fit_calibrator, loo_probabilities
from looms.calibration._beta import Beta, fit_beta
from looms.calibration._calibrators import CALIBRATIONS, Calibrator, class_probabilities
from looms.calibration._isotonic import fit_isotonic
from looms.calibration._sigmoid import Sigmoid, fit_increasing_sigmoid, fit_sigmoid

each_calibration = pytest.mark.parametrize("calibration", CALIBRATIONS)
each_shared = pytest.mark.parametrize("calibration", ["isotonic", "beta"])


def sample(seed, n=80, weighted=False, levels=None):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1, -1
    f = 0.6 * y + rng.normal(size=n)
    if levels:
        f = np.round(f * levels) / levels
    return f, y, rng.uniform(0.1, 3, size=n) if weighted else np.ones(n)


def multi_class(seed, n=60, k=3):
    rng = np.random.default_rng(seed)
    y = np.full((n, k), -1.0)
    y[np.arange(n), rng.integers(k, size=n)] = 1.0
    return HeldOut(y, 0.5 * y + 0.6 * rng.normal(size=(n, k)), rng.uniform(0.5, 2, size=n))


@each_calibration
@pytest.mark.parametrize("seed", range(2))
def test_probabilities_do_not_decrease(calibration, seed):
    f, y, weight = sample(seed, weighted=True)
    for labels in (y, -y):  # the second goes against the outputs
        calibrator = fit_calibrator(HeldOut(labels, f, weight), calibration)
        assert isinstance(calibrator, Calibrator)
        p = calibrator.probability(np.linspace(-9, 9, 500))
        assert (np.diff(p) >= 0).all()
        assert ((p > 0) & (p < 1)).all()
        assert calibrator.probability([[0.0, 1.0]]).shape == (1, 2)


@each_calibration
def test_samples_of_weight_zero_take_no_part(calibration):
    f, y, weight = sample(1, weighted=True)
    weight[10:40] = 0
    seen = weight > 0
    whole = fit_calibrator(HeldOut(y, np.where(seen, f, 50.0), weight), calibration)
    part = fit_calibrator(HeldOut(y[seen], f[seen], 3 * weight[seen]), calibration)
    at = np.linspace(-2, 2, 30)
    assert whole.probability(at) == pytest.approx(part.probability(at), rel=1e-8)
    plain = fit_calibrator(HeldOut(y, f), calibration)
    assert np.abs(whole.probability(at) - plain.probability(at)).max() > 0.01


def test_a_sigmoid_against_the_labels_is_constant():
    f, y, weight = sample(0, weighted=True)
    assert fit_increasing_sigmoid(f, y, weight) == fit_sigmoid(f, y, weight)
    against = fit_increasing_sigmoid(-f, y, weight)
    assert fit_sigmoid(-f, y, weight).slope > 0
    assert against.slope == 0
    equal = fit_sigmoid(np.zeros(80), y, weight)
    assert against.intercept == pytest.approx(equal.intercept, rel=1e-9)


@pytest.mark.parametrize("levels", [None, 3], ids=["distinct", "ties"])
@pytest.mark.parametrize("seed", range(4))
def test_isotonic_is_that_of_scikit_learn_within_the_bounds(seed, levels):
    f, y, weight = sample(seed, weighted=True, levels=levels)
    weight *= len(weight) / weight.sum()
    n_positive, n_negative = weight[y > 0].sum(), weight[y < 0].sum()
    bounds = {"y_min": 1 / (n_negative + 2), "y_max": (n_positive + 1) / (n_positive + 2)}
    theirs = IsotonicRegression(out_of_bounds="clip", **bounds).fit(f, y > 0, weight)
    ours = fit_isotonic(f, y, weight)
    at = np.linspace(-5, 5, 1001)
    assert ours.probability(at) == pytest.approx(theirs.predict(at), abs=1e-6)  # theirs: float32
    assert not ours.outputs.flags.writeable
    again = pickle.loads(pickle.dumps(ours))
    assert not again.outputs.flags.writeable
    assert np.array_equal(again.probability(at), ours.probability(at))


def beta_loss(parameters, sigmoid, f, y, weight):
    weight = weight * len(weight) / weight.sum()
    n_positive, n_negative = weight[y > 0].sum(), weight[y < 0].sum()
    t = np.where(y > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    s = sigmoid.probability(f)
    a, b, c = parameters
    z = a * np.log(s) - b * np.log(1 - s) + c
    return np.sum(weight * (t * np.logaddexp(0, -z) + (1 - t) * np.logaddexp(0, z)))


def skewed(seed, n=300, sign=1):
    """A steep slope on one side: one of a and b is at zero, or not far from it."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    z = np.where(sign * f > 0, 4 * f, 0.3 * f)
    return f, np.where(rng.random(n) < expit(z), 1.0, -1.0), np.ones(n)


@pytest.mark.parametrize("kind", ["plain", "weighted", "right", "left"])
@pytest.mark.parametrize("seed", range(3))
def test_beta_has_the_least_loss_allowed(kind, seed):
    f, y, weight = {
        "plain": lambda: sample(seed),
        "weighted": lambda: sample(seed, weighted=True),
        "right": lambda: skewed(seed),
        "left": lambda: skewed(seed, sign=-1),
    }[kind]()
    beta = fit_beta(f, y, weight)
    assert beta.sigmoid == fit_sigmoid(f, y, weight)
    found = minimize(
        beta_loss,
        [1.0, 1.0, 0.0],
        args=(beta.sigmoid, f, y, weight),
        method="L-BFGS-B",
        bounds=[(0, None), (0, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000},
    )
    ours = beta_loss([beta.a, beta.b, beta.c], beta.sigmoid, f, y, weight)
    assert ours <= found.fun + 1e-9
    assert ours == pytest.approx(found.fun, rel=1e-6)
    assert beta.a >= 0
    assert beta.b >= 0


def test_beta_meets_its_edges():
    edges = {(b.a == 0, b.b == 0) for b in (fit_beta(*sample(k, n=25)) for k in range(40))}
    assert {(True, False), (False, True), (False, False)} <= edges


def test_beta_of_extreme_outputs():
    beta = Beta(Sigmoid(-1e200, 0.0), 0.0, 2.0, 0.0)
    assert beta.probability([-1e200, 1e200]) == pytest.approx([0.5, 1.0])


def test_beta_by_hand():
    s = np.array([0.2, 0.7])
    beta = Beta(Sigmoid(-1.0, 0.0), 2.0, 0.5, 0.1)
    expected = expit(2 * np.log(s) - 0.5 * np.log(1 - s) + 0.1)
    assert beta.probability(logit(s)) == pytest.approx(expected)
    assert Beta(Sigmoid(-1.0, 0.0), 1, 1, 0).probability(logit(s)) == pytest.approx(s)


@each_calibration
@pytest.mark.parametrize("f", [np.zeros(6), np.r_[np.zeros(3), np.ones(3)], [0, 0, 0, 1, 1, 1e9]])
def test_few_different_outputs(calibration, f):
    calibrator = fit_calibrator(HeldOut([-1, -1, 1, -1, 1, 1], f), calibration)
    p = calibrator.probability(f)
    assert (np.diff(p) >= 0).all()
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize(
    ("calibration", "weighted", "n_columns"), pairwise(CALIBRATIONS, [False, True], [None, 1, 3])
)
def test_probabilities_of_left_out_samples_are_of_refitted_calibrators(
    calibration, weighted, n_columns
):
    if n_columns == 3:
        loo = multi_class(2, n=40)
        f, y, weight = loo.outputs, loo.y, loo.sample_weight.copy()
    else:
        f, y, weight = sample(2, n=40, weighted=weighted)
        f, y = (f, y) if n_columns is None else (f[:, None], y[:, None])
    weight = weight if weighted else np.ones(40)
    if weighted:
        weight[5:9] = 0
    loo = HeldOut(y, f, weight)
    p = loo_probabilities(loo, calibration)
    for i in range(40):
        others = np.arange(40) != i
        without = fit_calibrator(HeldOut(y[others], f[others], weight[others]), calibration)
        assert p[i] == pytest.approx(class_probabilities(without, f[i : i + 1])[0], rel=1e-8)
    seen = class_probabilities(fit_calibrator(loo, calibration), f)
    assert np.abs(seen - p).max() > 1e-3
    if weighted:
        assert p[5:9] == pytest.approx(seen[5:9], rel=1e-9)


def test_left_out_in_blocks(monkeypatch):
    f, y, weight = sample(2, n=40)
    whole = loo_probabilities(HeldOut(y, f, weight))
    monkeypatch.setattr("looms.calibration._calibrators._BLOCK", 100)
    assert loo_probabilities(HeldOut(y, f, weight)) == pytest.approx(whole, rel=1e-12)


def test_a_class_of_one_member():
    f, y, _ = sample(0, n=12)
    y = np.where(np.arange(12) == 3, 1.0, -1.0)
    for calibration in CALIBRATIONS:
        p = loo_probabilities(HeldOut(y, f), calibration)
        assert ((p > 0) & (p < 1)).all()


@each_shared
def test_several_classes_share_a_calibrator(calibration):
    loo = multi_class(0)
    calibrator = fit_calibrator(loo, calibration)
    pooled = [np.concatenate(list(columns.T)) for columns in (loo.outputs, loo.y)]
    expected = CALIBRATIONS[calibration](*pooled, np.tile(loo.sample_weight, 3))
    single = expected.probability(loo.outputs)
    p = class_probabilities(calibrator, loo.outputs)
    assert p == pytest.approx(single / single.sum(axis=1, keepdims=True), rel=1e-9)
    assert p.sum(axis=1) == pytest.approx(np.ones(60))
    unweighted = fit_calibrator(HeldOut(loo.y, loo.outputs), calibration)
    assert np.abs(class_probabilities(unweighted, loo.outputs) - p).max() > 1e-3
    left_out = loo_probabilities(loo, calibration)
    assert left_out.shape == (60, 3)
    assert left_out.sum(axis=1) == pytest.approx(np.ones(60))


@each_shared
def test_the_largest_output_is_the_most_probable_class(calibration):
    loo = multi_class(0)
    calibrator = fit_calibrator(loo, calibration)
    rng = np.random.default_rng(1)
    # Within the outputs, far from them, and a hair apart, where a calibrator is flat.
    near = rng.normal(size=(500, 3))
    f = np.vstack([near, 1e4 * near, 1 + 1e-9 * near, near.round(), np.zeros((1, 3))])
    p = class_probabilities(calibrator, f)
    assert np.array_equal(p.argmax(axis=1), f.argmax(axis=1))
    left_out = loo_probabilities(loo, calibration)
    assert np.array_equal(left_out.argmax(axis=1), loo.outputs.argmax(axis=1))


def test_two_classes_have_the_positive_one_last():
    calibrator = Sigmoid(-1.0, 0.0)
    p = class_probabilities(calibrator, [2.0, -1.0])
    assert p[:, 1] == pytest.approx(expit([2.0, -1.0]))
    assert p.sum(axis=1) == pytest.approx([1, 1])
    assert np.array_equal(class_probabilities(calibrator, [[2.0], [-1.0]]), p)


def test_classes_that_are_all_impossible_are_equally_likely():
    p = class_probabilities(Sigmoid(-1.0, 1e4), [[0.0, 1.0], [1.0, 0.0]])
    assert p == pytest.approx(np.full((2, 2), 0.5))
    assert p.argmax(axis=1).tolist() == [1, 0]


def test_refusals():
    loo = HeldOut([1, -1], [0.3, 0.1])
    with pytest.raises(ValueError, match="Unknown calibration 'platt'; known are sigmoid, isot"):
        fit_calibrator(loo, "platt")
    with pytest.raises(ValueError, match="Unknown calibration"):
        loo_probabilities(loo, ["sigmoid"])
    with pytest.raises(ValueError, match="-1 and \\+1"):
        fit_calibrator(HeldOut([1, 0], [0.3, 0.1]))
    with pytest.raises(ValueError, match="two samples with positive weight"):
        loo_probabilities(HeldOut([1, -1], [0.3, 0.1], [1, 0]))
    for fit in CALIBRATIONS.values():
        with pytest.raises(ValueError, match="finite"):
            fit([np.nan, 0.0], [1, -1], None)


@each_calibration
def test_classes_of_equal_weight_but_for_rounding_are_equal_where_it_is_flat(calibration):
    """Else rounding would give all outputs to one class, and which tells what was left out."""
    for n in range(5, 60):
        labels = np.repeat([-1.0, 1.0], [n - 3, n])
        weight = np.repeat([n / (n - 3), 1.0], [n - 3, n])
        for order in (1, -1):
            against = HeldOut(order * labels, -order * labels, weight)
            calibrator = fit_calibrator(against, calibration)
            assert calibrator.probability(np.array([-1.0, 1.0])).tolist() == [0.5, 0.5]
