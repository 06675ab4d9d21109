"""ARFF against scikit-learn's copy of liac-arff, and line by line what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.externals import _arff

from looms.datasets import TableError, read_table
from looms.tables._cells import is_written

HEADER = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n"
RICH = r"""% a comment
@RELATION 'two words'

@attribute 'first one' REAL
@attribute "it's" {'x y', 'it\'s, z', w, é}
@Attribute n integer
@attribute t string
@DATA
% another comment
1.5, 'x y', 3, 'some text'
?, 'it\'s, z', 4, "more, text"
-2e3, 'é', -5, ?

4, w, 6, bare
5, ?, 7, w
"""


@pytest.fixture
def read(write):
    return lambda text: read_table(write(text, "t.arff")).X


def test_agrees_with_liac_arff(read):
    theirs = _arff.loads(RICH)
    for frame in (read(RICH), read("\ufeff" + RICH)):
        assert list(frame) == [name for name, _ in theirs["attributes"]]
        for j, column in enumerate(frame):
            ours = [None if pd.isna(value) else value for value in frame[column]]
            assert ours == [row[j] for row in theirs["data"]]
        assert pd.api.types.is_integer_dtype(frame["n"])


def test_text_and_nominal_values_are_as_written(read):
    X = read("@attribute\ta\t{'?',01}\n@attribute b string\n@data\n'?',\t' x '\n?,01\n")
    assert all(map(is_written, (X["a"], X["b"])))
    assert X["a"].fillna("gap").tolist() == ["?", "gap"]
    assert X["b"].tolist() == [" x ", "01"]
    cells = ["'a\u2028b\x1cc'", " 'it\\'s \\n\\u0041\\\\' ", "'\\ud83e\\udde6'"]
    X = read("\n".join(["@attribute a string", "@data", *cells]))
    assert X["a"].tolist() == ["a\u2028b\x1cc", "it's \nA\\", "\U0001f9e6"]


@pytest.mark.parametrize(
    ("declared", "cell", "date"),
    [
        ("date", "2006-07-16", "2006-07-16"),
        ("DATE", "2006-07-16T12:30:01", "2006-07-16 12:30:01"),
        ("date yyyy-MM-dd", "9999-12-31", "9999-12-31"),
        ("date 'yyyy-dd-MM'", "2020-05-01", "2020-01-05"),
        ('date "yyyyddMM"', "20200501", "2020-01-05"),
        ("date\t'dd.MM.yy HH:mm'", "'5.1.20 07:08'", "2020-01-05 07:08"),
        ("date ddMMyyyy", "05121112", "1112-12-05"),
        ("date \"yyyy-MM-dd'T'HH:mm:ss\" % of birth", "2020-05-01T10:11:12", "2020-05-01 10:11:12"),
        ("date \"MM/dd/yyyy 'o''clock' H\"", '"05/01/2020 o\'clock 9"', "2020-05-01 09:00"),
    ],
)
def test_dates_are_read_by_their_declared_format(read, declared, cell, date):
    dates = read(f"@attribute a {declared}\n@data\n{cell}\n?\n")["a"]
    assert dates[0] == np.datetime64(date)
    assert pd.isna(dates[1])


def test_formats_of_dates_that_are_not_read_are_refused(read):
    forms = "HHmm|ssSSS|yyyy-MM|MMM dd yyyy|dd.MM.yyyy z|EEE dd.MM.yyyy|YYYY-MM-dd"
    for form in forms.split("|"):
        with pytest.raises(TableError, match="line 1: the format of dates"):
            read(f"@attribute a date '{form}'\n@data\n?\n")


def test_a_comment_ends_a_declaration(read):
    names = "@attribute a {-1,'}',1} %{poor, rich}\n@attribute b numeric % years\n"
    assert read(f"{names}@data\n'}}',2\n1,3\n").to_numpy().tolist() == [["}", 2], ["1", 3]]


def test_numbers_are_exact(read):
    large, rounded = "100000000000000000000,x\n?,y\n-1.5e300,x\n.5,x\ninf,y\n", 2**53 + 1
    values = read(HEADER + large)["a"].tolist()
    assert values[:1] + values[2:] == [1e20, -1.5e300, 0.5, float("inf")]
    for cells in ([rounded, "?"], [rounded, "0.5"], [10**20 + 1]):
        assert read(HEADER + "".join(f"{c},x\n" for c in cells))["a"][0] == cells[0]
    assert read(HEADER + "9007199254740992,x\n-5,y\n")["a"].dtype == np.int64
    assert read(HEADER + "0" * 5000 + "1,x\n")["a"].tolist() == [1]
