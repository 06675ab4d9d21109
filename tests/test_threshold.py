"""The threshold of least balanced error against a search through every cut."""

import numpy as np
import pytest

from looms import LeaveOneOut
from looms.criteria import balanced_error_rate
from looms.threshold import balanced_error_threshold


def every_cut(loo):
    """The same by its definition: all cuts, all rates counted anew, O(n²)."""
    f = np.unique(loo.outputs[loo.sample_weight > 0])
    cuts = np.concatenate([[f[0] - 1], (f[:-1] + f[1:]) / 2, [f[-1] + 1]])
    rates = np.array([balanced_error_rate(loo, cut) for cut in cuts])
    best = cuts[rates <= rates.min() + 1e-12]
    return best[np.argmin(np.abs(best))], rates.min()


def random_loo(seed, *, levels=None, weighted=False, zeros=False):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1, -1
    outputs = 0.5 * y + rng.normal(size=n) - 0.4
    if levels:
        outputs = np.round(outputs * levels) / levels
    weight = rng.uniform(0.1, 3, size=n) if weighted else np.ones(n)
    if zeros:
        weight[2:] *= rng.random(n - 2) < 0.7
    return LeaveOneOut(y, outputs, weight)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("levels", [None, 4, 1], ids=["distinct", "ties", "many ties"])
@pytest.mark.parametrize(
    ("weighted", "zeros"), [(False, False), (True, False), (True, True)], ids=str
)
def test_equals_a_search_through_every_cut(seed, levels, weighted, zeros):
    loo = random_loo(seed, levels=levels, weighted=weighted, zeros=zeros)
    threshold, rate = balanced_error_threshold(loo)
    expected, least = every_cut(loo)
    assert threshold == pytest.approx(expected, abs=1e-12)
    assert rate == pytest.approx(least, abs=1e-12)
    assert balanced_error_rate(loo, threshold) == pytest.approx(rate, abs=1e-12)


def test_of_equally_good_cuts_the_nearest_to_zero():
    #             three cuts of rate 1/4: at −3, 1 and 5
    loo = LeaveOneOut([-1, 1, -1, 1], [-4.0, -2.0, 4.0, 6.0])
    assert balanced_error_threshold(loo) == (pytest.approx(-3.0), pytest.approx(0.25))
    moved = LeaveOneOut([-1, 1, -1, 1], [-8.0, -6.0, 0.0, 2.0])
    assert balanced_error_threshold(moved) == (pytest.approx(1.0), pytest.approx(0.25))


def test_between_separated_classes_midway():
    loo = LeaveOneOut([-1, -1, 1], [-0.5, -0.3, 0.7])
    assert balanced_error_threshold(loo) == (pytest.approx(0.2), 0.0)


def test_where_nothing_separates_it_lies_outside():
    threshold, rate = balanced_error_threshold(LeaveOneOut([1, -1], [0.0, 3.0]))
    assert (threshold, rate) == (-1.0, 0.5)


def test_equal_outputs_are_never_cut_apart():
    threshold, rate = balanced_error_threshold(LeaveOneOut([1, -1, 1], [2.0, 2.0, 2.0]))
    assert (abs(threshold - 2.0), rate) == (1.0, 0.5)


def test_weights_count():
    y, f = [-1, 1, -1, 1], [-2.0, -1.0, 1.0, 2.0]
    low = balanced_error_threshold(LeaveOneOut(y, f, [9, 9, 1, 1]))
    high = balanced_error_threshold(LeaveOneOut(y, f, [1, 1, 9, 9]))
    assert (low[0], high[0]) == (-1.5, 1.5)
    assert [low[1], high[1]] == pytest.approx([0.05, 0.05])


def test_a_weight_of_zero_places_no_cut():
    y, f = [-1, -1, 1, 1], [-1.0, 0.6, 0.8, 3.0]
    weight = [1, 0, 0, 1]
    assert balanced_error_threshold(LeaveOneOut(y, f, weight))[0] == 1.0


@pytest.mark.parametrize(
    ("y", "weight"),
    [([1, 1, 1], None), ([-1, -1, -1], None), ([1, -1, -1], [0, 1, 1])],
    ids=["no negatives", "no positives", "no weight"],
)
def test_one_class_is_an_error(y, weight):
    with pytest.raises(ValueError, match="both classes"):
        balanced_error_threshold(LeaveOneOut(y, [0.1, 0.2, 0.3], weight))


def test_several_columns_are_an_error():
    with pytest.raises(ValueError, match="two classes"):
        balanced_error_threshold(LeaveOneOut(np.ones((3, 2)), np.ones((3, 2))))
