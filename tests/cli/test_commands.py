"""The commands with the real estimators: what they say and write.

What sixty others make is in test_sixty_commands.py.
"""

import importlib
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from looms import KernelClassifier, TabularClassifier, TabularRegressor
from looms.estimators._trees import BoostedTreesRegressor
from looms.model_files import load_model
from looms.report import validation


def predictions_of(result):
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout), dtype=str)


@pytest.mark.slow
def test_predictions_go_to_a_pipe_or_to_a_file(looms, pets, pets_model, one_line):
    result = looms("predict", pets_model, pets)
    assert result.stderr == ""
    assert looms("predict", pets_model, pets, "-o", "-").stdout == result.stdout
    written = looms("predict", pets_model, pets, "--out", "out.csv")
    assert (written.stdout, Path("out.csv").read_text()) == ("", result.stdout)
    assert "40 predictions in out.csv" in written.stderr
    one_line(looms("predict", pets_model, pets, "-o", "out.csv"), 2, "out.csv exists")
    assert looms("predict", pets_model, pets, "-o", "out.csv", "--force").exit_code == 0
    assert Path("out.csv").read_text() == result.stdout


@pytest.mark.slow
def test_predictions_can_be_joined_to_their_rows(looms, pets, pets_model, one_line):
    frame = pd.read_csv(pets)
    frame["chip"] = [123456789.0 + i for i in range(39)] + [None]
    frame.to_csv("new.csv", index=False)
    numbered = predictions_of(looms("predict", pets_model, "new.csv"))
    assert numbered["row"].tolist() == [str(i + 1) for i in range(40)]
    options = ("--id", "chip", "--keep", "kind", "--keep", "weight")
    result = looms("predict", pets_model, "new.csv", *options)
    named = predictions_of(result)
    assert "--id chip does not tell 1 of 40 rows apart" in result.stderr
    assert list(named)[:4] == ["chip", "kind", "weight", "prediction"]
    assert named["chip"].tolist()[:2] == ["123456789.0", "123456790.0"]  # as in the file
    assert named["kind"].tolist() == frame["kind"].tolist()
    frame["chip"] = [str(2**53 + i) for i in range(38)] + ["a", "007"]
    frame.to_csv("new.csv", index=False)
    named = predictions_of(looms("predict", pets_model, "new.csv", "--id", "chip"))
    assert named["chip"].tolist() == frame["chip"].tolist()
    result = looms("predict", pets_model, "new.csv", "--id", "size")
    one_line(result, 2, "there is no column 'size'")
    frame.rename(columns={"chip": "prediction"}).to_csv("new.csv", index=False)
    result = looms("predict", pets_model, "new.csv", "--keep", "prediction")
    one_line(result, 2, "writes a column 'prediction' of its own")


@pytest.mark.slow
def test_decision_values_are_of_the_positive_class(looms, fit, pets):
    assert fit(pets, "-t", "kind", "-c", "linear", "--positive", "cat").exit_code == 0
    table = predictions_of(looms("predict", "pets.looms.skops", pets))
    assert "decision_dog" not in table
    says_cat = table["decision_cat"].astype(float) > 0
    assert (table["prediction"] == np.where(says_cat, "cat", "dog")).all()
    assert 0 < says_cat.sum() < 40


def test_labels_that_are_new_count_as_errors(looms, pets, pets_model, figures, one_line):
    frame = pd.read_csv(pets)
    frame.loc[0, "kind"] = "ferret"
    frame.to_csv("new.csv", index=False)
    result = looms("score", pets_model, "new.csv")
    assert "count as errors: 'ferret'" in result.stderr
    right = (load_model(pets_model).model.predict(frame) == frame["kind"]).mean()
    shown = figures(result.stdout.partition("Confusion")[0])[0]
    assert shown == pytest.approx(right, abs=1e-4)
    assert re.search(r"ferret +1 +0 +0", result.stdout)
    frame.assign(kind="ferret").to_csv("new.csv", index=False)
    one_line(looms("score", pets_model, "new.csv"), 2, "none of the labels of the target")


def test_scores_as_a_page(looms, pets, pets_model, one_line):
    frame = pd.read_csv(pets)
    frame.loc[:5, "kind"] = frame.loc[:5, "kind"].map({"cat": "dog", "dog": "cat"})
    frame[::-1].to_csv("new.csv", index=False)
    page = Path("page.html")
    given = "score", pets_model, "new.csv", "--report", page
    scored = looms(*given)
    assert "the report is in page.html" in scored.stderr
    text = page.read_text()
    found = validation(load_model(pets_model).model, frame, frame["kind"])
    slope = f"Calibration slope {found['recalibration']['slope']:.2f} ±"
    assert slope in text
    assert slope in scored.stdout
    (known,) = found["remarks"]
    known = known.replace("looms.assess", "looms assess")
    assert known in scored.stderr
    assert known in text
    values = json.loads(looms(*given, "--force", "--json").stdout)
    assert values["recalibration"] == pytest.approx(found["recalibration"])
    assert "kind on new.csv" in text
    one_line(looms(*given), 2, "page.html")
    assert looms(*given, "--force").exit_code == 0
    page.write_text("mine")
    one_line(looms(*given, "--force"), 2, "page.html")
    assert page.read_text() == "mine"


