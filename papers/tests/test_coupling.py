"""Coupling by divergence against a general minimizer."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from papers.coupling import couple_by_divergence


def random_pairwise(seed, k, m=5):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((m, k, k)), 1)
    return upper + np.tril(1 - upper.transpose(0, 2, 1), -1)


def by_minimizer(r, counts):
    """Minimum of the divergence [HT98], pair by pair, over logarithms of probabilities."""
    pairs = list(combinations(range(len(r)), 2))

    def divergence(log_p):
        total = 0.0
        for i, j in pairs:
            mu = 1 / (1 + np.exp(log_p[j] - log_p[i]))
            kl = r[i, j] * np.log(r[i, j] / mu) + r[j, i] * np.log(r[j, i] / (1 - mu))
            total += (counts[i] + counts[j]) * kl
        return total

    found = minimize(divergence, np.zeros(len(r)), method="BFGS", options={"gtol": 1e-9})
    return np.exp(found.x) / np.exp(found.x).sum()


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (3, 1), (6, 2)])
def test_minimizes_the_divergence(k, seed):
    pairwise = random_pairwise(seed, k)
    counts = np.random.default_rng(seed).integers(3, 40, size=k)
    p = couple_by_divergence(pairwise, counts)
    expected = [by_minimizer(r, counts) for r in pairwise]
    np.testing.assert_allclose(p, expected, atol=2e-6)


def test_two_classes_are_the_pair():
    r = np.array([1e-9, 1e-6, 0.3, 0.5, 1.0])
    pairwise = np.zeros((5, 2, 2))
    pairwise[:, 0, 1], pairwise[:, 1, 0] = r, 1 - r
    p = couple_by_divergence(pairwise, [30, 5])
    np.testing.assert_allclose(p[:, 0], r, atol=2e-10)
    np.testing.assert_allclose(p[0, 0], r[0], rtol=1e-3)


def test_consistent_pairs_are_reproduced_whatever_the_counts():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), size=20)
    pairwise = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple_by_divergence(pairwise, rng.integers(1, 9, 5)), p, atol=1e-10)


def test_certainties_that_contradict_each_other():
    circle = np.array([[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]])
    order = np.triu(np.ones((3, 3)), 1)
    p = couple_by_divergence([circle, order], [4, 4, 4])
    np.testing.assert_allclose(p, [[1 / 3] * 3, [1, 0, 0]], atol=1e-9)
