"""Pairs of files as the challenges published them."""

import gzip

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import check_array

from looms.datasets import TableError
from papers.challenge._files import read_challenge

SPARSE = np.array([[0, 1.5, 0], [2, 0, 3], [0, 0, 4], [0, 0, 0]])


def read(folder, text, labels, suffix=""):
    path = folder / f"toy.data{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
    (folder / "toy.labels").write_text(labels)
    return read_challenge(path, folder / "toy.labels")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_dense(tmp_path, suffix):
    X, y = read(tmp_path, "1 2.5 \n3 4 \n", "1\n-1\n", suffix)
    assert X.tolist() == [[1, 2.5], [3, 4]]
    assert y.tolist() == [1, -1]
    assert read(tmp_path, "1 2", "1")[0].tolist() == [[1, 2]]


@pytest.mark.parametrize("text", ["2:1.5\n1:2 3:3\n3:4\n\n", "2:1.5 \n1:2 3:3 \n3:4 \n \n"])
def test_sparse(tmp_path, text):
    X, y = read(tmp_path, text, "1\n-1\n1\n-1\n")
    assert isinstance(X, sparse.csr_array)
    assert check_array(X, accept_sparse="csr", accept_large_sparse=False) is X
    np.testing.assert_array_equal(X.toarray(), SPARSE)
    assert y.tolist() == [1, -1, 1, -1]


def test_indices_of_ones(tmp_path):
    X, _ = read(tmp_path, "2\n1 3\n3\n\n", "1\n-1\n1\n-1\n")
    np.testing.assert_array_equal(X.toarray(), SPARSE != 0)


@pytest.mark.parametrize(
    ("text", "labels", "problem"),
    [
        ("5 4 6\n7 2\n", "1\n1\n", "sorted"),
        ("1 2\n0 1 2\n", "1\n1\n", "index 0"),
        ("1 2.5\n1\n", "1\n1\n", "literal"),
        ("1 2\n3 4_0\n", "1\n1\n", "4_0"),
        ("1:1 2\n", "1\n", "again"),
        ("1 2\n3 4\n\n", "1\n1\n", "2 labels for 3 rows"),
        ("1 2\n3 4\n", "1\n0\n", "toy.labels"),
    ],
)
def test_refused(tmp_path, text, labels, problem):
    with pytest.raises(TableError, match=problem):
        read(tmp_path, text, labels)


def test_a_damaged_file(tmp_path):
    (tmp_path / "toy.data.gz").write_bytes(gzip.compress(b"1 2\n" * 99)[:-9])
    with pytest.raises(TableError, match="end-of-stream"):
        read_challenge(tmp_path / "toy.data.gz", tmp_path / "toy.labels")
