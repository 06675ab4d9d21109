"""Text files as programs of many countries write them: separator, decimal mark, encoding."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest

from looms.datasets import TableError, read_table

ROWS = [[1.84, 73, "Jörg"], [-350.0, 70, "Ö, x"], [0.5, None, 'the "k"']]


def written(sep, decimal, encoding):
    """The rows as a program of another country writes them."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, lineterminator="\r\n")
    writer.writerow(["Größe", "Gewicht", "wer"])
    for height, weight, name in ROWS:
        writer.writerow([str(height).replace(".", decimal), weight, name])
    return text.getvalue().encode(encoding)


def write(folder, content, name="t.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_what_is_written_is_read(tmp_path, sep, decimal, encoding):
    path = write(tmp_path, written(sep, decimal, encoding))
    table = read_table(path)
    assert list(table.X) == ["Größe", "Gewicht", "wer"]
    assert table.X["Größe"].tolist() == [1.84, -350.0, 0.5]
    np.testing.assert_array_equal(table.X["Gewicht"], [73, 70, np.nan])
    assert table.X["wer"].tolist() == ["Jörg", "Ö, x", 'the "k"']
    plain = sep == "," and decimal == "." and encoding.startswith("utf-8")
    assert len(table.notes) == (not plain)
    given = read_table(path, sep=sep, decimal=decimal, encoding=encoding)
    pd.testing.assert_frame_equal(given.X, table.X)


def test_the_note_names_what_is_not_plain(tmp_path):
    path = write(tmp_path, written(";", ",", "cp1252"))
    assert read_table(path).notes == ('read with separator ";", decimal ",", encoding cp1252',)
    tabs = write(tmp_path, written("\t", ".", "utf-8"), "t.tsv")
    assert read_table(tabs).notes == ()


@pytest.mark.parametrize(
    ("column", "decimal", "values"),
    [
        (["1,84", "-3,5e2"], None, [1.84, -350.0]),
        (["1.234,5", "2"], None, [1234.5, 2.0]),
        (["1.234.567,5", "1.234"], None, [1234567.5, 1234.0]),
        (["1,234", "12,345"], None, ["1,234", "12,345"]),
        (["1,234", "12,345"], ",", [1.234, 12.345]),
        (["1,234", "12,345"], ".", [1234.0, 12345.0]),
        (["1,234.5", "12"], None, ["1,234.5", "12"]),
        (["1,234.5", "12"], ".", [1234.5, 12.0]),
        (["1,2", "x"], None, ["1,2", "x"]),
        (["1,2,3", "4,5"], None, ["1,2,3", "4,5"]),
        (["1_000", "2"], None, ["1_000", "2"]),
        (["0x10", "5"], None, ["0x10", "5"]),
        (["0x10", "5"], ",", ["0x10", "5"]),
        (["+1", "007"], None, [1, 7]),
        (["192.168.100.101", "192.168.100.102"], None, ["192.168.100.101", "192.168.100.102"]),
        (["12,5%", "2,5%"], None, ["12,5%", "2,5%"]),
        (["1,5 €", "2"], None, ["1,5 €", "2"]),
        (["\u22121.5", "2"], None, ["\u22121.5", "2"]),
        (["1 234,5", "2"], None, ["1 234,5", "2"]),
        (["\u0661", "2"], None, ["\u0661", "2"]),
        (["1e400", "2"], None, ["1e400", "2"]),
    ],
)
def test_numbers_of_a_column(tmp_path, column, decimal, values):
    path = write(tmp_path, f'a,b\n"{column[0]}",x\n"{column[1]}",y\n')
    table = read_table(path, decimal=decimal)
    assert table.X["a"].tolist() == values
    left = isinstance(values[0], str) and values[1] not in ("x", "4,5")
    assert any("column 'a' is read as text" in note for note in table.notes) == left


def test_the_note_on_text_names_the_cell_that_is_no_number(tmp_path):
    notes = read_table(write(tmp_path, "a,b\n1,x\n1_000,y\n")).notes
    assert notes == ("column 'a' is read as text, because '1_000' (data row 2) is not a number",)
    (note,) = read_table(write(tmp_path, 'a,b\n1.5,x\n2.5,y\n"3.000,5",z\n')).notes
    assert "'3.000,5' (data row 3) is not a number with the decimal mark '.'" in note


@pytest.mark.parametrize(
    ("text", "values", "note"),
    [
        ("p;n\n1.234;1\n12.500;2\n", [1.234, 12.5], "'1.234' .* read as 1.234; if .* thousands"),
        ("p;n\n1.234;1,5\n12.500;2\n", [1234, 12500], "'1.234' .* read as 1234; if .* decimal"),
        ("p;n\n1.234;1.5\n12.500;2\n", [1.234, 12.5], ""),
        ("p;n\n1.234;1\n0.500;2\n", [1.234, 0.5], ""),
        ("p,n\n1.234,1\n12.500,2\n", [1.234, 12.5], ""),
    ],
)
def test_a_point_that_may_be_either_is_noted(tmp_path, text, values, note):
    table = read_table(write(tmp_path, text))
    assert table.X["p"].tolist() == values
    assert bool(note) == any(re.search(note, each) for each in table.notes if "'p'" in each)
    for decimal in ".,":
        given = read_table(write(tmp_path, text), decimal=decimal)
        assert not any("if the point" in each for each in given.notes)


def test_a_first_line_may_name_the_separator(tmp_path):
    X = read_table(write(tmp_path, "sep=;\r\na, cm;b\r\n1,5;1\r\n")).X
    assert X.to_dict("list") == {"a, cm": [1.5], "b": [1]}


@pytest.mark.parametrize(
    ("content", "encoding"), [(b"a,b\n\\ud800,2\n", "unicode_escape"), (b"a,b\n+2AA-,2\n", "utf-7")]
)
def test_halves_of_characters_are_refused(tmp_path, content, encoding):
    with pytest.raises(TableError, match="line 2 holds half of a character"):
        read_table(write(tmp_path, content), encoding=encoding)


def test_the_decimal_mark_holds_for_the_whole_file(tmp_path):
    mixed = write(tmp_path, "a;b;c\n1,84;2.5;3,25\n1,5;3;4\n")
    table = read_table(mixed)
    assert table.X["a"].tolist() == ["1,84", "1,5"]
    assert table.X["b"].tolist() == [2.5, 3.0]
    assert "columns 'a', 'c' are read as text: the mark in '1,84' (data row 1)" in table.notes[1]
    table = read_table(mixed, decimal=",")
    assert table.X["a"].tolist() == [1.84, 1.5]
    assert table.X["b"].tolist() == ["2.5", "3"]
    assert table.notes[1] == (
        "column 'b' is read as text: the mark in '2.5' (data row 1) is not the decimal mark ',' "
        "that was given"
    )
    together = read_table(write(tmp_path, "a;b\n1,84;1,234\n1,5;3,456\n"))
    assert together.X["b"].tolist() == [1.234, 3.456]


def test_a_separator_inside_quotation_marks_does_not_count(tmp_path):
    X = read_table(write(tmp_path, 'a;b\n"x, y; z";1\n"p, q; r";2\n')).X
    assert X["a"].tolist() == ["x, y; z", "p, q; r"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a, cm;b\n1,84;3\n1,5;4\n", r'not clear: .* divided by "," and ";"'),
        ("a;b;c\n1;2;3\n4;5\n", "data row 2: Expected 3 columns, got 2: 4;5"),
        ("a\n1,84\n", "data row 1: Expected 1 columns, got 2"),
    ],
)
def test_no_separator_is_guessed(tmp_path, text, problem):
    with pytest.raises(TableError, match=problem) as caught:
        read_table(write(tmp_path, text))
    assert "sep=..." in caught.value.advice


