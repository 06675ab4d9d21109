"""Threshold where normal densities of two classes cross."""

import numpy as np
import pytest

from looms.held_out import HeldOut
from papers.density_threshold import threshold_between


def density(x, values):
    return np.exp(-((x - values.mean()) ** 2) / (2 * values.var(ddof=1))) / values.std(ddof=1)


@pytest.mark.parametrize("seed", range(4))
def test_densities_are_equal_there(seed):
    rng = np.random.default_rng(seed)
    low, high = rng.normal(-1, 0.4, size=30), rng.normal(1.5, 1.2, size=12)
    y = np.repeat([-1.0, 1.0], [30, 12])
    threshold = threshold_between(HeldOut(y, np.concatenate([low, high])))
    assert low.mean() < threshold < high.mean()
    assert density(threshold, low) == pytest.approx(density(threshold, high))


def test_equal_variances_give_the_middle_and_so_does_a_class_in_the_wrong_place():
    y = [-1, -1, 1, 1]
    assert threshold_between(HeldOut(y, [-3.0, -1.0, 3.0, 5.0])) == pytest.approx(1.0)
    assert threshold_between(HeldOut(y, [3.0, 5.0, -4.0, -1.0])) == pytest.approx(0.75)
