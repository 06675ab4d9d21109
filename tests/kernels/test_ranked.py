"""Kernel of normal scores against ranks, and where it is the better candidate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata
from stacks import stacked_regressor

from looms.kernels import ARD, RBF, Columns, Linear, Pairs, Ranked, Weighted
from looms.kernels._samples import Samples

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal(60), RNG.integers(0, 5, 60), RNG.random(60) < 0.2])


def test_scores_are_normal_quantiles_of_the_ranks_with_the_moments_of_the_feature():
    normal = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    scores = X.mean(axis=0) + (normal - normal.mean(axis=0)) * (X.std(axis=0) / normal.std(axis=0))
    assert_allclose(Ranked(Linear())(X), scores @ scores.T, rtol=1e-11, atol=1e-12)
    assert_allclose(scores[:, 2], X[:, 2], atol=1e-12)  # a feature of two values


def test_monotone_changes_of_a_feature_change_nothing():
    bent = np.column_stack([np.exp(3.0 * X[:, 0]), X[:, 1] ** 3, 5.0 * X[:, 2] - 1.0])
    assert_allclose(Ranked(ARD())(bent), Ranked(ARD())(X), rtol=1e-10)


def test_many_values_are_thinned_and_new_ones_stay_within():
    many = RNG.standard_normal((2000, 1)) ** 3
    kernel = Ranked(RBF()).started(Samples(many))
    assert kernel.scores.shape == (2, 256, 1)
    scores = np.interp(many[:, 0], *kernel.scores[:, :, 0])
    assert_allclose([scores.mean(), scores.std()], [many.mean(), many.std()], rtol=1e-10)
    assert np.corrcoef(scores, norm.ppf((rankdata(many) - 0.5) / 2000))[0, 1] > 0.9999
    largest = many[[many.argmax()]]
    assert_array_equal(kernel(many[:9], 1e9 * largest), kernel(many[:9], largest))


def test_a_weight_counts_as_copies():
    times = RNG.integers(1, 4, len(X))
    weighted = Ranked(ARD()).started(Samples(X, weight=times.astype(float)))
    copied = Ranked(ARD()).started(Samples(np.repeat(X, times, axis=0)))
    assert_allclose(weighted.theta, copied.theta, rtol=1e-12)
    assert_allclose(weighted(X), copied(X), rtol=1e-12)


@pytest.mark.parametrize(
    "scores", [np.zeros((2, 5, 2)), np.zeros((2, 3)), -np.indices((2, 4, 3))[1]]
)
def test_scores_that_are_none(scores):
    with pytest.raises(ValueError, match="Ranked: scores must"):
        Ranked(RBF(), scores)(X)


@pytest.mark.parametrize(("bent", "name"), [(np.exp, "ranked_rbf"), (np.asarray, "rbf")])
@pytest.mark.slow
def test_leave_one_out_knows_long_tails(bent, name):
    signal = 2.0 * RNG.standard_normal((120, 3))
    if name == "rbf":
        signal = RNG.random((120, 3)) ** 4  # of the distances themselves
    y = np.sin(2.0 * signal).sum(axis=1) + 0.1 * RNG.standard_normal(120)
    machine = stacked_regressor(["rbf", "ranked_rbf"], combine="best").fit(bent(signal), y)
    assert machine.candidates_[machine.best_index_].kernel_name == name


@pytest.mark.parametrize(
    "others",
    [
        [Weighted(RBF(0.5), [1.0, 2.0]), Weighted(RBF(0.5), [2.0, 1.0])],
        [Columns(RBF(0.5), [0]), Columns(RBF(0.5), [1])],
        [Ranked(RBF(0.5)), Ranked(Weighted(RBF(0.5), [1.0, 2.0])), Weighted(RBF(0.5), [1.0, 2.0])],
    ],
    ids=["weights", "columns", "kinds"],
)
def test_maps_that_are_kept_with_samples_are_those_of_the_kernel(others, monkeypatch):
    X, mapped = np.random.default_rng(0).normal(size=(20, 2)), []
    kept = Samples(X)
    started = [kernel.started(kept) for kernel in others]
    for kernel in [*started, *started]:
        for one in (kernel, kernel.with_theta(kernel.theta + 1.0)):
            assert_allclose(one.values(Pairs(kept, kept)), one.values(Pairs(*2 * [Samples(X)])))
    first, seen = started[0], type(started[0]).seen
    monkeypatch.setattr(type(first), "seen", lambda *own: mapped.append(1) or seen(*own))
    for theta in (first.theta, first.theta + 1.0, first.theta + 2.0):
        first.with_theta(theta).values(Pairs(kept, kept))
    assert len(mapped) == 1  # a search maps its samples once
