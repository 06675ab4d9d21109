"""Every reader against data written by other libraries, and what all readers refuse."""

import datetime
import gzip
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from looms._optional import require
from looms.datasets import TableError, open_table, read_table
from looms.datasets._table import Table
from looms.tables._cells import is_written

FRAME = pd.DataFrame(
    {
        "age": [30, 41, 52],
        "income": [1.5, np.nan, 2.5],
        "town": ["Bath, UK", None, 'the "Wirral",\nCheshire'],
        "owner": [True, False, True],
        "seen": pd.to_datetime(["2006-07-16", "2007-08-12", "2008-01-01"]),
        "outcome": ["yes", "no", "yes"],
    }
)


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def check_is_frame(table, name, written):
    assert isinstance(table, Table)
    assert table.name == name
    assert list(table.X) == ["age", "income", "town", "owner", "seen"]
    assert table.y.name == "outcome"
    assert list(table.y) == ["yes", "no", "yes"]
    assert all(is_written(table.X[name]) == written for name in table.X)
    expected = FRAME.astype(str, errors="raise").fillna("") if written else FRAME
    for column in table.X:
        values, other = (c.astype(object) for c in (table.X[column], expected[column]))
        assert list(values.isna()) == list(other.isna())
        assert list(values.dropna()) == list(other.dropna())


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".csv.gz", ".tsv.gz"])
def test_reads_what_pandas_writes(tmp_path, suffix):
    path = tmp_path / f"frame{suffix}"
    if suffix in (".parquet", ".feather"):
        getattr(FRAME, f"to_{suffix[1:]}")(path)
    else:
        FRAME.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
    check_is_frame(read_table(path, "outcome"), "frame", suffix not in (".parquet", ".feather"))


def test_format_overrides_the_suffix(tmp_path):
    path = tmp_path / "frame.txt"
    FRAME.to_csv(path, index=False, sep="\t")
    check_is_frame(read_table(path, "outcome", format="tsv"), "frame", True)


def test_without_target_all_columns_are_features(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "a,b\n1,2\n"))
    assert table.y is None
    assert list(table.X) == ["a", "b"]


def test_cells_of_text_are_as_they_are_written(tmp_path):
    cells = ["", " ", "?", "NA", " 1 ", "007", "1,5", "1e400", "TRUE", "9007199254740993", "é\xa0"]
    X = read_table(write(tmp_path, "t.csv", "\n".join(["a;b", *(f"{c};{c}" for c in cells)]))).X
    assert X["a"].tolist() == X["b"].tolist() == cells
    quoted = read_table(write(tmp_path, "t.csv", "\n".join(["a", *(f'"{c}"' for c in cells)]))).X
    assert quoted["a"].tolist() == cells


