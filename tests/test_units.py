"""Units of rows: every way to number them, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from looms.folds import GapKFold
from looms.units import Units

N = 12
Y = np.arange(float(N))
GROUPS = np.arange(N) // 2 % 4


def test_rows_are_counted_first_then_units_by_their_first_rows():
    units = Units.of_numbers([[7, 3, 7, 9, 3, 2], [5, 5, -1, 1, -3, 1]])
    assert [rows.tolist() for rows in units] == [[3], [5], [0, 2], [1, 4], [0, 1], [3, 4, 5]]
    assert units.repetition.tolist() == [0, 0, 0, 0, 1, 1]
    assert_array_equal(units.number[1], [4, 4, -1, 5, 5, 5])
    assert_array_equal(units.tested[1], [True, True, False, True, False, True])
    assert [batch.rows.shape for batch in units.batches] == [(2, 1), (3, 2), (1, 3)]
    assert_array_equal(np.concatenate([batch.ids for batch in units.parts(2)]), range(6))
    assert max(len(batch.ids) for batch in units.parts(2)) == 2
    for k, rows in enumerate(units):
        assert_array_equal(np.flatnonzero(~units.stays(np.array([k]))[0]), rows)


def test_words_for_what_is_held_out():
    for cv, groups, word in (
        (None, None, "sample"),
        (None, GROUPS, "group"),
        (3, None, "fold"),
        ("4x3", None, "fold"),  # as many folds as rows
        ("2x2", GROUPS, "fold"),  # as many folds as groups
    ):
        assert Units.of(cv, Y, groups).unit == word


def test_windows_of_time_are_known_as_such():
    in_order, mixed = np.arange(N) // 2, np.arange(N) % 2
    windows = Units.of(GapKFold(3, gap=1), Y, in_order)
    assert (windows.unit, windows.in_folds, windows.together) == ("window", True, "times")
    for some in (windows.once, windows.among(np.arange(2, N)), windows.only(np.arange(2))):
        assert some.windows
    assert Units.of(GapKFold(3), Y).together == ""
    assert Units.of(3, Y, in_order).together == "groups"
    assert Units.of_numbers(windows.codes, mixed).together == "groups"
    assert not Units.of(3, Y).windows


def test_single_rows_are_alone():
    assert Units.rows(N).alone
    assert Units.of(None, Y).alone
    assert not Units.of(None, Y, GROUPS).alone
    assert Units.of_numbers(np.arange(N)[::-1]).alone
    assert not Units.of_numbers(np.where(Y < 3, -1, np.arange(N))).alone


def test_a_unit_that_tests_no_row_stays():
    units = Units.of_numbers([0, 0, 1, 1, -4, -4])
    assert units.n_units == 2
    assert_array_equal(units.number, [[0, 0, 1, 1, -1, -1]])


def test_windows_whose_gaps_meet_are_one_pass():
    units = Units.of(GapKFold(4, gap=2), Y)
    assert units.shape[0] > 1
    ((repetition, rows),) = units.passes
    assert_array_equal(rows, np.arange(N))
    assert units.tested[repetition, rows].all()
    assert len(Units.of("2x3", Y).passes) == 2


@pytest.mark.parametrize("cv", [None, 3, "2x2"])
def test_units_of_some_rows_are_these_rows_of_the_units(cv):
    units, some = Units.of(cv, Y, GROUPS), np.array([1, 2, 3, 6, 7, 8, 11])
    ours = {tuple(some[rows]) for rows in units.among(some)}
    assert ours == {tuple(np.intersect1d(rows, some)) for rows in units} - {()}
    same = GROUPS[some][:, None] == GROUPS[some]
    clusters = units.among(some).clusters
    assert_array_equal(clusters[:, None] == clusters, same)


@pytest.mark.parametrize(
    ("numbers", "match"),
    [
        (np.zeros(N, dtype=int), "one fold"),
        ([np.arange(N), np.zeros(N, dtype=int)], "one fold"),
        (np.zeros((1, N, 1), dtype=int), "one per row"),
        (np.arange(N) / 2, "must be integers"),
        ([], "one per row"),
    ],
)
def test_numbers_that_are_none_are_refused(numbers, match):
    with pytest.raises(ValueError, match=match):
        Units.of_numbers(numbers)
