"""Inverse Hessian of a criterion where a search ended, for the next search of a similar one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from looms._typing import Array
from looms.optimize._search import Evaluate, Point

_STEP = 0.25  # of the differences, log₂ units: far above rounding, well below the optimum's width
# A move this far, log₂ units, is taken to change the value by more than what is noise.
_FLAT = 2.0
_LARGEST_CONDITION = 1e8


def difference_inverse_hessian(
    evaluate: Evaluate, point: Point, bounds: Array, tolerance: float
) -> tuple[Array | None, list[Point]]:
    """Inverse Hessian at a point by differences of gradients, one evaluation a parameter.

    Directions that are flat, or bend down, within ``tolerance`` standard errors are
    taken as just not flat, so that no quasi-Newton step follows them far.

    Returns
    -------
    inverse_hessian : (p, p) positive definite; None where the box leaves no room for a
        difference, a gradient cannot be evaluated, or no direction bends up.
    evaluated : the points evaluated for it.
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
    """Inverse Hessian by the BFGS formula from a sequence of points with gradients.

    None if no two neighbors show positive curvature, or rounding leaves it indefinite.
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
