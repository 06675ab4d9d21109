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
    GramBlocks,
    Linear,
    Normalized,
    Polynomial,
    _gram,
    contract_lower,
    gram_into,
)

RNG = np.random.default_rng(0)


def shifted_dot(A, B):
    return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T) + 1.0


KERNELS = [
    Linear(),
    Normalized(Polynomial(2)),
    RBF(),
    ARD(),
    0.5 * RBF() + Normalized(Boolean() * Linear()) + ARD(),
    Normalized(Function(shifted_dot)),
]


def check_blocks(kernel, X):
    n = X.shape[0]
    blocks = GramBlocks(X, kernel.uses)
    kernel = kernel.started(blocks.samples)
    expected = kernel(X)
    K = np.full((n, n), np.nan, order="F")
    for _ in range(2):  # what is kept stays as it is
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


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 4, 5, 6, 9, 10, 11])
def test_sizes_around_the_block(kernel, n, monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 5)
    check_blocks(kernel, RNG.standard_normal((n, 3)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse(kernel, monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 5)
    check_blocks(kernel, sp.random_array((13, 6), density=0.4, format="csr", rng=RNG))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_real_block_size(kernel):
    assert _gram._BLOCK < 300
    check_blocks(kernel, RNG.standard_normal((300, 3)))


def test_blocks_cover_the_lower_triangle_once(monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 4)
    seen = np.zeros((11, 11), dtype=int)
    for rows, cols, pairs in GramBlocks(RNG.standard_normal((11, 2)), frozenset()):
        seen[rows, cols] += 1
        assert pairs.diagonal == (rows == cols)
        assert (rows.start, rows.stop) == (pairs.rows.start, pairs.rows.stop)
    assert (seen[np.tril_indices(11)] == 1).all()


def test_kept_quantities_are_views_of_one_matrix(monkeypatch):
    monkeypatch.setattr(_gram, "_BLOCK", 4)
    blocks = GramBlocks(RNG.standard_normal((6, 2)), frozenset({"dot"}))
    first, again = ([pairs.dot for _, _, pairs in blocks] for _ in range(2))
    assert all(np.shares_memory(a, b) for a, b in zip(first, again, strict=True))


def test_samples_are_neither_copied_nor_changed(read_only):
    X = read_only(RNG.standard_normal((6, 2)))
    blocks = GramBlocks(X, RBF().uses)
    assert np.shares_memory(blocks.samples.X, X)
    K = np.zeros((6, 6), order="F")
    gram_into(K, RBF(0.5), blocks)
    G = read_only(np.eye(6))
    contract_lower(G, RBF(0.5), blocks)
    assert_array_equal(G, np.eye(6))
