"""Classification or regression, by the target."""

import numpy as np
import pandas as pd
import pytest

from looms.cli._errors import InputError
from looms.cli._options import Task
from looms.cli._task import MOST_CLASSES, alike_labels, choose_task, labels, numbers, text


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        (["a", "b", "a"], Task.CLASSIFICATION, "2 different labels"),
        ([True, False, True], Task.CLASSIFICATION, "2 different labels"),
        ([1, 2, 2], Task.CLASSIFICATION, "2 different whole numbers"),
        ([-1.0, 1.0, 1.0], Task.CLASSIFICATION, "2 different whole numbers"),
        (range(MOST_CLASSES), Task.CLASSIFICATION, "20 different whole numbers"),
        (range(MOST_CLASSES + 1), Task.REGRESSION, "21 different whole numbers"),
        ([0.5, 1.5, 0.5], Task.REGRESSION, "2 different numbers, not all whole"),
        (pd.Categorical([1.5, 2.5, 1.5]), Task.CLASSIFICATION, "2 different labels"),
    ],
)
def test_auto(y, task, reason):
    chosen, why = choose_task(pd.Series(y), Task.AUTO)
    assert chosen is task
    assert f"the target has {reason}; choose with --task" in why


def test_the_target_of_single_rows():
    assert "; 1 of them in one row only" in choose_task(pd.Series([1, 2, 2]), Task.AUTO)[1]
    assert "only" not in choose_task(pd.Series([1, 1, 2, 2]), Task.AUTO)[1]
    assert "only" not in choose_task(pd.Series([0.5, 1.0]), Task.AUTO)[1]
    many = pd.Series([*range(MOST_CLASSES + 1), 3])  # numbers to predict, and no classes
    assert "only" not in choose_task(many, Task.AUTO)[1]


def test_labels_that_differ_by_case_or_blanks():
    assert alike_labels(pd.Series(["Ja ", "nein", "ja", "Ja "])) == [["Ja ", "ja"]]
    assert alike_labels(pd.Series(["a", "b"])) == alike_labels(pd.Series([1, 2])) == []


@pytest.mark.parametrize(
    ("y", "problem"),
    [
        (["1,5", "2,5", "2,5"], "3 of its 3 values look like numbers, for its decimal mark is not"),
        (["1,234", "2.5"] * 3, "'1,234' in data row 1; choose the mark by --decimal, or use --ta"),
        (["1.5", "2", "n.b."] * 9, "9 are not: 'n.b.' in data row 3, 'n.b.' in data row 6, 'n.b"),
        ([*map(str, range(30)), "x "], "1 is not: 'x' in data row 31; correct them or take"),
        (
            [str(k) for k in range(30)],
            "is stored as text: '0' in data row 1; store it as numbers",
        ),
        ([f"N{k % 6}" for k in range(10)], "6 different labels in 10 rows, 2 of them in one row"),
        (["a", "b", "c", *"d" * 30, *"e" * 9], "5 different labels in 42 rows, 3 of them in one"),
    ],
)
def test_text_that_is_hardly_classes(y, problem):
    y = pd.Series(y)
    with pytest.raises(InputError) as caught:
        choose_task(y, Task.AUTO)
    assert problem in str(caught.value)
    assert "use --task classification to make a class of each" in str(caught.value)
    assert choose_task(y, Task.CLASSIFICATION)[0] is Task.CLASSIFICATION


@pytest.mark.parametrize(
    "y",
    [
        ["1", "2", "1"],
        ["0", "1", "2"] * 9,
        ["<5", "5-9", ">9"] * 3,
        ["x", "x", "1.5", "y"] * 2,
        ["1", "2", "3+"] * 9,
    ],
)
def test_text_that_is_classes(y):
    assert choose_task(pd.Series(y), Task.AUTO)[0] is Task.CLASSIFICATION


@pytest.mark.parametrize(
    ("y", "task"),
    [("a", Task.CLASSIFICATION), (1, Task.CLASSIFICATION), (0.5, Task.REGRESSION)],
)
def test_one_value(y, task):
    assert choose_task(pd.Series([y, y]), Task.AUTO) == (task, "the target has one value")


@pytest.mark.parametrize("task", [Task.CLASSIFICATION, Task.REGRESSION])
def test_as_asked(task):
    assert choose_task(pd.Series([1, 2]), task) == (task, "as asked")


def test_labels():
    assert labels(pd.Series([1.0, 2.0])).dtype == np.int64
    assert labels(np.array([1, -1])).tolist() == [1, -1]
    assert labels(pd.Series([0.5, 1.0])).tolist() == ["0.5", "1"]
    assert labels(pd.Series([True, False])).tolist() == ["True", "False"]
    assert labels(pd.Series(["x "])).tolist() == ["x"]
    assert text(np.array([1, 2])).tolist() == ["1", "2"]


def test_numbers():
    assert numbers(pd.Series([1, 2])).dtype == np.float64
    with pytest.raises(InputError, match=r"must be numbers, and this one holds 'a'; use --task cl"):
        numbers(pd.Series(["a", "b"]))
    with pytest.raises(InputError, match=r"holds 'a'; .* correct data row 2 .* by --decimal"):
        numbers(pd.Series(["1,5", "a"]))
    with pytest.raises(InputError, match="must be numbers"):
        numbers(pd.Series([True, False]))
