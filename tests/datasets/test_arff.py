"""ARFF against scikit-learn's copy of liac-arff, and line by line what is refused."""

import pandas as pd
import pytest
from sklearn.externals import _arff

from looms.datasets import TableError, read_table

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


def test_tabs_and_a_quoted_question_mark(tmp_path):
    X = read(tmp_path, "@attribute\ta\t{'?',y}\n@attribute b real\n@data\n'?',\t1\n?,2\n").X
    assert X["a"][0] == "?"
    assert pd.isna(X["a"][1])


def test_nominal_digits_are_strings(tmp_path):
    y = read(tmp_path, "@attribute a real\n@attribute y {0,1}\n@data\n1,0\n2,1\n", "y").y
    assert list(y) == ["0", "1"]


def test_byte_order_mark(tmp_path):
    assert list(read(tmp_path, "\ufeff" + HEADER + "1,x\n").X) == ["a", "b"]


def test_dates(tmp_path):
    text = "@attribute a date yyyy-MM-dd\n@attribute b real\n@data\n2006-07-16,1\n?,2\n"
    X = read(tmp_path, text).X
    assert X["a"][0] == pd.Timestamp("2006-07-16")
    assert pd.isna(X["a"][1])


def test_whole_numbers_are_exact(tmp_path):
    text = HEADER + "9007199254740992,x\n-9223372036854775808,y\n"
    assert read(tmp_path, text).X["a"].tolist() == [2**53, -(2**63)]


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
        (HEADER + "1,z\n", "line 5, column 3: 'z' is not a declared value of 'b'"),
        (HEADER + "one,x\n", "line 5, column 1: 'one' of 'a' is not a number"),
        (HEADER + ",x\n", "line 5, column 1: '' of 'a' is not a number"),
        (HEADER + "1,'x\n", f'line 5, column 3: "\'x" {QUOTE}'),
        (HEADER + "1, 'x\n", f'line 5, column 4: "\'x" {QUOTE}'),
        (HEADER + "1, 'x' y'\n", f"line 5, column 4: .* {QUOTE}"),
        (HEADER + "1 , 'x' y\n", f"line 5, column 5: .* {QUOTE}"),
        (HEADER + "1,'\\q'\n", r"line 5, column 3: .* has the unknown escape '\\\\q'"),
        (HEADER + " 1_000,x\n", "line 5, column 2: '1_000' of 'a' is not a number"),
        (HEADER + "0x10,x\n", "'0x10' of 'a' is not a number"),
        (HEADER + "\u0661,x\n", "'\u0661' of 'a' is not a number"),
        (HEADER + "1e400,x\n", "'1e400' of 'a' is too large a number"),
        (HEADER + "9" * 5000 + ",x\n", "of 'a' is too large a number"),
        (
            HEADER.replace("{x,y}", "string") + "1,'\\ud800'\n",
            "5, column 3: .* half of a character",
        ),
        (HEADER + "{0 1}\n", "line 5 is a sparse row"),
        (HEADER, "no rows of data"),
        (HEADER.replace("@data\n", ""), "no line @data"),
        (HEADER.replace(" b ", " a ") + "1,x\n", "more than one column is called 'a'"),
        ("a,b\n1,2\n", "line 1: 'a,b' is no declaration"),
        ("@attribute a\n@data\n1\n", "line 1: the declaration has no name and type"),
        ("@attribute a relational\n@data\n1\n", "line 1: attribute 'a' has the type 'relational'"),
        ("@attribute a {x,'y}\n@data\nx\n", f"line 1, column 17: .* {QUOTE}"),
        (
            "@attribute a date\n@data\n16/07/2006\n",
            "line 3, column 1: '16/07/2006' of 'a' is not a date",
        ),
    ],
)
def test_refuses(tmp_path, text, problem):
    with pytest.raises(TableError, match=problem):
        read(tmp_path, text)
