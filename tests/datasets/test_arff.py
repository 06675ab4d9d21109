"""ARFF against scikit-learn's copy of liac-arff, and line by line what is refused."""

import pandas as pd
import pytest
from sklearn.externals import _arff

from looms.datasets import TableError, read_table

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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEADER + "1,x\n2\n", "line 6: there are 1 values for 2 attributes"),
        (HEADER + "1,x,3\n", "line 5: there are 3 values for 2 attributes"),
        (HEADER + "1,z\n", "line 5: 'z' is not a declared value of 'b'"),
        (HEADER + "one,x\n", "line 5: 'one' of 'a' is not a number"),
        (HEADER + ",x\n", "line 5: '' of 'a' is not a number"),
        (HEADER + "1,'x\n", "line 5: a quotation mark is out of place or not closed"),
        (HEADER + "{0 1}\n", "line 5 is a sparse row"),
        (HEADER, "no rows of data"),
        (HEADER.replace("@data\n", ""), "no line @data"),
        (HEADER.replace(" b ", " a ") + "1,x\n", "more than one column is called 'a'"),
        ("a,b\n1,2\n", "line 1: 'a,b' is no declaration"),
        ("@attribute a\n@data\n1\n", "line 1: the declaration has no name and type"),
        ("@attribute a relational\n@data\n1\n", "line 1: attribute 'a' has the type 'relational'"),
        ("@attribute a {x,'y}\n@data\nx\n", "line 1: attribute 'a' has the type"),
        ("@attribute a date\n@data\n16/07/2006\n", "a date that is not ISO 8601"),
    ],
)
def test_refuses(tmp_path, text, problem):
    with pytest.raises(TableError, match=problem):
        read(tmp_path, text)
