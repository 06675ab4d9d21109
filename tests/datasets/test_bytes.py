"""How much of a file is read, and names that no file can have."""

import gzip
import io
import os
import resource
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from looms.datasets import TableError, open_table, read_table

CONTENT = {
    "t.csv": b"a,b\n" + b"1,2\n" * 99,
    "t.tsv": b"a\tb\n" + b"1\t2\n" * 99,
    "t.arff": b"@attribute a real\n@data\n" + b"1\n" * 99,
    "t.svm": b"1 1:1\n" * 99,
}
FRAME = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})


def refused_below(path, size):
    assert read_table(path, max_bytes=size).X.shape[0]
    with pytest.raises(TableError, match=rf"more than {size - 1:,} bytes, unpacked.*max_bytes"):
        read_table(path, max_bytes=size - 1)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CONTENT)
def test_a_file_with_more_bytes_than_allowed_is_refused(write, name, packed):
    content = CONTENT[name]
    path = write(gzip.compress(content), f"{name}.gz") if packed else write(content, name)
    refused_below(path, len(content))


def test_what_is_packed_in_other_ways_counts_unpacked(write):
    """A Parquet file as the table that it becomes."""
    path = write(pd.DataFrame({"a": np.zeros(10**6)}), "t.parquet")
    assert path.stat().st_size < 10**5
    refused_below(path, 8 * 10**6)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"0" * 10**6)
    for size, problem in ((10**6 - 1, "more than 999,999 bytes"), (10**6, "not a whole spread")):
        with pytest.raises(TableError, match=problem):
            read_table(path, format="spreadsheet", max_bytes=size)


@pytest.mark.slow
def test_what_unpacks_to_too_much_is_refused_without_holding_it(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(128):
            file.write(b"1\n" * 2**19)  # 128 MiB in half a MiB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableError, match="more than 1,048,576 bytes"):
        read_table(path, max_bytes=2**20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 2**10


@pytest.fixture
def pipe(tmp_path):
    """Write content to a named pipe, and say where."""

    def write(content, name):
        path = tmp_path / f"pipe.{name}"
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
        return path

    return write


@pytest.mark.parametrize("name", [*CONTENT, "t.parquet", "t.feather", "t.xlsx"])
def test_a_pipe_is_read_as_a_file_is(write, pipe, name):
    path = write(CONTENT.get(name, FRAME), name)
    content, expected = path.read_bytes(), read_table(path).X
    assert rows_of([read_table(pipe(content, name)).X]) == rows_of([expected])
    reader = open_table(pipe(content, name))
    for _ in range(2):
        parts = [table.X for table in reader.tables(50)]
        assert len(parts) == -(-expected.shape[0] // 50)
        assert rows_of(parts) == rows_of([expected])


def rows_of(parts):
    dense = [X.toarray() if sparse.issparse(X) else X.to_numpy() for X in parts]
    return np.concatenate(dense).tolist()


def test_standard_input_is_a_csv_file_unless_told(monkeypatch):
    for content, format in ((b"a,b\n01,2\n", None), (b"a\tb\n01\t2\n", "tsv")):
        for read in (
            read_table,
            lambda *args, **options: next(open_table(*args, **options).tables()),
        ):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert read("-", format=format).X["a"].tolist() == ["01"]


def test_names_that_no_file_can_have(tmp_path):
    for name in ("a\0b.csv", "a\0b.csv.gz", "a" * 300 + ".csv", "a" * 300 + ".npz"):
        with pytest.raises(TableError, match="cannot be read"):
            read_table(tmp_path / name)
    path = tmp_path / ("a" * 250 + ".npz")  # which leaves no room for the name of its labels
    sparse.save_npz(path, sparse.csr_array(np.eye(2)))
    assert read_table(path).y is None


def test_a_file_that_is_no_text_is_named(write):
    for content, what in (
        (b"PK\3\4", "zip archive, such as a spreadsheet"),
        (b"\x1f\x8b\x08", r"compressed by gzip \(.gz\)"),
        (b"PAR1", r"a Parquet file \(.parquet\)"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xd0\xcf\x11\xe0", "old Office programs"),
    ):
        for suffix in (".csv", ".arff", ".svm"):
            with pytest.raises(TableError, match=f"by its first bytes this is .*{what}.*suffix"):
                read_table(write(content + bytes(100), f"t{suffix}"))
