"""What holds for every kernel: one list of kernels drives all of it."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from sklearn.base import clone

from looms.kernels import (
    ARD,
    RBF,
    Boolean,
    Columns,
    Constant,
    Function,
    Hamming,
    HammingARD,
    Laplacian,
    Linear,
    Matern,
    MaternARD,
    Normalized,
    Polynomial,
    PowerExponential,
    PowerExponentialARD,
    Ranked,
    Tanimoto,
    Weighted,
)
from looms.kernels._mapped import Mapped
from looms.kernels._names import KERNEL_NAMES, as_kernel
from looms.kernels._samples import Pairs, Samples

N, D = 14, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * np.array([1.0, 0.5, 2.0, 1.0])
X[RNG.random((N, D)) < 0.4] = 0.0
Z = RNG.standard_normal((5, D))


def scaled_dot(A, B):
    return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T) / 3.0


class OfSquares(Mapped):
    """Kernel of squares, which are never negative."""

    def __init__(self, kernel):
        self.kernel = kernel

    def seen(self, samples):
        X = samples.X
        return Samples(X.multiply(X) if sp.issparse(X) else X * X, start=samples.start)


KERNELS = {
    "linear": Linear(),
    "quadratic": Polynomial(2),
    "cubic at 0.7": Polynomial(3, c=0.7),
    "boolean": Boolean(),
    "tanimoto of squares": OfSquares(Tanimoto()),
    "tanimoto in sums": 0.5 * OfSquares(Tanimoto()) * RBF(0.1) + Linear(),
    "rbf": RBF(),
    "rbf at 0.2": RBF(0.2),
    "rbf fixed": RBF(0.2, "fixed"),
    "laplacian": Laplacian(),
    "ard at gammas": ARD([0.1, 0.2, 0.05, 0.3]),
    "matern 1/2": Matern(0.5, gamma=0.3),
    "matern 3/2": Matern(),
    "matern 3/2 ard": MaternARD(1.5, gammas=[0.1, 0.2, 0.05, 0.3]),
    "matern 5/2 ard": MaternARD(2.5, 0.2),
    "powexp": PowerExponential(),
    "powexp of fixed gamma": PowerExponential(0.3, 0.4, gamma_bounds="fixed"),
    "powexp of fixed power": PowerExponential(0.7, 0.4, power_bounds="fixed"),
    "powexp ard": PowerExponentialARD(),
    "powexp ard at gammas": PowerExponentialARD(0.5, gammas=[0.1, 0.2, 0.05, 0.3]),
    "powexp ard of fixed power": PowerExponentialARD(1.5, 0.2, power_bounds="fixed"),
    "constant": Constant(2.5),
    "function": Function(scaled_dot),
    "normalized linear": Normalized(Linear()),
    "normalized quadratic": Normalized(Polynomial(2, c=0.5)),
    "normalized boolean": Normalized(Boolean(0.4)),
    "normalized function": Normalized(Function(scaled_dot)),
    "weighted sum": 0.5 * RBF(0.1) + 2.0 * Linear(),
    "sum with a number": Boolean(0.2) + 1.5,
    "sum with laplacian": 0.5 * Laplacian() * Linear() + RBF(),
    "product": RBF(0.1) * Polynomial(2, c=1.0),
    "product with ard": ARD([0.1, 0.2, 0.05, 0.3]) * Linear(),
    "fixed part": RBF(0.1, "fixed") * Polynomial(3, c=1.0) + Constant(0.5, "fixed") * Boolean(0.3),
    "sum with powexp ard": PowerExponentialARD(1.2, 0.2) + 0.5 * Matern() * Linear(),
    "hamming": Hamming(),
    "hamming ard": HammingARD(),
    "hamming ard fixed": HammingARD([0.1, 0.2, 0.05, 0.3], "fixed"),
    "some columns": Columns(RBF(), [3, 1]),
    "mixed columns": Columns(PowerExponentialARD(1.2), [2, 0]) * Columns(HammingARD(0.3), [1]),
    "ranked rbf": Ranked(RBF()),
    "ranked mixture": Ranked(Columns(ARD(0.3), [0, 2]) + Linear()) * Ranked(Normalized(Boolean())),
    "weighted": Weighted(PowerExponential(1.2), [0.5, 0.0, 2.0, 1.5]),
    "weighted ard": Weighted(ARD(0.2), [0.5, 0.0, 2.0, 1.5]) + Columns(Weighted(RBF(), [3.0]), [2]),
    "nested": Normalized(0.5 * RBF(0.1) * Linear() + Boolean(0.2)) * (ARD(0.1) + 1.0),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@each_kernel
def test_values(kernel):
    """Symmetric, positive semi-definite, blocks of a whole, and their diagonal alone."""
    K = kernel(X)
    assert K.shape == (N, N)
    assert K.dtype == np.float64
    assert_allclose(K, K.T, rtol=1e-13, atol=1e-13 * np.abs(K).max())
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.abs(K).max() * N
    assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-12, atol=1e-14)
    kernel = kernel.started(Samples(X))
    whole = kernel(np.vstack([Z, X]))
    assert_allclose(kernel(Z, X), whole[:5, 5:], rtol=1e-11, atol=1e-12)
    assert_allclose(kernel(X, Z), whole[5:, :5], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "sparse"), in_turn(KERNELS, [sp.csr_array, sp.csr_matrix, sp.csc_array])
)
def test_sparse_samples_give_dense_values(kernel, sparse):
    kernel = KERNELS[kernel]
    S, T, G = sparse(X), sparse(Z), RNG.standard_normal((N, N))
    for ours, theirs in [
        (kernel(S), kernel(X)),
        (kernel(S, T), kernel(X, Z)),
        (kernel.diag(S), kernel.diag(X)),
        (kernel.contract(S, G), kernel.contract(X, G)),
    ]:
        assert type(ours) is np.ndarray
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)


@each_kernel
def test_contraction_against_differences(kernel, numerical_gradient):
    """Of the square of all pairs, of a rectangle, and of the diagonal."""
    rows, cols = Samples(Z), Samples(X)
    kernel = kernel.started(cols)
    square, G, v = (RNG.standard_normal(shape) for shape in ((N, N), (5, N), N))
    values = np.array([h.value for h in kernel.hyperparameters])
    for function, ours in [
        (lambda k: np.sum(square * k(X)), kernel.contract(X, square)),
        (
            lambda k: np.sum(G * k.values(Pairs(rows, cols))),
            kernel.values_gradient(Pairs(rows, cols), G),
        ),
        (lambda k: v @ k.self_values(cols), kernel.self_values_gradient(cols, v)),
    ]:
        expected = numerical_gradient(
            lambda t, function=function: function(kernel.with_values(t)), values, 1e-3 * values
        )
        assert ours.shape == values.shape
        assert_allclose(ours, expected, rtol=1e-6, atol=1e-9 * np.abs(square * kernel(X)).sum())


@each_kernel
def test_theta_is_log2_and_goes_both_ways(kernel):
    kernel = kernel.started(Samples(X))
    values = [h.value for h in kernel.hyperparameters]
    assert_allclose(kernel.theta, np.log2(values) if values else np.zeros(0), rtol=1e-15)
    assert kernel.theta.dtype == np.float64
    lower = kernel.theta - 0.5 * np.arange(1, len(values) + 1)  # within all bounds
    moved = kernel.with_theta(lower)
    assert_allclose(moved.theta, lower, rtol=1e-14)
    assert [h.name for h in moved.hyperparameters] == [h.name for h in kernel.hyperparameters]
    assert_array_equal(kernel.theta, kernel.with_values(values).theta)  # itself unmoved
    if values:
        assert not np.allclose(moved(X), kernel(X))


@each_kernel
def test_started_fills_in_once_and_a_clone_is_the_same(kernel):
    twin, before = clone(kernel), repr(kernel)
    assert twin is not kernel
    assert repr(twin) == before
    assert_array_equal(twin(X), kernel(X))
    started = kernel.started(Samples(X, center=X.mean(axis=0)))
    assert repr(kernel) == before
    # Once started, other data no longer count.
    assert_array_equal(started.started(Samples(Z)).theta, started.theta)
    assert_array_equal(started(X), kernel(X))


@each_kernel
def test_arguments_stay_as_they_are_and_values_are_the_callers_own(kernel, read_only):
    A, B, G = read_only(X), read_only(Z), read_only(RNG.standard_normal((N, N)))
    rows = Samples(A, center=read_only(X.mean(axis=0)))
    shared = Pairs(rows, rows)
    kernel = kernel.started(rows)
    of_pairs = (shared.dot, shared.squared_distances, shared.manhattan_distances)
    for quantity in (*of_pairs, rows.square_norms):
        quantity.flags.writeable = False
    kernel.values_gradient(shared, G)
    kernel.self_values_gradient(rows, read_only(np.ones(N)))
    assert_array_equal(kernel(A, B), kernel(X, Z))
    assert_array_equal(kernel.contract(A, G), kernel.contract(X, G))
    K, diagonal = kernel.values(shared), kernel.self_values(rows)
    expected = K.copy(), diagonal.copy()
    K[...] = np.nan
    diagonal[...] = np.nan
    assert_array_equal(kernel.values(shared), expected[0])
    assert_array_equal(kernel.self_values(rows), expected[1])


DEGENERATE = {
    "constant feature": np.column_stack([X[:, 0], np.full(N, 3.0)]),
    "constant features": np.full((6, 2), 3.0),
    "duplicates": np.vstack([X[:4], X[:4], X[:4]]),
    "one sample": X[1:2],
    "one zero sample": np.zeros((1, 3)),
    "all zero": np.zeros((5, 3)),
    "a zero sample": np.vstack([np.zeros(D), X]),
    "mostly one point": np.vstack([np.zeros((9, 2)), [[1.0, 2.0]]]),
    "tiny": 1e-8 * X,
    "huge": 1e8 * X,
}

#: Samples that kernels of fingerprints take, made of others.
NONNEGATIVE = {
    **dict.fromkeys(("tanimoto", "normalized_tanimoto"), np.abs),
    "ranked_tanimoto": lambda samples: (samples != 0).astype(float),
}


@pytest.mark.parametrize("name", KERNEL_NAMES[:-1])
def test_degenerate_samples(name):
    kernel = as_kernel(name)
    for data, given in DEGENERATE.items():
        samples = NONNEGATIVE[name](given) if name in NONNEGATIVE else given
        K = kernel(samples)
        assert np.isfinite(K).all(), data
        assert_allclose(kernel.diag(samples), np.diag(K), rtol=1e-12, atol=0, err_msg=data)
        gradient = kernel.contract(samples, np.ones_like(K))
        assert np.isfinite(gradient).all(), data
        started = kernel.started(Samples(samples))
        assert all(h.value > 0 for h in started.hyperparameters), data
        S = sp.csr_array(samples)
        assert_allclose(kernel(S), K, rtol=1e-6, atol=1e-9 * np.abs(K).max(), err_msg=data)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_contraction_forms_no_tensor(convert):
    n, d = 300, 60
    samples = convert(np.random.default_rng(1).standard_normal((n, d)))
    kernel = Normalized(ARD(0.01) + 1.0) * RBF(0.01)
    G = np.ones((n, n))
    assert kernel.contract(samples, G).shape == (d + 2,)
    tracemalloc.start()
    try:
        kernel.contract(samples, G)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * n * n * 8  # a tensor would take 60 matrices
