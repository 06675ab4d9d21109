"""The minimizer on functions whose minimum is known."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import lsq_linear

from looms.optimize._curvature import difference_inverse_hessian, secant_inverse_hessian
from looms.optimize._minimize import minimize
from looms.optimize._search import Point, StopReason

# A small standard error makes the search go on to the minimum itself.
PRECISE = 1e-7


class Counted:
    """A function that keeps its own record of where it was called."""

    def __init__(self, value, gradient, standard_error=PRECISE):
        self.value, self.gradient, self.standard_error = value, gradient, standard_error
        self.thetas = []

    def __call__(self, theta, *, gradient=True):
        self.thetas.append(theta.copy())
        value = float(self.value(theta))
        if not np.isfinite(value):
            return Point(theta, value, np.inf)
        return Point(theta, value, self.standard_error, self.gradient(theta) if gradient else None)


def quadratic(p, condition=100.0, seed=0, **options):
    """½ (θ − c)ᵀ A (θ − c) + 1, its A and its minimum c."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((p, p)))
    A = Q * np.geomspace(1.0, condition, p) @ Q.T
    center = rng.standard_normal(p)
    function = Counted(
        lambda t: 0.5 * (t - center) @ A @ (t - center) + 1.0,
        lambda t: A @ (t - center),
        **options,
    )
    return function, A, center


def rosenbrock(**options):
    return Counted(
        lambda t: 100 * (t[1] - t[0] ** 2) ** 2 + (1 - t[0]) ** 2,
        lambda t: np.array(
            [
                -400 * t[0] * (t[1] - t[0] ** 2) - 2 * (1 - t[0]),
                200 * (t[1] - t[0] ** 2),
            ]
        ),
        **options,
    )


def box(p, low=-10.0, high=10.0):
    return np.tile([low, high], (p, 1))


@pytest.mark.parametrize("p", [1, 2, 4])
def test_quadratic(p):
    function, _, center = quadratic(p, condition=10.0)
    search = minimize(function, center + 2.0, box(p), max_iter=1000)
    assert_allclose(search.best.theta, center, atol=1e-3)
    assert search.stop_reason in (StopReason.WITHIN_NOISE, StopReason.CONVERGED)


def test_rosenbrock():
    search = minimize(rosenbrock(), np.array([-1.2, 1.0]), box(2), max_iter=1000)
    assert_allclose(search.best.theta, [1.0, 1.0], atol=1e-3)
    assert search.best.value < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_and_their_minimum_is_found(seed):
    p = 4
    function, A, center = quadratic(p, condition=30.0, seed=seed)
    bounds = box(p, -0.3, 0.4)
    search = minimize(function, np.zeros(p), bounds, max_iter=500)
    root = np.linalg.cholesky(A).T
    expected = lsq_linear(root, root @ center, (-0.3, 0.4), tol=1e-14).x
    thetas = np.array([point.theta for point in search.history])
    assert thetas.min() >= -0.3
    assert thetas.max() <= 0.4
    assert_allclose(search.best.theta, expected, atol=1e-4)


def test_start_outside_is_moved_into_the_box():
    function, _, _ = quadratic(2)
    minimize(function, np.array([50.0, -50.0]), box(2, -1.0, 1.0), max_iter=3)
    assert_array_equal(function.thetas[0], [1.0, -1.0])
    assert np.abs(function.thetas).max() <= 1.0


def test_side_of_no_width_is_held():
    function, _, _center = quadratic(2, condition=2.0)
    bounds = np.array([[0.5, 0.5], [-10.0, 10.0]])
    search = minimize(function, np.zeros(2), bounds, max_iter=300)
    assert (np.array(function.thetas)[:, 0] == 0.5).all()
    assert search.best.value < function.value(np.array([0.5, 0.0]))


def test_a_slope_against_a_bound_does_not_slow_the_others():
    alone, _, _ = quadratic(2)
    beside = Counted(
        lambda t: alone.value(t[:2]) - 1e3 * t[2] * (20.0 + t[0]),
        lambda t: np.append(alone.gradient(t[:2]) - [1e3 * t[2], 0.0], -1e3 * (20.0 + t[0])),
    )
    bounds = np.vstack([box(2), [-1.0, 0.0]])
    minimize(alone, np.zeros(2), bounds[:2])
    minimize(beside, np.zeros(3), bounds)
    assert_allclose(np.array(beside.thetas)[:, :2], alone.thetas, atol=1e-12)


