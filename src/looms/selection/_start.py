"""Where a search starts: the best of a coarse scan on a subsample.

A least-squares SVM criterion has few but real local minima (too smooth a kernel
with hardly any ridge, too narrow a one with a large ridge), and a start a few powers
of two off costs most of the evaluations of a search. Eigenvectors make the scan
cheap: all μ of one kernel for the price of a few factorisations of the subsample.
"""

from __future__ import annotations

import numpy as np

from looms._threads import blas_threads
from looms._typing import Array
from looms.kernels import is_finite_lower
from looms.lssvm import NotPositiveDefiniteError, decompose
from looms.optimise import Point
from looms.selection._objective import Objective, feature_space_variance

#: Powers of two by which all kernel parameters are multiplied together.
KERNEL_SHIFTS = (-8.0, -5.0, -2.0, 1.0, 4.0)
#: n μ over the variance of the samples in feature space, log₂.
RIDGES = np.arange(-12.0, 5.0, 2.0)


def starting_points(objective: Objective, n_points: int) -> list[Array]:
    """The ``n_points`` best points of the scan, at most one for each kernel, best first.

    Points that cannot be evaluated are left out; if none can, the objective's own
    start is the only one.
    """
    with blas_threads(objective.n_samples):
        found = [_best_ridge(objective, theta) for theta in _kernel_thetas(objective)]
    ranked = sorted((f for f in found if f is not None), key=lambda f: f[0])
    points = [np.clip(theta, *objective.bounds.T) for _, theta in ranked[:n_points]]
    return points or [objective.theta0]


def _kernel_thetas(objective: Objective) -> list[Array]:
    theta = objective.kernel.theta
    if len(theta) == 0:
        return [theta]
    low, high = objective.bounds[:-1].T
    return [np.clip(theta + shift, low, high) for shift in KERNEL_SHIFTS]


def _best_ridge(objective: Objective, kernel_theta: Array) -> tuple[float, Array] | None:
    """Value and position of the best ridge for one kernel."""
    K = objective.gram(objective.kernel.with_theta(kernel_theta))
    if not is_finite_lower(K):
        return None
    log_unit = np.log2(feature_space_variance(K, objective.fit_intercept) / objective.n_samples)
    spectrum = decompose(K, sample_weight=objective.sample_weight)
    best: tuple[float, Array] | None = None
    for log_mu in np.clip(log_unit + RIDGES, *objective.bounds[-1]):
        try:
            loo = spectrum.loo(
                objective.y,
                float(np.exp2(log_mu)),
                fit_intercept=objective.fit_intercept,
                groups=objective.groups,
            )
        except NotPositiveDefiniteError:
            continue
        judged = objective.judge(loo)
        if not np.isfinite(judged.value):
            continue
        theta = np.append(kernel_theta, log_mu)
        value = objective.penalised(Point(theta, judged.value, judged.standard_error)).value
        if best is None or value < best[0]:
            best = value, theta
    return best
