"""What is said of surprising columns."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from looms._words import rows_of_files
from looms.cli._prepare import column_notes, tell_columns
from looms.tables import TablePreprocessor, _columns
from looms.tables._target import Target


@pytest.fixture(autouse=True)
def of_files():
    with rows_of_files():
        yield


ROWS = np.arange(30)
TARGET = Target(np.arange(30), "regression", "as asked")


@pytest.fixture
def said(capsys):
    """The notes on a frame of these columns."""

    def notes(target=TARGET, **columns):
        before = TablePreprocessor().fit(pd.DataFrame(columns))
        tell_columns(before, target)
        lost = ("treated as text", "(nearly) every row")
        notes = "".join(
            f"{'Warning' if any(why in each for why in lost) else 'Note'}: {each}\n"
            for _, each in column_notes(before)
        )
        assert capsys.readouterr().err == notes
        return notes

    return notes


def test_ordinary_columns_give_no_note(said):
    words = np.array(["red", "blue"])[ROWS % 2]
    grades = np.array(["1", "x", "y"])[ROWS % 3]
    codes = pd.Categorical(np.array(["1", "2", "x"])[ROWS % 3])
    assert said(a=ROWS / 7, b=ROWS % 5, c=words, d=grades, e=codes) == ""


def test_a_word_among_numbers(said):
    cells = [str(value / 2) for value in ROWS]
    cells[6], cells[8], cells[9] = "twelve", None, "-"
    found = said(size=cells, b=ROWS % 5)
    assert (
        "column 'size' is treated as text, with a feature for each value, because 2 of its" in found
    )
    assert "first 'twelve' in data row 7; correct" in found
    assert found.count("\n") == 1
    assert "and so are 'width'" in said(size=cells, width=cells)
    assert "column 'test_size' is treated" in said(test_size=cells)  # no option


def test_numbers_that_are_read_as_text_are_warned_of(fit, tmp_path):
    cells = "\n".join(f"{k}.5;{k % 3}.25;{'x' if k % 2 else 'z'}" for k in range(40))
    path = tmp_path / "marks.csv"
    path.write_text(f"a;b;c\n{cells}\n40,5;1.25;z\n")
    result = fit(path, "-t", "c", "-c", "linear")
    assert result.exit_code == 0, result.stderr
    assert (
        "Warning: column 'a' is treated as text, with a feature for each value, because 1 of its "
        "cells is not a number, first '40,5' in data row 41" in result.stderr
    )
    assert 'Note: marks.csv: read with separator ";"' in result.stderr


def test_a_word_among_numbers_with_commas(said):
    cells = [str(value / 2).replace(".", ",") for value in ROWS]
    assert "first 'twelve' in data row 7" in said(size=[*cells[:6], "twelve", *cells[7:]])


def test_constant_and_empty_columns(said):
    found = said(a=ROWS / 7, same=ROWS * 0, empty=[None] * 30)
    assert "dropped, because they have the same value in every row: 'same', 'empty'" in found
    many = said(a=ROWS / 7, **{f"c{k}": ROWS * 0 for k in range(7)})
    assert "'c4' and 2 more" in many


@pytest.mark.parametrize("values", [ROWS, ROWS * 3.0 + 100])
def test_identifiers(said, values):
    assert "in every row: 'number'; if this is an identifier" in said(number=values, b=ROWS % 5)
    assert said(number=values[:15], b=ROWS[:15] % 5) == ""


def test_texts_that_tell_rows_apart_are_dropped(said):
    names = [f"P{k}" for k in ROWS]
    assert "every row has its own value: 'name'" in said(name=names, b=ROWS % 5)
    assert said(name=[f"P{k % 20}" for k in ROWS], b=ROWS % 5) == ""


@pytest.mark.parametrize(
    ("name", "values"),
    [("who", "P{}"), ("patient_id", "{}"), ("ID", "{}"), ("PatientNr", "{}"), ("patient", "{}")],
)
def test_a_column_that_may_say_which_rows_belong_together(said, name, values):
    column = pd.Series([values.format(k // 3) for k in range(90)])
    column = pd.to_numeric(column) if values == "{}" else column
    target = Target(np.arange(90), "regression", "as asked")
    note = f"most rows share theirs: '{name}'; if rows of one value"
    shuffled = column.sample(frac=1, random_state=0, ignore_index=True)
    assert note in said(target, **{name: shuffled})
    alone = pd.Series(
        [column.dtype.type(100 + k) if values == "{}" else f"P{k + 100}" for k in range(50)]
    )
    assert note in said(target, **{name: [*column[:-9], *alone[:9]]})  # some have one row only
    assert said(target, **{name: [*column[:-50], *alone]}) == ""
    acid = np.random.default_rng(0).permutation(np.arange(90) // 3)
    assert said(target, acid=acid, color=["x", "y", "z"] * 30) == ""


def test_whole_numbers_whose_rows_follow_one_another_may_say_which_belong_together(said):
    target = Target(np.arange(90), "regression", "as asked")
    visits = np.repeat(np.arange(36), [1, 4, 2, 3] * 9)
    assert "share theirs: 'code'" in said(target, code=visits)
    assert said(target, code=visits % 30) == ""  # such as an age, which two patients may share


@pytest.mark.parametrize("values", [range(12), [f"P{k}" for k in range(12)]])
def test_there_may_be_few_persons(said, values):
    target, column = Target(np.arange(90), "regression", "as asked"), [*values] * 8
    assert "share theirs: 'Subject'" in said(target, Subject=column[:90])
    assert said(target, site=column[:90]) == ""


def test_sparse_features_give_no_note(capsys):
    tell_columns(TablePreprocessor().fit(sparse.csr_array(np.eye(30))), TARGET)
    assert capsys.readouterr().err == ""


def test_dates_are_not_used_without_a_word(said):
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(ROWS, unit="D")
    found = said(a=days, b=days.strftime("%d.%m.%Y"), c=days.strftime("%m/%d/%Y"))
    assert "'a': read as a date and used as a number of days; leave it out by --drop" in found
    assert "'b': read as a date, the day before the month, and used" in found
    assert "'c': read as a date, the month before the day, and used" in found
    assert "identifier" not in found


def test_dates_whose_order_is_not_clear(said):
    assert "'a': treated as text, because in dates such as '01/02/2021'" in said(
        a=[f"0{k % 9 + 1}/02/2021" for k in ROWS]
    )


def test_columns_are_spoken_of_before_the_search(fit, pets):
    pytest.importorskip("sklearn.callback")  # since scikit-learn 1.9
    frame = pd.read_csv(pets)
    frame["weight"] = frame["weight"].astype(object).where(frame.index != 5, "heavy")
    frame.to_csv(pets, index=False)
    before, _, after = fit(pets, "-t", "kind").stderr.partition("Candidate 1")
    assert "Warning: column 'weight' is treated as text" in before
    assert "treated as text" not in after


@pytest.mark.slow
def test_columns_are_typed_once(fit, pets, monkeypatch):
    """A fit decides what each column is once, and brings its cells to numbers and text once."""
    read, of = [], _columns.read_column
    monkeypatch.setattr(
        _columns, "read_column", lambda c, *given: read.append(c.name) or of(c, *given)
    )
    assert fit(pets, "-t", "kind").exit_code == 0
    assert sorted(read) == ["color", "indoors", "weight"]
