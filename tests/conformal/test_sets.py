"""Margins, p-values and prediction sets against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looms.conformal import _sets, prediction_sets
from looms.conformal._sets import checked_arrays, class_margins, class_p_values

RNG = np.random.default_rng(0)
N, M, K = 40, 6, 3
LOO = RNG.normal(size=N).round(1)  # with ties
SCORES = RNG.normal(size=(M, N, K)).round(1)
LABELS = np.arange(N) % K


def counted(within):
    found = np.empty((M, K))
    for t in range(M):
        for y in range(K):
            members = [i for i in range(N) if not within or LABELS[i] == y]
            at_most = sum(LOO[i] <= SCORES[t, i, y] for i in members)
            found[t, y] = (at_most + 1) / (len(members) + 1)
    return found


def p_values(loo, scores, labels=None):
    return class_p_values(*checked_arrays(loo, scores, labels))


@pytest.mark.parametrize("within", [False, True])
def test_p_values(within):
    ours = p_values(LOO, SCORES, LABELS if within else None)
    assert_allclose(ours, counted(within), rtol=1e-14)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.8, 0.9])
def test_sets(within, level):
    labels = LABELS if within else None
    expected = counted(within) > 1 - level + 1e-9
    assert_array_equal(prediction_sets(LOO, SCORES, level, labels), expected)


def test_p_value_equal_to_the_level_is_outside():
    scores = np.full((1, 9, 1), -1.0)
    assert p_values(np.zeros(9), scores).item() == 0.1
    assert not prediction_sets(np.zeros(9), scores, 0.9).item()
    scores[0, 0, 0] = 1.0
    assert prediction_sets(np.zeros(9), scores, 0.9).item()


def test_scores_that_differ_by_rounding_are_equal():
    """Nine samples and a new one, whose scores are equal but for rounding."""
    for size in (1e-9, 1.0, 1e9):
        loo, new = np.full(9, 0.1 + 0.2) * size, np.full((1, 9, 1), 0.3) * size
        assert p_values(loo, new).item() == 0.1
        assert prediction_sets(loo, new, 0.5).item()
        assert not prediction_sets(loo, new - 1e-7 * size, 0.5).item()


def test_error_of_rounding():
    """It is in units of the scores, as of intervals; large scores have their own."""
    loo, new = np.full(9, 0.5), np.full((1, 9, 1), 0.4)
    for size in (1.0, 10.0):
        assert not prediction_sets(size * loo, size * new, 0.5, rounding_error=0.09 * size).item()
        assert prediction_sets(size * loo, size * new, 0.5, rounding_error=0.11 * size).item()
    each = np.where(np.arange(9) < 5, 0.11, 0.0)
    assert prediction_sets(loo, new, 0.5, rounding_error=each).item()
    assert not prediction_sets(loo, new, 0.9, rounding_error=0.0).item()
    far = np.full(9, (0.1 + 0.2) * 1e9), np.full((1, 9, 1), 0.3 * 1e9)
    assert prediction_sets(*far, 0.5, rounding_error=0.0).item()
    infinite = np.full(9, np.inf), np.full((1, 9, 1), np.inf)
    assert prediction_sets(*infinite, 0.5).item()


def test_a_score_far_from_the_others_makes_none_of_them_equal():
    loo, new = np.full(9, 0.5), np.full((1, 9, 1), 0.5 - 1e-4)
    loo[0] = -1e8
    assert not prediction_sets(loo, new, 0.5).item()


def test_margins():
    assert_array_equal(class_margins([[0.3], [-2.0]]), [[-0.3, 0.3], [2.0, -2.0]])
    outputs = [[0.5, -0.2, 0.1], [1.0, 1.0, -1.0]]
    assert_allclose(class_margins(outputs), [[0.4, -0.7, -0.4], [0.0, 0.0, -2.0]])


@pytest.mark.parametrize(
    ("loo", "scores", "labels", "level", "message"),
    [
        (LOO, SCORES, None, 1.0, "confidence_level must be"),
        (LOO, SCORES, None, 0.99, "needs 99 .*, got 40"),
        (LOO, SCORES, LABELS, 0.95, "Class with index 0: .* needs 19 "),
        (LOO[:-1], SCORES, None, 0.9, "loo_scores must have shape"),
        (LOO, SCORES[0], None, 0.9, "loo_scores must have shape"),
        (LOO, SCORES, LABELS[:-1], 0.9, "one class index per sample"),
        (LOO, SCORES, LABELS + 1, 0.9, "class indices from 0 to 2"),
    ],
)
def test_bad_input(loo, scores, labels, level, message):
    with pytest.raises(ValueError, match=message):
        prediction_sets(loo, scores, level, labels)


@pytest.mark.parametrize(("level", "labels"), [(1.5, None), (0.999, None), (0.95, LABELS)])
def test_a_coverage_out_of_reach_is_an_error_before_any_work(monkeypatch, level, labels):
    monkeypatch.setattr(_sets, "class_p_values", lambda *arrays: pytest.fail("worked"))
    with pytest.raises(ValueError, match="level"):
        prediction_sets(LOO, SCORES, level, labels)
