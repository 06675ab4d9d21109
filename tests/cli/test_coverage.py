"""`looms predict --confidence-level`: intervals and sets, and what is refused."""

import io
import os

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated

from looms import TabularRegressor
from looms.estimators._model import Model
from looms.fitted._outcome import column_of_sets
from looms.fitted._without_units import intervals
from looms.model_files import load_model
from looms.tables import Columns, TablePreprocessor


def predictions(result):
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout), keep_default_na=False)


@pytest.fixture
def heights(tmp_path):
    """Sixty rows of a number to predict."""
    random = np.random.default_rng(0)
    x = random.uniform(size=60)
    frame = pd.DataFrame({"x": x, "height": np.sin(6 * x) + 0.2 * random.normal(size=60)})
    frame.to_csv(tmp_path / "heights.csv", index=False)
    return tmp_path / "heights.csv"


@pytest.mark.parametrize("method", [None, "plus", "minmax", "scaled"])
@pytest.mark.slow
def test_intervals(looms, fit, heights, method):
    fit(heights, "-t", "height", "-o", "m.skops")
    options = () if method is None else ("--method", method)
    found = predictions(
        looms("predict", "m.skops", heights, "--confidence-level", 0.8, *options, "--digits", 17)
    )
    assert list(found) == ["row", "prediction", "lower", "upper"]
    model = load_model("m.skops").model
    matrix = pd.read_csv(heights)
    expected = evaluated(model).predict_interval(matrix, 0.8, method or "plus")
    np.testing.assert_allclose(found[["lower", "upper"]], expected)
    others = [m for m in ("plus", "minmax", "scaled") if m != (method or "plus")]
    assert not any(
        np.allclose(expected, evaluated(model).predict_interval(matrix, 0.8, m)) for m in others
    )


@pytest.mark.slow
@pytest.mark.parametrize("conditional", [False, True])
def test_sets(looms, fit, data_folder, conditional):
    file = data_folder / "haberman.csv"
    fit(file, "-t", "target", "-c", "linear", "-o", "m.skops")
    options = ("--class-conditional",) if conditional else ()
    found = predictions(
        looms("predict", "m.skops", file, "--confidence-level", 0.9, *options, "--digits", 17)
    )
    assert list(found)[-1] == "set"
    model = load_model("m.skops").model
    matrix = pd.read_csv(file)
    members = evaluated(model).predict_set(matrix, 0.9, conditional)
    one, other = map(str, model.classes_)
    names = {(0, 0): "", (1, 0): one, (0, 1): other, (1, 1): f"{one}|{other}"}
    assert found["set"].astype(str).tolist() == [names[tuple(row)] for row in members.tolist()]
    assert not np.array_equal(members, evaluated(model).predict_set(matrix, 0.9, not conditional))


def test_sets_of_no_label_are_empty():
    members = np.array([[True, False, True], [False, False, False]])
    assert column_of_sets(np.array(["a", "b", "c"]), members)["set"].tolist() == ["a|c", ""]
    with pytest.warns(UserWarning, match=r"labels hold '\|'"):
        assert column_of_sets(np.array(["a|b", "b", "c"]), members)["set"].tolist() == ["a|b|c", ""]


