"""Gram matrices and contractions by blocks against whole matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from looms.kernels import (
    ARD,
    RBF,
    Boolean,
    Function,
    Laplacian,
    Linear,
    Normalized,
    Polynomial,
    _gram,
)
from looms.kernels._gram import GramBlocks, contract_lower, expansion, gram_into
from looms.kernels._samples import Pairs, Samples

RNG = np.random.default_rng(0)


def shifted_dot(A, B):
    return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T) + 1.0


KERNELS = {
    "linear": Linear(),
    "normalized quadratic": Normalized(Polynomial(2)),
    "rbf": RBF(),
    "laplacian": Laplacian(),
    "ard": ARD(),
    "nested": 0.5 * RBF() + Normalized(Boolean() * Linear()) + ARD(),
    "normalized function": Normalized(Function(shifted_dot)),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def check_blocks(kernel, X):
    n = X.shape[0]
    blocks = GramBlocks(X, kernel.uses)
    kernel = kernel.started(blocks.samples)
    expected = kernel(X)
    K = np.full((n, n), np.nan, order="F")
    for _ in range(4):  # what is kept is as it was computed, and stays so
        gram_into(K, kernel, blocks)
        assert_allclose(np.tril(K), np.tril(expected), rtol=1e-11, atol=1e-12)
    G = RNG.standard_normal((n, n))
    G += G.T
    below = np.where(np.tri(n), G, np.nan)  # nothing above the diagonal is read
    assert_allclose(
        contract_lower(below, kernel, blocks),
        kernel.contract(X, G),
        rtol=1e-9,
        atol=1e-10 * np.abs(G * expected).sum(),
    )


@each_kernel
def test_sizes_around_the_block(kernel, monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 5)
    for n in (1, 2, 4, 5, 6, 9, 10, 11):
        check_blocks(kernel, RNG.standard_normal((n, 3)))


@each_kernel
def test_sparse(kernel, monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 5)
    dense = RNG.standard_normal((13, 6)) * (RNG.random((13, 6)) < 0.4)
    check_blocks(kernel, sp.csr_array(dense))


@each_kernel
def test_real_block_size(kernel):
    assert _gram._BLOCK < 300
    check_blocks(kernel, RNG.standard_normal((300, 3)))


def test_kept_quantities_are_views_of_one_matrix_from_the_third_pass_on(monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 4)
    blocks = GramBlocks(RNG.standard_normal((6, 2)), frozenset({"dot"}))
    first, second, *later = ([pairs.dot for _, _, pairs in blocks] for _ in range(4))
    assert not any(np.shares_memory(a, b) for a, b in zip(first, second, strict=True))
    assert all(np.shares_memory(a, b) for a, b in zip(*later, strict=True))
    assert_array_equal(first[0], later[0][0])


def test_samples_are_neither_copied_nor_changed(read_only):
    X = read_only(RNG.standard_normal((6, 2)))
    blocks = GramBlocks(X, RBF().uses)
    assert np.shares_memory(blocks.samples.X, X)
    K = np.zeros((6, 6), order="F")
    gram_into(K, RBF(0.5), blocks)
    G = read_only(np.eye(6))
    contract_lower(G, RBF(0.5), blocks)
    assert_array_equal(G, np.eye(6))


@each_kernel
@pytest.mark.parametrize(
    ("shape", "convert"), [((7,), np.asarray), ((7, 1), sp.csr_array), ((7, 3), np.asarray)]
)
def test_expansion_by_blocks_of_rows(kernel, shape, convert, monkeypatch):
    blocks = GramBlocks(convert(RNG.standard_normal((7, 3))), frozenset())
    basis, X, alpha = blocks.samples, RNG.standard_normal((11, 3)), RNG.standard_normal(shape)
    kernel = kernel.started(basis)
    expected = kernel.values(Pairs(Samples(convert(X), center=basis.center), basis)) @ alpha
    for block in (1, 256):  # two rows at a time, and all of them
        monkeypatch.setattr(_gram, "_BLOCK", block)
        ours = expansion(kernel, convert(X), basis, alpha)
        assert ours.shape == (11, *shape[1:])
        assert_allclose(ours, expected, rtol=1e-11, atol=1e-12)
