"""Plans of splits: identity, proportions, refusals."""

import numpy as np
import pytest

from looms.assessment._splits import METHODS, WHOLE, Split, plan

Y = np.repeat(["a", "b", "c"], [50, 30, 20])
RANDOM = [method for method in METHODS if method != "forward"]


def splits_of(method, n_splits=20, y=Y, **options):
    options = {"random_state": 0, "stratified": True, **options}
    return plan(y, method=method, n_splits=n_splits, **options)


def rows_of(splits, y=Y):
    return {split.index: [part.tolist() for part in split.rows(y)] for split in splits}


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("method", RANDOM)
def test_splits_depend_on_seed_and_index_alone(method, stratified):
    few = rows_of(splits_of(method, 20, stratified=stratified))
    many = rows_of(reversed(splits_of(method, 40, stratified=stratified)))
    assert all(many[index] == rows for index, rows in few.items())
    assert len({str(rows) for rows in many.values()}) == len(many)
    other = rows_of(splits_of(method, 20, stratified=stratified, random_state=1))
    assert not any(other[index] == rows for index, rows in few.items() if index != WHOLE)


@pytest.mark.parametrize("method", RANDOM)
def test_seeds_and_names_are_all_different(method):
    splits = [*splits_of(method, 40), *splits_of(method, 40, random_state=1)]
    assert len({split.name for split in splits}) == len(splits)
    seeds = {split.seed(purpose) for split in splits for purpose in range(3)}
    assert len(seeds) == 3 * len(splits)


@pytest.mark.parametrize("method", ["shuffle", "kfold"])
def test_classes_keep_their_shares(method):
    for split in splits_of(method):
        _, counts = np.unique(Y[split.rows(Y)[1]], return_counts=True)
        assert counts.tolist() == [5, 3, 2]


def test_every_row_is_tested_once_a_repeat():
    splits = splits_of("kfold", 8, test_size=0.25)
    for repeat in (splits[:4], splits[4:]):
        tested = np.concatenate([split.rows(Y)[1] for split in repeat])
        assert sorted(tested) == list(range(100))


def test_bootstrap_keeps_the_number_of_each_class():
    whole, *resamples = splits_of("bootstrap")
    assert whole.index == WHOLE
    left_out = []
    for split in resamples:
        train, test = split.rows(Y)
        assert np.unique(Y[train], return_counts=True)[1].tolist() == [50, 30, 20]
        assert set(Y[test]) == {"a", "b", "c"}
        left_out.append(len(test) / 100)
    assert np.mean(left_out) == pytest.approx(np.exp(-1), abs=0.03)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("method", RANDOM)
def test_rows_of_a_group_are_on_one_side(method, stratified):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, 100)
    y = Y[rng.permutation(100)]  # groups hold rows of several classes
    sizes = []
    for split in splits_of(method, stratified=stratified):
        train, test = split.rows(y, groups)
        if split.index != WHOLE:
            assert not set(groups[train]) & set(groups[test])
            assert set(train) | set(test) == set(range(100))
            assert set(y[train]) == {"a", "b", "c"}
            sizes.append(len(test))
        if split.resamples:
            times = np.bincount(train, minlength=100)
            assert all(len(set(times[groups == g])) == 1 for g in set(groups))
    if method != "bootstrap":
        assert np.mean(sizes) == pytest.approx(10, abs=1)


@pytest.mark.parametrize("method", RANDOM)
def test_groups_of_one_row_change_nothing(method):
    groups = np.random.default_rng(0).permutation(100)
    for split in splits_of(method):
        assert [p.tolist() for p in split.rows(Y, groups)] == [p.tolist() for p in split.rows(Y)]


@pytest.mark.parametrize("method", ["shuffle", "kfold"])
def test_groups_of_unequal_size_keep_the_shares_of_rows(method):
    sizes = np.random.default_rng(1).permutation(np.repeat([1, 3, 9], [60, 40, 20]))
    groups = np.repeat(np.arange(120), sizes)
    y = (groups < 40).astype(int)
    for split in splits_of(method, y=y, test_size=0.2, groups=groups):
        _, test = split.rows(y, groups)
        counts = np.bincount(y[test]) / np.bincount(y)
        assert abs(counts - 0.2).max() * np.bincount(y).min() <= 9  # a group


@pytest.mark.parametrize("method", ["shuffle", "bootstrap"])
def test_a_class_of_one_group_of_its_own_and_of_mixed_ones_is_split(method):
    """Nineteen groups hold both classes, one holds a single class."""
    groups = np.repeat(np.arange(20), 6)
    y = np.where(groups == 7, 1, np.arange(120) % 2)
    tested = [split.rows(y, groups)[1] for split in splits_of(method, 60, y, groups=groups)[1:]]
    in_test = [7 in groups[test] for test in tested]
    assert 0 < np.mean(in_test) < 0.6


