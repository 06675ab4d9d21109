"""Where searches start."""

import numpy as np
import pytest

from looms.kernels import RBF, Linear, PowerExponential
from looms.selection._objective import Objective
from looms.selection._scan import (
    GRID_SHIFTS,
    KERNEL_SHIFTS,
    grid_points,
    starting_points,
)

rng = np.random.default_rng(3)
X = rng.normal(size=(50, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=50)
LABELS = np.where(Y > 0.3, 1.0, -1.0)
WEIGHT = rng.uniform(0.3, 3.0, size=50)


def value(objective, theta):
    return objective.evaluate(theta, gradient=False).value


@pytest.mark.parametrize("criterion", ["press", "wmw"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_best_first_and_one_for_each_kernel(criterion, fit_intercept):
    objective = Objective(
        X, LABELS, criterion=criterion, sample_weight=WEIGHT, fit_intercept=fit_intercept
    )
    points = starting_points(objective, 5)
    values = [value(objective, theta) for theta in points]
    assert values == sorted(values)
    shifts = sorted(theta[0] - objective.theta0[0] for theta in points)
    np.testing.assert_allclose(shifts, KERNEL_SHIFTS)
    np.testing.assert_array_equal(starting_points(objective, 1)[0], points[0])


@pytest.mark.slow
def test_it_is_the_best_point_of_the_scan():
    """The scan by eigenvectors against the objective itself."""
    objective = Objective(X, Y, sample_weight=WEIGHT)
    best = value(objective, starting_points(objective, 1)[0])
    for shift in KERNEL_SHIFTS:
        for log_mu in np.arange(*objective.bounds[-1], 1.0):
            theta = np.array([objective.theta0[0] + shift, log_mu])
            # One power of two between the ridges of the scan may be a little better.
            assert value(objective, theta) > 0.97 * best


def test_kernels_without_hyper_parameters_have_one_start():
    objective = Objective(X, Y, kernel=Linear())
    points = starting_points(objective, 4)
    assert len(points) == 1
    assert len(points[0]) == 1


def test_starts_are_inside_the_box():
    objective = Objective(X, Y, kernel=RBF(gamma=1.0, gamma_bounds=(0.5, 2.0)))
    low, high = objective.bounds.T
    for theta in starting_points(objective, 5):
        assert (low <= theta).all()
        assert (theta <= high).all()


def test_the_prior_counts():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(20, 12)), rng.normal(size=20)
    plain, held = (Objective(X, y, kernel="ard", prior=prior) for prior in (False, True))
    points = starting_points(held, 5)
    values = [value(held, theta) for theta in points]
    assert values == sorted(values)
    assert (points[0] != starting_points(plain, 1)[0]).any()


def test_points_that_cannot_be_evaluated_are_left_out():
    # Indefinite but for large ridges: the scan finds these.
    def indefinite(A, B):
        return A @ B.T - 0.01 * (A[:, None] == B[None]).all(axis=2)

    objective = Objective(X, Y, kernel=indefinite)
    (theta,) = starting_points(objective, 3)
    assert np.isfinite(value(objective, theta))
    assert 50 * 2.0 ** theta[-1] > 0.01
    never = Objective(X, Y, kernel=lambda A, B: -(A @ B.T) * 1e9)
    np.testing.assert_array_equal(starting_points(never, 3), [never.theta0])


def test_the_scan_moves_scales_and_tries_powers():
    objective = Objective(X, Y, kernel=PowerExponential(power=1.3, power_bounds=(0.5, 1.6)))
    n_scan, n_grid = 4 * len(KERNEL_SHIFTS), 4 * len(GRID_SHIFTS)
    for points, n_kernels in (
        (starting_points(objective, n_scan + 1), n_scan),
        (grid_points(objective), n_grid),
    ):
        kernels = np.unique(np.array(points)[:, :2], axis=0)
        assert len(kernels) == n_kernels
        np.testing.assert_allclose(np.unique(np.exp2(kernels[:, 1])), [1.0, 1.3, 1.5, 1.6])
