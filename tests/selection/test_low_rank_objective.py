"""Criteria of machines on landmarks, with their gradients, and the search on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.blocks import ArrayBlocks
from looms.selection._low_rank import low_rank_objective
from looms.selection._objective import Objective
from looms.selection._subsamples import log2_mu_shift
from looms.selection._tune import tune
from looms.units import Units

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3))
Y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
GROUPS = RNG.integers(0, 120, N)
FOLDS = RNG.integers(0, 4, (2, N))
HOW = {
    "rows": {"units": Units.rows(N)},
    "groups": {"units": Units.of(None, Y, GROUPS)},
    "folds": {"units": Units.of_numbers(FOLDS)},
}


def objective(criterion="press", kernel="ard", rank=30, **options):
    weights = {"sample_weight": RNG.uniform(0.5, 2.0, N), "selection_weight": np.ones(N)}
    return low_rank_objective(
        *(ArrayBlocks(X, 64), Y),
        **{"kernel": kernel, "criterion": criterion, "rank": rank},
        **(HOW["rows"] | weights | options),
        tuned=tune,
    )


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["press", "cross_entropy", "wmw"])
@pytest.mark.parametrize("how", HOW)
def test_gradient_is_that_of_differences(criterion, how):
    on_landmarks = objective(criterion, prior=criterion == "press", **HOW[how])
    theta = np.clip(on_landmarks.theta0, -8.0, 8.0)
    _, gradient = on_landmarks(theta)
    for k, step in enumerate(1e-3 * np.eye(len(theta))):
        near, far = (on_landmarks(theta + j * step)[0] for j in (1, 2))
        back, further = (on_landmarks(theta - j * step)[0] for j in (1, 2))
        difference = (8 * (near - back) - (far - further)) / 12e-3
        assert_allclose(gradient[k], difference, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("how", HOW)
@pytest.mark.slow
def test_landmarks_at_every_row_give_the_criterion_of_the_kernel_matrix(how):
    options = {"kernel": "matern12", "criterion": "press", **HOW[how]}
    on_landmarks = low_rank_objective(ArrayBlocks(X, 64), Y, rank=N, tuned=tune, **options)
    whole = Objective(X, Y, **(options | {"kernel": on_landmarks.kernel}))
    theta = np.append(on_landmarks.kernel.theta, -8.0)
    for value, other in zip(on_landmarks(theta), whole(theta), strict=True):
        assert_allclose(value, other, rtol=1e-6)


@pytest.mark.slow
def test_a_search_goes_on_from_the_sample_and_ends_lower():
    on_landmarks = objective()
    tuning, fit = tune(on_landmarks)
    assert tuning.value < on_landmarks(on_landmarks.theta0)[0]
    assert fit.member.landmarks.shape == (30, 3)
    part = on_landmarks.subset(np.arange(0, N, 2))
    assert part.n_samples == N // 2
    assert_allclose(2.0 ** part.theta0[-1] * N / 2, 2.0 ** on_landmarks.theta0[-1] * N)


def test_the_ridge_moves_from_the_sample_to_all_rows():
    found = []

    def tuned(sample, **options):
        found.append((sample, tune(sample, max_iter=1, **options)))
        return found[-1][1]

    units, weight = Units.rows(N), np.ones(N)
    start = low_rank_objective(
        *(ArrayBlocks(X, 64), Y),
        **{"kernel": "rbf", "criterion": "press", "rank": 30, "tuned": tuned, "n_sample": 100},
        **{"units": units, "sample_weight": weight, "selection_weight": weight},
    )
    ((sample, (tuning, _)),) = found
    assert sample.n_samples == 100
    assert_allclose(start.theta0[-1], tuning.theta[-1] + log2_mu_shift(100, N))
    assert_allclose(start.bounds[-1], sample.bounds[-1] - np.log2(N / 100))


def skewed(n, seed):
    """Numbers whose noise grows with them: a few rows carry most of the squared errors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = np.exp(1.2 * X[:, 0]) * (1 + 0.3 * np.tanh(X[:, 1]) + 0.3 * np.sin(2 * X[:, 2]) * X[:, 3])
    return ArrayBlocks(X), f * np.exp(0.1 * rng.normal(size=n))


@pytest.mark.slow
def test_landmarks_are_doubled_while_that_surely_lowers_the_criterion(monkeypatch):
    """The standard error of the criterion, 0.4 of it, hides what twice as many landmarks gain."""
    monkeypatch.setattr("looms.selection._low_rank._ROWS_PER_LANDMARK", 2)
    blocks, y = skewed(1200, seed=7)
    options = {"kernel": "rbf", "criterion": "press", "units": Units.rows(len(y)), "tuned": tune}
    few, auto = (low_rank_objective(blocks, y, rank=rank, **options) for rank in (64, "auto"))
    assert auto.samples.n_samples >= 256
    assert auto.gain_of_landmarks == 0.0
    tuning, of_few = (tune(objective)[0] for objective in (auto, few))
    assert tuning.value < 0.5 * of_few.value
    stopped = low_rank_objective(blocks, y, rank="auto", largest_rank=128, **options)
    assert stopped.samples.n_samples == 128
    assert tune(stopped)[0].gain_of_landmarks == stopped.gain_of_landmarks > 0.1
