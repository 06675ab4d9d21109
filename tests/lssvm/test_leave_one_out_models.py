"""The leave-one-out models against n refits, and those without two samples against n² refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise

from looms.kernels import RBF, Boolean, Linear, Polynomial
from looms.lssvm import NotPositiveDefiniteError, solve

N, M = 13, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
X[3] = X[7]  # a duplicate
X_NEW = RNG.standard_normal((M, 3))
X_NEW[2] = X[1]

KERNELS = {
    "rbf": RBF(0.4),
    "linear": Linear(),
    "cubic": Polynomial(3, 1.0),
    "sum": 0.3 * RBF(2.0) + Boolean(0.2),
}
WEIGHTS = {
    "unweighted": np.ones(N),
    "weighted": RNG.uniform(0.2, 3.0, N),
    "uneven": 10.0 ** RNG.uniform(-2, 2, N),
}
TARGETS = {
    "one": RNG.standard_normal(N),
    "column": RNG.standard_normal((N, 1)),
    "three": RNG.standard_normal((N, 3)),
}
each_case = pytest.mark.parametrize(
    ("kernel", "weights", "targets", "fit_intercept"),
    pairwise(KERNELS, WEIGHTS, TARGETS, [True, False]),
)


def mu_of(kernel):
    return 0.02 * np.mean(KERNELS[kernel].diag(X))


def models(kernel, weights, targets, fit_intercept):
    K = KERNELS[kernel](X)
    return solve(
        K,
        TARGETS[targets],
        mu_of(kernel),
        sample_weight=WEIGHTS[weights],
        fit_intercept=fit_intercept,
    ).models()


def refitted(kernel, weights, targets, fit_intercept, left_out, points):
    """Outputs at points of the machine trained without some samples, λ held."""
    K = KERNELS[kernel]
    rest = np.delete(np.arange(N), left_out)
    y = TARGETS[targets].reshape(N, -1)
    C = np.zeros((len(rest) + 1, len(rest) + 1))
    C[:-1, :-1] = K(X[rest]) + np.diag(N * mu_of(kernel) / WEIGHTS[weights][rest])
    C[-1, :-1] = C[:-1, -1] = 1.0
    right = np.vstack([y[rest], np.zeros((1, y.shape[1]))])
    if not fit_intercept:
        C, right = C[:-1, :-1], right[:-1]
    parameters = np.linalg.solve(C, right)
    features = np.hstack([K(points, X[rest]), np.ones((len(points), int(fit_intercept)))])
    return (features @ parameters).reshape(len(points), *TARGETS[targets].shape[1:])


def assert_close(ours, theirs):
    assert ours.shape == theirs.shape
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


@each_case
def test_outputs_equal_n_refits(kernel, weights, targets, fit_intercept):
    case = kernel, weights, targets, fit_intercept
    ours = models(*case).outputs(KERNELS[kernel](X_NEW, X))
    theirs = np.stack([refitted(*case, [i], X_NEW) for i in range(N)], axis=1)
    assert_close(ours, theirs)


@each_case
def test_changes_equal_refits(kernel, weights, targets, fit_intercept):
    case = kernel, weights, targets, fit_intercept
    whole = refitted(*case, [], X)
    theirs = np.stack([refitted(*case, [i], X) - whole for i in range(N)], axis=1)
    assert_close(models(*case).changes(), theirs)


@pytest.mark.parametrize(
    ("kernel", "weights", "targets", "fit_intercept"),
    pairwise(["rbf", "cubic"], WEIGHTS, TARGETS, [True, False]),
)
def test_pair_residuals_equal_refits_without_two(kernel, weights, targets, fit_intercept):
    case = kernel, weights, targets, fit_intercept
    y = TARGETS[targets]
    theirs = np.array(
        [
            [y[j] - refitted(*case, [j] if i == j else [i, j], X[j : j + 1])[0] for i in range(N)]
            for j in range(N)
        ]
    )
    assert_close(models(*case).pair_residuals(), theirs)


@each_case
def test_residuals_and_leverage(kernel, weights, targets, fit_intercept):
    case = kernel, weights, targets, fit_intercept
    ours = models(*case)
    assert_allclose(ours.residuals, ours.fit.loo.residuals, rtol=1e-9, atol=1e-9)
    # f is linear in y, so that leverage is a difference quotient.
    y, step = TARGETS[targets].copy(), 1.0
    y[4] += step
    K = KERNELS[kernel](X)
    moved, still = (
        solve(K, t, mu_of(kernel), sample_weight=WEIGHTS[weights], fit_intercept=fit_intercept).fit
        for t in (y, TARGETS[targets])
    )
    change = K[4] @ (moved.alpha - still.alpha) + moved.intercept - still.intercept
    assert_allclose(ours.leverage[4], change, rtol=1e-8, atol=1e-10)
    assert (ours.leverage > 0).all()
    assert (ours.leverage < 1).all()


def test_one_column_is_one_target():
    K, y = KERNELS["rbf"](X), TARGETS["one"]
    one, column = (solve(K, t, 0.1).models() for t in (y, y[:, None]))
    assert one.outputs(K).shape == (N, N)
    for name in ("changes", "pair_residuals"):
        assert_array_equal(getattr(one, name)(), getattr(column, name)()[:, :, 0])
    assert_array_equal(one.outputs(K), column.outputs(K)[:, :, 0])


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("left_out", [slice(0, 4), slice(4, 99), slice(12, 13)])
def test_some_left_out(targets, left_out):
    ours = models("rbf", "weighted", targets, True)
    for name in ("changes", "pair_residuals"):
        whole = getattr(ours, name)()
        assert_array_equal(getattr(ours, name)(left_out), whole[:, left_out])


def test_own_outputs_are_those_of_leave_one_out():
    ours = models("sum", "weighted", "three", True)
    at_samples = ours.outputs(KERNELS["sum"](X))
    own = np.arange(N)
    assert_allclose(at_samples[own, own], ours.fit.loo.outputs, rtol=1e-9, atol=1e-11)


def test_the_order_of_memory_does_not_matter():
    ours = models("rbf", "weighted", "one", True)
    K_new = KERNELS["rbf"](X_NEW, X)
    C, F = np.ascontiguousarray(K_new), np.asfortranarray(K_new)
    assert_allclose(ours.outputs(C), ours.outputs(F), rtol=1e-13)
    assert_array_equal(C, K_new)


def test_two_samples_and_an_intercept_leave_nothing_for_pairs():
    both = solve(np.eye(2), np.array([1.0, 2.0]), 0.1).models()
    with pytest.raises(NotPositiveDefiniteError, match="leverage of sample"):
        both.pair_residuals()


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("n_rows", [1, 2, 5, 9])
def test_outputs_by_blocks(targets, n_rows):
    ours = models("rbf", "weighted", targets, True)
    K = KERNELS["rbf"](X_NEW, X)
    blocks = list(ours.output_blocks(K, n_rows))
    assert [len(block) for block in blocks] == [len(K[k : k + n_rows]) for k in range(0, M, n_rows)]
    assert_array_equal(np.concatenate(blocks), ours.outputs(K))
    assert ours.outputs(K[:0]).shape == (0, N, *TARGETS[targets].shape[1:])
