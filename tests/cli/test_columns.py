"""What is said of surprising columns."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from looms._advice import advice_in
from looms._words import rows_of_files
from looms.cli._options import in_options
from looms.cli._request import Prepared, tell_columns
from looms.tables import TablePreprocessor, _columns
from looms.tables._preprocessor import remarks_in
from looms.tables._remarks import CHANGED, sentence
from looms.tables._target import Target


@pytest.fixture(autouse=True)
def of_files():
    with rows_of_files(), advice_in(in_options):
        yield


ROWS = np.arange(30)
TABLE = Prepared(None, Target(np.arange(30), "regression", "as asked"), ROWS)


@pytest.fixture
def said(capsys):
    """Topics of the notes on a frame of these columns, with the texts, as they are printed."""

    def notes(table=TABLE, **columns):
        before = TablePreprocessor().fit(pd.DataFrame(columns))
        tell_columns(before, table)
        remarks = remarks_in(before, table.grouped)
        printed, found = capsys.readouterr().err, [(r.topic, sentence(r)) for r in remarks]
        kinds = ["Warning" if topic in CHANGED else "Note" for topic, _ in found]
        lines = [f"{kind}: {text}\n" for kind, (_, text) in zip(kinds, found, strict=True)]
        assert printed == "".join(lines)
        return dict(found)

    return notes


WORDS = [str(value / 2) for value in ROWS]
WORDS[6], WORDS[8], WORDS[9] = "twelve", None, "-"
LISTS = [*(["none", "a; b", "b; c", "a; b; c", "a; c", "b;d"] * 5)]
DAYS = pd.Timestamp("2021-01-01") + pd.to_timedelta(ROWS, unit="D")


@pytest.mark.parametrize(
    ("topic", "fragment", "columns"),
    [
        (None, "", {"a": ROWS / 7, "b": ROWS % 5, "c": np.array(["red", "blue"])[ROWS % 2]}),
        (None, "", {"d": np.array(["1", "x", "y"])[ROWS % 3]}),
        (None, "", {"e": pd.Categorical(np.array(["1", "2", "x"])[ROWS % 3])}),
        (None, "", {"name": [f"P{k % 20}" for k in ROWS], "b": ROWS % 5}),
        (None, "", {"number": ROWS[:15], "b": ROWS[:15] % 5}),
        ("words", "first 'twelve' in data row 7", {"size": WORDS}),
        ("words", "'test_size'", {"test_size": WORDS}),  # is no option
        ("words", "'width'", {"size": WORDS, "width": WORDS}),
        ("words", "data row 7", {"size": [each and each.replace(".", ",") for each in WORDS]}),
        ("constant", "'same', 'empty'", {"a": ROWS / 7, "same": ROWS * 0, "empty": [None] * 30}),
        ("constant", "'c4' and 2 more", {f"c{k}": ROWS * 0 for k in range(7)} | {"a": ROWS / 7}),
        ("identifiers", "--drop", {"number": ROWS, "b": ROWS % 5}),
        ("identifiers", "'number'", {"number": ROWS * 3.0 + 100, "b": ROWS % 5}),
        ("identifiers of rows", "'name'", {"name": [f"P{k}" for k in ROWS], "b": ROWS % 5}),
        ("dates", "--drop", {"a": DAYS, "b": ROWS % 5}),
        ("dates", "the day before the month", {"a": DAYS.strftime("%d.%m.%Y"), "b": ROWS % 5}),
        ("dates", "the month before the day", {"a": DAYS.strftime("%m/%d/%Y"), "b": ROWS % 5}),
        ("unclear", "'01/02/2021'", {"a": [f"0{k % 9 + 1}/02/2021" for k in ROWS]}),
        ("lists", "separated by ';'", {"drugs": LISTS, "b": ROWS % 5}),
        ("lists", "separated by ','", {"drugs": [cell.replace(";", ",") for cell in LISTS]}),
        (None, "", {"name": [f"Ann {k}, of {k}" for k in ROWS // 2 % 9], "b": ROWS % 5}),
    ],
)
def test_topics_of_columns(said, topic, fragment, columns):
    found = said(**columns)
    assert list(found) == ([] if topic is None else [topic])
    assert topic is None or fragment in found[topic]


@pytest.mark.parametrize(
    ("name", "values"),
    [("who", "P{}"), ("patient_id", "{}"), ("ID", "{}"), ("PatientNr", "{}"), ("patient", "{}")],
)
def test_a_column_that_may_say_which_rows_belong_together(said, name, values):
    column = pd.Series([values.format(k // 3) for k in range(90)])
    column = pd.to_numeric(column) if values == "{}" else column
    shuffled = column.sample(frac=1, random_state=0, ignore_index=True)
    assert f"--groups {name}" in said(**{name: shuffled})["repeated"]
    assert said(replace(TABLE, grouped=True), **{name: shuffled}) == {}
    alone = pd.Series(
        [column.dtype.type(100 + k) if values == "{}" else f"P{k + 100}" for k in range(50)]
    )
    assert "repeated" in said(**{name: [*column[:-9], *alone[:9]]})  # some have one row only
    assert said(**{name: [*column[:-50], *alone]}) == {}
    acid = np.random.default_rng(0).permutation(np.arange(90) // 3)
    assert said(acid=acid, color=["x", "y", "z"] * 30) == {}


def test_whole_numbers_whose_rows_follow_one_another_may_say_which_belong_together(said):
    visits = np.repeat(np.arange(36), [1, 4, 2, 3] * 9)
    assert list(said(code=visits)) == ["repeated"]
    assert said(code=visits % 30) == {}  # such as an age, which two patients may share


@pytest.mark.parametrize("values", [range(12), [f"P{k}" for k in range(12)]])
def test_there_may_be_few_persons(said, values):
    column = ([*values] * 8)[:90]
    assert list(said(Subject=column)) == ["repeated"]
    assert said(site=column) == {}


def test_sparse_features_give_no_note(capsys):
    tell_columns(TablePreprocessor().fit(sparse.csr_array(np.eye(30))), TABLE)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("decimal", [",", None])
def test_columns_of_two_decimal_marks(looms, tmp_path, decimal):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(90, size=60) / 4, "b": rng.integers(90, size=60) / 4})
    frame["b"] = [f"{value:g}".replace(".", ",") for value in frame["b"]]
    frame.assign(ill=ROWS.repeat(2) % 2).to_csv("marks.csv", sep=";", index=False)
    told = looms("check", "marks.csv", "-t", "ill", *(["--decimal", decimal] if decimal else []))
    text = " ".join(told.stdout.split())
    assert "has another decimal mark than the --decimal of the table; write all columns" in text
    assert "belong together" not in text
    assert told.stdout.count("treated as text") == 1


def test_columns_are_spoken_of_before_the_search(fit, pets):
    pytest.importorskip("sklearn.callback")  # since scikit-learn 1.9
    frame = pd.read_csv(pets)
    frame["weight"] = frame["weight"].astype(object).where(frame.index != 5, "heavy")
    frame.to_csv(pets, index=False)
    before, _, after = fit(pets, "-t", "kind", "-c", "linear").stderr.partition("Candidate 1")
    assert "Warning: column 'weight' is treated as text" in before
    assert "treated as text" not in after


@pytest.mark.slow
def test_columns_are_typed_once(fit, pets, monkeypatch):
    """A fit decides what each column is once, and brings its cells to numbers and text once."""
    read, of = [], _columns.read_column
    monkeypatch.setattr(
        _columns, "read_column", lambda c, *given: read.append(c.name) or of(c, *given)
    )
    assert fit(pets, "-t", "kind", "-c", "linear").exit_code == 0
    assert sorted(read) == ["color", "indoors", "weight"]
