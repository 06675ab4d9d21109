"""Kernel matrices and plain functions in the place of kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import laplacian_kernel

from looms.kernels import RBF, Function, Normalized, Precomputed, _gram
from looms.kernels._gram import GramBlocks, gram_into

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((9, 3)), RNG.standard_normal((4, 3))
K = RBF(0.5)(X)
CONVERTERS = [np.asarray, sp.csr_array, sp.csr_matrix, sp.csc_array]


@pytest.mark.parametrize("convert", CONVERTERS)
def test_precomputed(convert):
    assert_array_equal(Precomputed()(convert(K)), K)
    assert_array_equal(Precomputed().diag(convert(K)), np.diag(K))
    cross = RBF(0.5)(Z, X)
    assert_array_equal(Precomputed()(convert(cross), convert(K)), cross)
    assert Precomputed().theta.size == Precomputed().contract(convert(K), K).size == 0


@pytest.mark.parametrize("convert", CONVERTERS[:3])
def test_precomputed_by_blocks(convert, monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 4)
    matrix = convert(3.0 * K)
    for kernel, expected in [(Precomputed(), 3.0 * K), (Normalized(Precomputed()), K)]:
        buffer = np.zeros((9, 9), order="F")
        gram_into(buffer, kernel, GramBlocks(matrix, kernel.uses))
        assert_allclose(np.tril(buffer), np.tril(expected), rtol=1e-14)


def test_function():
    kernel = Function(laplacian_kernel)
    assert_allclose(kernel(X, Z), laplacian_kernel(X, Z), rtol=1e-14)
    assert_allclose(kernel.diag(X), np.ones(9), rtol=1e-14)
    assert kernel(X).flags.writeable
    assert kernel.theta.size == 0


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda A, B: A, r"\(9, 3\)"),
        (lambda A, B: (A @ B.T)[:1], r"\(1, 4\)"),
        (lambda A, B: 1.0, r"\(\)"),
        (lambda A, B: (A @ B.T).ravel(), r"\(36,\)"),
        (lambda A, B: B @ A.T, r"\(4, 9\)"),
    ],
)
def test_function_that_returns_a_wrong_shape(function, shape):
    with pytest.raises(ValueError, match="called with 9 and 4 samples and returned shape " + shape):
        Function(function)(X, Z)


@pytest.mark.parametrize("kernel", [Precomputed(), Precomputed() + 0.5 * Precomputed()])
def test_a_precomputed_kernel_is_not_normalized(kernel):
    with pytest.raises(ValueError, match="normalize the matrices before you pass them"):
        Normalized(kernel)(np.eye(3))