def walled(value, gradient, forbidden):
    return Counted(lambda t: np.inf if forbidden(t) else value(t), gradient)


def test_infinite_region_beyond_the_minimum_is_stepped_over():
    # The first steps run into it.
    function = walled(
        lambda t: np.sum((t - 1.0) ** 2), lambda t: 2 * (t - 1.0), lambda t: t.max() > 1.2
    )
    search = minimize(function, np.array([-3.0, 0.9]), box(2), max_iter=300)
    assert_allclose(search.best.theta, [1.0, 1.0], atol=1e-2)
    assert search.n_failures == sum(not np.isfinite(p.value) for p in search.history)


def test_minimum_behind_an_infinite_region_is_approached():
    function = walled(
        lambda t: np.sum((t - 3.0) ** 2), lambda t: 2 * (t - 3.0), lambda t: t[0] + t[1] > 2.0
    )
    search = minimize(function, np.zeros(2), box(2), max_iter=300)
    assert search.n_failures > 0
    assert search.best.value < 18.0 - 2.0
    assert search.best.theta.sum() <= 2.0


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_start_that_cannot_be_evaluated(value):
    function = Counted(lambda t: value, lambda t: np.zeros_like(t))
    search = minimize(function, np.ones(2), box(2))
    assert search.stop_reason is StopReason.NEVER_EVALUATED
    assert search.n_evaluations == search.n_failures == len(function.thetas) == 1
    assert search.n_iterations == 0
    assert_array_equal(search.best.theta, np.ones(2))


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_max_iter(max_iter):
    search = minimize(rosenbrock(), np.array([-1.2, 1.0]), box(2), max_iter=max_iter)
    assert search.stop_reason is StopReason.MAX_ITER
    assert search.n_iterations == max_iter


def test_no_iterations_evaluate_the_start():
    function = rosenbrock()
    search = minimize(function, np.array([-1.2, 1.0]), box(2), max_iter=0)
    assert search.stop_reason is StopReason.MAX_ITER
    assert len(function.thetas) == search.n_evaluations == 1
    assert search.n_iterations == 0
    assert_array_equal(search.best.theta, [-1.2, 1.0])
    assert search.best.gradient is None


def test_callback_sees_every_iteration_and_stops():
    seen = []

    def callback(iteration, best):
        seen.append((iteration, best.value))
        return iteration == 4

    search = minimize(rosenbrock(), np.array([-1.2, 1.0]), box(2), callback=callback)
    assert search.stop_reason is StopReason.CALLBACK
    assert [iteration for iteration, _ in seen] == [1, 2, 3, 4]
    values = [value for _, value in seen]
    assert values == sorted(values, reverse=True)
    assert search.n_iterations == 4
    assert search.best.value == values[-1]


def test_noise_ends_the_search():
    start = np.array([-1.2, 1.0])
    noisy = minimize(rosenbrock(standard_error=100.0), start, box(2))
    precise = minimize(rosenbrock(), start, box(2), max_iter=1000)
    assert noisy.stop_reason is StopReason.WITHIN_NOISE
    assert noisy.n_evaluations < precise.n_evaluations
    assert noisy.best.value <= 24.2


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_a_gain_above_its_own_standard_error_does_not_end_the_search(spread):
    """Values of standard error 100, whose differences have ``spread`` times themselves."""
    function, start = rosenbrock(standard_error=100.0), np.array([-1.2, 1.0])

    def paired(theta, *, gradient=True):
        point = function(theta, gradient=gradient)
        return replace(point, deviations=np.array([60.0, spread * point.value]))

    unpaired = minimize(function, start, box(2))
    search = minimize(paired, start, box(2))
    assert all(point.deviations is None for point in (*search.history, *search.accepted))
    if spread > 1:
        assert search.n_evaluations == unpaired.n_evaluations
    else:
        assert search.best.value < 1e-6 < 1.0 < unpaired.best.value


