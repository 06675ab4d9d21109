"""Smallest score in a box of hyper-parameters without gradients: grid search and pattern search.

The score is a function of several points at a time, which it may evaluate in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from looms._typing import Array

#: (p,) coordinates of a point, log₂ of hyper-parameters.
Place = tuple[float, ...]
#: Scores of some points, smaller is better; NaN where there is none.
Scorer = Callable[[list[Place]], Sequence[float]]

#: Scores that differ by less than this part are equal: the same solution up to rounding.
_EQUAL = 1e-9


class Searched(NamedTuple):
    """Points and scores of a search.

    Attributes
    ----------
    points : all points in the order of evaluation.
    scores : their scores.
    best : index of the selected point: the smallest score, and among equal ones the smallest
        coordinates, the first coordinate counting most.
    """

    points: list[Place]
    scores: list[float]
    best: int


class _Known:
    """Points and scores so far; no point is scored twice."""

    def __init__(self, score: Scorer) -> None:
        self._score = score
        self.scores: dict[Place, float] = {}

    def add(self, points: list[Place]) -> None:
        new = [point for point in dict.fromkeys(points) if point not in self.scores]
        if new:
            self.scores.update(zip(new, map(float, self._score(new)), strict=True))

    def best(self) -> Place:
        return best_point(self.scores)

    def searched(self) -> Searched:
        points = list(self.scores)
        return Searched(points, list(self.scores.values()), points.index(self.best()))


def best_point(scores: dict[Place, float]) -> Place:
    """Point with the smallest score; among equal ones the smallest, by the first coordinate first.

    Raises
    ------
    ValueError
        If no score is a number.
    """
    numbers = {point: score for point, score in scores.items() if not np.isnan(score)}
    if not numbers:
        raise ValueError("There is no score at any point.")
    least = min(numbers.values())
    if not np.isfinite(least):
        return min(point for point, score in numbers.items() if score == least)
    limit = least + _EQUAL * abs(least)
    return min(point for point, score in numbers.items() if score <= limit)


def grid_search(score: Scorer, axes: Sequence[Array]) -> Searched:
    """Scores at every point of a grid.

    Parameters
    ----------
    score : function that scores some points.
    axes : (v,) values of every coordinate.

    Returns
    -------
    searched : all points, with the last coordinate changing fastest.

    Examples
    --------
    >>> import numpy as np
    >>> def bowl(points):
    ...     return [x**2 + y**2 for x, y in points]
    >>> searched = grid_search(bowl, [np.array([-1.0, 0.0, 2.0]), np.array([1.0, 3.0])])
    >>> len(searched.points), searched.points[searched.best]
    (6, (0.0, 1.0))
    """
    known = _Known(score)
    known.add(list(product(*(axis.tolist() for axis in axes))))
    return known.searched()


def pattern_search(score: Scorer, axes: Sequence[Array], resolution: float) -> Searched:
    """Smallest score by a pattern search, from a coarse grid down to steps of ``resolution``.

    The search first takes every second value of each axis. From the best of these points it
    scores all neighbors one step away in one or more coordinates, and moves to the best. If
    none is better, it halves the step, until the step is ``resolution`` or less. Neighbors
    outside the range of an axis are skipped.

    Parameters
    ----------
    score : function that scores some points.
    axes : (v,) increasing values of every coordinate; an axis of one value is held fixed.
    resolution : the step at which to stop, positive.

    Returns
    -------
    searched : all points scored, in that order.

    Notes
    -----
    The minimum is local, and better for a finer first grid. The steps start at the
    largest distance of neighboring values of the axis, halved so that a coarse valley of one
    cell is not stepped over.

    Examples
    --------
    >>> import numpy as np
    >>> def bowl(points):
    ...     return [(x - 1.3) ** 2 + (y + 2.1 - x) ** 2 for x, y in points]
    >>> axes = [np.arange(-8.0, 9.0, 2.0), np.arange(-8.0, 9.0, 2.0)]
    >>> found = pattern_search(bowl, axes, resolution=0.25)
    >>> found.points[found.best], len(found.points) < 80
    ((1.25, -0.75), True)
    """
    known = _Known(score)
    known.add(list(product(*(_every_second(axis).tolist() for axis in axes))))
    steps = np.array([np.diff(axis).max() if len(axis) > 1 else 0.0 for axis in axes])
    low, high = (np.array([bound(axis) for axis in axes]) for bound in (np.min, np.max))
    while steps.any():
        center = known.best()
        known.add(_neighbors(center, steps, low, high))
        if known.best() != center:
            continue
        if steps.max() <= resolution:
            break
        steps /= 2.0
    return known.searched()


def _every_second(axis: Array) -> Array:
    """Every second value, the last one included."""
    return axis if len(axis) <= 3 else np.unique(np.append(axis[::2], axis[-1]))


def _neighbors(center: Place, steps: Array, low: Array, high: Array) -> list[Place]:
    """Points one step away in each coordinate or several, within the box."""
    moves = product(*((0.0, -1.0, 1.0) if step > 0 else (0.0,) for step in steps))
    points = (np.asarray(center) + steps * move for move in moves)
    return [
        tuple(point.tolist())
        for point in points
        if (point >= low - 1e-12).all() and (point <= high + 1e-12).all()
    ]
