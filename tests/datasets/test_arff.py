"""ARFF against scikit-learn's copy of liac-arff, and line by line what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.externals import _arff

from looms.datasets import TableError, read_table
from looms.tables._cells import is_written

HEADER = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n"

QUOTE = "has a quotation mark that is out of place or not closed"

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


def read(folder, text, target=None):
    path = folder / "t.arff"
    path.write_text(text, encoding="utf-8")
    return read_table(path, target)


def test_agrees_with_liac_arff(tmp_path):
    frame = read(tmp_path, RICH).X
    theirs = _arff.loads(RICH)
    assert list(frame) == [name for name, _ in theirs["attributes"]]
    for j, column in enumerate(frame):
        ours = [None if pd.isna(value) else value for value in frame[column]]
        assert ours == [row[j] for row in theirs["data"]]
    assert pd.api.types.is_integer_dtype(frame["n"])


def test_text_and_nominal_values_are_as_written(tmp_path):
    text = "@attribute\ta\t{'?',01}\n@attribute b string\n@data\n'?',\t' x '\n?,01\n"
    X = read(tmp_path, text).X
    assert all(map(is_written, (X["a"], X["b"])))
    assert X["a"].fillna("gap").tolist() == ["?", "gap"]
    assert X["b"].tolist() == [" x ", "01"]


def test_byte_order_mark(tmp_path):
    assert list(read(tmp_path, "\ufeff" + HEADER + "1,x\n").X) == ["a", "b"]


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
def test_dates_are_read_by_their_declared_format(tmp_path, declared, cell, date):
    dates = read(tmp_path, f"@attribute a {declared}\n@data\n{cell}\n?\n").X["a"]
    assert dates[0] == np.datetime64(date)
    assert pd.isna(dates[1])


@pytest.mark.parametrize(
    "pattern",
    ["HHmm", "ssSSS", "yyyy-MM", "MMM dd yyyy", "dd.MM.yyyy z", "EEE dd.MM.yyyy", "YYYY-MM-dd"],
)
def test_formats_of_dates_that_are_not_read_are_refused(tmp_path, pattern):
    with pytest.raises(TableError, match="line 1: the format of dates"):
        read(tmp_path, f"@attribute a date '{pattern}'\n@data\n?\n")


def test_a_comment_ends_a_declaration(tmp_path):
    X = read(
        tmp_path,
        "@attribute a {-1,'}',1} %{poor, rich}\n@attribute b numeric % years\n@data\n'}',2\n1,3\n",
    ).X
    assert X["a"].tolist() == ["}", "1"]
    assert X["b"].tolist() == [2, 3]


def test_whole_numbers_are_exact(tmp_path):
    for cells in (
        ["9007199254740993", "?"],
        ["9007199254740993", "0.5"],
        ["100000000000000000001"],
    ):
        column = read(tmp_path, HEADER + "".join(f"{cell},x\n" for cell in cells)).X["a"]
        assert column[0] == int(cells[0])
    assert read(tmp_path, HEADER + "9007199254740992,x\n-5,y\n").X["a"].dtype == np.int64


def test_halves_of_a_character_make_one(tmp_path):
    text = "@attribute a string\n@data\n'\\ud83e\\udde6'\n"
    assert read(tmp_path, text).X["a"].tolist() == ["\U0001f9e6"]


def test_large_floats_that_are_exact_are_read(tmp_path):
    text = HEADER + "100000000000000000000,x\n?,y\n-1.5e300,x\n.5,x\ninf,y\n"
    values = read(tmp_path, text).X["a"].tolist()
    assert values[:1] + values[2:] == [1e20, -1.5e300, 0.5, float("inf")]


def test_text_between_quotation_marks_is_kept(tmp_path):
    text = "@attribute a string\n@data\n'a\u2028b\x1cc'\n 'it\\'s \\n\\u0041\\\\' \n"
    assert read(tmp_path, text).X["a"].tolist() == ["a\u2028b\x1cc", "it's \nA\\"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEADER + "1,x\n2\n", "line 6: there are 1 values for 2 attributes"),
        (HEADER + "1,x,3\n", "line 5: there are 3 values for 2 attributes"),
        (HEADER + "1,z\n", "line 5: 'z' of 'b' is not a declared value"),
        (HEADER + "one,x\n", "line 5: 'one' of 'a' is not a number"),
        (HEADER + ",x\n", "line 5: '' of 'a' is not a number"),
        (HEADER + "1,'x\n", f'line 5: "\'x" {QUOTE}'),
        (HEADER + "1, 'x' y'\n", f"line 5: .* {QUOTE}"),
        (HEADER + "1 , 'x' y\n", f"line 5: .* {QUOTE}"),
        (HEADER + "1,'\\q'\n", r"line 5: .* has the unknown escape '\\\\q'"),
        (HEADER + " 1_000,x\n", "line 5: '1_000' of 'a' is not a number"),
        (HEADER + "0x10,x\n", "'0x10' of 'a' is not a number"),
        (HEADER + "\u0661,x\n", "'\u0661' of 'a' is not a number"),
        (HEADER + "1e400,x\n", "'1e400' of 'a' is too large a number"),
        (HEADER + "9" * 5000 + ",x\n", "of 'a' is too large a number"),
        (HEADER.replace("{x,y}", "string") + "1,'\\ud800'\n", "5: .* half of a character"),
        (HEADER + "{0 1}\n", "line 5: this is a sparse row"),
        (HEADER, "no rows of data"),
        (HEADER.replace("@data\n", ""), "no line @data"),
        (HEADER.replace("@data\n", "@data1\n"), "line 4: '@data1' is no declaration"),
        (HEADER.replace(" b ", " a ") + "1,x\n", "more than one column is called 'a'"),
        ("a,b\n1,2\n", "line 1: 'a,b' is no declaration"),
        (
            "@attribute a\n@data\n1\n",
            "line 1: '@attribute a' is no declaration of a name and a type",
        ),
        ("@attribute a relational\n@data\n1\n", "line 1: attribute 'a' has the type 'relational'"),
        ("@attribute a {x,'y}\n@data\nx\n", f"line 1: .* {QUOTE}"),
        (
            "@attribute a date\n@data\n16/07/2006\n",
            "line 3: '16/07/2006' of 'a' is not a date like",
        ),
        ("@attribute a date\n@data\n2006-07-16T10Z\n", "line 3: .* is not a date like"),
        (
            "@attribute a date dd.MM.yyyy\n@data\n31.02.2006\n",
            "of 'a' is not a date like dd.MM.yyyy",
        ),
    ],
)
def test_refuses(tmp_path, text, problem):
    with pytest.raises(TableError, match=problem):
        read(tmp_path, text)
