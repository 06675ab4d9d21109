"""`looms predict --confidence-level` and `--prevalence`: what is refused, and what is said.

Their numbers are in test_sixty_commands.py.
"""

import os

import numpy as np
import pandas as pd
import pytest

from looms import TabularClassifier, TabularRegressor
from looms.cli._model import SavedModel, load
from looms.cli.predict import coverage_of
from looms.fitted._outcome import column_of_sets
from looms.tables import Columns, TablePreprocessor

LEVEL = ("--confidence-level", 0.8)


def test_sets_of_no_label_are_empty():
    members = np.array([[True, False, True], [False, False, False]])
    assert column_of_sets(np.array(["a", "b", "c"]), members)["set"].tolist() == ["a|c", ""]
    with pytest.warns(UserWarning, match=r"'\|'"):
        found = column_of_sets(np.array(["a|b", "b", "c"]), members)
    assert found["set"].tolist() == ["a|b|c", ""]


def test_options_are_those_of_the_task(pets_model):
    classes = load(pets_model, 2**30)
    numbers = SavedModel(classes.model, classes.metadata)
    numbers.is_classifier = False
    asked = coverage_of(classes, pets_model, 0.8, None, True)
    assert asked == {"confidence_level": 0.8, "class_conditional": True}
    asked = coverage_of(numbers, pets_model, 0.9, "minmax", False)
    assert asked == {"confidence_level": 0.9, "method": "minmax"}
    assert coverage_of(numbers, pets_model, 0.9, None, False)["method"] == "plus"


@pytest.fixture
def numbers(tmp_path):
    """A regression of Python that was not evaluated, and its table."""
    random = np.random.default_rng(0)
    x = random.uniform(size=60)
    frame = pd.DataFrame({"x": x, "height": np.sin(6 * x) + 0.2 * random.normal(size=60)})
    frame.to_csv(tmp_path / "heights.csv", index=False)
    return TabularRegressor("linear").fit(frame[["x"]], frame["height"])


@pytest.mark.slow
def test_models_of_python_are_to_be_evaluated_before(looms, numbers, one_line):
    numbers.save("m.skops")
    predict = ("predict", "m.skops", "heights.csv", *LEVEL, "-o", "p.csv")
    one_line(looms(*predict), 2, "not evaluated, and --confidence-level needs")
    assert not os.path.exists("p.csv")
    numbers.evaluate(nested=False)
    numbers.save("m.skops")
    assert "intervals cover a little less" in looms(*predict).stderr
    numbers.evaluate()
    numbers.save("m.skops")
    assert "cover a little less" not in looms(*predict, "--force").stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--confidence-level", 1), "--confidence-level"),
        (("--confidence-level", 90), "Did you mean 0.9?"),
        (("--confidence-level", "nan"), "--confidence-level"),
        (("--confidence-level", 0.999), "0.999"),
        (("--confidence-level", 0.96, "--class-conditional"), "Class 'cat'"),
        (("--method", "plus"), "--method goes with --confidence-level"),
        (("--class-conditional",), "--class-conditional goes with --confidence-level"),
        ((*LEVEL, "--method", "plus"), "--method is for regression"),
        (("--prevalence", "maybe=0.1"), "--prevalence has ['maybe']"),
        (("--prevalence", "0.1"), "--prevalence 0.1 is not CLASS=SHARE"),
        (("--prevalence", "dog=a"), "--prevalence dog=a is not CLASS=SHARE"),
        (("--prevalence", "dog=1.5"), "between 0 and 1"),
    ],
)
def test_refusals(looms, pets, pets_model, one_line, options, text):
    one_line(looms("predict", pets_model, pets, *options), 2, text)


def test_options_of_the_other_task_are_refused(looms, pets, numbers, one_line):
    numbers.save("m.skops")
    given = ("predict", "m.skops", "heights.csv")
    one_line(looms(*given, *LEVEL, "--class-conditional"), 2, "--class-conditional is for")
    table = pd.read_csv(pets)
    decided = TabularClassifier(["linear"], calibration=None).fit(table[["weight"]], table["kind"])
    decided.save("m.skops")
    one_line(looms("predict", "m.skops", pets, "--prevalence", "dog=0.1"), 2, "m.skops has none")


@pytest.mark.slow
def test_empty_sets_are_counted_and_shares_are_those_of_the_fit(looms, pets, pets_model):
    result = looms("predict", pets_model, pets, "--confidence-level", 0.3)
    n = sum(line.endswith(",") for line in result.stdout.splitlines())
    assert n > 1
    assert f"Note: {n} of 40 sets are empty" in result.stderr
    rare = looms("predict", pets_model, pets, *LEVEL, "--prevalence", "dog=0.1")
    assert "--confidence-level holds for the shares of the fit" in rare.stderr


@pytest.mark.slow
def test_rows_are_preprocessed_once(looms, pets, pets_model, monkeypatch):
    passes = []

    def counted(name, of):
        return lambda *given, **options: passes.append(name) or of(*given, **options)

    for owner, name in ((Columns, "read_at"), (TablePreprocessor, "_write")):
        monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    assert looms("predict", pets_model, pets, *LEVEL, "--keep", "weight").exit_code == 0
    assert passes == ["read_at", "_write"]
    assert looms("score", pets_model, pets).exit_code == 0
    assert passes == 2 * ["read_at", "_write"]
