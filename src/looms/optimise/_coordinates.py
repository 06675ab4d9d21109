"""The coordinates an optimiser works in: units of noise, and of curvature where it is known.

Optimisers have lengths built in: the first step, what counts as flat. Measured in
standard errors of the criterion, and along the axes of its curvature, these fit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from looms._typing import Array
from looms.optimise._search import Evaluate, Point, free_gradient

# Longest step that a curvature measured at the start is trusted for, log₂ units.
_TRUSTED = 1.0


class Coordinates:
    """θ = θ_start + L z, and the function in units of its standard error at the start.

    L Lᵀ is the inverse Hessian where one is given, so that a gradient step in z is a
    quasi-Newton step in θ; else L is the identity.

    Attributes
    ----------
    start : the start, z = 0.
    low, high : (p,) box in z. With an inverse Hessian it is infinite, θ is moved into
        its own box, and components of the gradient that push out of that are dropped.
    """

    def __init__(
        self, evaluate: Evaluate, start: Point, bounds: Array, inverse_hessian: Array | None
    ) -> None:
        self._evaluate = evaluate
        self._origin = start.theta
        self._bounds = bounds
        self._unit = start.standard_error if start.standard_error > 0 else 1.0
        self._axes: Array | None = None
        self.low, self.high = bounds.T - start.theta
        if inverse_hessian is not None:
            self._axes = _trusted_axes(inverse_hessian * self._unit, start, bounds, self._unit)
            self.low, self.high = np.full((2, len(start.theta)), [[-np.inf], [np.inf]])
        self.start = self._transformed(np.zeros(len(start.theta)), start)

    def __call__(self, theta: Array, *, gradient: bool = True) -> Point:
        """The function at z = ``theta``, which is what optimisers call it."""
        z = theta
        step = z if self._axes is None else self._axes @ z
        inside = np.clip(self._origin + step, *self._bounds.T)
        return self._transformed(np.array(z), self._evaluate(inside, gradient=gradient))

    def _transformed(self, z: Array, point: Point) -> Point:
        gradient = point.gradient
        if gradient is not None and self._axes is not None:
            gradient = self._axes.T @ free_gradient(point.theta, gradient, *self._bounds.T)
        return replace(
            point,
            theta=z,
            value=point.value / self._unit,
            standard_error=point.standard_error / self._unit,
            gradient=None if gradient is None else gradient / self._unit,
        )


def _trusted_axes(inverse_hessian: Array, start: Point, bounds: Array, unit: float) -> Array:
    """Axes L with L Lᵀ the inverse Hessian, shortened if the first step would go too far."""
    if start.gradient is not None:
        gradient = free_gradient(start.theta, start.gradient, *bounds.T) / unit
        length = float(np.linalg.norm(inverse_hessian @ gradient))
        inverse_hessian = inverse_hessian * min(1.0, _TRUSTED / max(length, 1e-300))
    return np.asarray(np.linalg.cholesky(inverse_hessian))
