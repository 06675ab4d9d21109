"""What the commands refuse, and how they end."""

import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

from looms import KernelClassifier, OneClassWarning, TabularClassifier, _memory
from looms._memory import bytes_needed
from looms.blocks import ArrayBlocks
from looms.model_files import load_model, save_model


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, pets_fitted):
    """A folder with a table and its model, and files that are no use for either."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copy(pets_fitted / "pets.looms.skops", folder / "m.skops")
    shutil.copy(pets_fitted / "pets.csv", folder)
    save_model(folder / "other.skops", KernelClassifier(), {})
    tables = {
        "one": pd.read_csv(folder / "pets.csv").assign(kind="cat"),
        "single": pd.read_csv(folder / "pets.csv").head(1),
        "flat": pd.DataFrame({"a": [1] * 4, "y": ["p", "q"] * 2}),
        "number": pd.DataFrame({"a": range(9), "y": np.arange(9) / 2}),
        "three": pd.DataFrame({"a": range(9), "y": [1, 2, 3] * 3}),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("fit", "nowhere.csv", "-t", "kind"), "there is no such file"),
        (("fit", "pets.csv", "-c", "auto,rbf"), "--candidates auto is several kernels: leave it"),
        (("fit", ".", "-t", "kind"), ".: this is a folder. Name one file in it."),
        (
            ("fit", "pets.csv"),
            "name the column to predict with --target ('weight', 'color'",
        ),
        (("fit", "pets.csv", "-t", "Kind"), "Did you mean 'kind'?"),
        (("fit", "pets.csv", "-t", "kind", "--task", "regression"), "must be numbers"),
        (("fit", "pets.csv", "-t", "kind", "-o", "no/m.skops"), "there is no folder no"),
        (("fit", "pets.csv", "-t", "kind", "-o", "."), "is a folder"),
        (("fit", "one.csv", "-t", "kind"), "the target has only one value, 'cat': name another"),
        (("fit", "single.csv", "-t", "kind"), "the table has one row with a target"),
        (("fit", "flat.csv", "-t", "y"), "no column of the table has two different values"),
        (
            ("fit", "number.csv", "-t", "y", "--class-weight", "balanced"),
            "--class-weight is for classification",
        ),
        (
            ("fit", "number.csv", "-t", "y", "--threshold", "0.3"),
            "--threshold is for classification",
        ),
        (
            ("fit", "three.csv", "-t", "y", "--threshold", "balanced"),
            "--threshold balanced needs two classes, but y has 3",
        ),
        (
            ("fit", "number.csv", "-t", "y", "--criterion", "wmw"),
            "judges classes; for regression use 'press'",
        ),
        (("show", "pets.csv"), "it is not a model file"),
        (
            ("predict", "pets.csv", "m.skops"),
            "m.skops is the model: it comes first, as in looms predict m.skops pets.csv",
        ),
        (("score", "pets.csv", "m.skops"), "it comes first, as in looms score m.skops pets.csv"),
        (("show", "nowhere.skops"), "there is no such file"),
        (("show", "other.skops"), "the model is not fitted; fit it, and save it again"),
        (("predict", "m.skops", "number.csv"), "3 of the model's 3 columns are missing"),
        (("predict", "m.skops", "number.csv"), "empty where not known, or fit without them (looms"),
        (("predict", "m.skops", "nowhere.csv"), "there is no such file"),
        (("score", "m.skops", "number.csv"), "there is no column 'kind' to be the target"),
        (("predict", "m.skops", "pets.csv", "-o", "no/p.csv"), "there is no folder no"),
        (("predict", "m.skops", "pets.csv", "-o", "p.XLSX"), "p.XLSX: the output is CSV: name p.c"),
        (("assess", "pets.csv", "-t", "kind", "-o", "p.csv.gz"), "the output is CSV: name p.csv"),
        (("compare", "pets.csv", "-t", "kind", "-c", "linear,rbf", "-o", "p.ods"), "name p.csv"),
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


def test_columns_that_are_ignored_are_noted(looms, pets, pets_model):
    extra = {f"extra{j}": 0 for j in range(12)}
    pd.read_csv(pets).assign(**extra).to_csv("more.csv", index=False)
    result = looms("predict", pets_model, "more.csv")
    assert result.exit_code == 0
    assert result.stderr.startswith("Note: 12 columns ignored, unknown to the model: 'extra0")
    assert result.stderr.rstrip().endswith("'extra9' and 2 more")


def test_interrupted_fit_is_130_and_writes_nothing(fit, pets, monkeypatch):
    def interrupt(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(TabularClassifier, "fit", interrupt)
    result = fit(pets, "-t", "kind")
    assert result.exit_code == 130
    assert result.stderr.endswith("Interrupted.\n")
    assert os.listdir() == ["pets.csv"]


def test_unexpected_errors_are_one_line_and_code_1(fit, pets, monkeypatch, one_line):
    def fail(self, X, y):
        raise RuntimeError("it broke\nbadly")

    monkeypatch.setattr(TabularClassifier, "fit", fail)
    result = fit(pets, "-t", "kind")
    one_line(result, 1, "unexpected RuntimeError: it broke badly (set LOOMS_TRACEBACK=1")
    monkeypatch.setenv("LOOMS_TRACEBACK", "1")
    assert isinstance(fit(pets, "-t", "kind").exception, RuntimeError)


@pytest.mark.parametrize("module", ["skops", "pandas"])
def test_missing_package_names_the_extra(looms, fit, pets, monkeypatch, module):
    def absent(name):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return __import__(name, fromlist=["_"])

    monkeypatch.setattr("looms._optional.import_module", absent)
    result = fit(pets, "-t", "kind")
    assert result.exit_code == 1
    assert f'needs {module}, which is not installed: pip install ".[cli]"' in result.stderr


def test_failures_of_the_algebra_are_not_bad_input(fit, pets, monkeypatch, one_line):
    def fail(self, *arguments):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(TabularClassifier, "fit", fail)
    result = fit(pets, "-t", "kind")
    one_line(result, 1, "unexpected LinAlgError: no convergence")


@pytest.mark.slow
def test_predicting_too(looms, fit, pets, monkeypatch, one_line, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert fit(pets, "-t", "kind", "-c", "linear").exit_code == 0

    def fail(self, *arguments, **options):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(TabularClassifier, "_columns", fail)
    one_line(looms("predict", "pets.looms.skops", pets), 1, "unexpected LinAlgError")


def test_the_cause_of_bad_input_can_be_seen(fit, pets, monkeypatch, one_line):
    def fail(self, *arguments):
        raise ValueError("it is odd")

    monkeypatch.setattr(TabularClassifier, "fit", fail)
    one_line(fit(pets, "-t", "kind"), 2, "Error: it is odd")
    monkeypatch.setenv("LOOMS_TRACEBACK", "1")
    error = fit(pets, "-t", "kind").exception
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.slow
def test_limits_of_a_file(looms, fit, monkeypatch, one_line):
    Path("t.csv").write_text("a,y\n" + "1,2\n3,4\n" * 100)
    one_line(fit("t.csv", "-t", "y", "--max-bytes", "803"), 2, "more than 803 bytes, unpacked")
    monkeypatch.setattr(_memory, "free_memory", lambda: bytes_needed(200) - 1)
    options = ("-t", "y", "--max-bytes", "804")
    for command, n_rows in ((fit, 200), (partial(looms, "assess", "--test-size", 0.01), 198)):
        text = f"kernel matrix of {n_rows} rows, and arrays of its size beside it, take about 0.00"
        monkeypatch.setattr(_memory, "free_memory", lambda n=n_rows: bytes_needed(n) - 1)
        result = command("t.csv", *options, "-c", "rbf")
        one_line(result, 2, text)
        assert "GB are free. Use --n-landmarks 1000, a model on landmarks, or a" in result.stderr
    small = ("-c", "rbf", "--n-landmarks", "20", "--splits", "2")
    assert looms("assess", "t.csv", "-t", "y", *small).exit_code == 0


@pytest.mark.slow
def test_a_linear_machine_takes_a_kernel_matrix_of_many_features_only(
    looms, fit, monkeypatch, one_line
):
    rng = np.random.default_rng(0)
    for name, n_features in (("few.csv", 3), ("wide.csv", 101)):
        table = pd.DataFrame(rng.normal(size=(200, n_features)).round(3)).assign(
            y=rng.normal(size=200), day=range(200)
        )
        table.to_csv(name, index=False)
    monkeypatch.setattr(_memory, "free_memory", lambda: bytes_needed(200) - 1)
    linear = ("-t", "y", "--candidates", "linear")
    assert fit("few.csv", *linear, "--search", "grid").exit_code == 0
    for options in ((), ("--cv", "5x2"), ("--time", "day", "--gap", "3")):
        assert fit("few.csv", *linear, *options, "--force").exit_code == 0
    others = [
        ("wide.csv", *linear),
        ("few.csv", *linear, "--candidates", "rbf", "--force"),
        ("few.csv", *linear, "--certify", "--force"),
    ]
    for arguments in others:
        one_line(fit(*arguments), 2, "kernel matrix of 200 rows, and")


@pytest.mark.slow
def test_models_on_landmarks_do_without_rows(looms, fit, pets, pets_model, one_line):
    saved = load_model(pets_model)
    before = saved.model.preprocessor_
    X, y = before.transform(pd.read_csv(pets)), saved.model.classes_[np.arange(40) % 2]
    for rows, covered in ((X, 0), (ArrayBlocks(X), 2)):
        machine = KernelClassifier(n_landmarks=5).fit(rows, y)
        machine.evaluate(nested=False)
        model = Pipeline([("table", before), ("machine", machine)])
        save_model(pets_model, model, saved.metadata)
        assert looms("show", pets_model).exit_code == 0
        assert looms("score", pets_model, pets).exit_code == 0
        assert looms("predict", pets_model, pets).exit_code == 0
        result = looms("predict", pets_model, pets, "--confidence-level", "0.8")
        assert result.exit_code == covered
        if covered:
            one_line(result, 2, "and --confidence-level needs them")


def test_a_class_of_one_row_is_fitted_as_in_python(looms, pets):
    frame = pd.read_csv(pets)
    frame["ill"] = ["yes", *["no"] * (len(frame) - 1)]
    frame.to_csv(pets, index=False)
    result = looms("fit", pets, "-t", "ill", "-c", "linear", "-o", "m.skops")
    assert result.exit_code == 0
    assert "Warning: Class 'yes' has 1 row" in result.stderr
    with pytest.warns(OneClassWarning):
        expected = TabularClassifier("linear").fit(frame.drop(columns="ill"), frame["ill"])
    found = load_model("m.skops").model
    assert np.array_equal(found.held_out_.outputs, expected.held_out_.outputs)
