"""What the commands refuse, and how they end."""

import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from looms import TabularClassifier, TabularRegressor, _memory
from looms._memory import bytes_needed
from looms.model_files import save_model


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, pets_fitted):
    """A folder with a table and its model, and files that are no use for either."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copy(pets_fitted / "pets.looms.skops", folder / "m.skops")
    shutil.copy(pets_fitted / "pets.csv", folder)
    tables = {
        "one": pd.read_csv(folder / "pets.csv").assign(kind="cat"),
        "single": pd.read_csv(folder / "pets.csv").head(1),
        "flat": pd.DataFrame({"a": [1] * 4, "y": ["p", "q"] * 2}),
        "number": pd.DataFrame({"a": range(9), "y": np.arange(9) / 2 - 1}),
        "fewer": pd.read_csv(folder / "pets.csv").iloc[:, 1:],
        "three": pd.DataFrame({"a": range(9), "y": [1, 2, 3] * 3}),
    }
    X, y = tables["one"][["weight"]], pd.Series(np.arange(40) % 3, name="kind")
    grades = pd.Series(pd.Categorical.from_codes(y, ["low", "mid", "top"], ordered=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing depends on the weight
        numbers = TabularRegressor(["linear"]).fit(X, y + 0.5)
        save_model(folder / "numbers.skops", numbers, metadata={"target": "kind"})
        save_model(folder / "grades.skops", TabularClassifier(["linear"]).fit(X, grades))
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("fit", "nowhere.csv", "-t", "kind"), "there is no such file"),
        (("fit", f"{'a' * 300}.csv", "-t", "y"), "it cannot be read"),
        (("fit", ".", "-t", "kind"), ".: this is a folder"),
        (("fit", "pets.csv"), "--target ('weight', 'color'"),
        (("fit", "pets.csv", "-t", "Kind"), "Did you mean 'kind'?"),
        (("fit", "pets.csv", "-t", "kind", "--task", "regression"), "must be numbers"),
        (("fit", "pets.csv", "-t", "kind", "-o", "no/m.skops"), "there is no folder no"),
        (("fit", "pets.csv", "-t", "kind", "-c", "ard", "--loss", "hinge"), "2 at most"),
        (("fit", "pets.csv", "-t", "kind", "-j", "0"), "--jobs 0"),
        (("fit", "one.csv", "-t", "kind"), "one.csv: the target has only one value, 'cat'"),
        (("fit", "single.csv", "-t", "kind"), "one row with a target"),
        (
            ("fit", "flat.csv", "-t", "y"),
            "flat.csv: no column of the table has two",
        ),
        (("fit", "number.csv", "-t", "y", "--target-transform", "log"), "--target-transform auto"),
        (("fit", "three.csv", "-t", "y", "--threshold", "balanced"), "--threshold balanced"),
        (
            ("fit", "number.csv", "-t", "y", "--target-transform", "cube"),
            "--target-transform 'cube'",
        ),
        (("fit", "pets.csv", "-t", "kind", "--cv", "ten"), "'5x2'"),
        (("show", "pets.csv"), "it is not a model file"),
        (("predict", "pets.csv", "m.skops"), "as in looms predict m.skops pets.csv"),
        (("score", "pets.csv", "m.skops"), "as in looms score m.skops pets.csv"),
        (("show", "nowhere.skops"), "there is no such file"),
        (("show", "m.skops", "--max-bytes", "1000"), "allow more by --max-bytes"),
        (("predict", "m.skops", "number.csv"), "the table has 'a', 'y'"),
        (("predict", "m.skops", "fewer.csv"), "(looms fit --drop)"),
        (("predict", "m.skops", "nowhere.csv"), "there is no such file"),
        (("score", "m.skops", "number.csv"), "there is no column 'kind' to be the target"),
        (("predict", "m.skops", "pets.csv", "-o", "no/p.csv"), "there is no folder no"),
        (("predict", "m.skops", "pets.csv", "-o", "p.XLSX"), "p.XLSX: the output is CSV: name p.c"),
        (("assess", "pets.csv", "-t", "kind", "-o", "p.csv.gz"), "the output is CSV: name p.csv"),
        (("compare", "pets.csv", "-t", "kind", "-c", "linear,rbf", "-o", "p.ods"), "name p.csv"),
        (("score", "numbers.skops", "pets.csv"), "looms fit --task classification"),
        (("export", "grades.skops"), "ordered classes have no graph"),
        (("diagnose", "m.skops", "-o", "p.json"), "p.json: the output is CSV: name p.csv"),
    ],
)
def test_bad_input_is_one_line_and_code_2(looms, bad_files, monkeypatch, arguments, text, one_line):
    monkeypatch.chdir(bad_files)
    before = sorted(os.listdir())
    one_line(looms(*arguments), 2, text)
    assert sorted(os.listdir()) == before


def test_a_table_with_names_is_not_told_of_files_of_labels(looms, pets):
    assert ".labels" not in looms("fit", pets).stderr


@pytest.mark.parametrize("arguments", [("fit",), ("fit", "a", "--task", "guess"), ("no",)])
def test_wrong_usage_is_code_2(looms, arguments):
    result = looms(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "Interrupted."),
        (
            RuntimeError("it broke\nbadly"),
            1,
            "Error: unexpected RuntimeError: it broke badly (",
        ),
        (
            np.linalg.LinAlgError("no convergence"),
            1,
            "Error: unexpected LinAlgError: no convergence",
        ),
        (ValueError("it is odd"), 2, "Error: it is odd"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_how_they_end(looms, pets, pets_model, monkeypatch, command, raised, code, said):
    """Errors of the algebra are not the fault of the input; a traceback can be asked for."""

    def fail(self, *arguments):
        raise raised

    monkeypatch.setattr(TabularClassifier, {"fit": "fit", "predict": "_matrix"}[command], fail)
    inputs = {"fit": (pets, "-t", "kind", "-o", "new.skops"), "predict": (pets_model, pets)}
    before = sorted(os.listdir())
    result = looms(command, *inputs[command])
    assert result.exit_code == code
    last = result.stderr.splitlines()[-1]
    for prefix in ("the model cannot take these rows: ", f"{pets}: "):
        last = last.replace(prefix, "")
    assert last.startswith(said)
    assert (result.stdout, sorted(os.listdir())) == ("", before)
    monkeypatch.setenv("LOOMS_TRACEBACK", "1")
    error = looms(command, *inputs[command]).exception
    if code != 130:
        assert raised in (error, error.__cause__)


@pytest.mark.parametrize("module", ["skops", "pandas", "pyarrow"])
def test_missing_package_names_the_extra(fit, pets, monkeypatch, module):
    def absent(name):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return __import__(name, fromlist=["_"])

    monkeypatch.setattr("looms._optional.import_module", absent)
    result = fit(pets, "-t", "kind", "-c", "linear")
    assert result.exit_code == 1
    assert f'needs {module}, which is not installed: pip install ".[cli]"' in result.stderr


@pytest.mark.slow
def test_limits_of_memory(looms, monkeypatch, one_line):
    Path("t.csv").write_text("a,y\n" + "1,2\n3,4\n" * 100)
    given = ("t.csv", "-t", "y")
    one_line(looms("fit", *given, "--max-bytes", "803"), 2, "more than 803 bytes, unpacked")
    for command, n_rows in ((("fit",), 200), (("assess", "--test-size", 0.01), 198)):
        monkeypatch.setattr(_memory, "free_memory", lambda n=n_rows: bytes_needed(n) - 1)
        result = looms(*command, *given, "--max-bytes", "804", "-c", "rbf")
        one_line(result, 2, f"kernel matrix of {n_rows} rows")
        assert "--n-landmarks 1000" in result.stderr
    result = looms("fit", *given, "-c", "linear", "--certify")  # which fits by its features
    one_line(result, 2, "t.csv: the kernel matrix of 200 rows")


def test_a_class_of_one_row_is_fitted(fit, pets):
    frame = pd.read_csv(pets)
    frame.assign(ill=["yes", *["no"] * (len(frame) - 1)]).to_csv(pets, index=False)
    result = fit(pets, "-t", "ill", "-c", "linear", "-o", "m.skops")
    assert result.exit_code == 0
    assert "Warning: Class 'yes' has 1 row" in result.stderr
