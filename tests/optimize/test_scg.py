"""What is particular to scaled conjugate gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.optimize._minimize import minimize
from looms.optimize._search import Outcome, Point


def quadratic(p, condition, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((p, p)))
    A = Q * np.geomspace(1.0, condition, p) @ Q.T
    start = rng.standard_normal(p)

    def function(theta, *, gradient=True):
        return Point(theta, float(0.5 * theta @ A @ theta), 1e-10, A @ theta)

    return function, start


@pytest.mark.parametrize("p", [1, 2, 5, 10, 20])
def test_quadratic_takes_about_p_iterations(p):
    function, start = quadratic(p, condition=20.0)
    bounds = np.tile([-np.inf, np.inf], (p, 1))
    search = minimize(function, start, bounds, optimizer="scg", tolerance=0.0, max_iter=p + 2)
    assert_allclose(search.best.theta, 0.0, atol=1e-5)
    # A gradient and a curvature each.
    assert search.n_evaluations <= 2 * (p + 2) + 1


@pytest.mark.parametrize("seed", range(8))
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
    search = minimize(function, start, bounds, optimizer="scg", max_iter=50)
    thetas = np.array([point.theta for point in search.history])
    distances = np.abs(thetas[:, None] - thetas).max(axis=2)
    distances[np.diag_indices(len(thetas))] = np.inf
    assert distances.min() > 0


def test_negative_curvature_is_left_behind():
    def function(theta, *, gradient=True):
        return Point(theta, float(np.sum(theta**4 - 2 * theta**2)), 1e-9, 4 * theta**3 - 4 * theta)

    bounds = np.tile([-5.0, 5.0], (2, 1))
    search = minimize(function, np.array([0.1, -0.1]), bounds, optimizer="scg")
    assert_allclose(search.best.theta, [1.0, -1.0], atol=1e-3)


def test_a_gradient_that_lies_ends_without_progress():
    def function(theta, *, gradient=True):
        return Point(theta, float(theta @ theta), 1e-6, -2 * theta)

    search = minimize(function, np.ones(2), np.tile([-9.0, 9.0], (2, 1)), optimizer="scg")
    assert search.outcome is Outcome.NO_PROGRESS
    assert search.best.value == 2.0
