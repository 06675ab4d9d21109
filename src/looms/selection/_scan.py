"""Search of a grid around the start of an objective, in place of a search along gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from looms._typing import Array
from looms.lssvm.fit import Fit
from looms.optimize import Outcome, Point
from looms.optimize._search import Search
from looms.selection._held_out_criterion import HeldOutCriterion
from looms.selection._nested import Rounds
from looms.selection._starts import grid_points
from looms.selection._tuning import Tuning


def scan(
    objective: HeldOutCriterion,
    *,
    evaluated: Callable[[HeldOutCriterion, Point], None] | None = None,
    rounds: Rounds | None = None,
    **_: Any,
) -> tuple[Tuning, Fit | None]:
    """Hyper-parameters of the least criterion on a grid, and the machine there.

    Parameters
    ----------
    objective : the criterion as a function of its hyper-parameters.
    evaluated : called with the objective and the point after every evaluation.
    rounds : where all points compete, too; a factorization each. Without it the points of a kernel
        share a decomposition.

    Returns
    -------
    tuning, fit : as of `looms.selection.tune`, whose other options have no meaning here.

    Examples
    --------
    >>> from looms.selection import Objective
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> tuning, fit = scan(Objective(X, np.sin(6 * X[:, 0])))
    >>> tuning.value < 1e-6
    True
    """
    thetas = grid_points(objective)
    points = _along_mu(objective, thetas) if rounds is None else []
    best, history = None, list[Point]()
    for k, theta in enumerate(thetas):
        point = points[k] if rounds is None else rounds.evaluate(objective, theta)
        history.append(replace(point, model=None))
        if best is None or point.value < best.value:
            best = point
        if evaluated is not None:
            evaluated(objective, history[-1])
    assert best is not None
    search = Search(replace(best, model=None), Outcome.GRID, tuple(history), len(history))
    stages = ((objective.n_samples, search),)
    value = best.value, best.standard_error
    return Tuning(best.theta, *value, Outcome.GRID, stages, 0, ()), best.model


def _along_mu(objective: HeldOutCriterion, thetas: Sequence[Array]) -> list[Point]:
    """The points with their values, and the best one with its machine."""
    points: list[Point] = []
    for values, same in groupby(thetas, key=lambda theta: tuple(theta[:-1])):
        points += objective.along_mu(np.array(values), np.array([theta[-1] for theta in same]))
    best = min(points, key=lambda point: point.value)
    while best.model is None and np.isfinite(best.value):  # what eigenvectors do not refuse
        solved = objective.evaluate(best.theta, gradient=False)
        points = [solved if point is best else point for point in points]
        best = min(points, key=lambda point: point.value)
    return points
