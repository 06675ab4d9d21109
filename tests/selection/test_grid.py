"""Searches without gradient: points in, scores out."""

import numpy as np
import pytest

from looms.selection._grid import grid_search, pattern_search

AXES = [np.arange(-6.0, 7.0, 2.0), np.arange(-4.0, 5.0, 2.0)]


class Bowl:
    """A tilted valley that counts what it is asked."""

    def __init__(self, x=1.3, y=-0.8):
        self.minimum = x, y
        self.batches = []

    def __call__(self, points):
        self.batches.append(points)
        x, y = self.minimum
        return [(a - x) ** 2 + 4 * (b - y + 0.4 * (a - x)) ** 2 for a, b in points]


def test_grid_scores_every_point_once():
    bowl = Bowl()
    found = grid_search(bowl, AXES)
    assert len(found.points) == len(set(found.points)) == 35
    assert bowl.batches == [found.points]
    assert found.points[found.best] == (0.0, 0.0)  # 2.0, beside 3.9 at (2, -2)
    assert found.scores[found.best] == min(found.scores)


@pytest.mark.parametrize("resolution", [2.0, 1.0, 0.5, 0.25])
def test_pattern_ends_at_its_resolution(resolution):
    bowl = Bowl()
    found = pattern_search(bowl, AXES, resolution)
    assert sum(map(len, bowl.batches)) == len(set(found.points)) == len(found.points)
    best = np.array(found.points[found.best])
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    around = [tuple(best + resolution * np.array(step)) for step in steps]
    assert min(Bowl()(around)) == found.scores[found.best]
    assert (best % resolution == 0).all()


@pytest.mark.parametrize("minimum", [(50.0, 0.0), (-50.0, 50.0)])
def test_pattern_stays_in_the_box(minimum):
    found = pattern_search(Bowl(*minimum), AXES, 0.5)
    points = np.array(found.points)
    assert (points.min(axis=0) == [-6, -4]).all()
    assert (points.max(axis=0) == [6, 4]).all()


def test_a_single_value_is_held():
    found = pattern_search(Bowl(), [AXES[0], np.array([1.0])], 0.5)
    assert {point[1] for point in found.points} == {1.0}
    assert len(found.points) < 15


@pytest.mark.parametrize("search", [grid_search, lambda s, a: pattern_search(s, a, 0.5)])
def test_points_without_a_score_are_passed_over(search):
    def half(points):
        return [np.nan if x > 0 else score for (x, _), score in zip(points, Bowl()(points))]  # noqa: B905

    found = search(half, AXES)
    assert found.points[found.best][0] == 0.0
    with pytest.raises(ValueError, match="no score at any point"):
        search(lambda points: [np.nan] * len(points), AXES)


@pytest.mark.parametrize("search", [grid_search, lambda s, a: pattern_search(s, a, 0.5)])
def test_of_equal_scores_the_smallest_coordinates(search):
    found = search(lambda points: [1.0 + 1e-12 * x for x, _ in points], AXES)
    assert found.points[found.best] == (-6.0, -4.0)
