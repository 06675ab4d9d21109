"""Tables in blocks: what is read, sampled and prepared is what reading at once gives."""

import gzip
import io
from itertools import chain

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from looms.blocks import ArrayBlocks
from looms.datasets import TableError, _delimited, _rows, open_table, read_table
from looms.datasets._large import TableBlocks, first_pass
from looms.tables import TablePreprocessor

N = 300


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N).round(3)),
            "count": rng.integers(0, 9, N),
            "color": rng.choice(["red", "blue", "a, b", 'the "k"'], N),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, N), "D"),
            "old": rng.random(N) < 0.5,
            "y": rng.choice(["yes", "no"], N),
        }
    )
    table.loc[5, "color"] = None
    return table


def batches_of(frame, rows=70):
    return pa.Table.from_pandas(frame).to_batches(max_chunksize=rows)


def write(frame, path):
    """A file of the format that its name says, in parts that are no blocks."""
    if ".parquet" in path.name:
        frame.to_parquet(path, row_group_size=70)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
    elif path.suffix in (".arrow", ".arrows"):
        batches = batches_of(frame)
        new = ipc.new_file if path.suffix == ".arrow" else ipc.new_stream
        with new(path, batches[0].schema) as file:
            for batch in batches:
                file.write_batch(batch)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.arrow", "t.arrows", "t.csv", "t.tsv.gz", "t.csv.gz", "t.parquet.gz"]
)
def test_blocks_are_the_rows_of_the_whole_table(tmp_path, frame, name, monkeypatch):
    monkeypatch.setattr(_delimited, "_PIECE", 1000)
    path = write(frame, tmp_path / name)
    whole = read_table(path, "y", keep=["count"])
    reader = open_table(path, "y", keep=["count"])
    for _ in range(2):  # from the start each time
        tables = list(reader.tables(64))
        assert [len(table.X) for table in tables] == [64, 64, 64, 64, 44]
        assert tables[1].X.index[0] == 64
        X = pd.concat([table.X for table in tables])
        pd.testing.assert_frame_equal(X, whole.X)
        assert np.concatenate([table.y for table in tables]).tolist() == whole.y.tolist()
        assert [*chain(*(table.kept["count"] for table in tables))] == whole.kept["count"]
    assert reader.notes == whole.notes