def test_any_separator_can_be_named(tmp_path):
    assert read_table(write(tmp_path, "a\n1,84\n1,5\n"), sep=";").X["a"].tolist() == [1.84, 1.5]
    assert list(read_table(write(tmp_path, "a~b\n1~2\n"), sep="~").X) == ["a", "b"]
    assert list(read_table(write(tmp_path, "a, cm;b\n1,84;3\n"), sep=";").X) == ["a, cm", "b"]


def test_encodings_can_be_named(tmp_path):
    path = write(tmp_path, "a,b\nж,2\n".encode("cp1251"))
    assert read_table(path).X["a"].tolist() == ["æ"]
    assert read_table(path, encoding="cp1251").X["a"].tolist() == ["ж"]
    with pytest.raises(TableError, match="no encoding 'klingon'"):
        read_table(path, encoding="klingon")
    with pytest.raises(TableError, match="byte 5 is not text in utf-8"):
        read_table(path, encoding="utf-8")


def test_options_of_other_formats_are_refused(tmp_path):
    with pytest.raises(TableError, match="sep=';' is for csv and tsv files, and this is arff"):
        read_table(tmp_path / "t.arff", sep=";")
    with pytest.raises(TableError, match="sheet=1 is for spreadsheet files, and this is csv"):
        read_table(tmp_path / "t.csv", sheet=1)
    for sep in ("::", "§"):
        with pytest.raises(ValueError, match="one character"):
            read_table(tmp_path / "t.csv", sep=sep)
    with pytest.raises(ValueError, match=r'must be "\." or ","'):
        read_table(tmp_path / "t.csv", decimal=";")
