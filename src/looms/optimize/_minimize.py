"""Local minimization of a function in a box, by one of several optimizers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize

from looms._checks import check_known
from looms._typing import Array
from looms.optimize._curvature import Coordinates
from looms.optimize._search import (
    Callback,
    Evaluate,
    Outcome,
    Point,
    Recorder,
    Search,
    SearchStopped,
    free_gradient,
)

_FLAT = 1e-6  # gradient in standard errors of the function: what is left to gain is its square
_NO_LIMIT = 10**9  # of SciPy's own counts: the recorder counts
# Of scaled conjugate gradients.
_SIGMA = 1e-4  # length of the finite difference along the direction, log₂ units
_LAMBDA_MAX = 1e12
_GRADIENT_ZERO = 1e-10


def minimize(
    evaluate: Evaluate,
    theta0: Array,
    bounds: Array,
    *,
    optimizer: str = "lbfgs",
    max_iter: int = 100,
    tolerance: float = 0.1,
    callback: Callback | None = None,
    inverse_hessian: Array | None = None,
) -> Search:
    """Local minimum of a function in a box, from one start.

    Parameters
    ----------
    evaluate : the function, called as ``evaluate(theta, gradient=True)``; an infinite
        value marks a point that cannot be evaluated and is skipped.
    theta0 : (p,) start, moved into the box if it is outside.
    bounds : (p, 2) lower and upper bounds; may be infinite.
    optimizer : "lbfgs", "scg" or "nelder-mead".
    max_iter : largest number of iterations, at least 0; with 0 the start is only evaluated,
        without gradient.
    tolerance : gain, as a fraction of the standard error of the value, that is not worth an
        iteration. The search ends after an iteration that gained less, or at a gradient
        that promises less, unless the gain of the iteration exceeds its own standard error, by
        the ``deviations`` of the points.
    callback : called after every iteration with its number and the best point so
        far; a true result stops the search.
    inverse_hessian : (p, p) inverse Hessian of the function near the start, if known, from
        `difference_inverse_hessian` or `secant_inverse_hessian` of an earlier search on
        a similar function.

    Returns
    -------
    search : record of the search; its best point is never worse than the start.

    Examples
    --------
    >>> import numpy as np
    >>> def bowl(theta, gradient=True):
    ...     return Point(theta, float(theta @ theta), 1e-6, 2 * theta)
    >>> search = minimize(bowl, np.array([3.0, 1.0]), np.array([[-9.0, 9.0]] * 2))
    >>> bool(search.best.value < 1e-6)
    True
    """
    check_known(optimizer, "optimizer", OPTIMIZERS)
    recorder = Recorder(evaluate, bounds, tolerance, max_iter, callback)
    try:
        steps = max_iter > 0 and optimizer != "nelder-mead"
        start = recorder.start(np.clip(theta0, *bounds.T), gradient=steps)
        function = Coordinates(recorder, start, bounds, inverse_hessian)
        if function.follows_curvature:  # it is of another function: at least one step tests it
            recorder.inverse_hessian = inverse_hessian
        else:
            recorder.stop_if_flat(start)
        outcome = OPTIMIZERS[optimizer](function, recorder)
    except SearchStopped as stop:
        outcome = stop.outcome
    return recorder.result(outcome)


def _run_lbfgs(function: Coordinates, recorder: Recorder) -> Outcome:
    last_good, low, high = function.start, function.low, function.high

    def value_and_gradient(z: Array) -> tuple[float, Array]:
        nonlocal last_good
        point = last_good if np.array_equal(z, last_good.theta) else function(z)
        if not np.isfinite(point.value):  # lead the line search back to the last finite point
            away, steepness = z - last_good.theta, 1.0 + abs(last_good.value)
            bowl = last_good.value + steepness * (1.0 + float(away @ away))
            return bowl, 2.0 * steepness * away
        last_good = point
        assert point.gradient is not None
        # The slope of a variable that stays at its bound says nothing of the others' curvature.
        return point.value, free_gradient(z, point.gradient, low, high)

    result = optimize.minimize(
        value_and_gradient,
        function.start.theta,
        method="L-BFGS-B",
        jac=True,
        bounds=optimize.Bounds(low, high),
        callback=lambda _: recorder.iteration_done(),
        options={"ftol": 0.0, "gtol": 1e-8, "maxiter": _NO_LIMIT, "maxfun": _NO_LIMIT},
    )
    # A line search fails at a minimum, too, where values differ by rounding alone.
    assert last_good.gradient is not None
    slope = free_gradient(last_good.theta, last_good.gradient, low, high)
    flat = np.abs(slope).max(initial=0.0) < _FLAT
    return Outcome.CONVERGED if result.status == 0 or flat else Outcome.NO_PROGRESS


def _run_scg(function: Coordinates, recorder: Recorder) -> Outcome:
    """Scaled conjugate gradients.

    Source: Møller, M. F. (1993), A scaled conjugate gradient algorithm for fast
    supervised learning, Neural Networks 6(4), 525-533. Step numbers refer to the
    algorithm there; its w, p, r, E are our theta, direction, -gradient, value.
    """
    low, high = function.low, function.high

    def downhill(point: Point) -> Array:
        assert point.gradient is not None
        return -free_gradient(point.theta, point.gradient, low, high)

    point = function.start
    p = residual = downhill(point)  # step 1
    delta: float | None = None  # pᵀ E'' p and its scaling; None until measured at this point
    lam, lam_bar, n_accepted = 1e-6, 0.0, 0
    while True:
        length = float(p @ p)
        if float(residual @ residual) < _GRADIENT_ZERO**2:
            return Outcome.CONVERGED
        if lam > _LAMBDA_MAX:
            return Outcome.NO_PROGRESS
        if delta is None:  # step 2, from one more gradient, a short way along the direction
            step, delta = _SIGMA / float(np.linalg.norm(p)), np.nan
            ahead = function(np.clip(point.theta + step * p, low, high))
            if np.isfinite(ahead.value):
                assert ahead.gradient is not None
                assert point.gradient is not None
                delta = float(p @ (ahead.gradient - point.gradient)) / step
        delta += (lam - lam_bar) * length  # step 3
        if not delta > 0:  # step 4, also where the curvature could not be measured
            measured = delta if np.isfinite(delta) else 0.0
            scaled = 2.0 * (lam - measured / length)
            delta = max(-measured + lam * length, scaled * length * 1e-3)
            lam = scaled
        slope = float(p @ residual)
        alpha = slope / delta  # step 5
        trial = function(np.clip(point.theta + alpha * p, low, high))
        fall = point.value - trial.value
        comparison = 2.0 * delta * fall / slope**2 if np.isfinite(fall) else -1.0  # step 6
        lam_bar = lam
        if comparison < 0.25:  # step 8
            lam += delta * (1.0 - max(comparison, -1e3)) / length
        if comparison < 0 or not fall > 0:
            continue
        # Step 7: the next conjugate direction, restarted every p steps and if it does not descend.
        if comparison >= 0.75:
            lam *= 0.25
        before, residual = residual, downhill(trial)
        beta = float(residual @ residual - residual @ before) / slope
        # Within the face of the box: a component that a bound blocks stays where it is.
        p = np.where(residual != 0, residual + beta * p, 0.0)
        n_accepted += 1
        if n_accepted % len(p) == 0 or p @ residual <= 0:
            p = residual
        point, delta, lam_bar = trial, None, 0.0
        recorder.iteration_done()


def _run_nelder_mead(function: Coordinates, recorder: Recorder) -> Outcome:
    unit = np.where(function.high >= 1.0, 1.0, -1.0)
    result = optimize.minimize(
        lambda z: function(z, gradient=False).value,
        function.start.theta,
        method="Nelder-Mead",
        bounds=optimize.Bounds(function.low, function.high),
        # A simplex moves many times without a new best point: gains say nothing here.
        callback=lambda _: recorder.iteration_done(steps_must_gain=False),
        options={
            "initial_simplex": np.vstack([np.zeros_like(unit), np.diag(unit)]),
            "fatol": recorder.tolerance,  # in standard errors, as the function is
            "xatol": 0.25,  # a simplex this small and flat to within noise is done
            "maxfev": np.inf,
            "maxiter": np.inf,
        },
    )
    return Outcome.WITHIN_NOISE if result.status == 0 else Outcome.NO_PROGRESS


OPTIMIZERS: dict[str, Callable[[Coordinates, Recorder], Outcome]] = {
    "lbfgs": _run_lbfgs,
    "scg": _run_scg,
    "nelder-mead": _run_nelder_mead,
}
