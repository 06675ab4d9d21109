"""Folds: rows that are held out together, from whatever scikit-learn calls cv."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from looms.folds import ForwardSplit, GapKFold, fold_numbers, group_numbers, joined_groups

N = 24
Y = np.arange(float(N))
LABELS = np.array(["no", "yes", "yes"] * 8)
GROUPS = np.arange(N) // 2 % 6
X = np.zeros((N, 1))


def sets_of(folds):
    """Rows that some repetition tests together, and rows that it leaves out with them."""
    return {
        (tuple(np.flatnonzero(row == k)), tuple(np.flatnonzero((row == k) | (row == -2 - k))))
        for row in folds
        for k in np.unique(row[row >= 0])
    }


def train_of(cv):
    """Rows that each split trains on."""
    rows = X if cv.time is None else np.zeros((len(cv.time), 1))
    return [train.tolist() for train, _ in cv.split(rows)]


def splits_of(splitter, y=Y, groups=None):
    return {
        (tuple(np.sort(test)), tuple(np.setdiff1d(range(N), train)))
        for train, test in splitter.split(X, y, groups)
    }


SPLITTERS = {
    "each row": (LeaveOneOut(), 1),
    "folds": (KFold(5), 1),
    "classes": (StratifiedKFold(4, shuffle=True, random_state=3), 1),
    "groups": (GroupKFold(3), 1),
    "classes in groups": (StratifiedGroupKFold(3), 1),
    "each group": (LeaveOneGroupOut(), 1),
    "repeated": (RepeatedKFold(n_splits=3, n_repeats=4, random_state=0), 4),
    "repeated classes": (RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0), 2),
    "drawn": (ShuffleSplit(12, test_size=0.5, random_state=0), 12),
    "pairs": (LeavePOut(2), None),
    "predefined": (PredefinedSplit(np.arange(N) % 4), 1),
    "windows": (GapKFold(5), 1),
    "windows and gaps": (GapKFold(5, gap=2), 2),
    "parts": (ShuffleSplit(12, train_size=0.3, test_size=0.5, random_state=0), None),
}


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("name", SPLITTERS)
def test_folds_of_a_splitter_are_its_test_rows(name):
    splitter, n_repetitions = SPLITTERS[name]
    groups = GROUPS if "group" in name else None
    folds = fold_numbers(splitter, LABELS, groups, classes=True)
    assert sets_of(folds) == splits_of(splitter, LABELS, groups)
    if n_repetitions is not None:
        assert len(folds) == n_repetitions
    as_splits = list(splitter.split(X, LABELS, groups))
    as_masks = [[np.isin(np.arange(N), part) for part in split] for split in as_splits]
    for other in (as_splits, as_masks, iter(as_splits)):
        if name != "drawn":
            assert_array_equal(fold_numbers(other, LABELS, groups, classes=True), folds)


@pytest.mark.parametrize(
    ("labels", "groups", "splitter"),
    [
        (None, None, KFold(3)),
        (LABELS, None, StratifiedKFold(3)),
        (None, GROUPS, GroupKFold(3)),
        (LABELS, GROUPS, StratifiedGroupKFold(3)),
    ],
)
def test_a_number_of_folds_is_stratified_for_classes_and_keeps_groups(labels, groups, splitter):
    y, classes = (Y, False) if labels is None else (labels, True)
    for three in (3, np.int64(3), "3"):
        folds = fold_numbers(three, y, groups, classes=classes)
        assert sets_of(folds) == splits_of(splitter, y, groups)
    twice = fold_numbers("2x3", y, groups, classes=classes)
    assert twice.shape == (2, N)
    assert sets_of(twice[:1]) != sets_of(twice[1:])
    assert_array_equal(fold_numbers("2x3", y, groups, classes=classes), twice)
    other = fold_numbers("2x3", y, groups, classes=classes, random_state=7)
    assert sets_of(other) != sets_of(twice)


def test_without_cv_it_is_each_row_or_each_group():
    assert_array_equal(fold_numbers(None, LABELS, classes=True), [np.arange(len(Y))])
    assert_array_equal(fold_numbers(None, LABELS, GROUPS, classes=True), [GROUPS])


def test_numbers_of_folds_are_taken_as_they_are():
    folds = fold_numbers("2x3", Y)
    assert_array_equal(fold_numbers(folds, Y), folds)
    assert_array_equal(fold_numbers(folds[0], Y), folds[:1])
    assert_array_equal(fold_numbers(GROUPS, LABELS, GROUPS, classes=True), [GROUPS])


class TestRefusals:
    @pytest.mark.parametrize("cv", [3.0, True, "x", "5x", "x2", "2x3x4", "", -2, object()])
    def test_what_is_no_cv(self, cv):
        with pytest.raises(ValueError, match=r"Unknown cv .* known are a number of folds"):
            fold_numbers(cv, Y)

    @pytest.mark.parametrize(
        ("cv", "groups", "message"),
        [
            (1, None, "number of rows, 24, got 1"),
            ("5x1", None, "24, got 5x1"),
            ("0x2", None, "got 0x2"),
            (25, None, "24, got 25"),
            (7, GROUPS, "number of groups, 6, got 7"),
        ],
    )
    def test_a_number_of_folds_out_of_range(self, cv, groups, message):
        with pytest.raises(ValueError, match=message):
            fold_numbers(cv, Y, groups)

    @pytest.mark.parametrize(
        ("cv", "message"),
        [
            (
                list(KFold(3).split(X))[1:],
                r"tests 16 of 24 rows, and never row 0.*looms.folds.GapKFold",
            ),
            ([(range(13), range(12, N))], "trains on 13 and tests on 12 of 24.*or in neither"),
            ([(range(1, N), [0]), (range(N), [])], "Split 1 of cv tests no row"),
            ([(np.ones(N - 1, bool), np.zeros(N - 1, bool))], "Split 0 of cv trains on"),
            ([(np.arange(12.0) + 12.5, np.arange(12))], "trains on 12 and tests on 12"),
            ([([], range(N))], "All rows are in one fold"),
            ([], "cv gives no split"),
            ([1, 2], "cv must give pairs"),
            (ShuffleSplit(2, random_state=0), "tests 6 of 24 rows.*give more splits"),
        ],
    )
    def test_splits_with_a_row_in_both_parts_or_in_no_test(self, cv, message):
        with pytest.raises(ValueError, match=message):
            fold_numbers(cv, Y)

    @pytest.mark.parametrize(
        "folds", [np.zeros(N - 1, int), np.zeros((1, N, 1), int), np.arange(N) / 2.0]
    )
    def test_an_array_that_is_no_number_of_a_fold_for_each_row(self, folds):
        with pytest.raises(ValueError, match="a fold number for each of 24 rows"):
            fold_numbers(folds, Y)

    def test_an_array_that_would_be_refused_as_splits(self):
        for folds, message in (
            (np.zeros(N, int), "in one fold"),
            (np.arange(N) - 1, "never row 0"),
            (np.arange(N) % 2, "of a group"),
            ((LABELS == "no").astype(int), "class 'no' are in one fold"),
        ):
            with pytest.raises(ValueError, match=message):
                fold_numbers(folds, LABELS, GROUPS if "group" in message else None, classes=True)

    def test_a_fold_or_group_that_has_a_class_to_itself(self):
        labels = np.sort(LABELS)
        for cv, groups, message in (
            (KFold(3), None, "All rows of class 'no' are in one fold.*more folds"),
            (None, np.arange(N) // 8, "All rows of class 'no' are in one group"),
        ):
            with pytest.raises(ValueError, match=message):
                fold_numbers(cv, labels, groups, classes=True)
        for cv, groups in ((KFold(3), None), (None, np.arange(N) // 8)):
            fold_numbers(cv, Y, groups)  # numbers have no classes

    @pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
    def test_folds_that_separate_a_group(self):
        with pytest.raises(ValueError, match=r"separates rows of a group.*GroupKFold"):
            fold_numbers(KFold(5), Y, GROUPS)
        with pytest.raises(ValueError, match="splits groups: give groups"):
            fold_numbers(GroupKFold(3), Y)


#: The same labels of one type, in what may hold them.
REPRESENTATIONS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "array of objects": partial(np.array, dtype=object),
    "Series": lambda labels: pd.Series(labels, index=range(7, 7 + len(labels))),
    "Series of objects": partial(pd.Series, dtype=object),
    "categories": lambda labels: pd.Series(
        pd.Categorical(labels, categories=list(dict.fromkeys(labels)), ordered=True)
    ),
    "Index": pd.Index,
    "pyarrow": pa.array,
    "chunks": lambda labels: pa.chunked_array([pa.array(labels[:2]), pa.array(labels[2:])]),
    "dictionary": lambda labels: pa.array(labels).dictionary_encode(),
    "Series of pyarrow": lambda labels: pd.Series(
        labels, dtype=pd.ArrowDtype(pa.array(labels).type)
    ),
    "polars": pl.Series,
}


class TestGroups:
    @pytest.mark.parametrize("form", REPRESENTATIONS)
    @pytest.mark.parametrize("kind", ["text", "numbers", "dates"])
    def test_the_same_labels_have_the_same_numbers_whatever_holds_them(self, form, kind):
        labels = {
            "text": list("cadbCa"),
            "numbers": [30, 2**60 + 1, 30, -1, 4, 2**60],
            "dates": [date(2020, 1, day) for day in (30, 2, 30, 1, 4, 2)],
        }[kind]
        order = sorted(set(labels))
        expected = [order.index(label) for label in labels]
        assert_array_equal(group_numbers(REPRESENTATIONS[form](labels), 6), expected)

    @pytest.mark.parametrize("form", ["list", "tuple", "array of objects", "Series", "polars"])
    def test_labels_that_cannot_be_sorted_are_in_the_order_of_appearance(self, form):
        labels = ["1", 2, 1, "1", date(2020, 1, 1), 2]
        make = REPRESENTATIONS[form]
        if form == "polars":
            make = partial(pl.Series, dtype=pl.Object)
        assert_array_equal(group_numbers(make(labels), 6), [0, 1, 2, 0, 3, 1])

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
    @pytest.mark.parametrize(
        "numbers",
        [
            lambda labels: group_numbers(labels, 4),
            lambda labels: joined_groups(labels, range(4)),
            lambda labels: joined_groups(range(4), labels),
            lambda labels: next(GapKFold(2).split(X[:4], groups=labels)),
        ],
        ids=["groups", "joined", "joined to", "windows"],
    )
    def test_a_missing_label_is_refused(self, missing, numbers):
        refused = pytest.raises(ValueError, match="no label for 2 of 4 rows, the first is row 1: g")
        for one, other in (("a", "b"), (2, 1), (2.0, 1.0)):
            labels = [one, missing, other, missing]
            for given in (labels, pd.Series(labels), pd.Series(labels, dtype=object)):
                with refused:
                    numbers(given)
        with refused:
            numbers(pd.Series(["a", None, "b", None], dtype="string"))
        with refused:
            numbers(pl.Series(["a", None, "b", None]))
        with refused:
            numbers(np.ma.array([2, 7, 1, 7], mask=[0, 1, 0, 1]))

    @pytest.mark.parametrize("labels", [[1, 2], np.ones((3, 2)), 5])
    def test_another_number_of_labels_than_rows_is_refused(self, labels):
        with pytest.raises(ValueError, match="one label per row, 3 of them"):
            group_numbers(labels, 3)

    def test_one_group_of_all_rows_is_refused(self):
        with pytest.raises(ValueError, match=r"All rows are in one group, Ann: .*a finer one"):
            group_numbers(["Ann"] * 3, 3)

    def test_joined_groups_are_the_least_that_separate_neither(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            a, b = rng.integers(0, 12, (2, 15))
            together = (a[:, None] == a) | (b[:, None] == b)
            for _ in range(4):  # 16 steps from row to row
                together = together @ together
            joined = joined_groups(a, b)
            assert_array_equal(joined[:, None] == joined, together)
            assert_array_equal(np.unique(joined), np.arange(joined.max() + 1))


class TestWindows:
    def test_windows_are_cut_and_gaps_measured_in_time(self):
        time = np.random.default_rng(0).permutation(np.arange(N) // 2 * 1.5)
        left = np.ones(N)
        for train, test in GapKFold(5, gap=3.0, time=time).split(X):
            first, last = time[test].min(), time[test].max()
            near = (time >= first - 3.0) & (time <= last + 3.0)
            assert_array_equal(train, np.flatnonzero(~near))
            assert (np.isin(time, np.unique(time[test])[1:-1]) <= np.isin(range(N), test)).all()
            left[test] -= 1
        assert not left.any()

    @pytest.mark.parametrize("seed", range(4))
    def test_decimal_times_are_as_exact_fractions(self, seed):
        rng = np.random.default_rng(seed)
        unit = int(rng.choice([3, 7, 10, 24, 60, 100, 1000]))
        start = int(rng.choice([0, -5, 2020, 45_000, 1_700_000_000])) * unit
        numerators, length = start + rng.integers(0, 40, 30), int(rng.integers(0, 8))
        exact, gap = [Fraction(int(k), unit) for k in numerators], Fraction(length, unit)
        expected = []
        for window in np.array_split(np.argsort(numerators, kind="stable"), 5):
            first, last = exact[window[0]], exact[window[-1]]
            expected.append([k for k in range(30) if not first - gap <= exact[k] <= last + gap])
        for one in (gap, length / unit, length * (1 / unit)):
            for time in (numerators / unit, numerators * (1 / unit), list(numerators / unit)):
                assert train_of(GapKFold(5, one, time)) == expected
            assert train_of(GapKFold(5, one, exact)) == expected
            single = ((numerators - start) / unit).astype(np.float32)
            assert train_of(GapKFold(5, one, single)) == expected

    @pytest.mark.parametrize("start", [0, 2**53, -(2**62), 10**17, 1_700_000_000 * 10**9])
    @pytest.mark.parametrize("gap", [0, 2.9, 0.6 / 0.3, Fraction(5, 2), np.int8(2)])
    def test_whole_numbers_are_exact(self, start, gap):
        steps = np.random.default_rng(1).integers(0, 40, N)
        expected = train_of(GapKFold(5, gap, steps))
        times = start + steps
        forms = [times, times.tolist(), pd.Series(times, dtype="Int64"), pa.array(times)]
        forms += [[2**70 + int(k) for k in steps], np.uint64(2**63) + steps.astype(np.uint64)]
        for time in forms:
            assert train_of(GapKFold(5, gap, time)) == expected
        wide = [step * 10**17 for step in steps.tolist()]  # whose differences leave 64 bits
        assert train_of(GapKFold(5, gap, steps)) == train_of(GapKFold(5, int(gap) * 10**17, wide))

    @pytest.mark.parametrize("form", [*REPRESENTATIONS, "time zone", "moments", "nanoseconds"])
    def test_dates_are_dates_whatever_holds_them(self, form):
        days = np.random.default_rng(2).integers(0, 40, N)
        dates = [date(9999, 11, 1) + timedelta(int(day)) for day in days]
        if form == "time zone":
            time = pd.Series(pd.to_datetime(dates, utc=True)).dt.tz_convert("Asia/Tokyo")
        elif form == "moments":
            time = [datetime(day.year, day.month, day.day) for day in dates]
        elif form == "nanoseconds":
            time = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D").as_unit("ns")
        else:
            time = REPRESENTATIONS[form](dates)
        expected = train_of(GapKFold(5, 2, days))
        for gap in (timedelta(2), pd.Timedelta(days=2.5), np.timedelta64(48, "h")):
            assert train_of(GapKFold(5, gap, time)) == expected

    def test_months_are_a_gap_between_months(self):
        months = np.arange("2020-01", "2022-01", dtype="M8[M]")
        assert train_of(GapKFold(5, np.timedelta64(2, "M"), months)) == train_of(GapKFold(5, 2))
        assert train_of(GapKFold(5, timedelta(31), months)) == train_of(GapKFold(5, 1))
        with pytest.raises(
            ValueError, match="gap must be a duration of 0 or more, such as of days"
        ):
            train_of(GapKFold(5, np.timedelta64(1, "M"), months.astype("M8[D]")))

    @pytest.mark.parametrize("gap", [0, 1, 1.25])
    def test_windows_are_tested_by_the_rows_before_them(self, gap):
        time = np.random.default_rng(3).integers(0, 30, N) / 2  # with ties
        order = np.argsort(time, kind="stable")
        windows = np.array_split(order, 5)[1:]
        splits = list(ForwardSplit(4, gap, time).split(X))
        for (train, test), window in zip(splits, windows, strict=True):
            assert test.tolist() == sorted(window)
            before = time + gap < time[window].min()
            assert train.tolist() == np.flatnonzero(before).tolist()
        assert (
            repr(ForwardSplit(4, gap, time))
            == f"ForwardSplit(n_splits=4, gap={gap}, time=<24 times>)"
        )
        last = fold_numbers(ForwardSplit(4, gap, time), Y).max()
        groups = np.arange(N) // 4
        for train, test in ForwardSplit(3).split(X, groups=groups):
            assert not np.isin(groups[train], groups[test]).any()
        assert last == 4  # the rows before the first window leave together, too
        with pytest.raises(ValueError, match=r"to 23, got 24.*24 rows"):
            list(ForwardSplit(24).split(X))
        with pytest.raises(ValueError, match=r"before it leave no rows.*fewer windows"):
            list(ForwardSplit(4, gap=9).split(X))

    def test_rows_of_a_group_in_the_window_are_not_trained_on(self):
        groups = np.arange(N) // 4
        folds = fold_numbers(GapKFold(5, gap=1), Y, groups)
        assert len(folds) > 1
        for train, test in GapKFold(5, gap=1).split(X, groups=groups):
            assert not np.isin(groups[train], groups[test]).any()
        with pytest.raises(ValueError, match="separates rows of a group"):
            fold_numbers(list(GapKFold(5, gap=1).split(X)), Y, groups)

    def test_a_group_may_be_in_part_in_a_gap(self):
        groups = np.arange(N) // 4
        splits = list(GapKFold(6, gap=2).split(X))  # windows are groups, gaps halves of them
        assert sets_of(fold_numbers(splits, Y, groups)) == sets_of(fold_numbers(splits, Y))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_splits": N + 1}, "24, got 25"),
            ({"gap": -1}, "gap must be a number of 0 or more, got -1"),
            ({"gap": np.timedelta64(1, "D")}, "gap must be a number of 0 or more"),
            ({"gap": 1, "time": pd.date_range("2020", periods=N)}, "gap must be a duration"),
            ({"time": np.arange(3.0)}, "for each of 24 rows, got float64 of shape"),
            ({"time": ["noon"] * N}, "a number or a date for each of 24 rows"),
            ({"time": np.where(np.arange(N) == 3, np.nan, 1.0)}, "time is missing in row 3"),
            ({"time": [1, 2, None] * 8}, "time is missing in row 2"),
            ({"time": np.where(np.arange(N) == 3, np.inf, 1.0)}, "time is infinite in row 3"),
            ({"time": [1, Decimal("Infinity")] * 12}, "time is infinite in row 1"),
        ],
    )
    def test_what_is_no_time(self, options, message):
        with pytest.raises(ValueError, match=message):
            fold_numbers(GapKFold(**options), Y)

    def test_a_gap_that_leaves_none_to_train_on(self):
        with pytest.raises(ValueError, match="no rows to train on"):
            fold_numbers(GapKFold(3, gap=N), Y)
