"""Softmax of the outputs of several classes."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from looms import HeldOut
from looms.calibration import fit_calibrator, loo_probabilities
from looms.calibration._calibrators import class_probabilities
from looms.calibration._softmax import Softmax

rng = np.random.default_rng(0)
N, K = 70, 4
LABELS = np.concatenate([np.arange(K), rng.choice(K, size=N - K, p=[0.5, 0.3, 0.15, 0.05])])
Y = 2.0 * np.eye(K)[LABELS] - 1
F = 0.5 * Y + 0.5 * rng.normal(size=(N, K)) + [0.3, -0.1, 0.0, 0.2]
WEIGHT = rng.uniform(0.3, 3.0, size=N)


def smoothed(labels, weight, k):
    weight = weight * len(weight) / weight.sum()
    n = np.bincount(labels, weight, minlength=k)[labels]
    t = np.repeat((1 / ((n + 2) * (k - 1)))[:, None], k, axis=1)
    t[np.arange(len(n)), labels] = (n + 1) / (n + 2)
    return t, weight


def test_it_has_the_least_loss():
    t, weight = smoothed(LABELS, WEIGHT, K)

    def loss(x):
        return -np.sum(weight[:, None] * t * log_softmax(x[0] * F + x[1:], axis=1))

    ours = fit_calibrator(HeldOut(Y, F, WEIGHT))
    best = minimize(loss, np.zeros(K + 1), method="BFGS", options={"gtol": 1e-7})
    assert_allclose(ours.slope, best.x[0], rtol=1e-5)
    assert_allclose(ours.constants, best.x[1:] - best.x[1:].mean(), atol=1e-5)
    assert loss(np.r_[ours.slope, ours.constants]) <= best.fun + 1e-9
    unweighted = fit_calibrator(HeldOut(Y, F))
    assert abs(unweighted.slope - ours.slope) > 1e-3


def test_of_two_columns_it_is_the_logistic_regression_of_smoothed_targets():
    y, f = np.where(LABELS > 0, 1.0, -1.0), F[:, 1] - F[:, 0]
    t, weight = smoothed((y > 0).astype(int), WEIGHT, 2)
    twice = np.repeat(f, 2)[:, None], np.tile([0, 1], N), (weight[:, None] * t).ravel()
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(*twice)
    columns = np.stack([-f, f], axis=1)
    ours = fit_calibrator(HeldOut(np.stack([-y, y], axis=1), columns, WEIGHT))
    p = class_probabilities(ours, columns)
    assert_allclose(p, theirs.predict_proba(f[:, None]), rtol=1e-4)
    sigmoid = fit_calibrator(HeldOut(y, f, WEIGHT))
    assert_allclose(p, class_probabilities(sigmoid, f), rtol=1e-10)


def test_the_order_of_classes_and_a_shift_of_rows_or_columns_change_nothing():
    p = class_probabilities(fit_calibrator(HeldOut(Y, F, WEIGHT)), F)
    order = [2, 0, 3, 1]
    moved = 1e3 * (F + rng.normal(size=(N, 1)) + rng.normal(size=K))[:, order]
    again = class_probabilities(fit_calibrator(HeldOut(Y[:, order], moved, WEIGHT)), moved)
    assert_allclose(again, p[:, order], rtol=1e-8)


@pytest.mark.parametrize("f", [Y, 1e200 * Y, 1e-200 * Y, np.zeros((N, K)), -Y])
def test_separable_equal_and_inverted_outputs(f):
    calibrator = fit_calibrator(HeldOut(Y, f))
    p = class_probabilities(calibrator, f)
    assert ((p > 0) & (p < 1)).all()
    t, _ = smoothed(LABELS, np.ones(N), K)
    if f[0, 0] > 0:  # as sure as the targets of the classes are
        assert p[np.arange(N), LABELS].max() < (N + 1) / (N + 2)
        assert_array_equal(p.argmax(axis=1), LABELS)
    else:  # the slope does not fall below zero: shares
        assert calibrator.slope == 0
        assert_allclose(p, np.tile(t.mean(axis=0), (N, 1)))
    size = np.abs(f).max()
    decided = (f - calibrator.thresholds(f)).argmax(axis=1)
    assert_array_equal(p.argmax(axis=1), decided)
    assert np.abs(calibrator.thresholds(f)).max() <= 2**10 * (size or 1)


def test_the_largest_output_less_its_threshold_is_the_most_probable_class():
    calibrator = fit_calibrator(HeldOut(Y, F))
    near = rng.normal(size=(500, K))
    f = np.vstack([near, 1e4 * near, 1e300 * near, calibrator.thresholds(F) + 1e-15 * near])
    p = class_probabilities(calibrator, f)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(p.argmax(axis=1), (f - calibrator.thresholds(F)).argmax(axis=1))
    assert_allclose(p[:500], softmax(calibrator.slope * near + calibrator.constants, axis=1))
    assert (near.argmax(axis=1) != p[:500].argmax(axis=1)).any()


def test_classes_of_equal_weight_but_for_rounding_are_equal_where_it_is_flat():
    y = 2.0 * np.eye(3)[np.repeat([0, 1, 2], [3, 4, 6])] - 1
    weight = np.repeat([1 / 3, 1 / 4, 1 / 6], [3, 4, 6])
    assert np.ptp(fit_calibrator(HeldOut(y, -y, weight)).constants) == 0


def test_a_class_of_one_row_is_possible_without_it():
    y = 2.0 * np.eye(3)[np.r_[2, np.arange(11) % 2]] - 1
    p = loo_probabilities(HeldOut(y, 0.5 * y))
    assert ((p > 0) & (p < 1)).all()
    assert_allclose(p.sum(axis=1), 1.0)


def test_it_stays_read_only_and_refuses_rows_of_no_class():
    again = pickle.loads(pickle.dumps(Softmax(1.0, [0.5, -0.5, 0.0])))
    assert not again.constants.flags.writeable
    with pytest.raises(ValueError, match="one column of each row"):
        fit_calibrator(HeldOut(-np.ones((N, K)), F))
    with pytest.raises(ValueError, match="finite"):
        fit_calibrator(HeldOut(Y, np.where(F > 1, np.nan, F)))
