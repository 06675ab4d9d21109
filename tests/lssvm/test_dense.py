"""The machine of a whole kernel matrix at its numerical edges, and its derivative in the matrix."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise

from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, dense, solve
from looms.lssvm._system import LeverageError, RangeError
from looms.lssvm.dense import Dense
from looms.lssvm.fit import Fit
from looms.units import Units

N, MU = 15, 0.02
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
K = RBF(0.3)(X)
K.flags.writeable = False
Y = np.column_stack([np.sign(X[:, 0]), RNG.standard_normal((N, 2))])
ONES = np.ones(N)
WEIGHT = RNG.uniform(0.3, 3.0, N)
UNITS = {
    "rows": Units.rows(N),
    "groups": Units.of_numbers([0, 1, 1, 2, 0, 3, 3, 3, 3, 4, 5, 1, 6, 0, 7]),
    "halves": Units.of_numbers(np.arange(N) % 2),
    "2x4": Units.of_numbers(np.stack([RNG.permutation(N) % 4 for _ in range(2)])),
    "some": Units.of_numbers(np.where(np.arange(N) % 5 == 0, -1, np.arange(N) // 3)),
}


def full(lower):
    return np.tril(lower) + np.tril(lower, -1).T


def test_minimizes_the_penalized_loss(numerical_gradient):
    machine = solve(K, Y[:, 0], MU, sample_weight=WEIGHT).expansion

    def loss(parameters):
        alpha, b = parameters[:-1], parameters[-1]
        f = K @ alpha + b
        return 0.5 * alpha @ K @ alpha + WEIGHT @ (Y[:, 0] - f) ** 2 / (2 * MU * N)

    optimum = np.append(machine.coefficients[:, 0], machine.intercept)
    assert_allclose(numerical_gradient(loss, optimum), 0.0, atol=1e-9)


@pytest.mark.parametrize("y", [Y[:, 0], Y[:, :1], Y], ids=["one", "column", "three"])
def test_a_fit_is_shaped_like_its_targets(y):
    machine = solve(K, y, MU)
    fit = Fit.of(machine, UNITS["2x4"], y, RBF())
    assert (
        fit.member.dual_coef.shape == fit.loo.outputs.shape == machine.loo.outputs.shape == y.shape
    )
    assert np.shape(fit.member.intercept) == y.shape[1:]
    assert isinstance(fit.member.intercept, float) == (y.ndim == 1)
    assert fit.held_out.shape == (2, *y.shape)
    assert_allclose(fit.mean_held_out.outputs, fit.held_out.mean(axis=0))
    without = solve(K, y, MU, fit_intercept=False).expansion
    assert_array_equal(without.intercept, np.zeros(y[0].size))


def test_leverage_is_the_change_by_the_own_target():
    moved = Y.copy()
    moved[4] += 1.0
    still, other = (solve(K, y, MU, sample_weight=WEIGHT) for y in (Y, moved))
    leverage = still.leverage()
    assert_allclose(other.fitted()[4] - still.fitted()[4], leverage[4], rtol=1e-10)
    assert ((leverage > 0) & (leverage < 1)).all()


# The gradient, whose formula is checked by differences in test_left_out ----------------


def slopes_of(name, e):
    """∂J/∂f, with e_i ∂J/∂f_i of one sign, or of both."""
    size = np.random.default_rng(1).uniform(0.5, 2.0, e.shape)
    return {
        "mixed": np.random.default_rng(2).standard_normal(e.shape),
        "positive": np.sign(e) * size,
        "negative": -np.sign(e) * size,
        "zero": np.zeros(e.shape),
        "half zero": size * (np.arange(N) % 2)[:, None],
        "one row, huge": 1e12 * (np.arange(N) == 4)[:, None] * np.ones(e.shape),
    }[name]


@pytest.mark.parametrize(
    ("slopes", "units", "t", "block"),
    pairwise(
        ["mixed", "positive", "negative", "zero", "half zero", "one row, huge"],
        UNITS,
        [1, 3],
        [1, 3, 13, 128],
    ),
)
def test_contraction_is_its_formula_in_whole_matrices(monkeypatch, slopes, units, t, block):
    monkeypatch.setattr(dense, "_BLOCK", block)
    monkeypatch.setattr(dense, "_COLUMNS", block)
    projection, units = solve(K, Y[:, :t], MU, sample_weight=WEIGHT), UNITS[units]
    e = projection.residuals(units)
    slope = slopes_of(slopes, e) * (units.tested[:, :, None])
    P, v = projection.matrix().copy(), projection.solve(units, -slope)
    assert_array_equal(P, P.T)
    B = np.zeros((N, N))
    for rows, r in zip(units, units.repetition, strict=True):
        half = 0.5 * e[r, rows] @ v[r, rows].T
        B[np.ix_(rows, rows)] += half + half.T
    Pv = P @ v.sum(axis=0)
    expected = P @ B @ P - 0.5 * (Pv @ projection.alpha.T + projection.alpha @ Pv.T)
    scratch = np.full((N, N), np.nan, order="F")
    for given in (None, scratch):
        G, of_mu = projection.contract(units, slope, given)
        assert_allclose(full(G), expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())
        assert_allclose(of_mu, G.diagonal() @ (N / WEIGHT), rtol=1e-12)
    assert np.shares_memory(G, scratch)


def test_one_factorization_serves_any_number_of_verbs():
    """In any order; nothing that is given is changed."""
    projection, slope = solve(K, Y, MU), np.ones((1, N, 3))
    slope.flags.writeable = False
    first = projection.outputs(UNITS["groups"])
    G, _ = projection.contract(UNITS["rows"], slope)
    assert_array_equal(first, projection.outputs(UNITS["groups"]))
    assert_array_equal(np.tril(G), np.tril(projection.contract(UNITS["rows"], slope)[0]))
    late = solve(K, Y, MU)
    assert_allclose(np.tril(late.contract(UNITS["rows"], slope)[0]), np.tril(G), rtol=1e-12)


# Numerical edges -------------------------------------------------------------------------


def test_only_the_lower_triangle_is_computed_with_and_its_memory_is_used():
    buffer = np.array(K, order="F")
    # a nan that arithmetic warns of
    buffer.view(np.uint64)[np.triu_indices(N, 1)] = 0x7FF0000000000001
    ours, theirs = Dense(buffer, Y, MU, ONES), solve(K, Y, MU)
    assert_allclose(ours.loo_residuals, theirs.loo_residuals, rtol=1e-13)
    assert np.shares_memory(ours.matrix(), buffer)
    slope = Y[None]
    for units in UNITS.values():
        (G, of_mu), (G_, of_mu_) = (each.contract(units, slope) for each in (ours, theirs))
        assert_allclose(np.tril(G), np.tril(G_), rtol=1e-10, atol=1e-10)
        assert of_mu == pytest.approx(of_mu_, rel=1e-10)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e300, 1e160])
@pytest.mark.parametrize("i", [0, 4, N - 1])
def test_overflown_kernel_matrix_is_not_positive_definite(value, i):
    buffer = np.array(K, order="F")
    buffer[i, i] = value
    with pytest.raises(NotPositiveDefiniteError):
        Dense(buffer, Y, MU, ONES)


@pytest.mark.parametrize("weight", [1e-16, 1e-20, 1e-30])
def test_a_sample_beside_which_the_others_vanish(weight):
    """Without it the ridge of the others is all there is, and that is lost beside its own."""
    zeta = np.where(np.arange(N) == 4, 1.0, weight)
    zeta *= N / zeta.sum()
    with pytest.raises(NotPositiveDefiniteError, match="weight or leverage of sample 4") as caught:
        solve(np.zeros((N, N)), Y, 1.0, sample_weight=zeta)
    assert caught.value.mu == 1.0


def test_a_unit_without_which_the_machine_is_singular_is_named():
    together = np.isin(np.arange(N), [3, 5, 7])
    heavy = np.where(together, 1e18, 1.0)
    machine = solve(np.zeros((N, N)), Y, 1.0, sample_weight=heavy)
    # Of three samples that outweigh all others any two can be left out, but not the third.
    two = Units.of_numbers(np.where(np.isin(np.arange(N), [3, 5]), 3, np.arange(N)))
    assert np.isfinite(machine.outputs(two)).all()
    three = Units.of_numbers(np.where(together, 3, np.arange(N)))
    with pytest.raises(NotPositiveDefiniteError, match=r"sample 7 .* singular"):
        machine.outputs(three)


@pytest.mark.parametrize(
    ("mu", "fit_intercept", "unit"),
    pairwise([1e90, 9e106, 1e147], [True, False], [1.0, 1e-220, 1e220]),
)
def test_the_limit_of_a_large_mu(mu, fit_intercept, unit):
    y = unit * np.random.default_rng(0).normal(size=(12, 2))
    machine = solve(np.eye(12), y, mu, fit_intercept=fit_intercept)
    others = (y.sum(axis=0) - y) / 11 if fit_intercept else np.zeros_like(y)
    assert_allclose(machine.loo.outputs / unit, others / unit, atol=1e-14)
    folds = np.arange(12) // 4
    outputs = machine.outputs(Units.of_numbers(folds))[0]
    others = np.array([y[folds != k].mean(axis=0) for k in folds]) * fit_intercept
    assert_allclose(outputs / unit, others / unit, atol=1e-14)


@pytest.mark.parametrize(
    ("mu", "remedy"), [(1e150, "smaller mu"), (1e308, "smaller mu"), (1e-155, "larger mu")]
)
def test_a_mu_out_of_range_is_refused_by_name(mu, remedy):
    with pytest.raises(RangeError, match=remedy):
        solve(np.zeros((12, 12)), np.arange(12.0), mu)


@pytest.mark.parametrize(
    "error", [NotPositiveDefiniteError(0.1), RangeError(0.1, 1e200), LeverageError(0.1, 3)]
)
def test_errors_come_through_a_process_with_their_message(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
