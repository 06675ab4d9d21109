"""Spreadsheets that openpyxl and odfpy wrote."""

import datetime
import re
import resource
import zipfile

import numpy as np
import pandas as pd
import pytest

from looms.datasets import TableError, read_table

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def book(tmp_path):
    """Write sheets of rows to t.xlsx, and say where."""

    def write(change=None, **sheets):
        workbook = openpyxl.Workbook()
        workbook.remove(workbook.active)
        for name, rows in sheets.items():
            sheet = workbook.create_sheet(name)
            for row in rows:
                sheet.append(row)
        if change is not None:
            change(workbook)
        workbook.save(tmp_path / "t.xlsx")
        return tmp_path / "t.xlsx"

    return write


def test_cells_of_every_kind(book):
    day = datetime.datetime(2020, 1, 2)
    rows = [
        ["n", "x", "word", "day", "yes", "long", "gap", "code"],
        [1, 1.84, "a, b", day, True, datetime.timedelta(hours=36), "#N/A", "0x10"],
        [2, -3e-300, 'c "d"', day + datetime.timedelta(hours=6), False, None, 2, "5"],
    ]
    table = read_table(book(Data=rows, Empty=[]), "word")
    assert table.name == "t"
    assert table.notes == (
        "column 'code' is read as text, because '0x10' (data row 1) is not a number",
    )
    assert table.y.tolist() == ["a, b", 'c "d"']
    X = table.X
    assert X["n"].tolist() == [1, 2]
    assert pd.api.types.is_integer_dtype(X["n"])
    assert X["x"].tolist() == [1.84, -3e-300]
    assert X["day"].tolist() == [day, day + datetime.timedelta(hours=6)]
    assert X["yes"].tolist() == [True, False]
    np.testing.assert_array_equal(X["long"], [1.5, np.nan])
    np.testing.assert_array_equal(X["gap"], [np.nan, 2])
    assert X["code"].tolist() == ["0x10", "5"]


def test_floats_are_read_as_they_were_written(book):
    drawn = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
    values = [float(f"{value:.15g}") for value in drawn]  # what openpyxl writes
    X = read_table(book(Data=[["a"], *([value] for value in values)])).X
    np.testing.assert_array_equal(X["a"], values)


@pytest.mark.slow
def test_numbers_in_cells_of_text(book):
    rows = [["a", "b", "c", "d"], ["1,84", 1.5, "7", "1.5"], ["2", 2.5, "8", "x"]]
    table = read_table(book(Data=[row[:3] for row in rows]))
    assert table.X.to_numpy().tolist() == [[1.84, 1.5, 7.0], [2.0, 2.5, 8.0]]
    assert table.notes == ('read with decimal ","',)
    assert read_table(book(Data=rows), decimal=".").X["d"].tolist() == ["1.5", "x"]
    mixed = read_table(book(Data=[["a"], [1.5], ["x"]]))
    assert mixed.X["a"].tolist() == ["1.5", "x"]


def test_empty_rows_and_columns_are_skipped(book):
    rows = [[], ["a", None, "b"], [1, None, 2], [], [3, None, 4], [None, None, None, ""]]
    X = read_table(book(Data=rows)).X
    assert X.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_values_of_formulas_and_errors(book):
    frame = read_table(book(Data=[["a", "b"], [1, "=1/0"], [2, "=A2"]])).X
    assert frame["b"].isna().all()  # openpyxl stores no values of formulas


@pytest.mark.slow
def test_merged_names_are_refused(book):
    rows = [["a", "both", None], [1, 2, 3]]
    with pytest.raises(TableError, match=r"the column after 'both' has no name.*merged"):
        read_table(book(lambda workbook: workbook["Data"].merge_cells("B1:C1"), Data=rows))
    with pytest.raises(TableError, match="the first column has no name"):
        read_table(book(Data=[[None, "a"], [0, 1]]))
    with pytest.raises(TableError, match="more than one column is called 'a'"):
        read_table(book(Data=[["a", "a"], [0, 1]]))


@pytest.mark.slow
def test_sheets(book):
    path = book(first=[["a"], [1]], empty=[], second=[["b"], [2]])
    with pytest.raises(TableError, match=r"2 sheets have data: 'first', 'second'\. .*sheet="):
        read_table(path)
    assert list(read_table(path, sheet="second").X) == ["b"]
    assert list(read_table(path, sheet=3).X) == ["b"]
    assert list(read_table(path, sheet="1").X) == ["a"]
    for wrong in ("third", 0, 4):
        with pytest.raises(TableError, match=r"no sheet .*; its sheets are 'first', 'empty'"):
            read_table(path, sheet=wrong)
    with pytest.raises(TableError, match="no sheet has data"):
        read_table(book(one=[], two=[]))


def test_open_document(tmp_path):
    pytest.importorskip("odf")
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", "y"]})
    frame.to_excel(tmp_path / "t.ods", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.ods").X, frame, check_dtype=False)


@pytest.mark.parametrize("cut", [3, 2000, -30])
def test_damaged_spreadsheets(book, cut):
    path = book(Data=[["a"], [1]])
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(TableError, match=r"not a whole spreadsheet|damaged or cut short"):
        read_table(path)


FAR = {
    "named": lambda sheet: sheet.replace(b'r="B2"', b'r="DDD400000"'),
    "spaced": lambda sheet: sheet.replace(b'r="B2"', b'r = "DDD400000"'),
    "implicit": lambda sheet: (
        re.sub(rb' r="[AB][12]"', b"", sheet)
        .replace(b'<row r="2"', b'<row r="400000"')
        .replace(b"</row>", b"<c><v>1</v></c>" * 3000 + b"</row>", 1)
    ),
}


@pytest.mark.parametrize("how", FAR)
@pytest.mark.slow
def test_a_cell_far_away_is_refused_and_no_memory_taken(book, tmp_path, how):
    with (
        zipfile.ZipFile(book(Data=[["a", "b"], [1, 2]])) as near,
        zipfile.ZipFile(tmp_path / "far.xlsx", "w") as far,
    ):
        for name in near.namelist():
            content = near.read(name)
            changed = FAR[how](content) if "sheet1" in name else content
            assert ("sheet1" in name) == (changed != content)
            far.writestr(name, changed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableError, match=r"cells take more than 4,194,304 bytes of memory"):
        read_table(tmp_path / "far.xlsx", max_bytes=2**20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 2**10


def test_without_limits_of_memory_sheets_are_read_all_the_same(book, monkeypatch, tmp_path):
    (tmp_path / "resource.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_table(book(Data=[["a"], [1]])).X["a"].tolist() == [1]


@pytest.mark.slow
def test_cells_of_columns_to_keep(book):
    rows = [["id", "x", "far"], ["007", 1.5, 2.0**60], [8, None, 1]]
    path = book(Data=rows)
    assert read_table(path, keep=["id", "x"]).kept == {"id": ["007", "8"], "x": ["1.5", None]}
    with pytest.raises(TableError, match="data row 1 of 'far', a column to keep, is a number of"):
        read_table(path, keep=["far"])
