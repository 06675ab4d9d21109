"""Spreadsheets that openpyxl and odfpy wrote."""

import datetime
import re
import resource
import zipfile

import numpy as np
import pytest

from looms.datasets import TableError, read_table
from looms.tables._cells import is_written

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


def test_cells_keep_their_types(book):
    day, far = datetime.datetime(2020, 1, 2), datetime.datetime(9999, 12, 31)
    long, noon = datetime.timedelta(hours=36), datetime.time(12)
    names = ["n", "x", "day", "yes", "long", "gap", "noon", "code", "mixed", "value"]
    rows = [
        [1, 1.23456789012345, day, True, long, "#N/A", noon, "0x10", 1.5, "=1/0"],
        [2, -3e-300, far, False, None, 2, noon, "007", "1,5", "=A2"],
        [3, 4, day, False, long, None, noon, " NA", True, None],
    ]
    table = read_table(book(Data=[names, *rows], Empty=[]))
    assert (table.name, table.notes) == ("t", ())
    X = table.X
    assert [str(X[name].dtype) for name in ("n", "x", "day", "yes", "gap", "mixed")] == (
        ["float64", "float64", "datetime64[us]", "bool", "float64", "object"]
    )
    assert X["long"].dtype.kind == "m"
    assert X["x"].tolist() == [1.23456789012345, -3e-300, 4]
    assert X["day"].tolist() == [day, far, day]
    assert X["long"].isna().tolist() == [False, True, False]
    np.testing.assert_array_equal(X["gap"], [np.nan, 2, np.nan])
    for name, cells in (("code", ["0x10", "007", " NA"]), ("noon", ["12:00:00"] * 3)):
        assert is_written(X[name])
        assert X[name].tolist() == cells
    assert X["mixed"].tolist() == [1.5, "1,5", True]
    assert X["value"].isna().all()  # openpyxl stores no values of formulas


def test_names_are_text(book):
    rows = [["v1.0", " a", 2019, datetime.datetime(2020, 1, 31)], [1, 2, 3, 4]]
    assert list(read_table(book(Data=rows)).X) == ["v1.0", " a", "2019", "2020-01-31"]


def test_rows_are_counted_by_place(book):
    rows = [[], ["a", None, "b"], [1, None, "x"], [], [3, None, "y"], [None, None, " "], [], [None]]
    X = read_table(book(Data=rows)).X
    np.testing.assert_array_equal(X["a"], [1, np.nan, 3])
    assert X["b"].fillna("gap").tolist() == ["x", "gap", "y"]
    alone = read_table(book(Data=[["a"], [0.5], [None], [-0.5], []])).X
    np.testing.assert_array_equal(alone["a"], [0.5, np.nan, -0.5])


def test_names_that_are_refused(book):
    def merge(workbook):
        workbook["Data"].merge_cells("B1:C1")

    for change, names, problem in (
        (merge, ["a", "both", None], r"the column after 'both' has no name.*merged"),
        (None, [None, "a", "b"], "the first column has no name"),
        (None, ["a", "b", "a"], "more than one column is called 'a'"),
    ):
        with pytest.raises(TableError, match=problem):
            read_table(book(change, Data=[names, [1, 2, 3]]))


def test_sheets(book):
    path = book(first=[["a"], [1]], empty=[], second=[["b"], [2]])
    with pytest.raises(TableError, match=r"2 sheets have data: 'first', 'second'\. .*sheet="):
        read_table(path)
    for sheet, name in (("second", "b"), (3, "b"), ("1", "a")):
        assert list(read_table(path, sheet=sheet).X) == [name]
    for wrong in ("third", 0, 4):
        with pytest.raises(TableError, match=r"no sheet .*; its sheets are 'first', 'empty'"):
            read_table(path, sheet=wrong)
    with pytest.raises(TableError, match="no sheet has data"):
        read_table(book(one=[], two=[]))


def test_damaged_spreadsheets(book):
    path = book(Data=[["a"], [1]])
    whole = path.read_bytes()
    for cut in (3, 2000, -30):
        path.write_bytes(whole[:cut])
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


@pytest.mark.slow
@pytest.mark.parametrize("how", FAR)
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
    if how == "named":  # which its reader skips
        path = tmp_path / "far.xlsx"
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableError, match=r"more than 1,048,576 bytes"):
        read_table(tmp_path / "far.xlsx", max_bytes=2**20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 2**10