def test_classes_that_few_groups_hold_are_in_both_parts():
    """The commoner class by rows is in three groups of 23, all of which hold the other too."""
    groups = np.concatenate([np.repeat(np.arange(3), 100), np.repeat(np.arange(3, 23), 2)])
    y = np.where((groups < 3) & (np.arange(340) % 100 > 0), "in three", "in all")
    for split in splits_of("shuffle", y=y, test_size=0.2, groups=groups):
        train, test = split.rows(y, groups)
        assert set(y[train]) == set(y[test]) == {"in three", "in all"}


def test_windows_follow_their_training_rows():
    splits = splits_of("forward", 4, test_size=7, gap=5)
    for k, split in enumerate(splits):
        train, test = split.rows(Y)
        assert test.tolist() == list(range(93 - 7 * k, 100 - 7 * k))
        assert train.tolist() == list(range(88 - 7 * k))
    assert rows_of(splits_of("forward", 8, test_size=7, gap=5)[:4]) == rows_of(splits)


def test_windows_leave_out_earlier_rows_of_their_groups():
    groups = np.arange(100) // 8  # the window from row 90 on shares 88 and 89 with its group
    split = splits_of("forward", 2, groups=groups)[0]
    assert split.rows(Y, groups)[0].tolist() == list(range(88))
    with pytest.raises(ValueError, match="Split 0"):
        splits_of("forward", 2, groups=np.arange(100) % 5)


def test_small_classes_are_in_both_parts():
    y = np.repeat([0, 1, 2], [90, 2, 8])
    for split in splits_of("shuffle", 50, y):
        train, test = split.rows(y)
        assert set(y[train]) == set(y[test]) == {0, 1, 2}
        assert len(test) == 10


@pytest.mark.parametrize(
    ("method", "test_size", "n_splits"),
    [
        ("shuffle", 0.1, 100),
        ("bootstrap", 0.1, 101),  # with the fit to all rows
        ("kfold", 1 / 3, 99),
        ("forward", 0.1, 5),
        ("forward", 0.3, 3),
    ],
)
def test_splits_by_default(method, test_size, n_splits):
    assert len(splits_of(method, None, test_size=test_size)) == n_splits


@pytest.mark.parametrize(("test_size", "n_test"), [(0.1, 10), (0.25, 25), (7, 7), (0.101, 11)])
@pytest.mark.parametrize("stratified", [True, False])
def test_size_of_the_test_part(test_size, n_test, stratified):
    for split in splits_of("shuffle", test_size=test_size, stratified=stratified):
        assert len(split.rows(Y)[1]) == n_test


@pytest.mark.slow
def test_rows_are_uniform():
    """Every row is tested equally often, within chance."""
    counts = np.zeros(100)
    for split in splits_of("shuffle", 1000):
        counts[split.rows(Y)[1]] += 1
    assert abs(counts - 100).max() < 4.5 * np.sqrt(90)


def test_frozen_example():
    """Stores rely on splits that never change."""
    split = Split(3, "shuffle", 0.1, 0, False)
    assert split.seed() == 1874364848
    assert split.rows(np.zeros(20))[1].tolist() == [2, 9]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("method", {"method": "loo"}),
        *(("n_splits", {"n_splits": n}) for n in (1, 2.5)),
        *(("test_size", {"test_size": size}) for size in (0, 1.0, 100, "much", np.nan, True)),
        *(("test_size", {"method": "kfold", "test_size": size}) for size in (0.3, 5)),
        ("10 folds", {"method": "kfold", "n_splits": 15}),
        ("gap", {"gap": 3}),
        ("gap", {"method": "forward", "gap": -1}),
        ("n_splits=9", {"method": "forward"}),
        ("test_size", {"method": "forward", "gap": 85}),
        ("test_size", {"method": "forward", "test_size": 0}),
        ("got 5", {"method": "kfold", "y": np.arange(5.0), "stratified": False}),
        ("got 9", {"method": "kfold", "stratified": False, "groups": np.arange(100) % 9}),
    ],
)
def test_refusals(name, options):
    with pytest.raises(ValueError, match=name):
        splits_of(**{"method": "shuffle", **options})


@pytest.mark.parametrize(("method", "few"), [("shuffle", 1), ("bootstrap", 1), ("kfold", 9)])
def test_a_class_with_too_few_rows_or_groups(method, few):
    y = np.repeat(["common", "rare"], [60, few])
    with pytest.raises(ValueError, match=f"'rare' has {few} member"):
        splits_of(method, y=y)
    splits_of(method, y=np.append(y, "rare"))
    groups = np.minimum(np.arange(100) // 2, 40)  # all rows of the last class are one
    with pytest.raises(ValueError, match="'c' has 1 group"):
        splits_of(method, groups=groups)
