"""Gauss–Jordan leave-one-out against refitting, and its operation counts against counting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise

from papers.elimination import gauss_jordan_loo
from papers.flops import cached_flops, plain_flops

N = 12
MU = 0.03


def read_only(array):
    array.flags.writeable = False
    return array


RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
Y = RNG.standard_normal((N, 2))
WEIGHTS = {"unweighted": None, "weighted": read_only(RNG.uniform(0.2, 3.0, N))}
KERNELS = {
    "zero": read_only(np.zeros((N, N))),
    "linear": read_only(X @ X.T),
    "quadratic": read_only((X @ X.T + 1) ** 2),
    "rbf": read_only(np.exp(-((X[:, None] - X) ** 2).sum(axis=2))),
    "indefinite": read_only(X @ np.diag([3.0, -2.0, 1.0]) @ X.T),
}
TARGETS = {
    "one": read_only(Y[:, 0].copy()),
    "column": read_only(Y[:, :1].copy()),
    "two": read_only(Y.copy()),
}
CASES = pairwise(KERNELS, WEIGHTS, [True, False], TARGETS)


def refitted(K, y, mu, weight, fit_intercept):
    """Outputs of n models, each fitted from scratch without its sample."""
    n = len(K)
    lam = n * mu / (np.ones(n) if weight is None else weight)
    outputs = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        M = K[np.ix_(rest, rest)] + np.diag(lam[rest])
        if fit_intercept:
            one = np.ones((n - 1, 1))
            C = np.block([[M, one], [one.T, np.zeros((1, 1))]])
            solution = np.linalg.solve(C, np.concatenate([y[rest], np.zeros_like(y[:1])]))
            outputs.append(K[i, rest] @ solution[:-1] + solution[-1])
        else:
            outputs.append(K[i, rest] @ np.linalg.solve(M, y[rest]))
    return np.array(outputs)


@pytest.mark.parametrize(("kernel", "weights", "fit_intercept", "targets"), CASES)
def test_equals_refitting(kernel, weights, fit_intercept, targets):
    K, weight, y = KERNELS[kernel], WEIGHTS[weights], TARGETS[targets]
    loo = gauss_jordan_loo(K, y, MU, sample_weight=weight, fit_intercept=fit_intercept)
    expected = refitted(K, y, MU, weight, fit_intercept)
    assert_allclose(loo.outputs, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert_array_equal(loo.y, y)
    assert_array_equal(loo.sample_weight, np.ones(N) if weight is None else weight)


def test_predicts_the_mean_of_the_others_by_hand():
    loo = gauss_jordan_loo(np.zeros((3, 3)), [1, 2, 6], 1 / 3)  # lambda = 1
    assert_allclose(loo.outputs, [4.0, 3.5, 1.5], rtol=1e-15)


def test_two_samples_by_hand():
    # Without intercept alpha_j = y_j / (K_jj + 2 mu / zeta_j), and f(x_i) = alpha_j K_ij.
    K = [[2.0, 1.0], [1.0, 3.0]]
    loo = gauss_jordan_loo(K, [4, 12], 0.5, sample_weight=[1, 0.5], fit_intercept=False)
    assert_allclose(loo.outputs, [12 / 5, 4 / 3], rtol=1e-15)
    # With it the one sample left is always met.
    assert_allclose(gauss_jordan_loo(K, [4, 12], 0.5).outputs, [12, 4], rtol=1e-15)


def test_a_zero_pivot_advises_in_the_last_row_too():
    # lambda = 1; without the first sample the system is [[1, 2], [2, 4]]
    last = [[5.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 3.0]]
    # beside a kernel of ones mu is lost: 1 + 3e-20 == 1
    for K, mu, fit_intercept in ((np.ones((3, 3)), 1e-20, True), (last, 1 / 3, False)):
        with pytest.raises(np.linalg.LinAlgError, match="mu"):
            gauss_jordan_loo(K, np.ones(3), mu, fit_intercept=fit_intercept)


EYE, ONES = np.eye(3), np.ones(3)
TILTED = np.array([[1.0, 0.5, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("K", "y", "mu", "weight", "named"),
    [
        (EYE[:2], ONES, 1, None, r"\(2, 3\)"),
        (TILTED, ONES, 1, None, "0.1"),
        (EYE, np.ones((3, 0)), 1, None, r"\(3, 0\)"),
        (EYE, ONES, 1, [1, 0, 1], "sample_weight"),
        (EYE, ONES, np.nan, None, "mu"),
        (EYE * np.nan, ONES, 1, None, "K"),
        (EYE[:1, :1], ONES[:1], 1, None, "two"),
    ],
)
def test_bad_input_is_refused(K, y, mu, weight, named):
    with pytest.raises(ValueError, match=named):
        gauss_jordan_loo(K, y, mu, sample_weight=weight)


def test_asymmetry_by_rounding_is_accepted():
    K = KERNELS["rbf"] + np.triu(np.full((N, N), 1e-12), 1)
    assert_allclose(
        gauss_jordan_loo(K, TARGETS["one"], MU).outputs,
        gauss_jordan_loo(KERNELS["rbf"], TARGETS["one"], MU).outputs,
        rtol=1e-6,
    )


class Loops:
    """Elimination in single operations, each counted."""

    def __init__(self):
        self.flops = 0

    def subtract_multiple(self, A, r, k, last):
        """Row r, right of column k, less the multiple of row k that would clear column k."""
        factor = A[r][k] / A[k][k]
        self.flops += 1
        for c in range(k + 1, last):
            A[r][c] -= factor * A[k][c]
            self.flops += 2

    def eliminate(self, A, steps, above=False):
        m = len(A)
        for k in steps:
            for r in range(m):
                if r > k or (above and r < k):
                    self.subtract_multiple(A, r, k, m + 1)

    def substitute(self, A, above=False):
        m = len(A)
        beta = [0.0] * m
        for k in reversed(range(m)):
            beta[k] = A[k][m]
            for c in range(k + 1, m) if not above else ():
                beta[k] -= A[k][c] * beta[c]
                self.flops += 2
            beta[k] /= A[k][k]
            self.flops += 1
        return beta

    def output(self, row, beta):
        total = row[0] * beta[0]
        self.flops += 1
        for a, b in zip(row[1:], beta[1:], strict=True):
            total += a * b
            self.flops += 2
        return total


def struck_out(A, i):
    return [[a for c, a in enumerate(row) if c != i] for r, row in enumerate(A) if r != i]


def loops_loo(n, method, fit_intercept):
    """Outputs and counted operations of one of the three ways to leave out."""
    K, y = KERNELS["rbf"][:n, :n], Y[:n, 0]
    K1 = np.hstack([K, np.ones((n, 1))]) if fit_intercept else K
    A0 = np.zeros((K1.shape[1], K1.shape[1] + 1))
    A0[:n, :-1], A0[: K1.shape[1], :n], A0[:n, -1] = K1, K1.T, y
    A0[np.diag_indices(n)] += n * MU
    above = method == "above and below"
    loops, outputs, state = Loops(), [], A0.tolist()
    for i in range(n):
        A = struck_out(state, i)
        resumed_at = i if method == "cached" else 0
        loops.eliminate(A, range(resumed_at, len(A)), above)
        outputs.append(loops.output(np.delete(K1[i], i).tolist(), loops.substitute(A, above)))
        if method == "cached" and i < n - 1:
            loops.eliminate(state, [i])
    return outputs, loops.flops


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize(
    ("method", "formula"),
    [
        ("cached", cached_flops),
        ("above and below", plain_flops),
        ("below", lambda n, **border: plain_flops(n, eliminate_above=False, **border)),
    ],
)
def test_flops_are_those_counted_one_by_one(method, formula, n, fit_intercept):
    outputs, flops = loops_loo(n, method, fit_intercept)
    loo = gauss_jordan_loo(KERNELS["rbf"][:n, :n], Y[:n, 0], MU, fit_intercept=fit_intercept)
    assert_allclose(outputs, loo.outputs, rtol=1e-9)
    assert formula(n, fit_intercept=fit_intercept) == flops


def test_flops_ratio_grows_to_six():
    ratios = [plain_flops(n) / cached_flops(n) for n in (20, 40, 60, 100, 200, 300, 400, 4000)]
    assert ratios == sorted(ratios)
    assert 5.98 < ratios[-1] < 6
