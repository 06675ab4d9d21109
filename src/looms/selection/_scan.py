"""Starts of a search by a scan of a subsample, and the search of a grid around the start.

A least-squares SVM criterion has few but real local minima (too smooth a kernel
with hardly any ridge, too narrow a one with a large ridge), and a start a few powers
of two off costs most of the evaluations of a search. Eigenvectors make the scan
cheap: all μ of one kernel for the price of a few factorizations of the subsample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import Any

import numpy as np

from looms._typing import Array
from looms.lssvm.fit import Fit
from looms.optimize._search import Point, Search, StopReason
from looms.selection._objective import HeldOutCriterion, ScannedCriterion
from looms.selection._tuning import Tuning

#: Powers of two by which all kernel parameters with a unit are multiplied together.
KERNEL_SHIFTS = (-8.0, -5.0, -2.0, 1.0, 4.0)
#: Points of `grid_points` around the start, log₂: kernel parameters together, and n μ. On nine
#: real tables of 60 and 200 rows the test error of the best of these is that of a search by
#: gradients, and that of twice as many points no less.
GRID_SHIFTS = np.arange(-6.0, 4.0, 1.5)
GRID_RIDGES = np.arange(-9.0, 8.0, 2.0)


def starting_points(objective: ScannedCriterion, n_points: int) -> list[Array]:
    """Best ``n_points`` points of the scan, at most one for each kernel, best first.

    Points that cannot be evaluated are left out; if none can, the objective's own
    start is the only one.
    """
    best = []
    for theta in _moved_kernels(objective, KERNEL_SHIFTS):
        with np.errstate(invalid="ignore"):  # of a kernel matrix that is not finite
            log2_mu = np.log2(objective.spread(theta) / objective.n_samples) + objective.ridges
        points = objective.along_mu(theta, np.clip(log2_mu, *objective.bounds[-1]))
        best.append(min(points, key=lambda point: point.value))
    ranked = sorted((p for p in best if np.isfinite(p.value)), key=lambda point: point.value)
    starts = [np.clip(point.theta, *objective.bounds.T) for point in ranked[:n_points]]
    return starts or [objective.theta0]


def grid_points(objective: HeldOutCriterion) -> list[Array]:
    """Points of a grid around the start, (p + 1,) each: kernel parameters as in a scan, and μ.

    It depends on the features only, by the start, and not on the targets; on landmarks the start
    is the best point of a sample of the rows.
    """
    kernels = _moved_kernels(objective, GRID_SHIFTS)
    ridges = GRID_RIDGES
    if len(kernels) == 1:
        ridges = np.arange(GRID_RIDGES[0], GRID_RIDGES[-1] + 1)
    points = [
        np.clip(np.append(theta, objective.theta0[-1] + ridge), *objective.bounds.T)
        for theta in kernels
        for ridge in ridges
    ]
    return list(np.unique(points, axis=0))


def _moved_kernels(objective: HeldOutCriterion, shifts: Iterable[float]) -> list[Array]:
    """log₂ parameters of the kernel: those with a unit move together, others take their values."""
    free = objective.kernel.hyperparameters
    moves = np.array([0.0 if h.tried else 1.0 for h in free])
    tried = [dict.fromkeys([h.log2, *map(float, np.log2(h.tried))]) for h in free]
    thetas = [
        np.clip(np.array(values) + shift * moves, *objective.bounds[:-1].T)
        for values in product(*tried)
        for shift in (shifts if moves.any() else (0.0,))
    ]
    return list(np.unique(thetas, axis=0))


def scan(
    objective: HeldOutCriterion,
    *,
    evaluated: Callable[[HeldOutCriterion, Point], None] | None = None,
    **_: Any,
) -> tuple[Tuning, Fit | None]:
    """Hyper-parameters of the least criterion on a grid, and the model there.

    The points of a kernel share a decomposition.

    Parameters
    ----------
    objective : the criterion as a function of its hyper-parameters.
    evaluated : called with the objective and the point after every evaluation.

    Returns
    -------
    tuning, fit : as of `looms.selection._tune.tune`, whose other options have no meaning here.

    Examples
    --------
    >>> from looms.selection._objective import Objective
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> tuning, fit = scan(Objective(X, np.sin(6 * X[:, 0])))
    >>> tuning.value < 1e-6
    True
    """
    points: list[Point] = []
    for values, same in groupby(grid_points(objective), key=lambda theta: tuple(theta[:-1])):
        points += objective.along_mu(np.array(values), np.array([theta[-1] for theta in same]))
    best = min(points, key=lambda point: point.value)
    while best.model is None and np.isfinite(best.value):  # what eigenvectors do not refuse
        solved = objective.evaluate(best.theta, gradient=False)
        points = [solved if point is best else point for point in points]
        best = min(points, key=lambda point: point.value)
    for point in points:
        if evaluated is not None:
            evaluated(objective, replace(point, model=None))
    return least_of(objective, points)


def least_of(objective: HeldOutCriterion, points: Sequence[Point]) -> tuple[Tuning, Fit | None]:
    """Tuning of a grid whose points are evaluated, and the model of the least one."""
    best = min(points, key=lambda point: point.value)
    history = tuple(replace(point, model=None) for point in points)
    search = Search(replace(best, model=None), StopReason.GRID, history, len(history))
    stages = ((objective.n_samples, search),)
    value = best.value, best.standard_error
    return Tuning(best.theta, *value, StopReason.GRID, stages, 0, ()), best.model
