"""Commands on svmlight files and SciPy's matrices with their labels."""

import resource
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from looms.model_files import load_model


@pytest.mark.slow
def test_svmlight_end_to_end(looms, fit, figures, one_line):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.maximum(rng.random((60, 30)) - 0.8, 0))
    y = np.where(X[:, [3]].toarray().ravel() + X[:, [7]].toarray().ravel() > 0.05, 1, -1)
    dump_svmlight_file(X, y, "t.svm")
    dump_svmlight_file(X[:, :20], y, "narrow.svm")
    assert fit("t.svm", "-c", "linear").exit_code == 0
    assert load_model("t.looms.skops").metadata["columns"] is None
    result = looms("score", "t.looms.skops", "t.svm")
    assert figures(result.stdout.partition("Confusion")[0])[0] > 0.7
    result = looms("predict", "t.looms.skops", "narrow.svm")
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) == 61
    dump_svmlight_file(sparse.csr_array((1, 40)) + np.eye(1, 40, 39), [1], "wide.svm")
    result = looms("predict", "t.looms.skops", "wide.svm")
    one_line(result, 2, "X has 40 features, but SparseColumns is expecting 30")
    one_line(fit("t.svm", "-t", "y", "-o", "m.skops"), 2, "the target cannot be chosen")


@pytest.mark.slow
def test_npz_end_to_end(looms, fit, one_line):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.normal(size=(30, 3)))
    sparse.save_npz("toy.npz", X)
    one_line(fit("toy.npz"), 2, "put their .labels file in the same folder")
    np.savetxt("toy.labels", np.where(X[:, [0]].toarray() > 0, 1, -1), fmt="%d")
    assert fit("toy.npz").exit_code == 0
    sparse.save_npz("new.npz", X[:4])
    result = looms("predict", "toy.looms.skops", "new.npz")
    assert result.stdout.splitlines()[0] == "row,prediction,decision_1,probability_-1,probability_1"
    one_line(looms("score", "toy.looms.skops", "new.npz"), 2, "no labels are beside it")


@pytest.mark.slow
def test_sparse_rows_are_not_for_a_model_of_named_columns(looms, fit, pets, one_line):
    assert fit(pets, "-t", "kind").exit_code == 0
    dump_svmlight_file(np.ones((4, 3)), np.ones(4), "t.svm")
    result = looms("predict", "pets.looms.skops", "t.svm")
    one_line(result, 2, "was fitted to a table that is not sparse: give such a table")


@pytest.mark.slow
def test_a_large_index_costs_no_memory(looms, fit):
    """Columns up to 300 million, of which three are used, in one GB more than before."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 2))
    rows = [f"{np.sign(a):.0f} 1:{a} 7:{b} {3 * 10**8}:1" for a, b in values]
    Path("t.svm").write_text("\n".join(rows) + "\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, hard))
    try:
        result = fit("t.svm", "-c", "linear", "-o", "m")
        assert result.exit_code == 0, result.stderr
        result = looms("predict", "m", "t.svm")
        assert result.exit_code == 0, result.stderr
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert len(result.stdout.splitlines()) == 31
