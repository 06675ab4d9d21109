"""What a cell means by the kinds and marks that the rows of a fit decided, whatever holds it."""

import pickle
from datetime import date, datetime, time, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from skops import io as skops

from looms import KernelClassifier, TabularClassifier
from looms.datasets._table import WRITTEN
from looms.tables import Columns, TablePreprocessor
from looms.tables._cells import Cells, Marks, is_rounded, number_of

MARKS = Marks(), Marks(","), Marks(".", ","), Marks(",", ".")
#: Cells by these marks: a dash for no number, a star for one that is only read if it is clear.
MEANT = """
    1           1           1           1           1
    +1          1           1           1           1
    -2e-1       -0.2        -0.2        -0.2        -0.2
    1e400       inf         inf         inf         inf
    -Infinity   -inf        -inf        -inf        -inf
    .5          0.5         0.5*        0.5         0.5*
    ,5          0.5*        0.5         0.5*        0.5
    1.          1           1*          1           1*
    1.5         1.5         1.5*        1.5         1.5*
    0,25        0.25*       0.25        0.25*       0.25
    1.25e3      1250        1250*       1250        1250*
    0.250       0.25        0.25*       0.25        0.25*
    1.250       1.25        -           1.25        1250
    -1,250      -           -1.25       -1250       -1.25
    1,250.5     -           -           1250.5      -
    1.250,5     -           -           -           1250.5
    1.234.567   -           -           -           1234567
    1,234,567   -           -           1234567     -
    1,25,000    -           -           -           -
    1_000       -           -           -           -
    0x10        -           -           -           -
    nan(x)      -           -           -           -
    \u0661      -           -           -           -
    \uff11      -           -           -           -
    1e          -           -           -           -
    --1         -           -           -           -
    1\u00a0000  -           -           -           -
"""


def written(*cells):
    return pd.DataFrame({"a": pd.Series([*cells], dtype=WRITTEN)})


def objects(*cells):
    return pd.DataFrame({"a": pd.Series([*cells], dtype=object)})


@pytest.mark.parametrize("line", MEANT.strip().split("\n"))
def test_numbers_by_marks(line):
    cell, *meant = filter(None, line.split(" "))
    for marks, each in zip(MARKS, meant, strict=True):
        for strict in (False, True):
            number = np.nan if each == "-" or (strict and "*" in each) else float(each.strip("*"))
            np.testing.assert_equal(number_of(cell, marks, strict=strict), number)
            for other, make in ((np.nan, written), (1.5, objects)):
                X = make(f" {cell}\t", "?", "x" if make is written else other)
                numbers = Cells(X["a"]).numbers(marks, strict=strict)
                np.testing.assert_equal(numbers, [number, np.nan, other])
            if not np.isnan(number):  # all are numbers
                for column in (written(cell, "1")["a"], objects(cell, 1)["a"]):
                    numbers = Cells(column).numbers(marks, strict=strict)
                    np.testing.assert_equal(numbers, [number, 1])


def test_very_long_and_odd_cells():
    long = "9" * 5000
    rounded = [
        long,
        f"-{long}",
        10**400,
        2**53 + 1,
        np.int64(2**53 + 1),
        f"+{'0' * 5000}{2**60 + 1}",
    ]
    assert all(map(is_rounded, rounded))
    assert not any(map(is_rounded, ["0" * 5000 + "1", 2**53, str(2**60), True, 1.5, "1.5", "x"]))
    assert not Cells(written(*["1.5"] * 9, "nan(x)")["a"]).holds_only_numbers(".")
    for X in (written(long, "1"), objects(long, 1.5), objects(10**400, 1.5)):
        with pytest.raises(ValueError, match=r"'a' goes up to .*e\+.* in row 0"):
            Columns.of(X)
    half = objects("\ud800", "b")
    assert Columns.of(half) == {"a": "category"}
    assert TablePreprocessor().fit_transform(half).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="column of numbers, and row 0 holds"):
        Columns({"a": "number"}).read(half)


