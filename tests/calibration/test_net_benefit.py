"""Net benefit by its definition, from counts, and its errors from many draws."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import confusion_matrix

from looms.calibration import net_benefit


def drawn(rng, n=300):
    z = rng.normal(-1, 1.5, n)
    return np.where(rng.random(n) < expit(z), 1, -1), expit(z).round(2)


def by_counts(y, p, t):
    """TP/n − FP/n · t/(1 − t), as dcurves counts."""
    (_, fp), (_, tp) = confusion_matrix(y, np.where(p >= t, 1, -1), labels=[-1, 1])
    return tp / len(y) - fp / len(y) * t / (1 - t)


def test_it_is_that_of_the_counts():
    y, p = drawn(np.random.default_rng(0))
    t = np.array([0.0, 0.05, 0.2, 0.5, 0.8])  # at some of which there are rows
    found = net_benefit(y, p, thresholds=t)
    assert found.value == pytest.approx([by_counts(y, p, each) for each in t])
    assert found.of_all == pytest.approx([by_counts(y, np.ones(300), each) for each in t])
    assert found.gain == pytest.approx(found.value - np.maximum(found.of_all, 0))
    times = np.random.default_rng(1).integers(0, 3, 300)
    weighted = net_benefit(y, p, 0.5 * times, thresholds=t)
    repeated = net_benefit(np.repeat(y, times), np.repeat(p, times), thresholds=t)
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.of_all == pytest.approx(repeated.of_all)


def test_standard_errors_are_those_of_draws():
    rng, t = np.random.default_rng(2), [0.1, 0.5, 0.7]  # all or none is clearly better
    found = [net_benefit(*drawn(rng), thresholds=t) for _ in range(400)]
    for value, error in (("value", "standard_error"), ("gain", "gain_error")):
        spread = np.std([getattr(one, value) for one in found], axis=0)
        errors = np.mean([getattr(one, error) for one in found], axis=0)
        assert errors == pytest.approx(spread, rel=0.12)
    y, p = drawn(rng)
    once = net_benefit(y, p, thresholds=t)
    groups = np.repeat(np.arange(300), 3)
    together = net_benefit(np.repeat(y, 3), np.repeat(p, 3), groups=groups, thresholds=t)
    assert together.standard_error == pytest.approx(once.standard_error, rel=0.02)
    assert together.gain_error == pytest.approx(once.gain_error, rel=0.02)


def test_thresholds():
    rng = np.random.default_rng(3)
    found = net_benefit(*drawn(rng)).threshold
    assert found[0] == 0.01
    assert 0.6 < found[-1] <= 0.9
    rare = net_benefit([1, *[-1] * 99], np.full(100, 0.01))
    assert rare.threshold[-1] == pytest.approx(0.02)
    labels, p = np.where(np.arange(4000) < 4, 1, -1), np.full(4000, 0.001)
    assert net_benefit(labels, p).threshold[[0, -1]] == pytest.approx([1e-4, 2e-3])
    assert net_benefit([-1, -1], [0.0, 0.1]).threshold[0] == 0.01
    for wrong in ([1.0], [-0.1], [np.nan]):
        with pytest.raises(ValueError, match="thresholds"):
            net_benefit([1, -1], [0.5, 0.5], thresholds=wrong)
