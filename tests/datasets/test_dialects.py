"""Text files as programs of many countries write them: separator, encoding, quotation marks."""

import csv
import io

import pandas as pd
import pytest

from looms.datasets import TableError, read_table
from looms.tables._cells import is_written

ROWS = [["1,84", "73", "Jörg"], [" -350", "", "Ö, x"], ["0.50", "NA", 'the "k"\nof x']]


def written(sep, encoding):
    """The rows as a program of another country writes them."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, lineterminator="\r\n")
    writer.writerows([["Größe", "Gewicht", "wer"], *ROWS])
    return text.getvalue().encode(encoding)


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_what_is_written_is_read(write, sep, encoding):
    path = write(written(sep, encoding))
    table = read_table(path)
    assert list(table.X) == ["Größe", "Gewicht", "wer"]
    assert all(is_written(table.X[name]) for name in table.X)
    assert table.X.to_numpy().tolist() == ROWS
    plain = sep == "," and encoding.startswith("utf-8")
    assert len(table.notes) == (not plain)
    if (sep, encoding) == (";", "cp1252"):
        assert table.notes == ('read with separator ";", encoding cp1252',)
    pd.testing.assert_frame_equal(read_table(path, sep=sep, encoding=encoding).X, table.X)
    assert read_table(write(written("\t", "utf-8"), "t.tsv")).notes == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines(write, end):
    X = read_table(write(end.join(["", "a", "1", "", '""', "", "2", "", ""]))).X
    assert X["a"].tolist() == ["1", "", "", "", "2"]
    X = read_table(write(end.join(["", "a,b", "1,x", "", ",", "2,y", "", ""]))).X
    assert X.to_numpy().tolist() == [["1", "x"], ["", ""], ["2", "y"]]


def test_quotation_marks_as_people_have_them(write):
    rows = ['7,5" pipe', '"a ""b""",x', '"l\nm\n\n","\n,\n"', '"",5\'3"', "'a','b'"]
    X = read_table(write("\n".join(['"a\nq", b', *rows]))).X
    assert list(X) == ["a\nq", " b"]
    meant = [["7", '5" pipe'], ['a "b"', "x"], ["l\nm\n\n", "\n,\n"], ["", "5'3\""]]
    assert X.to_numpy().tolist() == [*meant, ["'a'", "'b'"]]


@pytest.mark.parametrize(
    ("content", "sep", "columns"),
    [
        ("sep=;\r\na, cm;b\r\n1,5;1\r\n", None, {"a, cm": ["1,5"], "b": ["1"]}),
        ('a;b\n"x, y; z";1\n"p, q; r";2\n', None, {"a": ["x, y; z", "p, q; r"], "b": ["1", "2"]}),
        ("a;b,c\n1,2\n", None, {"a;b": ["1"], "c": ["2"]}),
        ("sep=;\na|b\n1|2\n", "|", {"a": ["1"], "b": ["2"]}),
        ("a\n1,84\n1,5\n", ";", {"a": ["1,84", "1,5"]}),
        ("a~b\n1~2\n", "~", {"a": ["1"], "b": ["2"]}),
        ("a, cm;b\n1,84;3\n", ";", {"a, cm": ["1,84"], "b": ["3"]}),
    ],
)
def test_separators(write, content, sep, columns):
    assert read_table(write(content), sep=sep).X.to_dict("list") == columns


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a, cm;b\n1,84;3\n1,5;4\n", r'not clear: .* divided by "," and ";"'),
        ("a;b;c\n1;2;3\n4;5\n", "data row 2: Expected 3 columns, got 2: 4;5"),
        ("a\n1,84\n", "data row 1: Expected 1 columns, got 2"),
    ],
)
def test_no_separator_is_guessed(write, text, problem):
    with pytest.raises(TableError, match=problem) as caught:
        read_table(write(text))
    assert "sep=..." in caught.value.advice


def test_encodings_can_be_named(write):
    path = write("a,b\nж,2\n".encode("cp1251"))
    assert read_table(path).X["a"].tolist() == ["æ"]
    assert read_table(path, encoding="cp1251").X["a"].tolist() == ["ж"]
    for content, encoding, problem in (
        (path.read_bytes(), "klingon", "no encoding 'klingon'"),
        (path.read_bytes(), "utf-8", "line 2 is not text in utf-8"),
        (b"a,b\n\\ud800,2\n", "unicode_escape", "line 2 is not text in"),
        (b"a,b\n+2AA-,2\n", "utf-7", "line 2 is not text in"),
    ):
        with pytest.raises(TableError, match=problem):
            read_table(write(content), encoding=encoding)


def test_options_of_other_formats_are_refused(tmp_path):
    with pytest.raises(TableError, match="sep=';' is for csv and tsv files, and this is arff"):
        read_table(tmp_path / "t.arff", sep=";")
    with pytest.raises(TableError, match="sheet=1 is for spreadsheet files, and this is csv"):
        read_table(tmp_path / "t.csv", sheet=1)
    for sep in ("::", "§"):
        with pytest.raises(ValueError, match="one character"):
            read_table(tmp_path / "t.csv", sep=sep)
