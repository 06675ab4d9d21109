"""Optimizers of the papers: scaled conjugate gradients [G06] and the Nelder-Mead simplex [C06].

`SearchBy` tunes a model of looms by one of them instead of L-BFGS-B.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from looms import Search
from looms._typing import Array
from looms.optimize._curvature import Coordinates
from looms.optimize._search import (
    Evaluate,
    Point,
    Recorder,
    SearchStopped,
    StopReason,
    free_gradient,
)
from looms.optimize._search import Search as Record

# Of scaled conjugate gradients.
_SIGMA = 1e-4  # length of the finite difference along the direction, log₂ units
_LAMBDA_MAX = 1e12
_GRADIENT_ZERO = 1e-10


class SearchBy(Search):
    """Search by an optimizer, "scg" or "nelder-mead", from its name.

    Other parameters are as for `looms.Search`.
    """

    def __init__(
        self,
        optimizer: str,
        criterion: Any = None,
        *,
        tol: float = 0.1,
        max_samples: float | None = None,
        class_weight: Any = "same",
    ) -> None:
        super().__init__(criterion, tol=tol, max_samples=max_samples, class_weight=class_weight)
        self.optimizer = optimizer

    @property
    def _minimizer(self) -> Callable[..., Record]:  # type: ignore[override]
        """Search along gradients, or by the simplex."""
        return partial(minimize, self.optimizer)


def minimize(
    optimizer: str,
    evaluate: Evaluate,
    theta0: Array,
    bounds: Array,
    *,
    max_iter: int = 100,
    tolerance: float = 0.1,
    callback: Any = None,
    inverse_hessian: Array | None = None,
    last_gradient: bool = True,
) -> Record:
    """Local minimum of a function in a box, as by `looms.optimize._minimize.minimize`.

    The last point has a gradient in any case.
    """
    recorder = Recorder(evaluate, bounds, tolerance, max_iter, callback)
    try:
        steps = max_iter > 0 and optimizer != "nelder-mead"
        start = recorder.start(np.clip(theta0, *bounds.T), gradient=steps)
        function = Coordinates(recorder, start, bounds, inverse_hessian)
        if function.follows_curvature:  # it is of another function: at least one step tests it
            recorder.inverse_hessian = inverse_hessian
        else:
            recorder.stop_if_flat(start)
        stop_reason = OPTIMIZERS[optimizer](function, recorder)
    except SearchStopped as stop:
        stop_reason = stop.stop_reason
    return recorder.result(stop_reason)


def _scg(function: Coordinates, recorder: Recorder) -> StopReason:
    """Scaled conjugate gradients.

    Step numbers refer to the algorithm of [M93]; its w, p, r, E are our theta, direction,
    -gradient, value.
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
            return StopReason.CONVERGED
        if lam > _LAMBDA_MAX:
            return StopReason.NO_PROGRESS
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


def _nelder_mead(function: Coordinates, recorder: Recorder) -> StopReason:
    tolerance, recorder.tolerance = recorder.tolerance, -np.inf
    unit = np.where(function.high >= 1.0, 1.0, -1.0)
    result = optimize.minimize(
        lambda z: function(z, gradient=False).value,
        function.start.theta,
        method="Nelder-Mead",
        bounds=optimize.Bounds(function.low, function.high),
        # A simplex moves many times without a new best point: no gain is too small.
        callback=lambda _: recorder.iteration_done(),
        options={
            "initial_simplex": np.vstack([np.zeros_like(unit), np.diag(unit)]),
            "fatol": tolerance,  # in standard errors, as the function is
            "xatol": 0.25,  # a simplex this small and flat to within noise is done
            "maxfev": np.inf,
            "maxiter": np.inf,
        },
    )
    return StopReason.WITHIN_NOISE if result.status == 0 else StopReason.NO_PROGRESS


OPTIMIZERS = {"scg": _scg, "nelder-mead": _nelder_mead}
