"""Inverse Hessian of a criterion where a search ended, and coordinates for the next search.

Optimizers have built-in scales: the first step, the gradient that counts as flat. These fit if
values are in standard errors of the criterion and axes follow its curvature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from looms._typing import Array
from looms.optimize._search import Evaluate, Point, WantsGradient

_STEP = 0.25  # of the differences, log₂ units: far above rounding, well below the optimum's width
# A move this far, in log₂ units, is assumed to change the value by more than noise.
_FLAT = 2.0
_LARGEST_CONDITION = 1e8
# Longest first step, in log₂ units, for which an earlier curvature is trusted.
_TRUSTED = 1.0


def difference_inverse_hessian(
    evaluate: Evaluate, point: Point, bounds: Array, tolerance: float
) -> tuple[Array | None, list[Point]]:
    """Inverse Hessian at a point from differences of gradients, one evaluation per parameter.

    Directions that are flat or bend down within ``tolerance`` standard errors are
    treated as slightly curved, so that no quasi-Newton step follows them far.

    Returns
    -------
    inverse_hessian : (p, p) positive definite; None if the box leaves no room for a
        difference, a gradient cannot be evaluated, or no direction bends up.
    evaluated : the points evaluated to obtain it.
    """
    p = len(point.theta)
    room = bounds - point.theta[:, None]
    steps = np.where(room[:, 1] >= _STEP, _STEP, -_STEP)
    if point.gradient is None or (np.maximum(room[:, 1], -room[:, 0]) < _STEP).any():
        return None, []
    evaluated: list[Point] = []
    H = np.empty((p, p))
    for k in range(p):
        ahead = evaluate(point.theta + steps[k] * np.eye(p)[k])
        evaluated.append(ahead)
        if ahead.gradient is None:
            return None, evaluated
        H[k] = (ahead.gradient - point.gradient) / steps[k]
    curvatures, axes = np.linalg.eigh(0.5 * (H + H.T))
    if not curvatures.max() > 0:
        return None, evaluated
    flat = 2.0 * tolerance * point.standard_error / _FLAT**2
    least = max(flat, curvatures.max() / _LARGEST_CONDITION)
    return np.asarray((axes / np.maximum(curvatures, least)) @ axes.T), evaluated


def secant_inverse_hessian(points: Sequence[Point]) -> Array | None:
    """Inverse Hessian from a sequence of points with gradients, by the BFGS formula.

    None if no two neighbors show positive curvature, or rounding makes it indefinite.
    """
    pairs = []
    for before, after in pairwise(points):
        if before.gradient is not None and after.gradient is not None:
            s, y = after.theta - before.theta, after.gradient - before.gradient
            if s @ y > 1e-8 * np.linalg.norm(s) * np.linalg.norm(y):
                pairs.append((s, y))
    if not pairs:
        return None
    s, y = pairs[-1]
    H = np.eye(len(s)) * (s @ y) / (y @ y)
    for s, y in pairs:
        V = np.eye(len(s)) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    smallest, largest = np.linalg.eigvalsh(H)[[0, -1]]
    return H if smallest > largest / _LARGEST_CONDITION else None


class Coordinates:
    """Coordinates θ = θ_start + L z; the function is in units of its standard error at the start.

    L Lᵀ is the inverse Hessian, if given, scaled down to limit the first step: steepest
    descent in z is then a quasi-Newton step in θ. If that step comes near a bound, only
    the diagonal of the Hessian scales the axes, as fixing a variable at its bound must not
    move the others. Without an inverse Hessian L is the identity.

    Attributes
    ----------
    start : the start, z = 0.
    low, high : (p,) box in z.
    follows_curvature : whether L comes from the full inverse Hessian.
    """

    def __init__(
        self, evaluate: Evaluate, start: Point, bounds: Array, inverse_hessian: Array | None
    ) -> None:
        self._evaluate = evaluate
        self._origin = start.theta
        self._bounds = bounds
        self._unit = start.standard_error if start.standard_error > 0 else 1.0
        self.low, self.high = bounds.T - start.theta
        self._axes: Array = np.eye(len(start.theta))
        self.follows_curvature = False
        if inverse_hessian is not None and start.gradient is not None:
            self._take_axes(inverse_hessian, start.gradient)
        self.start = self._transformed(np.zeros(len(start.theta)), start)

    def __call__(self, theta: Array, *, gradient: WantsGradient = True) -> Point:
        """Function at z, which optimizers call ``theta``."""
        z = np.array(theta)
        theta_of_z = self._origin + self._axes @ z
        clipped = np.clip(theta_of_z, *self._bounds.T)
        point = self._evaluate(clipped, gradient=gradient)
        if self.follows_curvature and point.gradient is not None:
            # Beyond the box, which has no walls in z, the function no longer changes.
            point = replace(point, gradient=np.where(theta_of_z == clipped, point.gradient, 0.0))
        return self._transformed(z, point)

    def _take_axes(self, inverse_hessian: Array, gradient: Array) -> None:
        step = inverse_hessian @ gradient
        far = self._origin - 2.0 * step
        low, high = self._bounds.T
        outside = (self._origin <= low) | (self._origin >= high) | (far < low) | (far > high)
        if outside.any():
            scales = np.sqrt(self._unit / np.diag(np.linalg.inv(inverse_hessian)))
            self._axes = np.diag(scales)
            self.low, self.high = self.low / scales, self.high / scales
            return
        shortened = min(1.0, _TRUSTED / max(float(np.linalg.norm(step)), 1e-300))
        self._axes = np.asarray(np.linalg.cholesky(inverse_hessian * (self._unit * shortened)))
        self.low, self.high = np.full((2, len(step)), [[-np.inf], [np.inf]])
        self.follows_curvature = True

    def _transformed(self, z: Array, point: Point) -> Point:
        gradient = point.gradient
        return replace(
            point,
            theta=z,
            value=point.value / self._unit,
            standard_error=point.standard_error / self._unit,
            gradient=None if gradient is None else self._axes.T @ gradient / self._unit,
        )
