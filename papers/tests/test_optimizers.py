"""Scaled conjugate gradients and Nelder-Mead on functions whose minimum is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from looms import KernelRegressor, Search
from looms.optimize._search import Point, StopReason
from papers.optimizers import OPTIMIZERS, SearchBy, minimize

each_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS)


def rosenbrock(standard_error=1e-7):
    def function(theta, *, gradient=True):
        a, b = theta
        value = 100 * (b - a**2) ** 2 + (1 - a) ** 2
        slope = np.array([-400 * a * (b - a**2) - 2 * (1 - a), 200 * (b - a**2)])
        return Point(theta, value, standard_error, slope if gradient else None)

    return function


def box(p, low=-10.0, high=10.0):
    return np.tile([low, high], (p, 1))


START = np.array([-1.2, 1.0])


@each_optimizer
def test_rosenbrock(optimizer):
    search = minimize(optimizer, rosenbrock(), START, box(2), max_iter=1000)
    assert_allclose(search.best.theta, [1.0, 1.0], atol=1e-3)
    assert search.best.value < 1e-6


@each_optimizer
def test_minimum_in_a_corner(optimizer):
    target, bounds = np.array([5.0, -5.0]), np.array([[-1.0, 2.0], [-0.5, 3.0]])

    def function(theta, *, gradient=True):
        return Point(theta, float(np.sum((theta - target) ** 2)), 1e-7, 2 * (theta - target))

    search = minimize(optimizer, function, np.zeros(2), bounds, max_iter=500)
    thetas = np.array([point.theta for point in search.history])
    assert (thetas >= bounds[:, 0]).all()
    assert (thetas <= bounds[:, 1]).all()
    assert_allclose(search.best.theta, [2.0, -0.5], atol=1e-3)


@each_optimizer
def test_what_ends_a_search(optimizer):
    def nowhere(theta, *, gradient=True):
        return Point(theta, np.inf, np.inf)

    def fourth(iteration, best):
        return iteration == 4

    search = minimize(optimizer, nowhere, np.ones(2), box(2))
    assert search.stop_reason is StopReason.NEVER_EVALUATED
    search = minimize(optimizer, rosenbrock(), START, box(2), max_iter=5)
    assert (search.stop_reason, search.n_iterations) == (StopReason.MAX_ITER, 5)
    search = minimize(optimizer, rosenbrock(), START, box(2), callback=fourth)
    assert (search.stop_reason, search.n_iterations) == (StopReason.CALLBACK, 4)
    search = minimize(optimizer, rosenbrock(100.0), START, box(2))
    assert search.stop_reason is StopReason.WITHIN_NOISE


@pytest.mark.slow
def test_optimizers_agree_and_are_of_the_search():
    X, y = load_diabetes(return_X_y=True)
    searches = [Search(), *(clone(SearchBy(name)) for name in OPTIMIZERS)]
    found = [KernelRegressor(search=search).fit(X, y).selection_ for search in searches]
    best = min(tuning.value for tuning in found)
    for tuning in found:
        assert tuning.value < best + 0.1 * tuning.standard_error
    assert len({tuning.value for tuning in found}) == 3


def quadratic(p, condition, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((p, p)))
    A = Q * np.geomspace(1.0, condition, p) @ Q.T
    start = rng.standard_normal(p)

    def function(theta, *, gradient=True):
        return Point(theta, float(0.5 * theta @ A @ theta), 1e-10, A @ theta)

    return function, start


@pytest.mark.parametrize("p", [1, 5, 20])
def test_quadratic_takes_about_p_iterations(p):
    function, start = quadratic(p, condition=20.0)
    bounds = np.tile([-np.inf, np.inf], (p, 1))
    search = minimize("scg", function, start, bounds, tolerance=0.0, max_iter=p + 2)
    assert_allclose(search.best.theta, 0.0, atol=1e-5)
    # A gradient and a curvature each.
    assert search.n_evaluations <= 2 * (p + 2) + 1


@pytest.mark.parametrize("seed", range(3))
def test_no_point_is_evaluated_twice(seed):
    rng = np.random.default_rng(seed)
    waves, phases = 2 * rng.standard_normal((4, 3)), rng.uniform(0, 6, 4)

    def function(theta, *, gradient=True):
        if theta[0] > 1.0:
            return Point(theta, np.inf, np.inf)
        angles = waves @ theta + phases
        return Point(theta, float(np.sin(angles).sum()), 1e-8, np.cos(angles) @ waves)

    start = np.append(0.9, rng.standard_normal(2))
    bounds = np.tile([-10.0, 10.0], (3, 1))
    search = minimize("scg", function, start, bounds, max_iter=50)
    thetas = np.array([point.theta for point in search.history])
    distances = np.abs(thetas[:, None] - thetas).max(axis=2)
    distances[np.diag_indices(len(thetas))] = np.inf
    assert distances.min() > 0


def test_negative_curvature_is_left_behind():
    def function(theta, *, gradient=True):
        return Point(theta, float(np.sum(theta**4 - 2 * theta**2)), 1e-9, 4 * theta**3 - 4 * theta)

    bounds = np.tile([-5.0, 5.0], (2, 1))
    search = minimize("scg", function, np.array([0.1, -0.1]), bounds)
    assert_allclose(search.best.theta, [1.0, -1.0], atol=1e-3)
