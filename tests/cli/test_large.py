"""Tables larger than memory: prediction block by block, and machines on landmarks."""

import errno
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from looms.cli import _request
from looms.datasets import _rows
from looms.datasets._large import first_pass
from looms.estimators import _warnings
from looms.model_files import load_model

N = 300


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A table of which 100 rows are sampled, as CSV and as Parquet."""
    monkeypatch.setattr(_request, "first_pass", partial(first_pass, n_sample=100))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N).round(3),
            "b": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N).round(3)),
            "c": rng.choice(["red", "blue"], N),
        }
    )
    frame["y"] = np.where(frame["a"] + (frame["c"] == "red") > 0.5, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=70)
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pets.csv", "pets.parquet"])
@pytest.mark.parametrize(
    "options", [(), ("--id", "name", "--keep", "color", "--confidence-level", 0.9)]
)
def test_predictions_block_by_block_are_those_of_the_whole_file(
    looms, pets, pets_model, tmp_path, monkeypatch, name, options
):
    frame = pd.read_csv(pets)
    frame.loc[[9, 30], "weight"] = [900.0, 950.0]
    frame.loc[35, "color"] = "=green"
    frame["name"] = [f"n{k}" for k in range(40)]
    frame.to_csv(tmp_path / "pets.csv", index=False)
    frame.to_parquet(tmp_path / "pets.parquet", row_group_size=9)
    whole = looms("predict", pets_model, name, *options)
    assert whole.exit_code == 0, whole.stderr
    assert "in 2 of 40 rows 'weight' is far outside" in whole.stderr
    assert "in 1 of 40 rows 'color' has a value that no training row has" in whole.stderr
    monkeypatch.setattr(_rows, "_MOST_ROWS", 16)
    parts = looms("predict", pets_model, name, *options)
    assert (parts.stdout, parts.stderr) == (whole.stdout, whole.stderr)
    looms("predict", pets_model, name, *options, "-o", "p.csv")
    assert (tmp_path / "p.csv").read_text() == whole.stdout


@pytest.mark.slow
def test_a_bad_cell_in_a_later_block_leaves_no_output(
    looms, pets, pets_model, tmp_path, monkeypatch, one_line
):
    frame = pd.read_csv(pets).astype({"weight": object})
    frame.loc[30, "weight"] = "heavy"
    frame.to_csv(tmp_path / "pets.csv", index=False)
    monkeypatch.setattr(_rows, "_MOST_ROWS", 16)
    text = "'weight' is a column of numbers, and data row 31 holds 'heavy'"
    before = sorted(tmp_path.iterdir())
    one_line(looms("predict", pets_model, "pets.csv", "-o", "p.csv"), 2, text)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.slow
def test_a_machine_on_landmarks_of_a_table_in_blocks(looms, fit, large, tmp_path, name):
    options = "--n-landmarks", 20, "-o", "m.skops", "--report", "r.html"
    result = fit(name, "-t", "y", *options)
    assert result.exit_code == 0, result.stderr
    assert f"{name}: 300 rows in blocks; columns are prepared by a sample of" in result.stderr
    assert "Note: rows in blocks are not saved: for intervals or sets" in result.stderr
    assert "20 landmarks" in result.stdout
    assert "so its scores are optimistic; looms assess gives unbiased ones" in result.stderr
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"m.skops", "r.html", "t.csv", "t.parquet"}
    saved = load_model(tmp_path / "m.skops")
    machine = saved.model
    assert machine.landmarks_.shape == (20, machine.fitted_.n_features)
    assert machine.loo_.n_samples == saved.metadata["n_rows"] == N
    assert saved.model.preprocessor_.ranges_["a"] == [large["a"].min(), large["a"].max()]
    predicted = looms("predict", "m.skops", name)
    assert predicted.exit_code == 0, predicted.stderr
    assert "far outside" not in predicted.stderr
    rows = [line.split(",")[1] for line in predicted.stdout.splitlines()[1:]]
    assert np.mean(np.array(rows) == large["y"]) > 0.9
    assert looms("score", "m.skops", name).exit_code == 0
    assert "300 rows, 3 features" in looms("show", "m.skops").stdout
    refused = looms("predict", "m.skops", name, "--confidence-level", 0.9)
    assert refused.exit_code == 2


@pytest.mark.slow
def test_a_sparse_table_in_blocks(looms, large, tmp_path):
    X = (np.random.default_rng(0).random((N, 30)) < 0.2).astype(float)
    dump_svmlight_file(X, np.where(X[:, :3].sum(axis=1) > 0, 1, -1), str(tmp_path / "t.svm"))
    result = looms("fit", "t.svm", "--n-landmarks", 30, "-c", "linear", "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "300 rows in blocks" in result.stderr
    assert looms("predict", "m.skops", "t.svm").exit_code == 0


@pytest.mark.slow
def test_where_the_sample_is_the_table_the_rows_are_kept(looms, fit, large, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    result = fit("t.csv", "-t", "y", "--n-landmarks", 20, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "in blocks" not in result.stderr
    assert looms("predict", "m.skops", "t.csv", "--confidence-level", 0.9).exit_code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--n-landmarks", 20, "--memory", "1MB"), "no number fits: allow more by --memory"),
        (("--n-landmarks", 3000, "--memory", "1GB"), "1 GB may be used; --n-landmarks 1"),
        (("--n-landmarks", 20, "--memory", "much"), "not an amount of memory, such as 2GB"),
        (("--n-landmarks", 9, "--groups", "c", "--memory", "1GB"), "but --groups reads"),
        (("--target-transform", "log", "--memory", "1GB"), "but --target-transform reads"),
    ],
)
def test_what_is_refused_before_the_work(looms, large, one_line, tmp_path, options, text):
    one_line(looms("fit", "t.csv", "-t", "y", *options), 2, text)
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "t.parquet"}


def test_a_full_disk_is_one_line_and_leaves_nothing(looms, large, one_line, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_request.TableBlocks, "stored", full)
    result = looms("fit", "t.csv", "-t", "y", "--n-landmarks", 20)
    one_line(result, 2, "cannot be written (No space left on device); make room on the disk")
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "t.parquet"}


@pytest.mark.slow
def test_memory_and_time_are_told_before_a_long_fit(looms, fit, tmp_path, monkeypatch):
    monkeypatch.setattr(_warnings, "_MOST_SECONDS", 0.0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "y"]).round(3)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for search, least in (("rbf", 1e8), ("rbf", 1e12), ("linear", 1e8)):
        monkeypatch.setattr(_warnings, "_LEAST_OPERATIONS", least)
        told = fit("t.csv", "-t", "y", "-c", search, "--max-iter", 1, "--force").stderr
        assert told.count("Note: A fit to 300 rows will take") == (search == "rbf" and least < 1e9)
        assert "A fit to" not in told.partition("Candidate 1")[2]


@pytest.mark.slow
def test_an_evaluation_is_told_before_it_starts(looms, pets, monkeypatch):
    monkeypatch.setattr(_warnings, "_MOST_SECONDS", 0.0)
    result = looms("fit", pets, "-t", "kind", "-c", "linear")
    assert result.exit_code == 0, result.stderr
    told = re.search(r"Note: Nested evaluation .*\. --no-evaluate .*, and --jobs ", result.stderr)
    assert told.start() < result.stderr.index("Scores: 10 fits")