@pytest.mark.parametrize("seed", range(2))
def test_history_is_complete_and_best_is_its_best(seed):
    rng = np.random.default_rng(seed)
    waves, phases = 3 * rng.standard_normal((3, 2)), rng.uniform(0, 6, 3)
    function = Counted(
        lambda t: np.sin(waves @ t + phases).sum(), lambda t: np.cos(waves @ t + phases) @ waves
    )
    search = minimize(function, rng.standard_normal(2), box(2), max_iter=30)
    assert_array_equal([point.theta for point in search.history], function.thetas)
    assert search.n_evaluations == len(function.thetas)
    values = [point.value for point in search.history]
    assert_array_equal(values, [function.value(theta) for theta in function.thetas])
    assert search.best.value == min(values)
    assert search.best.value <= values[0]
    assert all(point.gradient is None for point in search.history)


@pytest.mark.parametrize("scale", [2.0**-27, 2.0**20])  # powers of two: nothing is rounded
def test_units_of_the_function_do_not_matter(scale):
    def scaled(factor):
        base = rosenbrock()
        return Counted(
            lambda t: factor * base.value(t),
            lambda t: factor * base.gradient(t),
            factor * 1e-4,
        )

    ours, theirs = (
        minimize(scaled(f), np.array([-1.2, 1.0]), box(2), max_iter=25) for f in (1.0, scale)
    )
    assert ours.stop_reason == theirs.stop_reason
    assert ours.n_evaluations == theirs.n_evaluations
    assert_array_equal(ours.best.theta, theirs.best.theta)


def test_arguments_are_not_changed(read_only):
    function, _, _ = quadratic(2)
    start, bounds = read_only([5.0, 5.0]), read_only(box(2, -1.0, 1.0))
    minimize(function, start, bounds, max_iter=5)
    assert_array_equal(start, [5.0, 5.0])


