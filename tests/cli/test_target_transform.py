"""--target-transform: a transformed target on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from looms.model_files import load_model

RNG = np.random.default_rng(0)


@pytest.fixture
def table(tmp_path):
    """A table of positive targets."""
    X = RNG.normal(size=(40, 2))
    y = np.exp(X[:, 0] + 0.3 * RNG.normal(size=40))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, kind=np.where(y > 1, "x", "z"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


@pytest.mark.slow
def test_fit_show_predict_score(looms, fit, table, figures):
    options = ("--drop", "kind", "--target-transform", "log", "--target-transform", "sqrt")
    fitted = fit("t.csv", "-t", "y", "-c", "linear", *options, "-o", "m.skops")
    assert fitted.exit_code == 0, fitted.stderr
    model = load_model("m.skops").model
    assert model.target == ["log", "sqrt"]
    assert list(model.transforms_) == ["log", "sqrt"]
    shown = looms("show", "m.skops").stdout
    assert f"transform of the target = {model.transform_}" in shown
    assert f"RMSE of {model.transform_}(y)" in " ".join(shown.split())
    assert f"mean squared held-out error, of {model.transform_}(y)" in shown
    assert "RMSE of y" in shown  # by each transform
    assert "within noise: no step would gain" in shown
    looms(
        "predict", "m.skops", "t.csv", "--confidence-level", "0.8", "--digits", "17", "-o", "p.csv"
    )
    predicted = pd.read_csv("p.csv")
    np.testing.assert_array_equal(predicted["prediction"], model.predict(table))
    assert (predicted["lower"] < predicted["upper"]).all()
    error = np.sqrt(np.mean((table["y"] - predicted["prediction"]) ** 2))
    assert figures(looms("score", "m.skops", "t.csv").stdout)[0] == pytest.approx(error, abs=1e-3)


@pytest.mark.slow
def test_assess(looms, table):
    options = ("-t", "y", "--drop", "kind", "-c", "linear", "-n", "2", "--json")
    result = looms("assess", "t.csv", *options, "--target-transform", "log")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    plain = json.loads(looms("assess", "t.csv", *options, "--target-transform", "none").stdout)
    assert told["scores"][0]["value"] != plain["scores"][0]["value"]
    assert [score["key"] for score in told["scores"]] == ["rmse", "r2"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-t", "kind", "--target-transform", "log"), "--target-transform is for regression, but"),
        (("-t", "a", "--target-transform", "log"), "leave it out, or use --target-transform auto"),
        (("-t", "y", "--target-transform", "cube"), "Unknown --target-transform 'cube'; known are"),
        (
            ("-t", "y", "--target-transform", "log", "--n-landmarks", "8", "--memory", "1GB"),
            "--memory is for rows in blocks, but --target-transform reads the whole table",
        ),
    ],
)
def test_what_it_cannot_be_is_said(looms, table, one_line, options, text):
    one_line(looms("fit", "t.csv", *options), 2, text)
