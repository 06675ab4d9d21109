"""Linear, polynomial, Boolean and Tanimoto kernels against scikit-learn and their formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel

from looms.kernels import Boolean, Linear, Polynomial, Tanimoto
from looms.kernels._samples import Samples

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((9, 4)), RNG.standard_normal((5, 4))
BINARY = (RNG.random((12, 7)) < 0.4).astype(float)


def test_linear():
    assert_allclose(Linear()(X, Z), linear_kernel(X, Z), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_polynomial(degree):
    theirs = polynomial_kernel(X, Z, degree=degree, gamma=1.0, coef0=0.7)
    assert_allclose(Polynomial(degree, c=0.7)(X, Z), theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("gamma", [1e-9, 0.3, 1.0, 5.0])
def test_boolean(gamma):
    assert_allclose(Boolean(gamma)(X, Z), (1 + gamma) ** (X @ Z.T), rtol=1e-13)


def test_tanimoto_of_bits_is_one_minus_the_distance_of_jaccard():
    bits, others = (np.vstack([part, np.zeros(7)]) for part in (BINARY[:8], BINARY[8:]))
    expected = 1.0 - cdist(bits.astype(bool), others.astype(bool), "jaccard")
    assert_allclose(Tanimoto()(bits, others), expected, rtol=1e-15)
    assert expected[-1, -1] == 1.0  # two samples of zeros


def test_tanimoto_of_counts():
    A, B = np.array([[2.0, 0.0, 1.0]]), np.array([[1.0, 3.0, 0.0], [4.0, 0.0, 2.0]])
    assert_allclose(Tanimoto()(A, B), [[2 / (5 + 10 - 2), 10 / (5 + 20 - 10)]], rtol=1e-15)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_tanimoto_refuses_scaled_fingerprints(convert):
    with pytest.raises(ValueError, match=r"Tanimoto compares fingerprints.* down to -0\.\d+"):
        Tanimoto()(convert(BINARY - BINARY.mean(axis=0)))


@pytest.mark.parametrize("degree", [0, -1, 2.0, 2.5, "two", None])
def test_degree_must_be_a_positive_integer(degree):
    with pytest.raises(ValueError, match="Polynomial: degree must be a positive integer"):
        Polynomial(degree, c=1.0)(X)


def test_starts():
    mean = np.square(X).sum(axis=1).mean()
    assert_allclose(Polynomial().started(Samples(X)).c, mean, rtol=1e-14)
    assert_allclose(Boolean().started(Samples(X)).gamma, 1 / mean, rtol=1e-14)
    assert Polynomial().started(Samples(np.zeros((3, 2)))).c == 1.0
    assert Boolean().started(Samples(np.zeros((3, 2)))).gamma == 1.0
