"""`looms predict --prevalence`: probabilities and predictions at stated shares of the classes."""

import io

import numpy as np
import pandas as pd
import pytest

from looms import at_prevalence
from looms.model_files import load_model


@pytest.fixture
def fitted(looms, data_folder):
    """A model of haberman.csv, classes 1 and 2."""
    file = data_folder / "haberman.csv"
    result = looms("fit", file, "-t", "target", "-c", "linear", "--no-evaluate", "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    return file


@pytest.mark.slow
def test_probabilities_and_predictions_are_those_of_the_prevalence(looms, fitted):
    machine = load_model("m.skops").model
    rare = str(machine.classes_[1])
    result = looms(
        "predict",
        "m.skops",
        fitted,
        "--prevalence",
        f"{rare}=0.02",
        "--digits",
        17,
        "--confidence-level",
        0.9,
    )
    assert result.exit_code == 0, result.stderr
    assert "--confidence-level holds for the shares of the fit" in result.stderr
    written = pd.read_csv(io.StringIO(result.stdout))
    model = at_prevalence(machine, {machine.classes_[1]: 0.02})
    X = pd.read_csv(fitted)
    np.testing.assert_allclose(written[f"probability_{rare}"], model.predict_proba(X)[:, 1])
    np.testing.assert_allclose(written[f"decision_{rare}"], model.decision_function(X))
    assert written["prediction"].astype(str).tolist() == model.predict(X).astype(str).tolist()


@pytest.mark.slow
def test_prevalences_that_are_none_are_refused(looms, fitted, one_line):
    for option, message in (
        ("maybe=0.1", "Error: --prevalence has ['maybe'], which are not classes"),
        ("0.1", "--prevalence 0.1 is not CLASS=SHARE"),
        ("2=a", "--prevalence 2=a is not CLASS=SHARE"),
        ("2=1.5", "between 0 and 1"),
    ):
        one_line(looms("predict", "m.skops", fitted, "--prevalence", option), 2, message)


@pytest.mark.slow
def test_it_is_for_models_with_probabilities(looms, data_folder, one_line):
    common = ("-t", "target", "-c", "linear", "--no-evaluate")
    haberman, yacht = data_folder / "haberman.csv", data_folder / "yacht.csv"
    looms("fit", haberman, *common, "--calibration", "none", "-o", "classes.skops")
    looms("fit", yacht, *common, "-o", "numbers.skops")
    result = looms("predict", "classes.skops", haberman, "--prevalence", "2=0.1")
    one_line(result, 2, "needs probabilities of classes, and classes.skops has none")
    result = looms("predict", "numbers.skops", yacht, "--prevalence", "2=0.1")
    one_line(result, 2, "needs probabilities of classes, and numbers.skops has none")
