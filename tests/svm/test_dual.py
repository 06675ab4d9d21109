"""Solutions to machine precision, from every start."""

import pickle

import numpy as np
import pytest
from sklearn.svm import SVC

from looms.svm import IndefiniteKernelError, NotConvergedError, _active_set, dual
from looms.svm.dual import solve

X4 = np.array([-2.0, -1.0, 1.0, 3.0])


def wide_problem():
    """A linear kernel of features of scales 1 to 5000: large C are out of reach."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6)) * np.array([1, 5, 50, 500, 2000, 5000])
    return X @ X.T, np.where(X[:, 0] + rng.standard_normal(150) > 0, 1.0, -1.0)


@pytest.mark.parametrize("seed", range(12))
def test_kkt_conditions(seed, random_problem, kkt_residual):
    K, y, C = random_problem(seed, 120)
    solution = solve(K, y, C)
    residual = kkt_residual(K, y, C, solution.alpha, solution.outputs)
    assert residual <= 1e-8
    assert solution.kkt_residual <= 1e-8
    np.testing.assert_allclose(
        K @ (y * solution.alpha) + solution.intercept, solution.outputs, rtol=1e-9, atol=1e-7
    )
    assert abs(solution.duality_gap) <= 1e-9 * (1 + solution.alpha.sum())
    inside = (solution.alpha > 0) & (solution.alpha < C)
    assert set(solution.margin) == set(np.flatnonzero(inside))


@pytest.mark.parametrize("seed", range(6))
def test_the_start_does_not_matter(seed, random_problem):
    K, y, C = random_problem(seed)
    expected = solve(K, y, C)
    starts = {
        "zero": np.zeros(len(y)),
        "infeasible": np.full(len(y), 2 * C.max()),
        "another C": solve(K, y, C / 2),
        "the same": expected,
    }
    for start in starts.values():
        found = solve(K, y, C, start=start)
        np.testing.assert_allclose(found.outputs, expected.outputs, rtol=1e-8, atol=1e-7)
    assert found.n_changes == 0


def test_arguments_stay_as_they_are(read_only):
    y = np.sign(X4)
    solution = solve(read_only(np.outer(X4, X4)), read_only(y), read_only(np.full(4, 10.0)))
    np.testing.assert_allclose(solution.alpha, [0, 0.5, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(solution.outputs, X4, atol=1e-12)


def test_intercept_without_free_samples_is_that_of_libsvm():
    x = np.array([-3.0, -1.0, 0.5, 2.5])
    K, y = np.outer(x, x), np.array([-1.0, 1.0, -1.0, 1.0])
    solution = solve(K, y, 1e-3)
    svc = SVC(kernel="precomputed", C=1e-3, tol=1e-10).fit(K, y)
    assert len(solution.margin) == 0
    assert solution.intercept == pytest.approx(svc.intercept_[0], abs=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_scale_of_the_kernel(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y, K = np.sign(X[:, 0] + 0.5 * rng.standard_normal(30)), X @ X.T
    expected = solve(K, y, 1.0)
    found = solve(K * scale, y, 1.0 / scale)
    np.testing.assert_allclose(found.outputs, expected.outputs, atol=1e-7)
    np.testing.assert_allclose(found.alpha * scale, expected.alpha, atol=1e-6)
    assert found.duality_gap * scale == pytest.approx(expected.duality_gap, abs=1e-9)


BAD = {
    "K must be a square": {"K": np.ones((4, 3))},
    "K must be finite": {"K": np.full((4, 4), np.nan)},
    "K must be symmetric": {"K": np.triu(np.ones((4, 4)))},
    "one label per row": {"y": [1.0, -1.0]},
    "labels -1 and 1": {"y": [0.0, 1.0, 1.0, 0.0]},
    "Both classes": {"y": np.ones(4)},
    "a sample with positive C": {"C": [1.0, 1.0, 0.0, 0.0]},
    "C must be a number": {"C": np.ones(3)},
    "C must be finite and not": {"C": [-1.0, 1.0, 1.0, 1.0]},
    "start must be": {"start": np.ones(3)},
    "C must be zero or, itself": {"C": 1e-310},
    "C must be zero or, .* K, at least": {"K": 1e-200 * np.outer(X4, X4), "C": 1e-100},
    "The largest value of K": {"K": 1e-320 * np.eye(4)},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input(message):
    arguments = {"K": np.outer(X4, X4), "y": np.sign(X4), "C": 1.0} | BAD[message]
    with pytest.raises(ValueError, match=message):
        solve(**arguments)


def test_what_does_not_converge_says_so(random_problem, monkeypatch):
    monkeypatch.setattr(_active_set._ActiveSet, "_widened", lambda *_: False)
    monkeypatch.setattr(_active_set, "by_libsvm", lambda problem: 0 * problem.y)
    K, y, C = random_problem(7)
    with pytest.raises(NotConvergedError, match=r"duality gap is .* lower C") as caught:
        solve(K, y, C, start=np.zeros(len(y)))
    assert caught.value.kkt_residual > 1e-3
    assert caught.value.duality_gap > 1e-3
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("C", [1e4, 1e6, 1e8, 1e20])
def test_what_rounding_leaves_unsolved_is_no_solution(C):
    K, y = wide_problem()
    with pytest.raises(NotConvergedError, match="scale the features") as caught:
        solve(K, y, C)
    assert caught.value.kkt_residual > 1e-5


def test_the_residual_says_what_rounding_took():
    K, y = wide_problem()
    assert 1e-9 < solve(K, y, 1.0).kkt_residual <= 1e-5


@pytest.mark.parametrize(("scale", "C"), [(1e200, 1e200), (1e200, 1.0), (1.0, 1e250)])
def test_products_beyond_the_range_of_numbers(scale, C):
    with pytest.raises(NotConvergedError, match="beyond the range"):
        solve(scale * np.outer(X4, X4), np.sign(X4), C)


@pytest.mark.parametrize(("scale", "C"), [(1.0, 1e-270), (1e-270, 1.0), (1e-100, 1e-170)])
def test_the_smallest_numbers_are_solved(scale, C):
    solution = solve(scale * np.outer(X4, X4), np.sign(X4), C)
    np.testing.assert_array_equal(solution.alpha, C)


@pytest.mark.parametrize("start", [None, np.zeros(30)], ids=["cold", "given"])
@pytest.mark.parametrize("shift", [1e-3, 0.5])
def test_an_indefinite_kernel_is_refused(shift, start):
    """Its KKT conditions hold at points that are no minimum."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((30, 2))
    y = np.sign(x[:, 0] + rng.standard_normal(30))
    K = np.exp(-((x[:, None] - x) ** 2).sum(-1)) - shift * np.eye(30)
    smallest = np.linalg.eigvalsh(K - K.mean(0) - K.mean(1)[:, None] + K.mean())[0]
    with pytest.raises(IndefiniteKernelError, match="Clip or flip") as caught:
        solve(K, y, 10.0, start=start)
    assert caught.value.smallest == pytest.approx(smallest)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_negative_distances_are_a_kernel_of_coefficients_of_sum_zero():
    """Indefinite, but not where it counts; and the same machine as by inner products."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((30, 3))
    y = np.sign(x[:, 0] + rng.standard_normal(30))
    K = -0.5 * ((x[:, None] - x) ** 2).sum(-1)
    assert np.linalg.eigvalsh(K)[0] < -1
    found, expected = solve(K, y, 1.0), solve(x @ x.T, y, 1.0)
    np.testing.assert_allclose(found.outputs, expected.outputs, atol=1e-9)


def test_samples_of_no_weight_may_have_any_kernel(random_problem):
    K, y, C = random_problem(1)
    part = np.arange(len(y)) % 4 != 3
    expected = solve(K, y, C * part)
    odd = K.copy()
    odd[3, 3] -= 5.0  # a sample of no weight
    np.testing.assert_allclose(solve(odd, y, C * part).alpha, expected.alpha, atol=1e-8)
    with pytest.raises(IndefiniteKernelError):
        solve(odd, y, C)


def test_a_solution_as_start_vouches_for_its_own_kernel_only(random_problem, monkeypatch):
    checked = []
    check = dual.check_convex
    monkeypatch.setattr(dual, "check_convex", lambda p: checked.append(1) or check(p))
    K, y, C = random_problem(1)
    half = solve(K, y, C * (np.arange(len(y)) % 2))
    whole = solve(K, y, C, start=half)  # of more samples
    assert len(checked) == 2
    solve(K, y, 2 * C, start=whole)
    assert len(checked) == 2
    with pytest.raises(IndefiniteKernelError):
        solve(K - 0.1 * np.eye(len(y)), y, C, start=whole)
