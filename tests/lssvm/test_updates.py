"""Rows removed and added, against a solution of the other system."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, solve
from looms.lssvm.updates import Bordered

N, MU = 16, 0.02
RNG = np.random.default_rng(4)
X = RNG.standard_normal((N, 3))
K = RBF(0.4)(X)
Y = RNG.standard_normal((N, 2))
WEIGHT = RNG.uniform(0.3, 3.0, N)
WEIGHT /= WEIGHT.mean()


def system_of(rows, intercept, K=K, mu=MU):
    zeta = WEIGHT[rows]
    mean = zeta.mean()  # λ = n μ / ζ is that of all rows
    return Bordered.of(
        solve(
            *(K[np.ix_(rows, rows)], Y[rows], mu * N / len(rows) / mean),
            sample_weight=zeta / mean,
            fit_intercept=intercept,
        )
    )


def check(ours, rows, intercept):
    theirs = system_of(rows, intercept)
    for name in ("P", "share", "corner", "alpha", "loo_residuals", "y", "zeta", "mu"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-10)
    assert_allclose(ours.fitted(), theirs.fitted(), rtol=1e-9, atol=1e-10)
    for one, other in zip(ours.expansion[:2], theirs.expansion[:2], strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", [[3], [0, 7, 8], list(range(12))])
def test_without_rows_is_the_solution_of_the_others(rows, intercept):
    whole = system_of(np.arange(N), intercept)
    check(whole.without(np.array(rows)), np.delete(np.arange(N), rows), intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("m", [1, 5])
def test_with_rows_is_the_solution_of_all(m, intercept):
    old, new = np.arange(N - m), np.arange(N - m, N)
    known = system_of(old, intercept)
    ours = known.with_rows(
        K[np.ix_(new, old)], K[np.ix_(new, new)], Y[new], WEIGHT[new] / WEIGHT[old].mean()
    )
    check(ours, np.arange(N), intercept)
    check(ours.without(new), old, intercept)


def test_with_rows_keeps_its_digits_where_the_kernel_is_nearly_constant():
    flat, old, new = RBF(1e-4)(X), np.arange(N - 5), np.arange(N - 5, N)
    before, whole = (system_of(rows, True, flat, 1e-6) for rows in (old, np.arange(N)))
    weight = WEIGHT[new] / WEIGHT[old].mean()
    more = before.with_rows(flat[np.ix_(new, old)], flat[np.ix_(new, new)], Y[new], weight)
    assert_allclose(more.loo_residuals, whole.loo_residuals, rtol=0, atol=1e-9)


def test_what_leaves_no_system_is_refused():
    whole = system_of(np.arange(N), True)
    with pytest.raises(NotPositiveDefiniteError, match=r"leverage of .* at mu = 0.02 that"):
        whole.without(np.arange(N))
    with pytest.raises(NotPositiveDefiniteError, match=r"positive definite at mu = 0.02\."):
        whole.with_rows(K[:1], -9.0 * np.eye(1), Y[:1], np.ones(1))
    whole.P[4, 4] = 1e-18
    with pytest.raises(NotPositiveDefiniteError, match="leverage of sample 3"):
        whole.without([0])
