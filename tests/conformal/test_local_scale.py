"""Local scales against their definition, sample by sample and model by model."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.conformal._local_scale import LocalScale
from looms.kernels import RBF, Linear

RNG = np.random.default_rng(0)
N, M = 17, 6
X, X_NEW = RNG.normal(size=(N, 2)), RNG.normal(size=(M, 2))
X_NEW[0] = X[3]
PAIRS = RNG.normal(size=(N, N))


def by_definition(distances, model, k, number):
    """Scale by one model at a point with these distances to the samples."""
    others = [j for j in np.argsort(distances) if number[j] != model]
    residuals = np.abs(PAIRS[:, model])
    mean = residuals[others].mean()
    return (residuals[others[:k]].sum() + 0.1 * mean) / (k + 0.1)


@pytest.mark.parametrize("number", [np.arange(N), np.arange(N) % 5, np.arange(N) // 7])
@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()], ids=["rbf", "linear"])
def test_definition(kernel, number):
    n_units = number.max() + 1
    ours = LocalScale(PAIRS[:, :n_units], kernel(X), number)
    k = 9  # ⌈2 √17⌉; both kernels order samples by their distance
    apart = np.linalg.norm(X_NEW[:, None] - X, axis=2)
    expected = [[by_definition(apart[t], i, k, number) for i in range(n_units)] for t in range(M)]
    assert_allclose(ours.at(kernel(X_NEW, X)), expected, rtol=1e-12)
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    expected = [by_definition(apart[j], number[j], k, number) for j in range(N)]
    assert_allclose(ours.loo, expected, rtol=1e-12)


@pytest.mark.parametrize("number", [np.arange(N), np.arange(N) // 2])
def test_samples_that_are_equally_far_share_places(number):
    """Two columns of bits: the mean over all orders in which such samples could come."""
    bits, new = RNG.integers(0, 2, size=(N, 2)).astype(float), np.array([[0.0, 1.0], [1.0, 1.0]])
    n_units, k = number.max() + 1, 9
    residuals, near = np.abs(PAIRS[:, :n_units]), np.empty((2, n_units))
    for t, i in np.ndindex(near.shape):
        total, left = 0.0, k
        for far in range(3):
            level = (np.abs(bits - new[t]).sum(axis=1) == far) & (number != i)
            share = min(left, level.sum()) / max(level.sum(), 1)
            total, left = total + share * residuals[level, i].sum(), left - share * level.sum()
        near[t, i] = (total + 0.1 * residuals[number != i, i].mean()) / (k + 0.1)
    kernel = RBF(0.3)
    ours = LocalScale(PAIRS[:, :n_units], kernel(bits), number)
    assert_allclose(ours.at(kernel(new, bits)), near, rtol=1e-12)
    for t in range(2):
        at = (bits == new[t]).all(axis=1)
        assert_allclose(ours.loo[at], near[t, number[at]], rtol=1e-12)


def test_three_samples_are_enough_and_two_are_not():
    ours = LocalScale(PAIRS[:3, :3], np.eye(3))
    assert (ours.loo > 0).all()
    with pytest.raises(ValueError, match="three samples or groups, or more, got 2"):
        LocalScale(PAIRS[:2, :2], np.eye(2))


def test_residuals_of_zero_give_a_positive_scale():
    assert (LocalScale(np.zeros((N, N)), np.eye(N)).loo > 0).all()


def test_arguments_are_not_changed(read_only):
    K = read_only(RBF(0.3)(X))
    LocalScale(read_only(PAIRS), K).at(K)


@pytest.mark.slow
@pytest.mark.parametrize("number", [None, np.arange(1000) // 10])
def test_memory(number):
    """One array like the residuals, and a block of rows; of new points one like the result."""
    x, rng = RNG.normal(size=(1000, 2)), np.random.default_rng(0)
    R, K = rng.normal(size=(1000, 1000 if number is None else 100)), RBF(0.3)(x)
    tracemalloc.start()
    ours = LocalScale(R, K, number)
    assert tracemalloc.get_traced_memory()[1] < 8 * (R.size + 0.6 * K.size)
    tracemalloc.reset_peak()
    known = tracemalloc.get_traced_memory()[0]
    ours.at(K)
    assert tracemalloc.get_traced_memory()[1] - known < 8 * (3.0 * R.size + 0.8 * K.size)
    tracemalloc.stop()
