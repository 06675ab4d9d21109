"""The prior over hyper-parameters."""

import numpy as np
import pytest

from looms.optimize._search import Point
from looms.selection._objective import HyperPrior, Objective

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
Y = X[:, 0] + 0.3 * rng.normal(size=30)


def bowl(theta):
    """A positive function of kernel parameters and μ, as a point."""
    away = theta - np.array([2.0, -1.0, 0.5])
    return Point(theta, float(1 + away @ away), 0.1, 2 * away)


class TestPenalized:
    prior = HyperPrior(np.array([0.5, 1.0]))

    def test_gradient(self, numerical_gradient):
        theta = np.array([1.0, -2.0, 0.3])
        exact = self.prior.penalized(bowl(theta), 20).gradient
        expected = numerical_gradient(lambda t: self.prior.penalized(bowl(t), 20).value, theta)
        np.testing.assert_allclose(exact, expected, rtol=1e-9)

    def test_value_is_the_documented_one(self):
        theta = np.array([1.5, -1.0, 4.0])
        omega = 0.5 * (1.0**2 + 2.0**2)
        expected = np.log(bowl(theta).value) + 2 / 20 * np.log(omega + 2 * 2)
        assert self.prior.penalized(bowl(theta), 20).value == pytest.approx(expected)

    def test_standard_error_is_that_of_the_logarithm(self):
        theta = np.array([1.5, -1.0, 4.0])
        point = self.prior.penalized(bowl(theta), 20)
        assert point.standard_error == pytest.approx(0.1 / bowl(theta).value)

    def test_nothing_to_regularize(self):
        point = Point(np.zeros(1), 3.0, 0.1, np.ones(1))
        assert HyperPrior(np.zeros(0)).penalized(point, 20) is point


class TestInAnObjective:
    def test_center_is_the_start_in_any_units(self):
        plain = Objective(X, Y, kernel="ard", prior=True)
        scaled = Objective(X * [1e3, 1, 1, 1e-3], Y, kernel="ard", prior=True)
        shift = np.array([1.0, -1.0, 0.5, 2.0, 0.7])
        expected = plain(plain.theta0 + shift)[0]
        assert scaled(scaled.theta0 + shift)[0] == pytest.approx(expected)

    def test_a_subset_keeps_the_prior(self):
        objective = Objective(X, Y, kernel="ard", prior=True)
        assert objective.subset(np.arange(10)).prior is objective.prior
        assert Objective(X, Y, kernel="ard").prior is None
