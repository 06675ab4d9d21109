"""Local minimization of a function in a box by L-BFGS-B."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from looms._typing import Array
from looms.optimize._curvature import Coordinates
from looms.optimize._search import (
    Callback,
    Evaluate,
    Recorder,
    Search,
    SearchStopped,
    StopReason,
    free_gradient,
)

_FLAT = 1e-6  # gradient in standard errors of the function: what is left to gain is its square
_NO_LIMIT = 10**9  # of SciPy's own counts: the recorder counts


def minimize(
    evaluate: Evaluate,
    theta0: Array,
    bounds: Array,
    *,
    max_iter: int = 100,
    tolerance: float = 0.1,
    callback: Callback | None = None,
    inverse_hessian: Array | None = None,
    last_gradient: bool = True,
) -> Search:
    """Local minimum of a function in a box, from one start.

    Parameters
    ----------
    evaluate : the function, called as ``evaluate(theta, gradient=True)``; an infinite
        value marks a point that cannot be evaluated and is skipped.
    theta0 : (p,) start, moved into the box if it is outside.
    bounds : (p, 2) lower and upper bounds; may be infinite.
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
    last_gradient : if False, the last iteration may have no gradient: the search ends where an
        iteration gained what ``inverse_hessian`` promised, to within what is not worth another.

    Returns
    -------
    search : record of the search; its best point is never worse than the start.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.optimize._search import Point
    >>> def bowl(theta, gradient=True):
    ...     return Point(theta, float(theta @ theta), 1e-6, 2 * theta)
    >>> search = minimize(bowl, np.array([3.0, 1.0]), np.array([[-9.0, 9.0]] * 2))
    >>> bool(search.best.value < 1e-6)
    True
    """
    recorder = Recorder(evaluate, bounds, tolerance, max_iter, callback, last_gradient)
    try:
        start = recorder.start(np.clip(theta0, *bounds.T), gradient=max_iter > 0)
        function = Coordinates(recorder, start, bounds, inverse_hessian)
        if function.follows_curvature:
            recorder.inverse_hessian = inverse_hessian
        recorder.stop_if_flat(start)
        stop_reason = _lbfgs(function, recorder)
    except SearchStopped as stop:
        stop_reason = stop.stop_reason
    return recorder.result(stop_reason)


def _lbfgs(function: Coordinates, recorder: Recorder) -> StopReason:
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
    return StopReason.CONVERGED if result.status == 0 or flat else StopReason.NO_PROGRESS