def test_typed_text_is_not_written_and_whole_numbers_are_exact(tmp_path):
    texts = pa.array(["01", None, "NA"])
    table = pa.table(
        {
            **{str(kind): texts.cast(kind) for kind in (pa.string(), pa.large_string())},
            "dictionary": texts.dictionary_encode(),
            "id": pa.array([2**53 + 1, None, -(2**53) - 1]),
            "big": pa.array([2**63, 2**64 - 1, 0], pa.uint64()),
            "n": pa.array([7, None, 8]),
            "day": pa.array([datetime.date(9999, 12, 31), None, datetime.date(1, 1, 1)]),
            "when": pa.array([datetime.datetime(9999, 12, 31, 5), None, None]),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    for X in (
        read_table(tmp_path / "t.parquet").X,
        next(open_table(tmp_path / "t.parquet").tables()).X,
        next(open_table(table).tables()).X,
    ):
        for name in ("string", "large_string", "dictionary"):
            assert not is_written(X[name])
            assert X[name].astype(object).fillna("gap").tolist() == ["01", "gap", "NA"]
        assert X["dictionary"].dtype == "category"
        assert X["id"].tolist() == [2**53 + 1, None, -(2**53) - 1]
        assert X["big"].tolist() == [2**63, 2**64 - 1, 0]
        np.testing.assert_array_equal(X["n"], [7, np.nan, 8])
        assert str(X["day"][0]) == "9999-12-31 00:00:00"
        assert str(X["day"][2]) == "0001-01-01 00:00:00"
        assert str(X["when"][0]) == "9999-12-31 05:00:00"


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize(
    ("index", "named"),
    [
        (pd.Index(["p", "q", "r"], name="patient"), True),
        (pd.Index([2, 0, 1]), False),
        (pd.date_range("2020-01-01", periods=3), False),
        (pd.RangeIndex(100, 103), False),
        (pd.MultiIndex.from_arrays([[1, 2, 3], [4, 5, 6]], names=["patient", None]), True),
    ],
)
def test_rows_are_counted_by_place_whatever_index_pandas_stored(tmp_path, suffix, index, named):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index)
    if suffix == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
    else:
        feather.write_feather(pa.Table.from_pandas(frame), tmp_path / "t.feather")
    X = read_table(tmp_path / f"t.{suffix}").X
    assert X.index.tolist() == [0, 1, 2]
    assert list(X) == ["a", "patient"] if named else ["a"]
    assert X["a"].tolist() == [1, 2, 3]


def test_kept_cells_of_typed_columns(tmp_path):
    frame = pd.DataFrame(
        {
            "id": ["v1", "v1.0", " B.0"],
            "n": pd.array([1, None, 2**53 + 1], dtype="Int64"),
            "x": [0.5, 2.0, np.nan],
            "day": pd.Series(["2020-01-31", None, "2020-01-31 05:00"], dtype="M8[us]"),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", keep=list(frame)).kept == {
        "id": ["v1", "v1.0", " B.0"],
        "n": ["1", None, "9007199254740993"],
        "x": ["0.5", "2", None],
        "day": ["2020-01-31", None, "2020-01-31 05:00:00"],
    }


def test_kept_cells_are_those_of_the_file(tmp_path):
    path = write(tmp_path, "t.csv", "id,a\n007,1.50\nNA,?\n 8,1e400\n")
    assert read_table(path, keep=["id", "a"]).kept == {
        "id": ["007", "NA", " 8"],
        "a": ["1.50", "?", "1e400"],
    }
    with pytest.raises(TableError, match="no column 'ids' to keep"):
        read_table(path, keep=["ids"])


def test_a_semicolon_in_the_name_of_one_of_several_columns(tmp_path):
    assert list(read_table(write(tmp_path, "t.csv", "a;b,c\n1,2\n")).X) == ["a;b", "c"]


def test_rows_longer_than_a_block_of_arrow(tmp_path):
    long = "x" * 3_000_000
    X = read_table(write(tmp_path, "t.csv", f"a,b\n1,{long}\n2,{long}\n")).X
    assert X.shape == (2, 2)


def test_same_name_twice_in_parquet(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="more than one column is called 'a'"):
        read_table(tmp_path / "t.parquet")


REFUSED = {
    "empty": (b"", "the file is empty"),
    "white space": (b" \n\n", "the file is empty"),
    "no rows": ("a,y\n", "no rows of data"),
    "short row": ("a,y\n1,2\n3\n", "data row 2: Expected 2 columns, got 1"),
    "long row": ("a,y\n1,2\n3,4,5\n", "data row 2: Expected 2 columns, got 3"),
    "open quotation": (
        'a,y\n1,2\n3,"4\n5,6\n',
        "line 3: the quotation mark before '4.* is not closed",
    ),
    "cut inside a number": ('a,y\n1,"10"\n2,"20', "line 3: .*'20' is not closed"),
    "open, and an inner mark": ('a,y\n1,"x\n2,y""\n3,z\n', "line 2: .* not closed"),
    "open, and closed rows later": ('y,a\n"3","4\n"5","6"\n', "line 2: .*before '4"),
    "text after a quotation": ('a,y\n1,"x" y\n', "line 2: .* is not closed at the end of"),
    "same name": ("a,b,a,y\n1,2,3,4\n", "more than one column is called 'a'"),
    "no name": (",a,y\n0,1,2\n", "column 1 has no name"),
    "only the target": ("y\n1\n", "no column besides the target 'y'"),
    "gap in the target": ("a,y\n1,2\n3, NA\n4,\n", "missing in 2 of 3 rows, first in data row 2"),
    "damaged UTF-8": (
        "a,y\né,1\n".encode() + b"\xff,2\n",
        "line 3 is not text in utf-8, and other",
    ),
    "UTF-16 without a mark": ("a,y\n1,2\n".encode("utf-16-le"), "line 1 is not text in cp1252"),
    "half of UTF-16": ("a,y\n1,2\n".encode("utf-16")[:-1], "line 2 is not text in utf-16"),
    "a blank for a name": ("a, ,y\n1,2,3\n", "column 2 has no name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(tmp_path, case):
    content, problem = REFUSED[case]
    path = write(tmp_path, "bad.csv", content)
    with pytest.raises(TableError, match=problem) as caught:
        read_table(path, "y")
    assert str(caught.value) == f"{path}: {caught.value.problem}. {caught.value.advice}"
    assert caught.value.path == path
    assert caught.value.advice.endswith((".", ")."))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_without_a_target(tmp_path, suffix):
    y = ["a", "NA", None, "b"] if suffix == "csv" else ["a", "NA", " ", "b"]
    frame, path = pd.DataFrame({"x": [1, 2, 3, 4], "y": y}), tmp_path / f"t.{suffix}"
    getattr(frame, f"to_{suffix}")(path, index=False)
    with pytest.raises(TableError, match="'y' is missing in 2 of 4 rows, first in data row 2"):
        read_table(path, "y")
    table = read_table(path, "y", keep=["x"], drop_missing_targets=True)
    assert table.y.tolist() == ["a", "b"]
    assert table.X.index.tolist() == [0, 3]
    assert table.kept == {"x": ["1", "4"]}
    assert table.notes == ("2 rows of 4 left out, because the target 'y' is missing there",)


def test_an_infinite_target(tmp_path):
    pd.DataFrame({"x": [1, 2], "y": [0.5, np.inf]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="infinite in 1 of 2 rows, first in data row 2"):
        read_table(tmp_path / "t.parquet", "y")


def test_missing_target_lists_the_columns_and_those_alike(tmp_path):
    path = write(tmp_path, "t.csv", "age,Outcome,town\n1,2,3\n")
    with pytest.raises(
        TableError, match=r"no column 'outcom' .* Did you mean 'Outcome'\?"
    ) as caught:
        read_table(path, "outcom")
    assert "The columns are 'age', 'Outcome', 'town'." in str(caught.value)


def test_missing_target_of_a_file_without_names(tmp_path):
    with pytest.raises(TableError, match="first line must hold the names"):
        read_table(write(tmp_path, "t.csv", "5.1,3.5,1\n4.9,3.0,2\n"), "species")


@pytest.mark.slow
def test_many_columns_are_not_all_listed(tmp_path):
    header = ",".join(f"c{j}" for j in range(300))
    path = write(tmp_path, "t.csv", f"{header}\n{','.join('1' * 300)}\n")
    with pytest.raises(TableError, match=r"'c19' and 280 more\.$"):
        read_table(path, "target")


@pytest.mark.parametrize("cut", [5, -9])
def test_truncated_gzip(tmp_path, cut):
    content = gzip.compress(b"a,y\n" + b"1,2\n" * 1000)
    with pytest.raises(TableError, match="cannot be unpacked"):
        read_table(write(tmp_path, "t.csv.gz", content[:cut]), "y")


def test_not_gzip(tmp_path):
    with pytest.raises(TableError, match="cannot be unpacked"):
        read_table(write(tmp_path, "t.csv.gz", "a,y\n1,2\n"), "y")


@pytest.mark.parametrize("cut", [3, 60, -3])
def test_truncated_parquet(tmp_path, cut):
    FRAME.to_parquet(tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    with pytest.raises(TableError, match="not a whole Parquet file"):
        read_table(write(tmp_path, "t.parquet", whole[:cut]), "outcome")


def test_folder_and_missing_file(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(TableError, match="this is a folder"):
        read_table(tmp_path / "t.csv", "y")
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "nowhere.csv", "y")


@pytest.mark.parametrize("metadata", [b"{", b'{"index_columns": 3}', b"{}"])
def test_notes_of_pandas_in_parquet_are_not_read(tmp_path, metadata):
    table = pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": metadata})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").X["a"].tolist() == [1, 2]


def test_text_of_parquet_that_is_no_text(tmp_path):
    bytes_ = pa.array([b"a", b"\xff"]).cast(pa.string(), safe=False)
    parquet.write_table(pa.table({"a": bytes_}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="its columns are damaged"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("cells", [[{"b": 1}, {"b": 2}], [[1], [2, 3]]])
def test_columns_of_structures_in_parquet(tmp_path, cells):
    parquet.write_table(pa.table({"a": cells}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"column .a. holds values of the type (struct|list)"):
        read_table(tmp_path / "t.parquet")


def test_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = write(tmp_path, "t.csv", "a\n1\n")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(TableError, match=r"cannot be read \(Permission denied\)"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("t.docx", "suffix '.docx' is of no known format"),
        ("t.txt.gz", "suffix '.txt' is of no known format"),
        ("table", "no suffix"),
        ("t_train.labels", "labels without data"),
    ],
)
def test_unknown_format(tmp_path, name, problem):
    with pytest.raises(TableError, match=problem):
        read_table(write(tmp_path, name, "a\n1\n"))


def test_without_pandas_the_message_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("looms.datasets")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'needs pandas, .* pip install "\.\[cli\]"'):
        import_module("looms.datasets")


def test_a_fault_inside_an_optional_package_is_not_hidden(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr("looms._optional.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="numpy"):
        require("pandas", "Reading tables")
