"""Scores and reliability of probabilities against scikit-learn's and by hand."""

import pickle

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from looms import HeldOut
from looms.calibration._scores import brier_score, deviance_of, reliability_curve


def problem(k, weighted, n=50):
    rng = np.random.default_rng(k)
    labels = rng.integers(k, size=n)
    p = rng.dirichlet(np.ones(k), size=n)
    weight = rng.uniform(0.1, 3, size=n) * (rng.random(n) < 0.8) if weighted else np.ones(n)
    y = 2.0 * np.eye(k)[labels] - 1.0
    y = y[:, 1] if k == 2 else y
    return HeldOut(y, np.zeros_like(y), weight), labels, p


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(k, weighted):
    loo, labels, p = problem(k, weighted)
    weight = loo.sample_weight
    options = {"sample_weight": weight, "labels": np.arange(k)}
    scaled = weight / weight[weight > 0].mean()
    log_own = np.log(p[np.arange(50), labels])
    assert deviance_of(log_own, scaled) == pytest.approx(-2 * np.sum(scaled * log_own))
    wanted = p if k > 2 else p[:, 1]
    assert brier_score(loo, p) == pytest.approx(metrics.brier_score_loss(labels, wanted, **options))


def test_reliability_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = np.where(rng.random(1000) < p**1.5, 1, -1)
    curve = reliability_curve(y, p)
    share, mean = calibration_curve(y, p, n_bins=10, strategy="quantile", pos_label=1)
    assert curve.share == pytest.approx(share, abs=1e-12)
    assert curve.probability == pytest.approx(mean, abs=1e-12)
    assert curve.count.sum() == 1000
    assert (curve.edges[1:, 0] > curve.edges[:-1, 1]).all()
    error = np.average(np.abs(curve.share - curve.probability), weights=curve.count)
    assert curve.calibration_error == pytest.approx(error)
    assert 0.05 < curve.calibration_error < 0.2


def test_weights_of_a_reliability_curve():
    y, p = [-1, 1, 1, -1], [0.1, 0.3, 0.7, 0.9]
    curve = reliability_curve(y, p, [3, 1, 0, 4], n_bins=2)
    assert curve.probability == pytest.approx([0.15, 0.9])
    assert curve.share == pytest.approx([0.25, 0.0])
    assert curve.count.tolist() == [2, 1]
    assert curve.weight == pytest.approx([1.5, 1.5])
    assert curve.edges.tolist() == [[0.1, 0.3], [0.9, 0.9]]


def test_bins_are_quantiles_of_weight():
    y, p = np.ones(6), np.arange(6) / 10
    light = reliability_curve(y, p, n_bins=2)
    heavy = reliability_curve(y, p, [10, 1, 1, 1, 1, 1], n_bins=2)
    assert light.count.tolist() == [3, 3]
    assert heavy.count.tolist() == [1, 5]


def test_equal_probabilities_share_a_bin():
    curve = reliability_curve([1, -1] * 10, np.repeat([0.5, 0.6], [18, 2]))
    assert curve.count.tolist() == [18, 2]
    assert curve.probability == pytest.approx([0.5, 0.6])
    assert reliability_curve([1, -1], [1.0, 1.0]).count.tolist() == [2]


def test_a_curve_stays_as_it_is():
    curve = reliability_curve([1, -1], [0.8, 0.3])
    for each in (curve, pickle.loads(pickle.dumps(curve))):
        with pytest.raises(ValueError, match="read-only"):
            each.share[0] = 1


@pytest.mark.parametrize("n_bins", [0, 2.5])
def test_refusals(n_bins):
    with pytest.raises(ValueError, match="n_bins"):
        reliability_curve([1, -1], [0.2, 0.4], n_bins=n_bins)
