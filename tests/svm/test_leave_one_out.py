"""Leave-one-out by paths, against machines fitted without each sample."""

import tracemalloc

import numpy as np
import pytest
from sklearn.svm import SVC

from looms.svm import dual
from looms.svm.dual import DualSolution, solve


def refitted(K, y, C, i, kkt_residual):
    """Outputs of the machine without sample i: LIBSVM's solution polished, and checked."""
    rest = np.flatnonzero((np.arange(len(y)) != i) & (C > 0))
    if len(np.unique(y[rest])) == 1:
        return np.full(len(y), y[rest[0]])
    own = K[np.ix_(rest, rest)]
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-6, max_iter=100_000)
    svc.fit(own, y[rest], sample_weight=C[rest])
    start = np.zeros(len(rest))
    start[svc.support_] = np.abs(svc.dual_coef_[0])
    solution = solve(own, y[rest], C[rest], start=start)
    limit = min(1e-7, max(1e-9, 1e-15 * solution.alpha.sum()))
    assert kkt_residual(own, y[rest], C[rest], solution.alpha, solution.outputs) <= limit
    return K[:, rest] @ (y[rest] * solution.alpha) + solution.intercept


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("seed", range(9))
@pytest.mark.slow
def test_against_refitting(seed, random_problem, kkt_residual):
    K, y, C = random_problem(seed, 40)
    outputs, _ = solve(K, y, C).leave_one_out()
    expected = np.array([refitted(K, y, C, i, kkt_residual) for i in range(len(y))])
    np.testing.assert_allclose(outputs.diagonal(), expected.diagonal(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(outputs, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_folds_against_solving_without_them(seed, random_problem):
    K, y, C = random_problem(seed, 40)
    folds = np.random.default_rng(seed).integers(0, 5 if seed % 2 else len(y) // 2, len(y))
    solution = solve(K, y, C)
    without = solution.left_out(folds)
    stays = np.setdiff1d(folds, without.numbers)
    for number in np.unique(folds):
        rest = folds != number
        if len(np.unique(y[rest])) == 1:
            continue
        own = solve(K[np.ix_(rest, rest)], y[rest], C[rest])
        expected = K[:, rest] @ (own.alpha * y[rest]) + own.intercept
        if number in stays:
            np.testing.assert_allclose(solution.outputs, expected, rtol=1e-8, atol=1e-8)
            continue
        (k,) = np.flatnonzero(without.numbers == number)
        np.testing.assert_allclose(without.outputs[k], expected, rtol=1e-8, atol=1e-8)
        outputs = K @ without.coefficients[k] + without.intercepts[k]
        np.testing.assert_allclose(outputs, expected, rtol=1e-7, atol=1e-7)
        assert (without.coefficients[k][~rest] == 0).all()


def test_folds_are_followed_to_their_end(random_problem, monkeypatch):
    K, y, C = random_problem(2)
    solution = solve(K, y, C)
    monkeypatch.setattr(dual, "solution_near", None)
    for n_folds in (2, 3, 10, len(y)):
        solution.left_out(np.arange(len(y)) % n_folds)


def problem(name):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((24, 2))
    y = np.where(x[:, 0] + 0.7 * rng.standard_normal(24) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    C = np.ones(24)
    if name == "all at the bound":
        C[:] = 1e-3
    elif name == "balanced and all at the bound":
        y, C = np.tile([1.0, -1.0], 12), np.full(24, 1e-4)
    elif name == "no bound":
        C[:] = 1e7
    elif name == "every sample four times":
        x, y = np.repeat(x[:6], 4, axis=0), np.repeat(y[:6], 4)
    elif name == "twins of opposite labels":
        x, y = np.repeat(x[:12], 2, axis=0), np.tile([1.0, -1.0], 12)
    elif name == "no kernel":
        x[:] = 0.0
    elif name == "one of a class":
        y[:] = -1.0
        y[0] = 1.0
    elif name == "on a lattice":
        x = np.round(x)
    elif name == "weights zero":
        C[::3] = 0.0
    return x @ x.T, y, C


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "all at the bound",
        "balanced and all at the bound",
        "no bound",
        "every sample four times",
        "twins of opposite labels",
        "no kernel",
        "one of a class",
        "on a lattice",
        "weights zero",
    ],
)
@pytest.mark.slow
def test_degenerate_problems(name, kkt_residual):
    K, y, C = problem(name)
    outputs, _ = solve(K, y, C).leave_one_out()
    expected = np.array([refitted(K, y, C, i, kkt_residual) for i in range(len(y))])
    np.testing.assert_allclose(outputs, expected, atol=1e-7)


@pytest.mark.slow
def test_paths_get_to_their_ends_by_themselves(random_problem, monkeypatch):
    def solved_anew(*arguments):
        raise AssertionError("a path did not get to its end")

    dependent = (965, 1259)  # samples that depend on others up to rounding, on the way
    solutions = [solve(*random_problem(seed, 40)) for seed in (*range(16), *dependent)]
    monkeypatch.setattr(dual, "solution_near", solved_anew)
    for solution in solutions:
        solution.leave_one_out()


def test_paths_that_fail_are_solved_anew(random_problem, monkeypatch):
    solution = solve(*random_problem(11))
    single = np.arange(len(solution.y))
    expected = solution.left_out(single)
    follow = dual.follow

    def failing(*arguments):
        ends = follow(*arguments)
        ends.beta[::2] = 0.3 * ends.beta[::2]
        ends.finished[1::2] = False
        return ends

    monkeypatch.setattr(dual, "follow", failing)
    again = solution.left_out(single)
    np.testing.assert_allclose(again.outputs, expected.outputs, atol=1e-7)
    np.testing.assert_allclose(again.intercepts, expected.intercepts, atol=1e-7)


@pytest.mark.parametrize("name", ["plain", "balanced and all at the bound", "on a lattice"])
def test_blocks_of_paths_change_nothing(name, monkeypatch):
    solution = solve(*problem(name))
    expected = solution.leave_one_out()[0]
    monkeypatch.setattr(dual, "_BLOCK", 100)
    found = solution.leave_one_out()[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
def test_blocks_bound_the_memory_of_paths(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 2))
    y = np.where(x[:, 0] + rng.standard_normal(120) > 0, 1.0, -1.0)
    solution = solve(x @ x.T, y, 0.01)
    peaks = []
    for block in (1 << 20, 1 << 10):
        monkeypatch.setattr(dual, "_BLOCK", block)
        tracemalloc.start()
        solution.leave_one_out()
        peaks.append(tracemalloc.get_traced_memory()[1] / (8 * 120**2))
        tracemalloc.stop()
    assert peaks[0] > 5
    assert peaks[1] < 0.7 * peaks[0]


def test_samples_far_from_the_margin_are_watched_too(random_problem, monkeypatch):
    solution = solve(*random_problem(11))
    expected = solution.leave_one_out()[0].diagonal()
    n = len(expected)
    monkeypatch.setattr(DualSolution, "_watched", lambda *_: [np.empty(0, dtype=int), np.arange(n)])
    np.testing.assert_allclose(solution.leave_one_out()[0].diagonal(), expected, atol=1e-9)
