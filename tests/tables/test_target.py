"""Classification or regression, by the target."""

import numpy as np
import pandas as pd
import pytest

from looms._words import rows_of_files
from looms.datasets._table import WRITTEN
from looms.tables._target import MOST_CLASSES, labels_of, matched_labels, numbers, target_of, text

MANY, DIGITS = [*range(MOST_CLASSES + 1)], [*map(str, range(30))]


@pytest.fixture(autouse=True)
def of_files():
    with rows_of_files():
        yield


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        (["a", "b", "a"], "classification", "2 different labels"),
        ([True, False, True], "classification", "2 different labels"),
        ([1, 2, 2], "classification", "2 different whole numbers"),
        ([-1.0, 1.0, 1.0], "classification", "2 different whole numbers"),
        ([*range(MOST_CLASSES)] * 2, "classification", "20 different whole numbers"),
        ([1, 1, 2, 2, 3], "classification", "3 different whole numbers"),
        ([1200, 3400, 560, 560, 910], "regression", "4 different whole numbers"),
        (MANY, "regression", "21 different whole numbers"),
        ([0.5, 1.5, 0.5], "regression", "2 different numbers, not all whole"),
        (pd.Categorical([1.5, 2.5, 1.5]), "classification", "2 different labels"),
        *((y, "classification", "2 different labels") for y in (["1", "2", "1"], ["x", "x", "y"])),
        (["0", "1", "2"] * 9, "classification", "3 different labels"),
        (["x", "x", "1.5", "y"] * 2, "classification", "3 different labels"),
        (["1", "2", "3+"] * 9, "classification", "3 different labels"),
    ],
)
def test_auto(y, task, reason):
    target = target_of(pd.Series(y), "auto")
    assert target.task is task
    assert f"the target has {reason}; choose by task=..." in target.reason
    for asked in ("classification", "regression") if task == "regression" else ():
        target = target_of(pd.Series(y), asked)
        assert (target.task, target.reason) == (asked, "as asked")


def test_the_target_of_single_rows():
    assert "; 1 of them in only one row" in target_of(pd.Series([1, 2, 2]), "auto").reason
    for y in ([1, 1, 2, 2], [0.5, 1.0], [*MANY, 3]):  # the last are numbers to predict
        assert "only" not in target_of(pd.Series(y), "auto").reason
    with pytest.raises(ValueError, match="the table has one row with a target"):
        target_of(pd.Series(["a"]), "auto")
    for value in ("a", 1, 0.5):
        with pytest.raises(ValueError, match=f"only one value, {value!r}: name another column"):
            target_of(pd.Series([value] * 2), "auto")


def test_labels_that_differ_by_case_or_blanks():
    (note,) = target_of(pd.Series(["Ja ", "nein", "ja", "Ja "]), "classification").notes
    assert "blanks around them: 'Ja ', 'ja'; write" in note
    for column in (["a", "b"], [1, 2]):
        assert target_of(pd.Series(column), "classification").notes == ()


@pytest.mark.parametrize(
    ("y", "problem"),
    [
        (["1,5", "2,5", "2,5"], "decimal mark"),
        (["1,234", "2.5"] * 3, "'1,234' in data row 1"),
        (["12 %", "5 %"] * 3, "'12 %' in data row 1"),
        (["1.5", "2", "n.b."] * 9, "'n.b.' in data row 3"),
        ([*DIGITS, "x "], "'x' in data row 31"),
        (DIGITS, "'0' in data row 1"),
        (["a", "b", "c", *"d" * 30, *"e" * 9], "5 different labels in 42 rows, 3 of them"),
    ],
)
def test_text_that_is_hardly_classes(y, problem):
    y = pd.Series(y)
    with pytest.raises(ValueError) as caught:
        target_of(y, "auto")
    assert problem in str(caught.value)
    assert "task='classification'" in str(caught.value)
    assert target_of(y, "classification").task == "classification"


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pd.Series([1.0, 2.0]), [1, 2]),
        (np.array([1, -1]), [1, -1]),
        (pd.Series([0.5, 1.0]), ["0.5", "1"]),
        (pd.Series([True, False]), ["True", "False"]),
        (pd.Series(["x ", "y"]), ["x", "y"]),
        (pd.Series(["1", "-20"], dtype=WRITTEN), [1, -20]),
        (pd.Series(["1E200", "5E10"], dtype=WRITTEN), ["1E200", "5E10"]),
        (pd.Series(["inf", "9" * 5000], dtype=WRITTEN), ["inf", "9" * 5000]),
    ],
)
def test_labels(column, labels):
    y = target_of(column, "classification").y
    assert y.tolist() == labels == labels_of(column).tolist()
    assert (y.dtype == np.int64) == isinstance(labels[0], int)
    assert text(y).tolist() == [*map(str, labels)]  # so that those of files and models compare


def test_truth_is_labeled_as_the_classes_are():
    labels = pd.Series(["1", "FALSE", "x"])
    for classes in (["True", "False"], ["TRUE", "false"]):
        assert matched_labels(labels, np.array(classes)).tolist() == [*classes, "x"]
    assert matched_labels(labels, np.array(["True", "x"])).tolist() == ["1", "FALSE", "x"]


def test_numbers():
    assert numbers(pd.Series([1, 2])).dtype == np.float64
    for y, problem in (
        (["a", "b"], "'a'.*task='cl"),
        (["1,5", "a"], "'a'.*data row 2 .*decimal="),
        ([True, False], "numbers"),
    ):
        with pytest.raises(ValueError, match=problem):
            numbers(pd.Series(y))
    for y in (["1", "1e200"], ["1", "inf"]):
        with pytest.raises(ValueError, match=r"'the target' .* row 2"):
            target_of(pd.Series(y, dtype=WRITTEN), "auto")
