"""The criterion by features is that of the kernel matrix, and so is the machine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pairwise import pairwise

from looms import KernelClassifier, KernelRegressor
from looms.kernels import Linear
from looms.selection._objective import FeaturesObjective, Objective, objective_of
from looms.units import Units

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)) + 3.0
Y = np.where(X[:, 0] + RNG.normal(size=N) > 3.0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("criterion", "cv", "fit_intercept"),
    pairwise(["press", "cross_entropy"], [None, 5, "5x2"], [True, False]),
)
def test_values_and_gradients_are_those_of_the_kernel_matrix(criterion, cv, fit_intercept):
    options = {"kernel": "linear", "criterion": criterion}
    options |= {"units": Units.of(cv, Y, np.arange(N) // 2)}
    options |= {"sample_weight": RNG.uniform(0.5, 2.0, N), "fit_intercept": fit_intercept}
    ours, theirs = objective_of(X, Y, **options), Objective(X, Y, **options)
    assert isinstance(ours, FeaturesObjective)
    assert_allclose(ours.theta0, theirs.theta0, rtol=1e-12)
    assert_allclose(ours.bounds, theirs.bounds, rtol=1e-12)
    for theta in (ours.theta0, ours.theta0 + 5.0):
        assert_allclose(ours(theta)[0], theirs(theta)[0], rtol=1e-9)
        assert_allclose(ours(theta)[1], theirs(theta)[1], rtol=1e-7, atol=1e-12)
    moved = theirs.along_mu(np.zeros(0), theirs.theta0 + np.arange(3.0))
    for a, b in zip(ours.along_mu(np.zeros(0), ours.theta0 + np.arange(3.0)), moved, strict=True):
        assert_allclose([a.value, a.standard_error], [b.value, b.standard_error], rtol=1e-9)
    part = ours.subset(np.arange(0, N, 2))
    assert_allclose(part(part.theta0)[0], theirs.subset(np.arange(0, N, 2))(part.theta0)[0])


@pytest.mark.parametrize("machine", [KernelClassifier, KernelRegressor])
def test_a_machine_of_few_features_is_that_of_its_kernel_matrix(machine):
    ours = machine("linear").fit(X, Y)
    theirs = machine("precomputed").fit(X @ X.T, Y)
    value, tolerance = theirs.selection_.value, 0.1 * theirs.selection_.standard_error
    assert ours.selection_.value < value + tolerance
    given = KernelClassifier("linear", mu=ours.mu_).fit(X, Y)
    known = KernelClassifier("precomputed", mu=ours.mu_).fit(X @ X.T, Y)
    assert_allclose(given.loo_.outputs, known.loo_.outputs, rtol=1e-8)
    assert_allclose(given.decision_function(X), known.decision_function(X @ X.T), rtol=1e-7)
    assert_allclose(ours.loo_.outputs, given.loo_.outputs, rtol=1e-10)


@pytest.mark.slow
def test_many_rows_take_no_matrix_of_rows():
    many = RNG.normal(size=(40_000, 3))  # 12 GB if it did
    y = many[:, 0] + RNG.normal(size=len(many)) > 0
    machine = KernelClassifier(Linear()).fit(many, y)
    assert abs(machine.evaluate(nested=False)["accuracy"] - 0.75) < 0.01
    assert machine.predict(many[:10]).shape == (10,)
