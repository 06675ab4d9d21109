"""svmlight files and SciPy's matrices with their labels."""

import gzip

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import check_array

from looms.datasets import TableError, read_table
from looms.tables._cells import is_written

DENSE = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 3.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
LABELS = np.array([1, -1, 1, -1])


def check_sparse(X, expected):
    assert isinstance(X, sparse.csr_array)
    np.testing.assert_array_equal(X.toarray(), expected)
    assert check_array(X, accept_sparse="csr", accept_large_sparse=False) is X


@pytest.mark.parametrize("suffix", [".svm", ".svmlight", ".libsvm", ".svm.gz"])
@pytest.mark.parametrize("zero_based", [True, False])
def test_reads_what_scikit_learn_writes(tmp_path, suffix, zero_based):
    path = tmp_path / f"t{suffix}"
    dump_svmlight_file(DENSE, LABELS, str(tmp_path / "plain"), zero_based=zero_based)
    content = (tmp_path / "plain").read_bytes()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    table = read_table(path)
    check_sparse(table.X, DENSE if zero_based else np.hstack([np.zeros((4, 1)), DENSE]))
    np.testing.assert_array_equal(table.y, LABELS)
    assert table.y.dtype.kind == "i"
    assert table.name == "t"


def test_targets_and_comments_of_svmlight(tmp_path):
    for text, y in (
        ("0.5 1:1\n2 2:1\n", [0.5, 2.0]),
        ("# made_by me\n1 1:1 # row_1\n-1 qid:3 2:1e300\n", [1, -1]),
    ):
        (tmp_path / "t.svm").write_text(text)
        assert read_table(tmp_path / "t.svm").y.tolist() == y


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 1:0.5 2\n", "data row 1: '2' is not a pair index:value"),
        ("1 1:1\n1:0.5 2:1\n", "data row 2: '1:0.5' is not a number"),
        ("1 2:0.5 1:1\n", "data row 1: '1:1' does not have a greater index"),
        *((f"1 {i}:1\n", f"'{i}:1' is not a pair") for i in ("-2", "1_0")),
        *((f"1 1:{x}\n", f"data row 1: '1:{x}' is not a number") for x in ("1_000", "0x10")),
        ("1_0 1:1\n", "'1_0' is not a number"),
        ("1 1:1e400\n", "'1:1e400' is too large a number"),
        *((f"1 {i}:1\n", f"'{i}:1' .* index below 2147483647") for i in (2**31 - 1, 2**32 + 1)),
        (f"{2**53 + 1} 1:1\n", "'9007199254740993' has more digits than a float holds"),
        (f"1 1:{2**53 + 1}\n", "'1:9007199254740993' has more digits than a float holds"),
        ("# nothing\n", "no rows of data"),
        ("1\n-1\n", "no row has a feature"),
        ("1 1:1\nnan 1:2\n", "target is missing in 1 of 2 rows"),
        ("1 1:1\ninf 1:2\n", "target is infinite in 1 of 2 rows, first in row 2"),
    ],
)
def test_refused_svmlight(tmp_path, text, problem):
    (tmp_path / "t.svm").write_text(text)
    with pytest.raises(TableError, match=problem):
        read_table(tmp_path / "t.svm")
    with pytest.raises(TableError, match="target cannot be chosen"):
        read_table(tmp_path / "t.svm", "y")


@pytest.mark.parametrize("compressed", [True, False])
def test_npz_of_scipy(tmp_path, compressed):
    path, beside = tmp_path / "t.npz", tmp_path / "t.labels"
    sparse.save_npz(path, sparse.csc_matrix(DENSE), compressed=compressed)
    check_sparse(read_table(path).X, DENSE)
    assert read_table(path).y is None
    (tmp_path / "t.npz.gz").write_bytes(gzip.compress(path.read_bytes()))
    for labels in (["1", "-1", "1", "-1"], ["a b", "c", "9007199254740993", "01"]):
        beside.write_text("\n".join(labels) + "\n" * compressed)
        for name in ("t.npz", "t.npz.gz"):
            y = read_table(tmp_path / name).y
            assert is_written(y)
            assert y.tolist() == labels
    for text, problem in (
        ("1\n\n1\n-1\n", "3 labels for 4 rows"),
        *((f"1\n{gap}\n1\n2\n", "missing in 1 of 4 rows, first in row 2") for gap in ("nan", "?")),
    ):
        beside.write_text(text)
        with pytest.raises(TableError, match=problem):
            read_table(path)
    beside.write_text("1\n-1\n1\n-1" + " " * 9999)
    with pytest.raises(TableError, match=r"t\.labels: it has more than"):
        read_table(path, max_bytes=9999)
    with pytest.raises(TableError, match="target cannot be chosen"):
        read_table(path, "y")


def stored(data, rows, columns, format="csc", **arrays):
    """Function that writes the parts of a matrix as SciPy does."""
    shape, arrays = (rows, columns), arrays or {"indices": [0], "indptr": [0, 1]}
    return lambda path: np.savez(path, format=format, shape=shape, data=data, **arrays)


def sparse_of(*cells):
    return lambda path: sparse.save_npz(path, sparse.csr_array([cells]))


@pytest.mark.parametrize(
    ("save", "problem"),
    [
        (lambda path: np.savez(path, format=np.array([{}], dtype=object)), "not a sparse matrix"),
        (stored([1.0], 2, 2, "csr", indices=[7], indptr=[0, 1, 1]), "not a sparse matrix"),
        (stored([1.0], 2, 2, indices=[7], indptr=[0, 1, 1]), "not a sparse matrix"),
        (lambda path: path.write_bytes(b"PK\3\4"), "damaged or cut short"),
        (sparse_of(np.nan, 1.0), "missing or infinite"),
        (stored([1.0], 4 * 10**8, 1, "coo", row=[0], col=[0]), "more than 1,073,741,824 bytes"),
        (stored([1.0], 4 * 10**8, 1), "more than 1,073,741,824 bytes"),
        (stored([1.0], 1, 2**33, "csr", indices=[2**32 + 5], indptr=[0, 1]), r"shape is \(1, 858"),
        (sparse_of(1j, 1.0), "of the type complex128"),
        (stored(["1_0"], 1, 2, "csr"), "of the type <U3"),
        (sparse_of(2**53 + 1, 1), "9007199254740993 has more digits"),
    ],
)
def test_refused_npz(tmp_path, save, problem):
    save(tmp_path / "t.npz")
    with pytest.raises(TableError, match=problem):
        read_table(tmp_path / "t.npz")


def test_sums_of_small_integers_in_npz_do_not_wrap(tmp_path):
    data, place = np.array([100, 100], np.int8), np.array([0, 0])
    np.savez(tmp_path / "t.npz", format="coo", shape=(1, 1), data=data, row=place, col=place)
    assert read_table(tmp_path / "t.npz").X.toarray() == 200