def test_models_of_python_are_to_be_evaluated_before(looms, heights, one_line):
    table = pd.read_csv(heights)
    model = TabularRegressor("rbf").fit(table[["x"]], table["height"])
    model.save("m.skops")
    predict = ("predict", "m.skops", heights, "--confidence-level", 0.8, "-o", "p.csv")
    one_line(looms(*predict), 2, "not evaluated, and --confidence-level needs")
    assert not os.path.exists("p.csv")
    model.evaluate(nested=False)
    model.save("m.skops")
    result = looms(*predict)
    assert result.exit_code == 0
    assert "intervals cover a little less" in result.stderr
    model.evaluate()
    model.save("m.skops")
    assert "cover a little less" not in looms(*predict, "--force").stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options", "text"),
    [
        (
            "class",
            ("--confidence-level", 1),
            "--confidence-level must be a number between 0 and 1, got 1.0",
        ),
        ("class", ("--confidence-level", 90), "got 90.0. Did you mean 0.9?"),
        (
            "class",
            ("--confidence-level", "nan"),
            "--confidence-level must be a number between 0",
        ),
        ("class", ("--confidence-level", 0.999), "0.999"),
        (
            "class",
            ("--confidence-level", 0.96, "--class-conditional"),
            "Class 'cat'",
        ),
        ("class", ("--method", "plus"), "--method goes with --confidence-level"),
        ("class", ("--class-conditional",), "--class-conditional goes with --confidence-level"),
        (
            "class",
            ("--confidence-level", 0.9, "--method", "plus"),
            "--method is for regression, but class",
        ),
        (
            "number",
            ("--confidence-level", 0.9, "--class-conditional"),
            "is for classification, but number",
        ),
        (
            "svm",
            ("--confidence-level", 0.9, "--method", "plus"),
            "--method is for regression, but svm",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
def test_refusals(looms, fit, pets, one_line, model, options, text):
    frame = pd.read_csv(pets)
    frame["weight"] = frame["weight"].fillna(4.0)
    frame.to_csv("pets.csv", index=False)
    target = {"class": ("kind",), "number": ("weight", "--task", "regression")}.get(model)
    machine = ("--target", *target) if target else ("--target", "kind", "--loss", "hinge")
    assert fit("pets.csv", *machine, "-o", model).exit_code == 0
    one_line(looms("predict", model, "pets.csv", *options, "--digits", 17), 2, text)


@pytest.mark.slow
def test_empty_sets_are_counted(looms, fit, pets):
    fit(pets, "-t", "kind", "-c", "linear", "-o", "m.skops")
    result = looms("predict", "m.skops", pets, "--confidence-level", 0.3)
    n = int((predictions(result).set == "").sum())
    assert n > 1
    assert f"Note: {n} of 40 sets are empty: such a row is typical of no class" in result.stderr


@pytest.mark.slow
def test_rows_are_preprocessed_once(looms, pets, pets_model, monkeypatch):
    passes = []

    def counted(name, of):
        return lambda *given, **options: passes.append(name) or of(*given, **options)

    for owner, name in ((Columns, "read_at"), (TablePreprocessor, "_write")):
        monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    predictions(looms("predict", pets_model, pets, "--confidence-level", 0.8, "--keep", "weight"))
    assert passes == ["read_at", "_write"]
    assert looms("score", pets_model, pets).exit_code == 0
    assert passes == 2 * ["read_at", "_write"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["height", "tall"])
def test_intervals_and_sets_are_of_the_evaluation_and_a_loaded_model_never_trains(
    looms, heights, monkeypatch, target
):
    frame = pd.read_csv(heights)
    frame.assign(tall=np.where(frame["height"] > 0, "yes", "no")).to_csv(heights, index=False)
    options = ("--drop", "tall" if target == "height" else "height", "-c", "linear", "-c", "rbf")
    result = looms("fit", heights, "-t", target, *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr

    def trained(*arguments, **options):
        raise AssertionError("a model was tuned")

    monkeypatch.setattr(Model, "_fit_on", trained)
    result = looms("predict", "m.skops", heights, "--confidence-level", 0.8, "--digits", 17)
    found, model = predictions(result), load_model("m.skops").model
    assert not model._scores.get("nested").optimistic
    if target == "height":
        expected = model.predict_interval(frame, 0.8)
        np.testing.assert_allclose(found[["lower", "upper"]], expected)
        of_fit = evaluated(model)._models_without("predict_interval", of_fit=True)
        assert not np.allclose(
            expected,
            intervals(of_fit, model._matrix(frame), 0.8, "plus", model.fitted_.outcome),
        )
    else:
        assert found["set"].tolist() == model.predictions(frame, 0.8)["set"].tolist()