def test_gaps_are_no_cells_however_they_are_written():
    gaps = "? NA N/A n/a #N/A NaN nan NULL null None <NA> #DIV/0! #VALUE! #REF! #NAME? #NUM! #NULL!"
    cells = ["", " ", None, *gaps.split(), *(f"\t{gap}\u00a0" for gap in gaps.split())]
    for X in (written(*cells, " 7 "), objects(*cells, " 7 ")):
        for kind, last in (("number", 7), ("category", "7")):
            values = Columns({"a": kind}).read(X)["a"].tolist()
            assert pd.isna(values[:-1]).all()
            assert values[-1] == last
    assert Columns.of(written(*cells, "7")) == {"a": "number"}


@pytest.mark.parametrize(
    ("cells", "beside", "given", "kind", "marks", "meant"),
    [
        ("0,5 7", "1", None, "number", ",", "7.50=7.5 1,500=1.5 7.500=no -7.500=no"),
        ("0,5 7.500", "1", None, "number", ",.", "7.500=7500 7.50=7.5 0,500=0.5"),
        ("1 2", "0,5 7.500", None, "number", ",.", "7.500=no 0.5=0.5"),
        ("0,5 2", "1,5 7.500", None, "number", ",.", "7.500=no 7,500=7.5"),
        ("0,5 2 x", "7.500 1", None, "category", ",.", "7.500=7.500"),
        ("7.500 1", "1", None, "number", ".", "7,500=no 7,5=7.5 0,500=0.5"),
        ("7.500 1", "1", ",", "number", ",.", "7.500=7500 7,5=7.5"),
        ("7,500 1", "1", (",", ""), "number", ",", "7,500=7.5 7.500=no"),
        ("0,5 7", "7.25", None, "category", ".", "0,5=0,5"),
        ("7,500.5 1", "1", None, "category", ".", "1=1"),
        ("0.5 0,5", "1", None, "category", ".", "0.5=0.5"),
        ("01 2", "1", None, "category", ".", "01=01 1=1"),
        ("5E10 2", "1", None, "category", ".", "5E10=5E10 1=1"),
        (f"{2**53 + 1} 2", "1", None, "category", ".", "5=5"),
        ("1 True", "1", None, "truth", ".", "true=True 0=False"),
    ],
)
def test_the_fit_decides_kinds_and_marks(cells, beside, given, kind, marks, meant):
    X = written(*cells.split()).join(written(*beside.split()).set_axis(["b"], axis=1))
    found = Columns.of(X, decimal=given)
    assert (found["a"], "".join(found.marks)) == (kind, marks)
    if beside == "1":
        assert Columns.of(objects(*cells.split()))["a"] == (
            "truth" if kind == "truth" else "category"
        )
    for cell, value in (each.split("=") for each in meant.split()):
        for new in (written("1", cell), objects("1", cell)):
            if value == "no":
                with pytest.raises(ValueError, match=f"'a' is a column .* row 1 holds '{cell}'"):
                    found.only("a").read(new)
            else:
                (read,) = found.only("a").read(new).values()
                assert read[1] == (float(value) if kind == "number" else value)


def test_columns():
    kinds = {"a": "number", "b": "day-first date"}
    comma = Columns(kinds, ",", ["a"])
    assert repr(comma) == f"Columns({kinds}, decimal=',', thousands=('a',))"
    assert comma == kinds == Columns(kinds)
    assert comma != Columns(kinds)
    assert comma == Columns(dict(kinds), ",", {"a", "c"}) != Columns({"a": "number"}, ",", "a")
    X = written("1,5", "x")
    for decimal in (",", (",", ""), "."):
        assert Columns.of(X, decimal=decimal).marks == (decimal[0], "")
    (told,) = Columns.of(X).read(written("1,500", "1.500,25"), decimal=",").values()
    assert Columns.of(X)["a"] == "category"
    assert told.tolist() == ["1,500", "1.500,25"]
    (told,) = Columns({"a": "number"}).read(written("1,500", "1.500,25"), decimal=",").values()
    assert told.tolist() == [1.5, 1500.25]
    assert Columns({"a": "truth"}).typed(written("1", "false"))["a"].tolist() == [True, False]
    with pytest.raises(ValueError, match=r"'a' is .*True.*, and row 1 holds 'x'"):
        Columns({"a": "truth"}).typed(written("1", "x"))
    with pytest.raises(ValueError, match="'a' 'text'"):
        Columns({"a": "text"})
    for decimal in ("", ";", (".", "."), (".", ",", "")):
        with pytest.raises(ValueError, match=r"decimal|thousands"):
            Columns.of(X, decimal=decimal)


