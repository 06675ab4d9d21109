"""The coordinates an optimiser works in: units of noise, and of curvature where it is known.

Optimisers have lengths built in: the first step, what counts as flat. Measured in
standard errors of the criterion, and along the axes of its curvature, these fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from looms._typing import Array
from looms.optimise._search import Evaluate, Point, free_gradient


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
            self._axes = np.asarray(np.linalg.cholesky(inverse_hessian * self._unit))
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


def secant_inverse_hessian(points: Sequence[Point]) -> Array | None:
    """Inverse Hessian by the BFGS formula from a sequence of points with gradients.

    None if no two neighbours show positive curvature.
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
    return H
