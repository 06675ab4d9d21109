"""Files of `save_model`, read by `looms show`, `predict` and `score`."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import (
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
    TabularClassifier,
)
from looms.blocks import ArrayBlocks
from looms.kernels import RBF
from looms.model_files import save_model
from looms.tables import TablePreprocessor

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.normal(size=(60, 2)).round(3), columns=["a", "b"])
FRAME["c"] = np.where(rng.random(60) < 0.5, "red", "blue")
NUMBERS, ARRAY = FRAME[["b", "a"]], FRAME[["a", "b"]]
LABELS = np.where(FRAME["a"] + (FRAME["c"] == "red") > 0.5, "yes", "no")
SQUARES = FRAME["a"] - FRAME["b"] ** 2
LINEAR = KernelClassifier("linear", mu=1e-3)
SVM = KernelClassifier("linear", loss="hinge", mu=0.01)
ON_LANDMARKS = KernelClassifier(n_landmarks=5, mu=1e-3)
CASES = {
    "table": (make_pipeline(TablePreprocessor(), LINEAR), FRAME, LABELS),
    "scaler": (make_pipeline(StandardScaler(), LINEAR), NUMBERS, LABELS),
    "numbers": (KernelRegressor("linear"), NUMBERS, SQUARES),
    "array": (make_pipeline(StandardScaler(), LINEAR), ARRAY, LABELS),
    "svm": (SVM, NUMBERS, LABELS),
    "blocks": (ON_LANDMARKS, ARRAY, LABELS),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_show_predict_and_score(looms, one_line, name):
    model, X, y = CASES[name]
    own = X.to_numpy() if name in ("array", "blocks") else X
    model.fit(ArrayBlocks(own) if name == "blocks" else own, y)
    save_model("m.skops", model, {"target": "y"})
    file, whole = "t.csv", X if own is not X else FRAME  # columns have no names to be chosen by
    whole.assign(y=y).to_csv(file, index=False)
    shown = looms("show", "m.skops")
    assert shown.exit_code == 0, shown.stderr
    task = "Regression" if name == "numbers" else "Classification"
    assert shown.stdout.startswith(f"{task} of 'y': ")
    assert f" rows, {X.shape[1]} features; saved by looms" in shown.stdout
    predicted = looms("predict", "m.skops", file, "--digits", 17, "-o", "p.csv")
    assert predicted.exit_code == 0, predicted.stderr
    given, found = model.predict(own), pd.read_csv("p.csv")["prediction"].to_numpy()
    scores = json.loads(looms("score", "m.skops", file, "--json").stdout)["scores"]
    if name == "numbers":
        np.testing.assert_allclose(found, given, rtol=1e-12)
        assert scores["mae"]["value"] == pytest.approx(np.abs(given - y).mean())
    else:
        assert found.tolist() == given.tolist()
        assert scores["accuracy"]["value"] == pytest.approx(np.mean(given == y))
    if name == "blocks":
        refused = looms("predict", "m.skops", file, "--confidence-level", 0.8)
        one_line(refused, 2, "training rows")


@pytest.mark.slow
def test_a_model_without_metadata_is_shown_and_predicts(looms, one_line):
    model, X, _ = CASES["scaler"]
    save_model("m.skops", model.fit(X, LABELS))
    X.to_csv("t.csv", index=False)
    assert looms("show", "m.skops").stdout.startswith(
        "Classification: 60 rows, 2 features; saved by"
    )
    called = json.loads(looms("show", "m.skops", "--json").stdout)["samples"]["named_by"]
    assert called == "Rows are called by their number in the training data, counted from 1."
    assert looms("predict", "m.skops", "t.csv").stderr == ""
    one_line(looms("score", "m.skops", "t.csv"), 2, "does not know the column of its target")
    X.assign(more=1, b="x").to_csv("t.csv", index=False)
    one_line(looms("predict", "m.skops", "t.csv"), 2, "cannot take these rows: column 'b' is a")
    X[["a"]].to_csv("t.csv", index=False)
    one_line(looms("predict", "m.skops", "t.csv"), 2, "of the model's 2 columns 1 is missing: 'b'")


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        (StandardScaler().fit(NUMBERS), "StandardScaler, which has no held-out predictions"),
        (NonconformityClassifier().fit(NUMBERS, LABELS), "NonconformityClassifier, which has no"),
        (KernelClassifier(mu=1e-3), "the model is not fitted"),
        (KernelClassifier("precomputed", mu=1e-3).fit(np.eye(60), LABELS), "takes kernel values"),
    ],
)
def test_models_that_the_command_line_does_not_take(looms, one_line, machine, text):
    save_model("m.skops", machine)
    one_line(looms("show", "m.skops"), 2, text)


def test_several_targets_are_shown(looms):
    KernelRegressor("linear", mu=0.1).fit(FRAME[["a"]], FRAME[["a", "b"]]).save("m.skops")
    assert looms("show", "m.skops").exit_code == 0


def test_columns_without_names_must_be_as_many(looms, one_line):
    save_model("m.skops", KernelClassifier(RBF(1.0), mu=1e-3).fit(ARRAY.to_numpy(), LABELS))
    FRAME.to_csv("t.csv", index=False)
    one_line(looms("predict", "m.skops", "t.csv"), 2, "fitted to 2 columns without names")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        (float, [-1, 0, 10000001]),
        (np.float32, [3, 4]),
        (object, [5.0, 6.0]),
        ("Float64", [1, 2**53]),
        ("Int64", [1, 10**12]),
        ("boolean", [False, True]),
        (object, ["v1.0", "v2.50"]),
    ],
)
def test_a_label_is_written_in_one_way(looms, kind, labels):
    at = np.digitize(FRAME["a"] + 0.4 * FRAME["b"], [-0.3, 0.5][: len(labels) - 1])
    y = pd.Series(np.array(labels, dtype=object)[at], name="y", dtype=kind)
    model = TabularClassifier(["linear"]).fit(FRAME, y)
    evaluated(model).save("m.skops")
    FRAME.assign(y=[labels[k] for k in at]).to_csv("t.csv", index=False)
    texts = [str(int(label)) if isinstance(label, float) else str(label) for label in labels]
    options = "--digits", 2, "--confidence-level", 0.5
    result = looms("predict", "m.skops", "t.csv", *options)
    assert result.exit_code == 0, result.stderr
    written = pd.read_csv(io.StringIO(result.stdout), dtype=str, keep_default_na=False)
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    assert [*written["prediction"]] == [texts[place[one]] for one in model.predict(FRAME).tolist()]
    names = [name for name in written if name.startswith("probability_")]
    assert names == [f"probability_{text}" for text in texts]
    decided = [name for name in written if name.startswith("decision_")]
    assert decided == [f"decision_{text}" for text in (texts[1:] if len(texts) == 2 else texts)]
    assert {*"|".join(written["set"]).split("|")} - {""} <= {*texts}
    assert written[names].map(len).to_numpy().max() < 8  # digits
    rare = looms("predict", "m.skops", "t.csv", "--prevalence", f"{texts[1]}=0.1")
    assert rare.exit_code == 0, rare.stderr
    shown = looms("show", "m.skops").stdout
    scored = looms("score", "m.skops", "t.csv").stdout
    diagnosed = looms("diagnose", "m.skops", "--bootstrap", 0, "-o", "rows.csv").stdout
    assert {*pd.read_csv("rows.csv", dtype=str)["predicted"]} <= {*texts}
    for text in texts:
        for output in (shown, scored, diagnosed):
            assert re.search(rf"^ *{text}  ", output, re.MULTILINE), output