@pytest.mark.parametrize("again", ["pickle", "skops"])
def test_kinds_and_marks_are_saved_with_a_preprocessor(again):
    X = pd.concat(
        [written("1,5", "2.500", "7,25"), written("u", "v", "u").set_axis(["b"], axis=1)], axis=1
    )
    for kinds, decimal in (
        (Columns({"a": "number"}, ",", ["a"]), None),
        (None, (",", ".")),
        ({"a": "number", "b": "category"}, ","),
        (None, None),
    ):
        before = TablePreprocessor(kinds=kinds, decimal=decimal).fit(X)
        if again == "pickle":
            after = pickle.loads(pickle.dumps(before))
        else:
            content = skops.dumps(before)
            after = skops.loads(content, trusted=skops.get_untrusted_types(data=content))
        assert after.kinds_ == before.kinds_
        assert after.kinds_.marks == before.kinds_.marks == (",", ".")
        assert (after.decimal, after.kinds) == (decimal, kinds)
        assert getattr(after.kinds, "marks", None) == getattr(kinds, "marks", None)
        assert after.ranges_ == before.ranges_ == {"a": [1.5, 2500]} | after.ranges_
        assert (after.remarks_, after.max_categories) == (before.remarks_, 40)
        np.testing.assert_array_equal(after.transform(X), before.transform(X))


@pytest.mark.slow
def test_a_model_of_given_columns_is_fitted_again_with_them():
    x = np.linspace(-2, 2, 40).round(2)
    X = written(*(f"{each}".replace(".", ",") for each in x))
    X["code"] = pd.Series(np.resize(["01", "02"], 40), dtype=WRITTEN)
    kinds = Columns({"a": "number", "code": "number"}, ",")
    model = TabularClassifier(
        [KernelClassifier("linear")], preprocess=TablePreprocessor(kinds=kinds)
    )
    y = np.where((x > 0) ^ (np.arange(40) % 7 == 0), "yes", "no")
    assert model.fit(X, y).preprocessor_.kinds_.marks == (",", "")
    scores = model.evaluate()
    assert model.preprocessor_.kinds_ == kinds
    plain = clone(model).set_params(preprocess__kinds=None).fit(kinds.typed(X), y)
    assert repr(plain.evaluate()) == repr(scores)


def test_times_of_day_are_categories_and_durations_are_refused():
    times = [time(8), time(20, 30), None, time(8)]
    text = written("08:00:00", "20:30:00", "", "08:00:00")
    first = TablePreprocessor().fit(text)
    for X in (objects(*times), pl.DataFrame({"a": times}), pa.table({"a": times})):
        assert Columns.of(X) == {"a": "category"}
        np.testing.assert_array_equal(first.transform(X), first.transform(text))
        np.testing.assert_array_equal(TablePreprocessor().fit_transform(X), first.transform(text))
    lengths = [timedelta(1), None]
    for X in (
        *(objects(*lengths), pd.DataFrame({"a": lengths}), pl.DataFrame({"a": lengths})),
        pa.table({"a": lengths}),
    ):
        for read in (Columns.of, Columns({"a": "number"}).read, first.transform):
            with pytest.raises(ValueError, match=r"column 'a' holds (durations|.*timedelta)"):
                read(X)


def test_typed_cells_are_those_of_text():
    text = pd.DataFrame(
        {
            "code": ["1", "2", "x"],
            "day": ["2020-01-31", "2020-02-01", "never"],
            "ill": ["true", "FALSE", "False"],
        },
        dtype=WRITTEN,
    )
    prepare = TablePreprocessor().fit(pd.concat([text] * 2))
    days = date(2020, 1, 31), date(2020, 2, 1)
    for code, day, ill in (
        ([1, 2], days, [True, False]),
        ([1.0, 2.0], pd.to_datetime(days), [1, 0]),
        (np.array([np.float32(1), np.int8(2)], object), np.array(days, "M8[s]"), [1.0, 0.0]),
        ([1, " 2"], [pd.Timestamp(days[0]), "2020-02-01"], ["1", "0"]),
        (["1", 2.0], [datetime(2020, 1, 31), days[1]], ["TRUE", False]),
    ):
        new = pd.DataFrame({"code": code, "day": day, "ill": ill})
        np.testing.assert_array_equal(prepare.transform(new), prepare.transform(text)[:2])
