"""Commands on svmlight files and SciPy's matrices with their labels."""

import resource
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from looms.model_files import load_model

pytestmark = pytest.mark.slow


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
    one_line(fit("t.svm", "-t", "y", "-o", "m.skops"), 2, "the target cannot be chosen")


@pytest.mark.parametrize("suffix", ["svm", "npz"])
def test_features_that_no_row_of_the_fit_had_are_ignored(looms, fit, suffix, monkeypatch):
    def write(name, X):
        y = np.resize([1, -1], X.shape[0])
        if suffix == "svm":
            dump_svmlight_file(X, y, f"{name}.svm")
        else:
            sparse.save_npz(f"{name}.npz", sparse.csr_array(X))
            np.savetxt(f"{name}.labels", y, fmt="%d")
        return f"{name}.{suffix}"

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + np.resize([1, -1], (40, 1))
    assert fit(write("t", X), "-c", "linear", "-o", "m.skops").exit_code == 0
    monkeypatch.setattr("looms.cli._model._ENTRIES", 40 * 16)  # blocks of 16 rows
    more, same = np.zeros((40, 9)), np.zeros((40, 9))
    more[:, :4] = same[:, :4] = X
    more[::3, 8], more[20, 5] = 7.0, 1.0
    known = write("known", X)
    narrow = write("short", X[:, :2])
    padded = write("zeros", X * [1, 1, 0, 0])
    for command in (("predict", "m.skops"), ("score", "m.skops"), ("diagnose", "m.skops")):
        options = ("--bootstrap", 0) if "diagnose" in command else ()

        def of(name, command=command, options=options):
            data = ("--data", name) if options else (name,)
            result = looms(*command, *data, *options)
            assert result.exit_code == 0, result.stderr
            return result.stdout.replace(name, ""), result.stderr.count("beyond the 4 of the fit")

        assert of(known)[1] == 0
        assert of(write("wider", more)) == (of(known)[0], 1)
        assert of(write("empty", same)) == of(known)
        assert of(narrow) == of(padded)


def test_npz_end_to_end(looms, fit, one_line):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.normal(size=(30, 3)))
    sparse.save_npz("toy.npz", X)
    one_line(fit("toy.npz"), 2, "put their .labels file in the same folder")
    np.savetxt("toy.labels", np.where(X[:, [0]].toarray() > 0, 1, -1), fmt="%d")
    assert fit("toy.npz", "-c", "linear").exit_code == 0
    sparse.save_npz("new.npz", X[:4])
    result = looms("predict", "toy.looms.skops", "new.npz")
    assert result.stdout.splitlines()[0] == "row,prediction,decision_1,probability_-1,probability_1"
    one_line(looms("score", "toy.looms.skops", "new.npz"), 2, "no labels are beside it")


def test_sparse_rows_are_not_for_a_model_of_named_columns(looms, pets_model, one_line):
    dump_svmlight_file(np.ones((4, 3)), np.ones(4), "t.svm")
    one_line(looms("predict", pets_model, "t.svm"), 2, "was fitted to a table that is not sparse")


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
