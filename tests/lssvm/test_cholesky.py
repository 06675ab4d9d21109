"""The fit itself, and the derivative of a criterion with respect to the kernel matrix."""

import pickle
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.kernel_ridge import KernelRidge

from looms.criteria import DIFFERENTIABLE
from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, solve
from looms.lssvm._system import LeverageError, RangeError
from looms.lssvm.cholesky import solve_in_place

N = 9
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
K = RBF(0.3)(X)
K.flags.writeable = False
LABELS = np.where(X[:, 0] + 0.7 * RNG.standard_normal(N) > 0, 1.0, -1.0)
WEIGHTS = {"unweighted": np.ones(N), "weighted": RNG.uniform(0.3, 3.0, N)}
TARGETS = {
    "one": LABELS,
    "column": LABELS[:, None],
    "three": np.column_stack([LABELS, -LABELS, np.where(X[:, 1] > 0, 1.0, -1.0)]),
}
MU = 0.02


@pytest.mark.parametrize(("weights", "targets"), list(product(WEIGHTS, TARGETS)))
def test_solves_the_bordered_system(weights, targets):
    weight, y = WEIGHTS[weights], TARGETS[targets]
    machine = solve(K, y, MU, sample_weight=weight)
    M = K + np.diag(N * MU / weight)
    assert machine.fit.alpha.shape == y.shape
    assert_allclose(M @ machine.fit.alpha + machine.fit.intercept, y, rtol=1e-12, atol=1e-12)
    assert_allclose(machine.fit.alpha.sum(axis=0), 0.0, atol=1e-12)
    C = np.block([[M, np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    assert_allclose(machine.p, np.diag(np.linalg.inv(C))[:N], rtol=1e-10)


def test_intercept_is_shaped_like_a_target():
    assert isinstance(solve(K, LABELS, MU).fit.intercept, float)
    assert solve(K, TARGETS["column"], MU).fit.intercept.shape == (1,)
    assert solve(K, TARGETS["three"], MU).fit.intercept.shape == (3,)
    assert solve(K, LABELS, MU, fit_intercept=False).fit.intercept == 0.0


@pytest.mark.parametrize(("weights", "targets"), list(product(WEIGHTS, TARGETS)))
def test_without_intercept_is_scikit_learns_kernel_ridge(weights, targets):
    weight, y = WEIGHTS[weights], TARGETS[targets]
    machine = solve(K, y, MU, sample_weight=weight, fit_intercept=False)
    theirs = KernelRidge(alpha=N * MU, kernel="precomputed").fit(K, y, weight)
    assert_allclose(K @ machine.fit.alpha, theirs.predict(K), rtol=1e-10, atol=1e-12)
    assert_array_equal(machine.fit.intercept, np.zeros(y.shape[1:]))


def test_minimizes_the_penalized_loss(numerical_gradient):
    weight = WEIGHTS["weighted"]
    machine = solve(K, LABELS, MU, sample_weight=weight)

    def loss(parameters):
        alpha, b = parameters[:-1], parameters[-1]
        f = K @ alpha + b
        return 0.5 * alpha @ K @ alpha + weight @ (LABELS - f) ** 2 / (2 * MU * N)

    optimum = np.append(machine.fit.alpha, machine.fit.intercept)
    assert_allclose(numerical_gradient(loss, optimum), 0.0, atol=1e-9)


def test_scaling_weights_is_scaling_mu():
    weight = WEIGHTS["weighted"]
    ours = solve(K, LABELS, MU, sample_weight=weight)
    theirs = solve(K, LABELS, 5 * MU, sample_weight=5 * weight)
    assert_allclose(ours.fit.alpha, theirs.fit.alpha, rtol=1e-11)
    assert_allclose(ours.loo.outputs, theirs.loo.outputs, rtol=1e-11)


def test_solve_in_place_reads_the_lower_triangle_and_uses_the_memory():
    buffer = np.asfortranarray(np.where(np.tri(N), K, np.nan))
    machine = solve_in_place(buffer, LABELS, MU, np.ones(N))
    assert_allclose(machine.loo.outputs, solve(K, LABELS, MU).loo.outputs, rtol=1e-13)
    G, _ = machine.contract(np.ones(N))
    assert np.shares_memory(G, buffer)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e300, 1e160])
@pytest.mark.parametrize("i", [0, 4, N - 1])
def test_overflown_kernel_matrix_is_not_positive_definite(value, i):
    buffer = np.array(K, order="F")
    buffer[i, i] = value
    with pytest.raises(NotPositiveDefiniteError):
        solve_in_place(buffer, LABELS, MU, np.ones(N))


# The gradient ------------------------------------------------------------


def random_slope(loo):
    return RNG.standard_normal(loo.y.shape)


def slope_of_h(sign):
    """∂J/∂f for which every h_i = −(∂J/∂f_i) r_i / p_i has the given sign."""
    return lambda loo: -sign * np.sign(loo.residuals) * RNG.uniform(0.5, 2.0, loo.y.shape)


def zero(loo):
    return np.zeros(loo.y.shape)


def half_zero(loo):
    slope = random_slope(loo)
    slope[::2] = 0.0
    return slope


def one_only(loo):
    slope = np.zeros(loo.y.shape)
    slope[4] = 1.0
    return slope


SLOPES = {
    "mixed": random_slope,
    "positive h": slope_of_h(1.0),
    "negative h": slope_of_h(-1.0),
    "zero": zero,
    "half zero": half_zero,
    "one sample": one_only,
}


def check_contraction(criterion, slope, y, weight, fit_intercept, numerical_gradient):
    """G and slope_mu against differences of ``criterion`` of the leave-one-out outputs."""

    def value(matrix, mu):
        return criterion(
            solve(matrix, y, mu, sample_weight=weight, fit_intercept=fit_intercept).loo
        )

    machine = solve(K, y, MU, sample_weight=weight, fit_intercept=fit_intercept)
    G, slope_mu = machine.contract(slope)
    G = np.tril(G) + np.tril(G, -1).T
    rows, cols = np.tril_indices(N)

    def perturbed(lower):
        E = np.zeros((N, N))
        E[rows, cols] += lower / 2
        E[cols, rows] += lower / 2
        return value(K + E, MU)

    expected = numerical_gradient(perturbed, np.zeros(len(rows)), 2e-4)
    assert_allclose(G[rows, cols], expected, rtol=1e-6, atol=1e-8 * max(np.abs(G).max(), 1e-3))
    (expected_mu,) = numerical_gradient(lambda mu: value(K, mu[0]), [MU], 1e-3 * MU)
    assert_allclose(slope_mu, expected_mu, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("slopes", "weights", "targets", "fit_intercept"),
    pairwise(SLOPES, WEIGHTS, TARGETS, [True, False]),
)
def test_contraction_of_linear_functions(
    slopes, weights, targets, fit_intercept, numerical_gradient
):
    weight, y = WEIGHTS[weights], TARGETS[targets]
    machine = solve(K, y, MU, sample_weight=weight, fit_intercept=fit_intercept)
    slope = SLOPES[slopes](machine.loo)
    check_contraction(
        lambda loo: np.sum(slope * loo.outputs), slope, y, weight, fit_intercept, numerical_gradient
    )


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("targets", ["one", "three"])
def test_contraction_of_criteria(name, targets, numerical_gradient):
    weight, y, criterion = WEIGHTS["weighted"], TARGETS[targets], DIFFERENTIABLE[name]
    judged = np.arange(N) % 3 + 0.0  # weights of its own, zeros among them
    loo = solve(K, y, MU, sample_weight=weight).loo
    # The hinge has kinks where t f = 1; no difference below crosses one.
    assert np.abs(1 - loo.y * loo.outputs).min() > 1e-3
    slope = criterion.evaluate(loo.y, loo.outputs, judged).slope
    check_contraction(
        lambda loo: criterion.evaluate(loo.y, loo.outputs, judged).value,
        slope,
        y,
        weight,
        True,
        numerical_gradient,
    )


def test_scratch_changes_nothing():
    slope = RNG.standard_normal(N)
    G, slope_mu = solve(K, LABELS, MU).contract(slope)
    scratch = np.full((N, N), np.nan, order="F")
    G_scratch, slope_mu_scratch = solve(K, LABELS, MU).contract(slope, scratch)
    assert_array_equal(np.tril(G_scratch), np.tril(G))
    assert slope_mu_scratch == slope_mu


def test_slope_is_not_changed(read_only):
    for slope in (np.ones(N), np.ones((N, 3), order="F")):
        y = TARGETS["one" if slope.ndim == 1 else "three"]
        solve(K, y, MU).contract(read_only(slope))


def test_contracting_twice_is_refused():
    machine = solve(K, LABELS, MU)
    outputs = machine.loo.outputs.copy()
    machine.contract(np.ones(N))
    with pytest.raises(RuntimeError, match="used up by an earlier contract"):
        machine.contract(np.ones(N))
    assert_array_equal(machine.loo.outputs, outputs)
    assert_allclose(machine.fit.alpha, solve(K, LABELS, MU).fit.alpha)


@pytest.mark.parametrize("weight", [1e-16, 1e-20, 1e-30])
def test_a_sample_beside_which_the_others_vanish(weight):
    """Without it the ridge of the others is all there is, and that is lost beside its own."""
    zeta = np.where(np.arange(N) == 4, 1.0, weight)
    zeta *= N / zeta.sum()
    with pytest.raises(NotPositiveDefiniteError, match="weight or leverage of sample 4") as caught:
        solve(np.zeros((N, N)), np.arange(N, dtype=float), 1.0, sample_weight=zeta)
    assert caught.value.mu == 1.0


def test_what_lies_above_the_diagonal_is_not_computed_with():
    K = np.asfortranarray(X @ X.T)
    expected, expected_mu = solve(K, LABELS, MU).contract(LABELS)
    bits = K.view(np.uint64)
    bits[np.triu_indices(N, 1)] = 0x7FF0000000000001  # a nan that arithmetic warns of
    found, found_mu = solve_in_place(K, LABELS, MU, np.ones(N)).contract(LABELS)
    assert_allclose(np.tril(found), np.tril(expected), rtol=1e-10, atol=1e-12)
    assert found_mu == pytest.approx(expected_mu, rel=1e-10)


@pytest.mark.parametrize("unit", [1.0, 1e-220, 1e220])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("mu", [1e90, 9e106, 1e147])
def test_the_limit_of_a_large_mu(mu, fit_intercept, unit):
    y = unit * np.random.default_rng(0).normal(size=(12, 2))
    solution = solve(np.eye(12), y, mu, fit_intercept=fit_intercept)
    others = (y.sum(axis=0) - y) / 11 if fit_intercept else np.zeros_like(y)
    np.testing.assert_allclose(solution.loo.outputs / unit, others / unit, atol=1e-14)


@pytest.mark.parametrize("mu", [1e150, 1e250, 1e308])
def test_a_mu_out_of_range_is_refused_by_name(mu):
    with pytest.raises(NotPositiveDefiniteError, match=r"squares .* overflow.*smaller mu"):
        solve(np.eye(12), np.arange(12.0), mu)


@pytest.mark.parametrize("mu", [1e-155, 1e-300])
def test_a_mu_whose_inverse_overflows_is_refused_by_name(mu):
    with pytest.raises(NotPositiveDefiniteError, match=r"inverse, overflow.*larger mu"):
        solve(np.zeros((12, 12)), np.arange(12.0), mu)


@pytest.mark.parametrize(
    "error", [NotPositiveDefiniteError(0.1), RangeError(0.1, 1e200), LeverageError(0.1, 3)]
)
def test_errors_come_through_a_process_with_their_message(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
