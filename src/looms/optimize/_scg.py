"""Scaled conjugate gradients.

Source: Møller, M. F. (1993), A scaled conjugate gradient algorithm for fast
supervised learning, Neural Networks 6(4), 525-533. Step numbers refer to the
algorithm there; its w, p, r, E are our theta, direction, -gradient, value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from looms._typing import Array
from looms.optimize._search import Evaluate, Outcome, Point, SearchStopped, free_gradient

_SIGMA = 1e-4  # length of the finite difference along the direction, log₂ units
_LAMBDA_MAX = 1e12
_GRADIENT_ZERO = 1e-10


@dataclass(frozen=True)
class ScgState:
    """State of scaled conjugate gradients.

    curvature : δ before scaling, pᵀ E'' p; None until measured at this point.
    lam, lam_bar : λ and λ̄, the scaling of the curvature.
    accepted : whether the last step was taken.
    """

    point: Point
    direction: Array
    curvature: float | None
    lam: float
    lam_bar: float
    n_accepted: int
    accepted: bool


def scg_start(point: Point, low: Array, high: Array) -> ScgState:
    """Step 1."""
    downhill = -free_gradient(point.theta, _gradient(point), low, high)
    return ScgState(point, downhill, None, 1e-6, 0.0, 0, False)


def scg_step(state: ScgState, evaluate: Evaluate, low: Array, high: Array) -> ScgState:
    """Steps 2 to 8: one trial step inside the box [low, high], taken if it lowers the value."""
    point, p = state.point, state.direction
    residual = -free_gradient(point.theta, _gradient(point), low, high)
    length = float(p @ p)
    if float(residual @ residual) < _GRADIENT_ZERO**2:
        raise SearchStopped(Outcome.CONVERGED)
    if state.lam > _LAMBDA_MAX:
        raise SearchStopped(Outcome.NO_PROGRESS)
    delta = state.curvature
    if delta is None:
        delta = _curvature(point, p, evaluate, low, high)
    delta += (state.lam - state.lam_bar) * length  # step 3
    lam, lam_bar = state.lam, state.lam_bar
    if not delta > 0:  # step 4, also where the curvature could not be measured
        measured = delta if np.isfinite(delta) else 0.0
        lam_bar = 2.0 * (lam - measured / length)
        delta, lam = -measured + lam * length, lam_bar
        delta = max(delta, lam * length * 1e-3)
    slope = float(p @ residual)
    alpha = slope / delta  # step 5
    trial = evaluate(np.clip(point.theta + alpha * p, low, high))
    fall = point.value - trial.value
    comparison = 2.0 * delta * fall / slope**2 if np.isfinite(fall) else -1.0  # step 6
    scaled_with = lam
    if comparison < 0.25:  # step 8
        lam += delta * (1.0 - max(comparison, -1e3)) / length
    if comparison < 0 or not fall > 0:
        return replace(state, curvature=delta, lam=lam, lam_bar=scaled_with, accepted=False)
    # Step 7: the next conjugate direction, restarted every p steps and if it does not descend.
    if comparison >= 0.75:
        lam *= 0.25
    new_residual = -free_gradient(trial.theta, _gradient(trial), low, high)
    n_accepted = state.n_accepted + 1
    beta = float(new_residual @ new_residual - new_residual @ residual) / slope
    # Within the face of the box: a component that a bound blocks stays where it is.
    direction = np.where(new_residual != 0, new_residual + beta * p, 0.0)
    if n_accepted % len(direction) == 0 or direction @ new_residual <= 0:
        direction = new_residual
    return ScgState(trial, direction, None, lam, 0.0, n_accepted, True)


def _curvature(point: Point, p: Array, evaluate: Evaluate, low: Array, high: Array) -> float:
    """pᵀ E'' p from one more gradient, a short way along the direction [step 2]."""
    step = _SIGMA / float(np.linalg.norm(p))
    probe = np.clip(point.theta + step * p, low, high)
    ahead = evaluate(probe)
    if not np.isfinite(ahead.value):
        return np.nan
    return float(p @ (_gradient(ahead) - _gradient(point))) / step


def _gradient(point: Point) -> Array:
    assert point.gradient is not None
    return point.gradient