@pytest.mark.slow
def test_the_largest_scales_and_the_weights_of_a_stack_are_shown(looms):
    X = np.random.default_rng(0).normal(size=(40, 9))
    KernelClassifier("ard").fit(X, X[:, 0] + X[:, 1] > 0).save("m.skops")
    (scales,) = re.findall(r"Largest of 9 scales: (.*)", looms("show", "m.skops").stdout)
    sizes = [float(scale.split()[-1]) for scale in scales.split(", ")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 8
    candidates = ["linear", BoostedTreesRegressor()]
    stack = TabularRegressor(candidates, target="none").fit(X, X[:, 0] + np.sign(X[:, 1]))
    stack.without([0, 1]).save("m.skops")
    assert "Stacked: 2 models, by the weights of the fit" in looms("show", "m.skops").stdout


@pytest.mark.slow
def test_demo_needs_no_file_and_writes_none(looms, figures, monkeypatch):
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X, y = X[:80], y[:80]
    monkeypatch.setattr("sklearn.datasets.load_breast_cancer", lambda **_: (X, y))
    result = looms("demo", "--seed", 5)
    assert result.exit_code == 0, result.stderr
    assert os.listdir() == []
    Path("demo.html").write_text('<!doctype html><meta name="generator" content="looms 0">')
    paged = looms("demo", "--seed", 5, "--report", "demo.html")  # which replaces the older page
    assert paged.exit_code == 0, paged.stderr
    assert "breast cancer data" in Path("demo.html").read_text(encoding="utf-8")
    assert "nested 5-fold, 40 rows  " in result.stdout
    assert "the other half, 40 rows  " in result.stdout
    y = y.map({0: "malignant", 1: "benign"})
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=5)
    model = TabularClassifier(["linear", "rbf"], random_state=5).fit(X, y)
    assert figures(result.stdout)[0] == pytest.approx(model.score(X_test, y_test), abs=1e-4)


@pytest.mark.slow
def test_format_and_output_name(looms, fit, pets, tmp_path):
    pets.rename(tmp_path / "pets.of.mine.txt")
    given = ("pets.of.mine.txt", "--format", "csv")
    assert fit(*given, "-t", "kind", "-c", "linear").exit_code == 0
    assert "pets.of.mine.looms.skops" in os.listdir()
    assert looms("score", "pets.of.mine.looms.skops", *given).exit_code == 0


@pytest.mark.slow
def test_one_candidate_is_marked_of_equal_ones(fit, pets):
    """The same candidate twice: the first is the one that was chosen."""
    result = fit(pets, "-t", "kind", "-c", "linear", "--criterion", "press,press")
    assert result.exit_code == 0, result.stderr
    rows = re.findall(r"^ *(→?) +linear +squared error", result.stdout, re.MULTILINE)
    assert rows == ["→", ""]


@pytest.mark.slow
def test_quiet_leaves_warnings_alone(fit, pets):
    pd.read_csv(pets).assign(name=[f"n{k}" for k in range(40)]).to_csv(pets, index=False)
    result = fit(pets, "-t", "kind", "-c", "linear", "--json", "--quiet")
    assert json.loads(result.stdout)["data"]["target"] == "kind"
    assert {line.partition(":")[0] for line in result.stderr.splitlines()} == {"Warning"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--metric", "roc_acu"), "did you mean 'roc_auc'?"),
        (("--metric", "r2"), "--metric: 'r2' cannot score"),
        (("--metric", "neg_log_loss", "--calibration", "none"), "there are no probabilities"),
        (("--test", "nowhere.csv"), "nowhere.csv: there is no such file"),
        (("--sample-weight", "color"), "--sample-weight color has no weight in 13 rows of 40"),
        (("--sample-weight", "size"), "there is no column 'size' for --sample-weight"),
        (("--sample-weight", "word"), "--sample-weight word: column 'word' is a column of numbers"),
        (("--positive", "bird"), "--positive bird is not one of the classes"),
        (("--drop", "kind"), "--drop kind is the target"),
        (("--drop", "size"), "there is no column 'size' for --drop"),
    ],
)
def test_what_they_refuse_is_said_before_the_fit(fit, pets, one_line, options, text):
    pd.read_csv(pets).assign(word="heavy").to_csv(pets, index=False)
    result = fit(pets, "-t", "kind", *options)
    one_line(result, 2, text)
    assert "Candidate" not in result.stderr
    assert os.listdir() == ["pets.csv"]


