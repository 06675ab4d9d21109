"""The curvature of a criterion where a search ended, for the next search of a similar one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from looms._typing import Array
from looms.optimise._search import Evaluate, Point

_STEP = 0.25  # of the differences, log₂ units: far above rounding, well below the optimum's width
# A move this far, log₂ units, is taken to change the value by more than what is noise.
_FLAT = 2.0


def difference_inverse_hessian(
    evaluate: Evaluate, point: Point, bounds: Array, tolerance: float
) -> Array | None:
    """Inverse Hessian at a point by differences of gradients, one evaluation a parameter.

    Directions that are flat, or bend down, within ``tolerance`` standard errors are
    taken as just not flat, so that no quasi-Newton step follows them far. None where a
    gradient cannot be evaluated.
    """
    if point.gradient is None:
        return None
    p = len(point.theta)
    H = np.empty((p, p))
    for k in range(p):
        towards = 1.0 if point.theta[k] + _STEP <= bounds[k, 1] else -1.0
        ahead = evaluate(point.theta + towards * _STEP * np.eye(p)[k])
        if ahead.gradient is None:
            return None
        H[k] = (ahead.gradient - point.gradient) / (towards * _STEP)
    curvatures, axes = np.linalg.eigh(0.5 * (H + H.T))
    flat = 2.0 * tolerance * point.standard_error / _FLAT**2
    return np.asarray((axes / np.maximum(curvatures, max(flat, 1e-300))) @ axes.T)


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
