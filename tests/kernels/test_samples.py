"""Samples, pairs and what a user may give for them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import euclidean_distances

from looms.kernels import ARD, Pairs, Samples, as_matrix

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("centre", [None, np.array([1.0, -2.0, 0.5])])
def test_dot_and_distances(convert, centre):
    rows, cols = (Samples(convert(A), centre=centre) for A in (X, Z))
    pairs = Pairs(rows, cols)
    assert_allclose(pairs.dot, X @ Z.T, rtol=1e-12, atol=1e-14)
    assert_allclose(pairs.squared_distances, euclidean_distances(X, Z) ** 2, rtol=1e-10)
    assert_allclose(rows.square_norms, np.square(X).sum(axis=1), rtol=1e-14)


def test_distances_are_never_negative_and_zero_on_the_diagonal():
    far = Samples(np.repeat(X, 2, axis=0) + 1e8)
    D = Pairs(far, far).squared_distances
    assert D.min() == 0
    assert_array_equal(np.diag(D), np.zeros(14))


def test_rows_know_their_place():
    samples = Samples(X, centre=X.mean(axis=0))
    part = samples.rows(2, 6).rows(1, 3)
    assert (part.start, part.stop, part.n_samples) == (3, 5, 2)
    assert_array_equal(part.X, X[3:5])
    assert_array_equal(part.centred, samples.centred[3:5])


def test_only_the_same_samples_are_the_diagonal():
    samples = Samples(X)
    assert Pairs(samples, samples).diagonal
    assert not Pairs(samples, Samples(X)).diagonal


def test_given_quantities_are_used():
    samples = Samples(X)
    ones = np.ones((7, 7))
    assert Pairs(samples, samples, dot=ones).dot is ones
    assert Pairs(samples, samples, squared_distances=ones).squared_distances is ones


@pytest.mark.parametrize(
    "convert", [list, np.float32, np.asfortranarray, sp.coo_array, sp.csc_matrix]
)
def test_as_matrix(convert):
    A = np.arange(6.0).reshape(3, 2)
    M = as_matrix(convert(A))
    assert M.dtype == np.float64
    assert_array_equal(M.toarray() if sp.issparse(M) else M, A)


def test_as_matrix_merges_duplicate_entries_of_a_copy():
    S = sp.csr_array((np.ones(4), np.array([0, 0, 1, 1]), np.array([0, 3, 4])), shape=(2, 2))
    assert_array_equal(as_matrix(S).data, [2.0, 1.0, 1.0])
    assert S.nnz == 4
    G = np.ones((2, 2))
    assert_allclose(ARD(0.3).contract(S, G), ARD(0.3).contract(S.toarray(), G), rtol=1e-12)


@pytest.mark.parametrize("A", [1.0, np.ones(3), np.ones((2, 2, 2))])
def test_as_matrix_needs_two_dimensions(A):
    with pytest.raises(ValueError, match="rows of a matrix"):
        as_matrix(A)
