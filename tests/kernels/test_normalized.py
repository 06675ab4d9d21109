"""Normalized kernels: cosines, and samples that have no direction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looms.kernels import RBF, Boolean, Linear, Normalized, Polynomial

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((9, 4)), RNG.standard_normal((5, 4))


@pytest.mark.parametrize("kernel", [Polynomial(3, c=0.5), Boolean(0.4), 2.0 * RBF(0.2) + Linear()])
def test_formula(kernel):
    expected = kernel(X, Z) / np.sqrt(np.outer(kernel.diag(X), kernel.diag(Z)))
    assert_allclose(Normalized(kernel)(X, Z), expected, rtol=1e-13, atol=1e-15)
    assert_allclose(np.diag(Normalized(kernel)(X)), 1.0, rtol=1e-14)


def test_a_zero_sample_stays_zero():
    samples = np.vstack([X, np.zeros(4)])
    kernel = Normalized(Linear())
    K = kernel(samples)
    assert_array_equal(K[-1], np.zeros(10))
    assert_array_equal(K[:, -1], np.zeros(10))
    assert_array_equal(kernel.diag(samples), [1.0] * 9 + [0.0])


def test_zero_sample_adds_nothing_to_a_gradient(numerical_gradient):
    samples = np.vstack([X, np.zeros(4)])
    kernel = Normalized(RBF(0.3) * Linear())
    G = RNG.standard_normal((10, 10))
    G[-1] = G[:, -1] = 1e6
    expected = numerical_gradient(lambda v: np.sum(G * kernel.with_values(v)(samples)), [0.3])
    assert_allclose(kernel.contract(samples, G), expected, rtol=1e-6)
