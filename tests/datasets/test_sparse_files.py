"""svmlight files and SciPy's matrices with their labels."""

import gzip
import io

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
def test_reads_what_scikit_learn_writes(write, suffix, zero_based):
    content = io.BytesIO()
    dump_svmlight_file(DENSE, LABELS, content, zero_based=zero_based)
    content = content.getvalue()
    table = read_table(write(gzip.compress(content) if ".gz" in suffix else content, f"t{suffix}"))
    check_sparse(table.X, DENSE if zero_based else np.hstack([np.zeros((4, 1)), DENSE]))
    assert table.y.tolist() == LABELS.tolist()
    assert table.y.dtype.kind == "i"
    assert table.name == "t"


def test_targets_and_comments_of_svmlight(write):
    for text, y in (
        ("0.5 1:1\n2 2:1\n", [0.5, 2.0]),
        ("# made_by me\n1 1:1 # row_1\n-1 qid:3 2:1e300\n", [1, -1]),
    ):
        assert read_table(write(text, "t.svm")).y.tolist() == y


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


def test_sums_of_small_integers_in_npz_do_not_wrap(tmp_path):
    data, place = np.array([100, 100], np.int8), np.array([0, 0])
    np.savez(tmp_path / "t.npz", format="coo", shape=(1, 1), data=data, row=place, col=place)
    assert read_table(tmp_path / "t.npz").X.toarray() == 200