@pytest.mark.slow
def test_nothing_gives_unbiased_scores_of_a_class_of_two_rows(looms, pets):
    frame = pd.read_csv(pets)
    rare = frame["kind"].where(frame.index > 1, "bird")
    frame.assign(kind=rare).to_csv("rare.csv", index=False)
    told = looms("fit", "rare.csv", "-t", "kind", "-c", "linear").stderr
    assert "cannot be repeated: Class 'bird' has fewer than 3 rows" in told
    assert "its scores are optimistic\n" in told
    assert "unbiased ones" not in told
    assert "--no-evaluate" not in told
    told = looms("predict", "rare.looms.skops", "rare.csv", "--confidence-level", 0.5).stderr
    assert "because the model was tuned on the rows that they come from\n" in told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:'weight' .* alone predicts")
def test_scores_are_weighted_by_the_column_of_the_fit(looms, fit, pets):
    """A weight is a number of equal rows."""
    frame, times = pd.read_csv(pets), np.arange(40) % 3
    frame.assign(w=times + 0.5).to_csv("t.csv", index=False)
    fitted = fit("t.csv", "-t", "kind", "-c", "linear", "--sample-weight", "w", "-o", "m.skops")
    assert fitted.exit_code == 0, fitted.stderr
    frame.assign(w=times).to_csv("times.csv", index=False)
    frame.loc[np.repeat(frame.index, times)].to_csv("repeated.csv", index=False)
    results = [looms("score", "m.skops", file, "--json") for file in ("times.csv", "repeated.csv")]
    weighted, repeated = (
        {name: each["value"] for name, each in json.loads(result.stdout)["scores"].items()}
        for result in results
    )
    assert weighted == pytest.approx(repeated)
    assert not any("ignored" in each.stderr for each in results)
    told = ["no column 'w' of weights as in the fit" in each.stderr for each in results]
    assert told == [False, True]


@pytest.mark.slow
def test_of_a_threshold_that_no_output_reaches_predictions_say_so(looms, fit):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "y": np.where(np.arange(60) % 5, "no", "yes")})
    table.to_csv("t.csv", index=False)
    options = ("-c", "linear", "--calibration", "isotonic", "-o", "m.skops")
    for threshold, told in (("0.9999", True), ("balanced", False)):
        result = fit("t.csv", "-t", "y", *options, "--threshold", threshold, "--force")
        assert result.exit_code == 0, result.stderr
        note = "the model predicts one class for all rows: no output has the probability"
        assert (note in " ".join(looms("predict", "m.skops", "t.csv").stderr.split())) == told


@pytest.mark.slow
def test_a_model_is_exported(looms, pets, pets_model, one_line):
    runtime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    pytest.importorskip("skl2onnx")
    result = looms("export", pets_model, "--output", "m.onnx")
    assert result.exit_code == 0, result.stderr
    one_line(looms("export", pets_model, "-o", "m.onnx"), 2, "use --force to overwrite it")
    assert looms("export", pets_model).exit_code == 0
    assert Path("pets.onnx").read_bytes() == Path("m.onnx").read_bytes()
    model, frame = load_model(pets_model).model, pd.read_csv(pets)
    line = re.search(r"do that in Python: (.*)", result.stderr)[1]
    rows = eval(line, {"looms": importlib.import_module("looms"), "table": frame})
    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    label, probabilities = session.run(None, {session.get_inputs()[0].name: rows})
    assert label.tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), atol=1e-6)
    props = {each.key: each.value for each in onnx.load("m.onnx").metadata_props}
    assert json.loads(props["columns"]) == model.preprocessor_.get_feature_names_out().tolist()


@pytest.mark.slow
def test_what_a_graph_cannot_hold_is_refused_with_what_to_do(looms, one_line):
    x = np.linspace(1, 2, 30)
    TabularRegressor(["linear"], target="log").fit(x[:, None], x**3).save("m.skops")
    one_line(looms("export", "m.skops"), 2, "--target-transform none")
    assert not Path("m.onnx").exists()


# Help ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "assess", "compare", "predict", "diagnose", "export"])
def test_help_has_panels_and_examples(looms, command):
    text = looms(command, "--help").stdout
    assert "─ Output ─" in text
    assert f"looms {command} " in text[text.index("Examples:") :]
    assert "<bool>" not in text  # of what takes no value
    assert "{" not in text
    assert "--force" not in text or re.search(r"--force +-f +Overwrite", text)
    if command == "fit":
        words = " ".join(text.replace("│", " ").split())
        assert words.count("It is not a feature.") == 2  # --groups, --time
        titles = re.findall(r"╭─ (\w+) ─", text)
        assert set(titles) == {
            *("Arguments", "Options", "Data", "Model", "Validation", "Output", "Expert")
        }
        assert text[text.index("Examples:") :].count("looms fit ") == 3
