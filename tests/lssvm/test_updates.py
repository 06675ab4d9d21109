"""Rows removed and added, against a solution of the other system."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, solve
from looms.lssvm.updates import Inverse

N, MU = 16, 0.02
RNG = np.random.default_rng(4)
X = RNG.standard_normal((N, 3))
K = RBF(0.4)(X)
Y = RNG.standard_normal((N, 2))
WEIGHT = RNG.uniform(0.3, 3.0, N)


def inverse_of(rows, intercept):
    n = len(rows)
    solution = solve(
        K[np.ix_(rows, rows)],
        Y[rows],
        MU * N / n,  # λ = n μ / ζ is that of all rows
        sample_weight=WEIGHT[rows],
        fit_intercept=intercept,
    )
    models = solution.models()
    return Inverse(
        models.P,
        models.share,
        models.corner,
        solution.fit.alpha,
        np.zeros(2) + solution.fit.intercept,
    )


def check(ours, rows, intercept):
    theirs = inverse_of(rows, intercept)
    for name in ("P", "share", "corner", "alpha", "intercept", "loo_residuals"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", [[3], [0, 7, 8], list(range(12))])
def test_without_rows_is_the_solution_of_the_others(rows, intercept):
    rest = np.delete(np.arange(N), rows)
    whole = inverse_of(np.arange(N), intercept)
    check(whole.without(np.array(rows), MU), rest, intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("m", [1, 5])
def test_with_rows_is_the_solution_of_all(m, intercept):
    old, new = np.arange(N - m), np.arange(N - m, N)
    own = K[np.ix_(new, new)] + np.diag(N * MU / WEIGHT[new])
    ours = inverse_of(old, intercept).with_rows(K[np.ix_(new, old)], own, Y[new], MU)
    check(ours, np.arange(N), intercept)
    check(ours.without(new, MU), old, intercept)


def test_with_rows_keeps_its_digits_where_the_kernel_is_nearly_constant():
    flat = RBF(1e-4)(X)
    ours, old, new = [], np.arange(N - 5), np.arange(N - 5, N)
    for rows in (old, np.arange(N)):
        solution = solve(flat[np.ix_(rows, rows)], Y[rows], 1e-6 * N / len(rows))
        models, fit = solution.models(), solution.fit
        ours.append(Inverse(models.P, models.share, models.corner, fit.alpha, fit.intercept))
    own = flat[np.ix_(new, new)] + N * 1e-6 * np.eye(5)
    more = ours[0].with_rows(flat[np.ix_(new, old)], own, Y[new], 1e-6)
    assert_allclose(more.loo_residuals, ours[1].loo_residuals, rtol=0, atol=1e-9)


def test_what_leaves_no_system_is_refused():
    whole = inverse_of(np.arange(N), True)
    with pytest.raises(NotPositiveDefiniteError, match=r"leverage of .* at mu = 0.02 that"):
        whole.without(np.arange(N), MU)
    with pytest.raises(NotPositiveDefiniteError, match=r"positive definite at mu = 0.02\."):
        whole.with_rows(K[:1], -np.eye(1), Y[:1], MU)
