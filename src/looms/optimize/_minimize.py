"""Local minimization of a function in a box, by one of several optimizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from looms._checks import check_known
from looms._typing import Array
from looms.optimize._curvature import Coordinates
from looms.optimize._scg import scg_start, scg_step
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


def _run_scg(function: Coordinates, recorder: Recorder) -> Outcome:
    state = scg_start(function.start, function.low, function.high)
    while True:  # left by SearchStopped
        state = scg_step(state, function, function.low, function.high)
        if state.accepted:
            recorder.iteration_done()


def _run_lbfgs(function: Coordinates, recorder: Recorder) -> Outcome:
    last_good = function.start

    def value_and_gradient(z: Array) -> tuple[float, Array]:
        nonlocal last_good
        point = last_good if np.array_equal(z, last_good.theta) else function(z)
        if not np.isfinite(point.value):
            return _bowl(z, last_good)
        last_good = point
        assert point.gradient is not None
        # The slope of a variable that stays at its bound says nothing of the others' curvature.
        return point.value, free_gradient(z, point.gradient, function.low, function.high)

    result = _minimized_by_scipy(
        value_and_gradient,
        function,
        recorder.iteration_done,
        "L-BFGS-B",
        jac=True,
        options={"ftol": 0.0, "gtol": 1e-8, "maxiter": _NO_LIMIT, "maxfun": _NO_LIMIT},
    )
    # A line search fails at a minimum, too, where values differ by rounding alone.
    z, slope = last_good.theta, last_good.gradient
    assert slope is not None
    flat = np.abs(free_gradient(z, slope, function.low, function.high)).max(initial=0.0) < _FLAT
    return Outcome.CONVERGED if result.status == 0 or flat else Outcome.NO_PROGRESS


def _run_nelder_mead(function: Coordinates, recorder: Recorder) -> Outcome:
    unit = np.where(function.high >= 1.0, 1.0, -1.0)
    options = {
        "initial_simplex": np.vstack([np.zeros_like(unit), np.diag(unit)]),
        "fatol": recorder.tolerance,  # in standard errors, as the function is
        "xatol": 0.25,  # a simplex this small and flat to within noise is done
        "maxfev": np.inf,
        "maxiter": np.inf,
    }

    # A simplex moves many times without a new best point: gains say nothing here.
    result = _minimized_by_scipy(
        lambda z: function(z, gradient=False).value,
        function,
        partial(recorder.iteration_done, steps_must_gain=False),
        "Nelder-Mead",
        options=options,
    )
    return Outcome.WITHIN_NOISE if result.status == 0 else Outcome.NO_PROGRESS


OPTIMIZERS: dict[str, Callable[[Coordinates, Recorder], Outcome]] = {
    "lbfgs": _run_lbfgs,
    "scg": _run_scg,
    "nelder-mead": _run_nelder_mead,
}


def _bowl(z: Array, around: Point) -> tuple[float, Array]:
    """Substitute value and gradient that lead a line search back to the last finite point."""
    away = z - around.theta
    steepness = 1.0 + abs(around.value)
    return around.value + steepness * (1.0 + float(away @ away)), 2.0 * steepness * away


def _minimized_by_scipy(
    call: Callable[[Array], Any],
    function: Coordinates,
    iteration_done: Callable[[], None],
    method: str,
    **arguments: Any,
) -> Any:
    return optimize.minimize(
        call,
        function.start.theta,
        method=method,
        bounds=optimize.Bounds(function.low, function.high),
        callback=lambda _: iteration_done(),
        **arguments,
    )
