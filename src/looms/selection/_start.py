"""Starts of a search: the best points of a coarse scan on a subsample.

A least-squares SVM criterion has few but real local minima (too smooth a kernel
with hardly any ridge, too narrow a one with a large ridge), and a start a few powers
of two off costs most of the evaluations of a search. Eigenvectors make the scan
cheap: all μ of one kernel for the price of a few factorizations of the subsample.
"""

from __future__ import annotations

import numpy as np

from looms._typing import Array
from looms.optimize import Point
from looms.selection._objective import Objective, feature_space_variance

#: Powers of two by which all kernel parameters are multiplied together.
KERNEL_SHIFTS = (-8.0, -5.0, -2.0, 1.0, 4.0)
#: n μ over the variance of the samples in feature space, log₂.
RIDGES = np.arange(-12.0, 5.0, 2.0)


def starting_points(objective: Objective, n_points: int) -> list[Array]:
    """Best ``n_points`` points of the scan, at most one for each kernel, best first.

    Points that cannot be evaluated are left out; if none can, the objective's own
    start is the only one.
    """
    best = [_best_ridge(objective, theta) for theta in _kernel_thetas(objective)]
    ranked = sorted((p for p in best if np.isfinite(p.value)), key=lambda point: point.value)
    points = [np.clip(point.theta, *objective.bounds.T) for point in ranked[:n_points]]
    return points or [objective.theta0]


def _kernel_thetas(objective: Objective) -> list[Array]:
    theta = objective.kernel.theta
    if len(theta) == 0:
        return [theta]
    low, high = objective.bounds[:-1].T
    return [np.clip(theta + shift, low, high) for shift in KERNEL_SHIFTS]


def _best_ridge(objective: Objective, kernel_theta: Array) -> Point:
    """Best point over μ for one kernel."""
    K = objective.gram(objective.kernel.with_theta(kernel_theta))
    with np.errstate(invalid="ignore"):  # of a kernel matrix that is not finite
        spread = feature_space_variance(K, objective.fit_intercept)
    log_unit = np.log2(spread / objective.n_samples)
    log2_mu = np.clip(log_unit + RIDGES, *objective.bounds[-1])
    return min(objective.along_mu(kernel_theta, log2_mu), key=lambda point: point.value)
