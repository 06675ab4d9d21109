"""Classification or regression, by the target."""

import numpy as np
import pandas as pd
import pytest

from looms._words import rows_of_files
from looms.tables._target import MOST_CLASSES, numbers, target_of, text


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
        ([1, 2], "classification", "2 different whole numbers"),
        ([1, 1, 2, 2, 3], "classification", "3 different whole numbers"),
        ([1200, 3400, 560, 7800, 910], "regression", "5 different whole numbers"),
        ([1200, 3400, 560, 560, 910], "regression", "4 different whole numbers"),
        (range(MOST_CLASSES + 1), "regression", "21 different whole numbers"),
        ([0.5, 1.5, 0.5], "regression", "2 different numbers, not all whole"),
        (pd.Categorical([1.5, 2.5, 1.5]), "classification", "2 different labels"),
    ],
)
def test_auto(y, task, reason):
    target = target_of(pd.Series(y), "auto")
    assert target.task is task
    assert f"the target has {reason}; choose by task=..." in target.reason


def test_the_target_of_single_rows():
    assert "; 1 of them in only one row" in target_of(pd.Series([1, 2, 2]), "auto").reason
    assert "only" not in target_of(pd.Series([1, 1, 2, 2]), "auto").reason
    assert "only" not in target_of(pd.Series([0.5, 1.0]), "auto").reason
    many = pd.Series([*range(MOST_CLASSES + 1), 3])  # numbers to predict, and no classes
    assert "only" not in target_of(many, "auto").reason


def test_labels_that_differ_by_case_or_blanks():
    (note,) = target_of(pd.Series(["Ja ", "nein", "ja", "Ja "]), "classification").notes
    assert "blanks around them: 'Ja ', 'ja'; write" in note
    for column in (["a", "b"], [1, 2]):
        assert target_of(pd.Series(column), "classification").notes == ()


@pytest.mark.parametrize(
    ("y", "problem"),
    [
        (
            ["1,5", "2,5", "2,5"],
            "3 of its 3 values look like numbers, because its decimal mark is not",
        ),
        (["1,234", "2.5"] * 3, "'1,234' in data row 1; choose the mark by decimal=..., or use ta"),
        (["12 %", "5 %"] * 3, "because '12 %' in data row 1 has other signs; write only numbers"),
        (["1.5", "2", "n.b."] * 9, "9 are not: 'n.b.' in data row 3, 'n.b.' in data row 6, 'n.b"),
        ([*map(str, range(30)), "x "], "1 is not: 'x' in data row 31; correct them or remove"),
        (
            [str(k) for k in range(30)],
            "is stored as text: '0' in data row 1; store it as numbers",
        ),
        (
            [f"N{k % 6}" for k in range(10)],
            "6 different labels in 10 rows, 2 of them in only one row",
        ),
        (
            ["a", "b", "c", *"d" * 30, *"e" * 9],
            "5 different labels in 42 rows, 3 of them in only one",
        ),
    ],
)
def test_text_that_is_hardly_classes(y, problem):
    y = pd.Series(y)
    with pytest.raises(ValueError) as caught:
        target_of(y, "auto")
    assert problem in str(caught.value)
    assert "use task='classification' to make each" in str(caught.value)
    assert target_of(y, "classification").task == "classification"


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
    assert target_of(pd.Series(y), "auto").task == "classification"


@pytest.mark.parametrize("y", ["a", 1, 0.5])
def test_one_value_is_refused(y):
    with pytest.raises(ValueError, match=f"only one value, {y!r}: name another column"):
        target_of(pd.Series([y, y]), "auto")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_as_asked(task):
    target = target_of(pd.Series([1, 2]), task)
    assert (target.task, target.reason) == (task, "as asked")


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pd.Series([1.0, 2.0]), [1, 2]),
        (np.array([1, -1]), [1, -1]),
        (pd.Series([0.5, 1.0]), ["0.5", "1"]),
        (pd.Series([True, False]), ["True", "False"]),
        (pd.Series(["x ", "y"]), ["x", "y"]),
    ],
)
def test_labels(column, labels):
    y = target_of(column, "classification").y
    assert y.tolist() == labels
    assert (y.dtype == np.int64) == isinstance(labels[0], int)


def test_labels_of_files_and_models_compare_as_text():
    assert text(np.array([1, 2])).tolist() == ["1", "2"]


def test_numbers():
    assert numbers(pd.Series([1, 2])).dtype == np.float64
    with pytest.raises(ValueError, match=r"must be numbers, but this one holds 'a'; use task='cl"):
        numbers(pd.Series(["a", "b"]))
    with pytest.raises(ValueError, match=r"holds 'a'; .* correct data row 2 .* by decimal=..."):
        numbers(pd.Series(["1,5", "a"]))
    with pytest.raises(ValueError, match="must be numbers"):
        numbers(pd.Series([True, False]))
