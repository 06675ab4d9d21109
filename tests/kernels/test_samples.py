"""Samples, pairs and what a user may give for them."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from looms import KernelClassifier, KernelRegressor
from looms.kernels import ARD, RBF, Boolean, Linear, _samples
from looms.kernels._samples import (
    Pairs,
    Samples,
    as_matrix,
    center_of,
    samples_of,
    square_norms,
    training_rows,
    variances,
)

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("center", [None, np.array([1.0, -2.0, 0.5])])
def test_dot_and_distances(convert, center):
    rows, cols = (Samples(convert(A), center=center) for A in (X, Z))
    pairs = Pairs(rows, cols)
    assert_allclose(pairs.dot, X @ Z.T, rtol=1e-12, atol=1e-14)
    assert_allclose(pairs.squared_distances, euclidean_distances(X, Z) ** 2, rtol=1e-10)
    assert_allclose(pairs.manhattan_distances, manhattan_distances(X, Z), rtol=1e-12)
    assert_allclose(rows.square_norms, np.square(X).sum(axis=1), rtol=1e-14)


def test_distances_are_never_negative_and_zero_on_the_diagonal():
    far = Samples(np.repeat(X, 2, axis=0) + 1e8)
    D = Pairs(far, far).squared_distances
    assert D.min() == 0
    assert_array_equal(np.diag(D), np.zeros(14))


def test_manhattan_distances_of_sparse_and_dense_samples_and_of_wide_indices():
    S = sp.csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    for rows, cols in ((S, Z), (X, sp.csr_matrix(Z)), (S, sp.csr_array(Z))):
        ours = Pairs(Samples(rows), Samples(cols)).manhattan_distances
        assert_allclose(ours, manhattan_distances(X, Z), rtol=1e-14)
        assert ours.flags.f_contiguous


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


def clusters():
    """Samples of two clusters far apart, and a column that half of the samples have."""
    near = np.random.default_rng(1).standard_normal((12, 3))
    near[6:] += 1e6
    near[::2, 1] = 0.0
    return near


def nested_clusters():
    """Clusters in clusters, with copies of rows."""
    draw = np.random.default_rng(3)
    rows = draw.integers(0, 2, (60, 4)) @ np.diag([1e5, 1e4, 1e2, 1.0])
    return np.vstack([rows, rows[:20] + 1e-2 * draw.standard_normal((20, 4))])


FAR = {
    "nested clusters": nested_clusters(),
    "far from zero": X + 1e6,
    "far from zero and wide": np.column_stack([X + 1e6, 1e-3 * X - 1e5]),
    "clusters far apart": clusters(),
    "one row far away": np.vstack([X, 1e8 + X[:1]]),
}


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("samples", FAR.values(), ids=FAR)
def test_distances_far_from_zero_keep_their_digits(samples, convert):
    exact = np.square(samples[:, None] - samples[None]).sum(axis=-1)
    X = convert(samples)
    for rows, cols in (samples_of(X, None), samples_of(X, X.copy())):
        pairs = Pairs(rows, cols)
        assert_allclose(pairs.squared_distances, exact, rtol=1e-8)
        theirs = np.abs(samples[:, None] - samples).sum(axis=-1)
        assert_allclose(pairs.manhattan_distances, theirs, rtol=1e-14)
    for kernel in (RBF(0.3), ARD(0.3)):
        assert_allclose(kernel(X), np.exp(-0.3 * exact), atol=1e-9)


def test_centring_keeps_sparse_samples_sparse():
    S = sp.random(200, 50, density=0.05, random_state=0, format="csr")
    assert Samples(S, center=center_of(S)).centered is S
    full = sp.csr_array(sp.hstack([S, np.full((200, 1), 1e6)]))
    assert Samples(full, center=center_of(full)).centered.nnz <= full.nnz


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", [RBF(0.3), ARD(0.3), Linear(), Boolean(0.5)])
def test_features_whose_squares_overflow_are_refused(kernel, convert):
    for samples in (1e151 * X, -1e300 * X):
        with pytest.raises(ValueError, match=r"features go up to .* squares overflow: scale"):
            kernel(convert(samples))
        with pytest.raises(ValueError, match="squares overflow: scale the features"):
            KernelClassifier(kernel, loss="hinge").fit(convert(samples), X[:, 0] > 0)
        with pytest.raises(ValueError, match="squares overflow: scale the features"):
            KernelRegressor(kernel, mu=1e-3).fit(convert(samples), X[:, 0])
        with pytest.raises(ValueError, match="squares overflow: scale the features"):
            KernelRegressor(kernel).fit(convert(samples), X[:, 0])


@pytest.mark.slow
def test_a_row_far_away_does_not_make_all_pairs_close():
    samples = np.random.default_rng(2).standard_normal((1500, 10))
    samples[7] += 1e3
    pairs = Pairs(*samples_of(samples, None))
    tracemalloc.start()
    D = pairs.squared_distances
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * D.nbytes


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_clusters_are_not_taken_pair_by_pair(convert, monkeypatch):
    squared = []

    def counted(A, scale=None):
        squared.append(A.shape[0])
        return square_norms(A, scale)

    samples = np.random.default_rng(2).standard_normal((400, 3))
    samples[:200] += 1e6
    pairs = Pairs(*samples_of(convert(samples), None))
    monkeypatch.setattr(_samples, "square_norms", counted)
    assert_allclose(
        pairs.squared_distances, np.square(samples[:, None] - samples).sum(axis=-1), rtol=1e-8
    )
    assert sum(squared) < 10 * 400


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", [RBF(), ARD(), Linear()])
def test_learning_from_features_whose_squares_vanish_is_refused(kernel, convert):
    for samples in (1e-141 * X, -1e-300 * X):
        for machine in (KernelRegressor(kernel, mu=1e-3), KernelRegressor(kernel)):
            with pytest.raises(ValueError, match=r"only up to .* squares vanish: scale the feat"):
                machine.fit(convert(samples), X[:, 0])
        with pytest.raises(ValueError, match="squares vanish: scale the features"):
            KernelClassifier(kernel, loss="hinge").fit(convert(samples), X[:, 0] > 0)


def test_a_polynomial_whose_values_vanish_is_refused():
    with pytest.raises(
        ValueError, match=r"Polynomial: x·x .* power 3 vanishes: scale the features"
    ):
        KernelRegressor("cubic").fit(1e-60 * X, X[:, 0])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_scale_for_a_feature_whose_squares_vanish_is_refused(convert):
    samples = convert(X * [1.0, 1e-155, 1.0])
    with pytest.raises(ValueError, match=r"ARD: feature 1 goes only up to .*: scale it"):
        KernelRegressor("ard").fit(samples, X[:, 0])
    assert np.isfinite(KernelRegressor(mu=1e-3).fit(samples, X[:, 0]).predict(samples)).all()


def test_tiny_kernel_matrices_and_tiny_new_samples_are_no_features_that_vanish():
    K = 1e-145 * np.eye(7)
    assert np.isfinite(KernelRegressor("precomputed", mu=1e-146).fit(K, X[:, 0]).dual_coef_).all()
    assert np.isfinite(KernelRegressor(mu=1e-3).fit(X, X[:, 0]).predict(1e-200 * Z)).all()


def test_all_rows_in_order_are_the_samples_themselves_and_others_a_part():
    K = X @ X.T
    assert training_rows(K, np.arange(len(K)), True) is K
    assert training_rows(X, np.arange(len(X)), False) is X
    for rows in (np.arange(len(K))[::-1], np.array([0, 2]), np.arange(len(K) - 1)):
        assert_array_equal(training_rows(K, rows, True), K[np.ix_(rows, rows)])
        assert_array_equal(training_rows(X, rows, False), X[rows])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_variances_of_columns_with_zeros_constants_and_weights(convert):
    columns = np.column_stack([X[:, 0], np.maximum(X[:, 1], 0.0), np.full(7, 0.1), np.zeros(7)])
    assert_allclose(variances(convert(columns)), np.var(columns, axis=0), rtol=1e-12, atol=1e-30)
    weight = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 3.0, 1.0])
    repeated = np.repeat(columns, weight.astype(int), axis=0)
    theirs = np.var(repeated, axis=0)
    assert_allclose(variances(convert(columns), weight), theirs, rtol=1e-12, atol=1e-30)
    assert (variances(convert(columns), weight)[2:] == 0).all()
