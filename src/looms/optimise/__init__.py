"""Search for the hyper-parameters that minimise a criterion.

`minimise` runs one of three optimisers and gives one kind of record, whatever ran:
scaled conjugate gradients (our own), L-BFGS-B and Nelder-Mead (SciPy's).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from looms._typing import Array
from looms.optimise._scg import scg_start, scg_step
from looms.optimise._search import (
    Callback,
    Evaluate,
    Outcome,
    Point,
    Recorder,
    Search,
    SearchStopped,
)

__all__ = ["OPTIMIZERS", "Callback", "Evaluate", "Outcome", "Point", "Search", "minimise"]


def minimise(
    evaluate: Evaluate,
    theta0: Array,
    bounds: Array,
    *,
    optimizer: str = "lbfgs",
    max_iter: int = 100,
    tolerance: float = 0.05,
    callback: Callback | None = None,
) -> Search:
    """Local minimum of a function in a box, from one start.

    Parameters
    ----------
    evaluate : the function, called as ``evaluate(theta, gradient=True)``; an infinite
        value marks a point that cannot be evaluated and is stepped over.
    theta0 : (p,) start, moved into the box if it is outside.
    bounds : (p, 2) lower and upper ends of the box; may be infinite.
    optimizer : "lbfgs", "scg" or "nelder-mead".
    max_iter : iterations, at least 0; with 0 the start is only evaluated.
    tolerance : fraction of the standard error of the value that is not worth an
        iteration: the search ends after one that gained less, or at a gradient that
        promises less.
    callback : called after every iteration with its number and the best point so
        far; a true result stops the search.

    Returns
    -------
    search : with the best point seen, never worse than the start.

    Examples
    --------
    >>> import numpy as np
    >>> def bowl(theta, gradient=True):
    ...     return Point(theta, float(theta @ theta), 1e-6, 2 * theta)
    >>> search = minimise(bowl, np.array([3.0, 1.0]), np.array([[-9.0, 9.0]] * 2))
    >>> bool(search.best.value < 1e-6)
    True
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"Unknown optimizer {optimizer!r}; known are {', '.join(OPTIMIZERS)}.")
    recorder = Recorder(evaluate, bounds, tolerance, max_iter, callback)
    try:
        outcome = OPTIMIZERS[optimizer](recorder, np.clip(theta0, *bounds.T), bounds)
    except SearchStopped as stop:
        outcome = stop.outcome
    return recorder.result(outcome)


def _run_scg(recorder: Recorder, theta0: Array, bounds: Array) -> Outcome:
    low, high = bounds.T
    start, evaluate = _in_standard_errors(recorder, theta0)
    state = scg_start(start, low, high)
    while True:  # left by SearchStopped
        state = scg_step(state, evaluate, low, high)
        if state.accepted:
            recorder.iteration_done()


def _run_lbfgs(recorder: Recorder, theta0: Array, bounds: Array) -> Outcome:
    last_good, evaluate = _in_standard_errors(recorder, theta0)

    def function(theta: Array) -> tuple[float, Array]:
        nonlocal last_good
        point = last_good if np.array_equal(theta, last_good.theta) else evaluate(theta)
        if not np.isfinite(point.value):
            return _bowl(theta, last_good)
        last_good = point
        assert point.gradient is not None
        return point.value, point.gradient

    result = _minimised_by_scipy(
        function,
        recorder.iteration_done,
        theta0,
        bounds,
        "L-BFGS-B",
        jac=True,
        options={"ftol": 0.0, "gtol": 1e-8},
    )
    return Outcome.CONVERGED if result.status == 0 else Outcome.NO_PROGRESS


def _in_standard_errors(recorder: Recorder, theta0: Array) -> tuple[Point, Evaluate]:
    """The start, and the function, in units of the standard error at the start.

    Optimisers have lengths built in (the first step, what counts as no curvature);
    this makes them independent of the units of the criterion.
    """
    start = recorder.start(theta0)
    unit = start.standard_error if start.standard_error > 0 else 1.0

    def in_units(point: Point) -> Point:
        gradient = None if point.gradient is None else point.gradient / unit
        return replace(point, value=point.value / unit, gradient=gradient)

    def evaluate(theta: Array, *, gradient: bool = True) -> Point:
        return in_units(recorder(theta, gradient=gradient))

    return in_units(start), evaluate


def _run_nelder_mead(recorder: Recorder, theta0: Array, bounds: Array) -> Outcome:
    start = recorder.start(theta0, gradient=False)
    high = bounds[:, 1]
    unit = np.where(start.theta + 1.0 <= high, 1.0, -1.0)
    options = {
        "initial_simplex": np.vstack([start.theta, start.theta + np.diag(unit)]),
        "fatol": recorder.tolerance * start.standard_error,
        "xatol": 0.25,  # log₂ units: a simplex this small and flat to within noise is done
        "maxfev": np.inf,
    }

    def function(theta: Array) -> float:
        return recorder(theta, gradient=False).value

    # A simplex moves many times without a new best point: gains say nothing here.
    result = _minimised_by_scipy(
        function,
        partial(recorder.iteration_done, steps_must_gain=False),
        theta0,
        bounds,
        "Nelder-Mead",
        options=options,
    )
    return Outcome.WITHIN_NOISE if result.status == 0 else Outcome.NO_PROGRESS


OPTIMIZERS: dict[str, Callable[[Recorder, Array, Array], Outcome]] = {
    "lbfgs": _run_lbfgs,
    "scg": _run_scg,
    "nelder-mead": _run_nelder_mead,
}


def _bowl(theta: Array, around: Point) -> tuple[float, Array]:
    """A stand-in value that sends a line search back to the last point that could be evaluated."""
    away = theta - around.theta
    steepness = 1.0 + abs(around.value)
    return around.value + steepness * (1.0 + float(away @ away)), 2.0 * steepness * away


def _minimised_by_scipy(
    function: Callable[[Array], Any],
    iteration_done: Callable[[], None],
    theta0: Array,
    bounds: Array,
    method: str,
    **arguments: Any,
) -> Any:
    return optimize.minimize(
        function,
        theta0,
        method=method,
        bounds=optimize.Bounds(*bounds.T),
        callback=lambda _: iteration_done(),
        **arguments,
    )
