"""Every reader against data written by other libraries."""

import datetime
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from looms._optional import require
from looms.datasets import TableError, open_table, read_table
from looms.tables._cells import is_written

CELLS = ["", " ", "?", "NA", " 1 ", "007", "1,5", "1e400", "v1.0", "9007199254740993", "é\xa0"]


def test_cells_of_text_are_as_they_are_written(write):
    for mark in ("", '"'):
        lines = ["a;b", *(f"{mark}{c}{mark};{mark}{c}{mark}" for c in CELLS)]
        table = read_table(write("\n".join(lines), "t.txt"), format="csv")
        X = table.X
        assert (table.name, table.y, list(X)) == ("t", None, ["a", "b"])
        assert all(map(is_written, (X["a"], X["b"])))
        assert X["a"].tolist() == X["b"].tolist() == CELLS


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "ods", "parquet", "feather"])
def test_cells_to_keep_are_as_they_are_written(write, suffix):
    path = write(pd.DataFrame({"id": CELLS[2:], "a": "x"}), f"t.{suffix}")
    assert read_table(path, keep=["id"]).kept == {"id": CELLS[2:]}
    with pytest.raises(TableError, match="no column 'ids' to keep"):
        read_table(path, keep=["ids"])


def test_kept_cells_of_typed_columns(write):
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 2**53 + 1], dtype="Int64"),
            "x": [0.5, 2.0, np.nan],
            "day": pd.Series(["2020-01-31", None, "2020-01-31 05:00"], dtype="M8[us]"),
        }
    )
    assert read_table(write(frame, "t.parquet"), keep=list(frame)).kept == {
        "n": ["1", None, "9007199254740993"],
        "x": ["0.5", "2", None],
        "day": ["2020-01-31", None, "2020-01-31 05:00:00"],
    }


def test_typed_text_is_not_written_and_whole_numbers_are_exact(write):
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
    path = write(table, "t.parquet")
    for source in (read_table(path), *open_table(path).tables(), *open_table(table).tables()):
        X = source.X
        for name in ("string", "large_string", "dictionary"):
            assert not is_written(X[name])
            assert X[name].astype(object).fillna("gap").tolist() == ["01", "gap", "NA"]
        assert X["dictionary"].dtype == "category"
        assert X["id"].tolist() == [2**53 + 1, None, -(2**53) - 1]
        assert X["big"].tolist() == [2**63, 2**64 - 1, 0]
        np.testing.assert_array_equal(X["n"], [7, np.nan, 8])
        assert [*map(str, X["day"][::2])] == ["9999-12-31 00:00:00", "0001-01-01 00:00:00"]
        assert str(X["when"][0]) == "9999-12-31 05:00:00"


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["p", "q", "r"], name="patient"),
        pd.date_range("2020-01-31", periods=3, name="visit"),
        pd.MultiIndex.from_arrays([[1, 2, 3], [4, 5, 6]], names=["patient", None]),
        *(pd.Index([0.5, 1.5, 2.5], name="dose"), pd.Index(["p", "q", "r"])),
        *(pd.date_range("2020-01-01", periods=3), pd.Index([2, 0, 1]), pd.RangeIndex(100, 103)),
    ],
    ids=str,
)
def test_rows_are_counted_by_place_whatever_index_pandas_stored(write, suffix, index):
    X = read_table(write(pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index), f"t.{suffix}")).X
    assert X.index.tolist() == [0, 1, 2]
    assert list(X) == ["a", *filter(None, index.names)]
    assert X["a"].tolist() == [1, 2, 3]
    for name in filter(None, index.names):
        assert X[name].tolist() == index.get_level_values(name).tolist()


def test_notes_of_pandas_in_parquet_are_not_read(write):
    for note in (b"{", b'{"index_columns": 3}', b"{}"):
        table = pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": note})
        assert read_table(write(table, "t.parquet")).X["a"].tolist() == [1, 2]


def test_rows_longer_than_a_block_of_arrow(write):
    long = "x" * 3_000_000
    assert read_table(write(f"a,b\n1,{long}\n2,{long}\n")).X.shape == (2, 2)


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_rows_without_a_target(write, suffix):
    y = ["a", "NA", None if suffix == "csv" else " ", "b"]
    path = write(pd.DataFrame({"x": [1, 2, 3, 4], "y": y}), f"t.{suffix}")
    with pytest.raises(TableError, match="'y' is missing in 2 of 4 rows, first in data row 2"):
        read_table(path, "y")
    table = read_table(path, "y", keep=["x"], drop_missing_targets=True)
    assert (table.y.name, table.y.tolist(), list(table.X)) == ("y", ["a", "b"], ["x"])
    assert table.X.index.tolist() == [0, 3]
    assert table.kept == {"x": ["1", "4"]}
    assert table.notes == ("2 rows of 4 left out, because the target 'y' is missing there",)


def test_files_that_cannot_be_opened(tmp_path, write, monkeypatch):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="this is a folder"):
        read_table(tmp_path / "folder.csv", "y")
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "nowhere.csv", "y")
    path = write("a\n1\n")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(TableError, match=r"cannot be read \(Permission denied\)"):
        read_table(path)


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