@pytest.mark.parametrize("piece", [7, 70, 150])
@pytest.mark.parametrize(
    "text",
    [
        'a,b,y\n1,"l\nm",3\n2,"q""u",4\n,NA,5\n' + '7,5" pipe,3\n' * 9 + '8,"\n,\n",9\n',
        "sep=;\nwhen;b\n" + "2020-01-01;1,5\n" * 9 + "2020-01-02 10:00:00;1.234,5\n",
        "\n\na,b\r\n" + "1,10:20:30\r\n\r\n" * 9 + "9007199254740993,11\r\n\r\n",
        "a,b\r" + "1,10:20:30\r" * 9 + "9007199254740993,11:00:00\r",
        ("a,b\n" + "1,\xe9\n" * 20 + "2,\u20ac\n").encode("cp1252"),
        ("a;b\n" + "1,5;\xe9\n" * 20 + "2;\U0001f600\n").encode("utf-16"),
        *(f"a{e}" + f"1{e}{e}" * 20 + e * 30 + f'""{e}2{e * 9}' for e in ("\n", "\r\n", "\r")),
    ],
)
def test_a_text_in_pieces_is_the_same_text(tmp_path, monkeypatch, text, piece):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    whole = read_table(path)
    monkeypatch.setattr(_delimited, "_PIECE", piece)
    reader = open_table(path, sep=";" if ";" in "".join(whole.notes) else ",")
    X = pd.concat([table.X for table in reader.tables(4)])
    pd.testing.assert_frame_equal(X, whole.X)
    assert reader.notes == whole.notes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n" + "1,2\n" * 50 + "3\n", r"data row 51: Expected 2 columns, got 1"),
        ("a,b\n" + "1,2\n" * 50 + '3,"4\n5,6\n', r"line 52: .* is not closed"),
        ("a,b\n" + "1,2\n" * 50 + '3,"4"x\n', r"line 52: .* '4\"x.* is not closed at the end"),
        ("a,b\n" + "1,2\n" * 50 + "\0,1\n", "line 52 is not text in cp1252"),
        (("a,b\n" + "1,\xe9\n" * 50).encode() + b"\xff,1\n", "line 52 is not text in utf-8, and"),
        ("a,b\n", "there are no rows of data"),
        (
            gzip.compress(b"a,b\n" + b"1,2\n" * 50, mtime=0)[:-9],
            "cannot be unpacked",
        ),
    ],
)
def test_damage_in_a_later_piece_has_its_place(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr(_delimited, "_PIECE", 80)
    content = text if isinstance(text, bytes) else text.encode()
    path = tmp_path / ("t.csv.gz" if content[:2] == b"\x1f\x8b" else "t.csv")
    path.write_bytes(content)
    for read in (read_table, lambda path: first_pass(open_table(path))):
        with pytest.raises(TableError, match=problem):
            read(path)


def test_damaged_files_name_the_row_group_or_batch(tmp_path, frame):
    path = write(frame, tmp_path / "t.parquet")
    content = path.read_bytes()
    start = parquet.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    path.write_bytes(content[:start] + b"\xff" * 40 + content[start + 40 :])
    with pytest.raises(TableError, match="batch 1 of its rows cannot be read"):
        first_pass(open_table(path))
    path.write_bytes(content[:-100])
    with pytest.raises(TableError, match="not a whole Parquet file"):
        open_table(path)
    path = write(frame, tmp_path / "t.arrows")
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(TableError, match=r"batch \d of its rows cannot be read"):
        first_pass(open_table(path))


def test_objects_of_python_are_read_as_files_are(tmp_path, frame):
    table = pa.Table.from_pandas(frame)
    expected = read_table(write(frame, tmp_path / "t.parquet"), "y").X
    for source in (table, lambda: iter(batches_of(frame))):
        X = pd.concat([part.X for part in open_table(source, "y").tables(128)])
        pd.testing.assert_frame_equal(X, expected)
    changed = frame.assign(count=frame["count"].astype(float))
    reader = open_table(lambda: [*batches_of(frame), *batches_of(changed)], "y")
    with pytest.raises(TableError, match="batch 6 has column 'count' of type double, unlike the"):
        first_pass(reader)
    once = pa.RecordBatchReader.from_batches(batches_of(frame)[0].schema, batches_of(frame))
    reader = open_table(once, "y")
    first = first_pass(reader)
    assert first.n_rows == N
    with pytest.raises(TableError, match="it has 0 rows now, and had 300 rows at first"):
        list(blocks_of(reader, first).results(len))


def test_cells_of_a_data_frame_stay_as_they_are(tmp_path, frame):
    written = read_table(write(frame, tmp_path / "t.csv")).X
    for table in (written, frame):
        X = pd.concat([part.X for part in open_table(table.set_index(np.arange(N) + 5)).tables(70)])
        pd.testing.assert_frame_equal(X, table)


def blocks_of(reader, first, **options):
    preprocessor = TablePreprocessor(kinds=first.columns).fit(first.sample.X)
    return TableBlocks(reader, preprocessor, first, **options)


@pytest.mark.slow
def test_the_first_pass_counts_and_samples(tmp_path, frame):
    reader = open_table(write(frame, tmp_path / "t.parquet"), "y")
    first = first_pass(reader, n_sample=50)
    days = (frame["day"] - pd.Timestamp(0)).dt.days
    assert first.ranges == {
        "size": [frame["size"].min(), frame["size"].max()],
        "count": [0, 8],
        "day": [days.min(), days.max()],
    }
    assert first.y.tolist() == frame["y"].tolist()
    assert (np.diff(first.places) > 0).all()
    assert len(first.places) == 50
    expected = frame.iloc[first.places].reset_index(drop=True)
    pd.testing.assert_frame_equal(first.sample.X, expected.drop(columns="y"), check_dtype=False)
    assert first.sample.y.tolist() == expected["y"].tolist()
    csv = first_pass(open_table(write(frame, tmp_path / "t.csv"), "y"), n_sample=50)
    assert csv.ranges == first.ranges
    assert dict(csv.columns) == dict(first.columns)
    assert csv.places.tolist() == first.places.tolist()
    draws = [first_pass(reader, n_sample=9, random_state=k).places for k in range(60)]
    counts = np.bincount(np.concatenate(draws), minlength=N)
    assert counts.max() < 10  # 2 expected


@pytest.mark.slow
def test_blocks_of_a_file_are_those_of_its_prepared_matrix(tmp_path, frame):
    reader = open_table(write(frame, tmp_path / "t.csv"), "y")
    first = first_pass(reader)
    expected = TablePreprocessor().fit_transform(frame.drop(columns="y"))
    column = np.arange(float(N))

    def work(X, c):
        return (X.T @ X, c.sum()), (X @ np.ones(X.shape[1]) + c,)

    results = []
    for n_threads in (1, 3):
        blocks = blocks_of(reader, first, size=64, n_threads=n_threads)
        assert blocks.shape == expected.shape
        sums, columns = blocks.sweep(work, column)
        results.append((*sums, *columns))
        np.testing.assert_array_equal(blocks.rows(np.array([0, 70, 299])), expected[[0, 70, 299]])
    sums, columns = ArrayBlocks(expected, size=64).sweep(work, column)
    results.append((*sums, *columns))
    stored = blocks.stored(tmp_path / "X.npy", size=64)
    sums, columns = stored.sweep(work, column)
    results.append((*sums, *columns))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_svmlight_blocks_have_the_rows_and_the_widest_row(tmp_path):
    X = sparse.random(N, 40, density=0.1, random_state=0, format="csr")
    y = np.where(np.arange(N) % 3 == 0, 1, -1)
    text = io.BytesIO()
    dump_svmlight_file(X, y, text)
    path = tmp_path / "t.svm"
    path.write_bytes(b"# a comment\n\n" + text.getvalue())
    whole, reader = read_table(path), open_table(path)
    first = first_pass(reader, n_sample=100)
    assert first.y.tolist() == whole.y.tolist()
    assert (first.y.dtype, first.n_features) == (whole.y.dtype, whole.X.shape[1])
    np.testing.assert_array_equal(
        first.sample.X.toarray(), whole.X.toarray()[first.places, : first.sample.X.shape[1]]
    )
    every = first_pass(reader)
    blocks = blocks_of(reader, every, size=64)
    expected = TablePreprocessor().fit_transform(whole.X)
    np.testing.assert_allclose(blocks.rows(np.arange(N)).toarray(), expected.toarray())
    (total,), _ = blocks.sweep(lambda X: ((np.asarray(X.sum(axis=0)),), ()))
    np.testing.assert_allclose(total, expected.sum(axis=0))
    path.write_bytes(text.getvalue() + b"1 60:2\n")  # a feature of no row of the sample
    wide = first_pass(open_table(path), n_sample=10)
    assert wide.sample.X.shape[1] == wide.n_features > whole.X.shape[1]
    assert N not in wide.places
    assert blocks_of(open_table(path), wide, size=64).rows(np.array([0, N])).shape[0] == 2
    path.write_bytes(text.getvalue() + b"1 3:x\n")
    with pytest.raises(TableError, match=f"data row {N + 1}: '3:x' is not a number"):
        first_pass(reader)


@pytest.mark.parametrize(
    ("cells", "whole"),
    [
        ([pa.array(["u", "v"]).dictionary_encode(), pa.array(["w"]).dictionary_encode()], "uvw"),
        ([[2**53 - 1, None], [2**53 + 1, 3], [4, 5]], [2**53 - 1, None, 2**53 + 1, 3, 4, 5]),
    ],
)
def test_parts_of_a_sample_keep_their_types(monkeypatch, cells, whole):
    monkeypatch.setattr(_rows, "_MOST_ROWS", 2)
    parts = [pa.table({"a": pa.array(each)}) for each in cells]
    column = first_pass(open_table(lambda: parts)).sample.X["a"]
    assert isinstance(column.dtype, pd.CategoricalDtype) == (whole == "uvw")
    assert column.dropna().tolist() == [cell for cell in whole if cell]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_cells_that_are_refused_anywhere_in_a_table(tmp_path, frame, suffix):
    frame["day"] = frame["day"].dt.strftime("%Y-%m-%d")
    odd = frame.assign(day=frame["day"].where(frame.index != 250, "soon"))
    with pytest.raises(TableError, match=rf"t\.{suffix}: .*'day'.*data row 251.*'soon'"):
        first_pass(open_table(write(odd, tmp_path / f"t.{suffix}"), "y"), n_sample=20)
    frame.loc[[200, 280], "y"] = None
    with pytest.raises(TableError, match="'y' is missing in 2 of 300 rows, first in data row 201"):
        first_pass(open_table(write(frame, tmp_path / f"t.{suffix}"), "y"))