class TestCurvature:
    """What one search knows of the curvature serves the next."""

    def test_secants_of_a_quadratic_are_its_inverse_hessian(self):
        A = np.diag([1.0, 30.0, 400.0]) + 0.5
        points = [Point(t, 0.5 * t @ A @ t, 1.0, A @ t) for t in np.eye(3).cumsum(axis=0)]
        H = secant_inverse_hessian([Point(np.zeros(3), 0.0, 1.0, np.zeros(3)), *points])
        last_step, last_change = np.eye(3)[2], A @ np.eye(3)[2]
        assert_allclose(H @ last_change, last_step, atol=1e-12)
        assert np.linalg.eigvalsh(H).min() > 0

    def test_without_positive_curvature_there_is_none(self):
        hill = [Point(np.full(2, t), -(t**2), 1.0, np.full(2, -2 * t)) for t in (1.0, 2.0)]
        assert secant_inverse_hessian(hill) is None
        assert secant_inverse_hessian(hill[:1]) is None

    @pytest.mark.parametrize(("error", "spread"), [(0.95, 9.0), (0.95, 0.0), (0.6, 9.0)])
    def test_the_last_point_has_no_gradient_where_its_gain_was_promised(self, error, spread):
        """Curvatures that are known but for an ``error``, of a value with a ``spread`` of gains."""
        A = np.diag([1.0, 30.0])

        def bowl(theta, *, gradient=True):
            deviations = np.array([spread * theta[0]])
            point = Point(theta, 0.5 * theta @ A @ theta, 0.4, None, None, deviations)
            if not (gradient(point) if callable(gradient) else gradient):
                return point
            return replace(point, gradient=A @ theta)

        start, H = np.array([0.5, -0.05]), np.linalg.inv(A) / error
        options = {"inverse_hessian": H, "tolerance": 0.05}
        search = minimize(bowl, start, box(2), last_gradient=False, **options)
        ended = search.n_evaluations == 2 and search.accepted[-1].gradient is None
        assert ended == (error == 0.95 and spread > 0)
        assert search.stop_reason is StopReason.WITHIN_NOISE or not ended
        assert search.best.value < 0.02
        assert minimize(bowl, start, box(2), **options).accepted[-1].gradient is not None

    def test_a_known_hessian_finds_the_minimum_at_once(self):
        A = np.diag([1.0, 30.0, 400.0]) + 0.5

        def bowl(theta, *, gradient=True):
            return Point(theta, 0.5 * theta @ A @ theta, 1e-3, A @ theta)

        start = np.array([0.3, -0.02, 0.01])
        informed, blind = (
            minimize(bowl, start, box(3), inverse_hessian=H) for H in (np.linalg.inv(A), None)
        )
        assert informed.best.value < 1e-4
        assert informed.n_evaluations < blind.n_evaluations

    def test_the_box_holds(self):
        def slope(theta, *, gradient=True):
            value = theta @ theta - 6.0 * theta[0]
            return Point(theta, value, 1e-3, 2.0 * theta - [6.0, 0.0])

        limits = np.array([[-1.0, 1.0], [-1.0, 1.0]])
        H = 0.5 * np.array([[1.0, 0.3], [0.3, 1.0]])
        search = minimize(slope, np.array([0.0, 0.5]), limits, inverse_hessian=H)
        assert all((np.abs(point.theta) <= 1.0).all() for point in search.history)
        assert_allclose(search.best.theta, [1.0, 0.0], atol=0.02)

    def test_differences_of_gradients_are_the_inverse_hessian_of_a_quadratic(self):
        A = np.diag([1.0, 30.0, 400.0]) + 0.5

        def bowl(theta, *, gradient=True):
            return Point(theta, 0.5 * theta @ A @ theta, 1e-3, A @ theta)

        at = bowl(np.array([9.9, 0.0, 1.0]))  # nearer to the bound than the step
        H, evaluated = difference_inverse_hessian(bowl, at, box(3), 0.1)
        assert len(evaluated) == 3
        assert all((np.abs(point.theta) <= 10.0).all() for point in evaluated)
        assert_allclose(H, np.linalg.inv(A), rtol=1e-9)

    def test_flat_and_concave_directions_are_not_followed_far(self):
        def saddle(theta, *, gradient=True):
            value = theta[0] ** 2 - theta[1] ** 2
            return Point(theta, value, 1.0, 2.0 * theta * [1.0, -1.0, 0.0])

        H, _ = difference_inverse_hessian(saddle, saddle(np.zeros(3)), box(3), 0.1)
        # Two powers of two along these change the value by 0.1 standard errors.
        assert_allclose(np.diag(H), [0.5, 20.0, 20.0])

    def test_no_curvature_beside_a_wall(self):
        def walled(theta, *, gradient=True):
            if theta[0] > 0.1:
                return Point(theta, np.inf, np.inf)
            return Point(theta, theta @ theta, 1.0, 2.0 * theta)

        H, evaluated = difference_inverse_hessian(walled, walled(np.zeros(2)), box(2), 0.1)
        assert H is None
        assert len(evaluated) == 1

    def test_no_curvature_in_a_box_narrower_than_the_differences(self):
        def bowl(theta, *, gradient=True):
            return Point(theta, theta @ theta, 1.0, 2.0 * theta)

        narrow = np.array([[-9.0, 9.0], [-0.1, 0.1]])
        assert difference_inverse_hessian(bowl, bowl(np.zeros(2)), narrow, 0.1) == (None, [])

    def test_without_tolerance_flat_directions_still_have_an_inverse(self):
        def trough(theta, *, gradient=True):
            return Point(theta, theta[0] ** 2, 1.0, 2.0 * theta * [1.0, 0.0])

        H, _ = difference_inverse_hessian(trough, trough(np.zeros(2)), box(2), 0.0)
        np.linalg.cholesky(H)

    def test_no_curvature_where_all_directions_bend_down(self):
        def hill(theta, *, gradient=True):
            return Point(theta, -theta @ theta, 1.0, -2.0 * theta)

        assert difference_inverse_hessian(hill, hill(np.zeros(2)), box(2), 0.1)[0] is None

    @pytest.mark.parametrize("seed", range(4))
    def test_minimum_on_the_box_is_found_with_a_known_hessian(self, seed):
        rng = np.random.default_rng(seed)
        B, target = rng.normal(size=(6, 3)), rng.normal(size=6) * 3.0
        limits = np.array([[-1.0, 1.0]] * 3)
        expected = lsq_linear(B, target, (-1.0, 1.0), tol=1e-12)

        def function(theta, *, gradient=True):
            r = B @ theta - target
            return Point(theta, 0.5 * r @ r, 1e-2, B.T @ r)

        start = np.clip(rng.normal(size=3), -1.0, 1.0)
        search = minimize(function, start, limits, inverse_hessian=np.linalg.inv(B.T @ B))
        assert search.best.value - expected.cost < 0.2 * 1e-2
