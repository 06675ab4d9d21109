"""The commands with the real estimators: what they say, write and refuse."""

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
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from looms import TabularClassifier
from looms._words import estimate_text
from looms.model_files import load_model

# The main job --------------------------------------------------------------------


@pytest.mark.slow
def test_fit_classification(looms, fit, pets, figures):
    result = fit(pets, "--target", "kind", "-c", "linear", "-c", "rbf", "--criterion", "press")
    assert result.exit_code == 0, result.stderr
    assert sorted(os.listdir()) == ["pets.csv", "pets.looms.skops"]
    assert "classification: the target has 2 different labels; choose by --task" in result.stderr
    assert "the model is in pets.looms.skops" in result.stderr
    rows = re.findall(
        r"(→?) +(linear|rbf) +squared error +[\d.e-]+ ± [\d.e-]+ +([\d.]+)", result.stdout
    )
    assert [name for _, name, _ in rows] == ["linear", "rbf"]
    assert [mark for mark, _, _ in rows].count("→") == 1
    saved = load_model("pets.looms.skops")
    machine = saved.model
    assert [float(score) for _, _, score in rows] == pytest.approx(
        [c.loss for c in machine.candidates_], rel=1e-3
    )
    loo = machine.loo_
    right = np.mean((loo.y > 0) == (loo.outputs > 0))
    assert figures(result.stdout)[0] == pytest.approx(right, abs=1e-4)
    assert saved.metadata["task"] == "classification"
    assert saved.metadata["target"] == "kind"
    assert saved.metadata["file"] == "pets.csv"
    assert list(saved.metadata["columns"]) == ["weight", "color", "indoors"]
    assert saved.metadata["columns"]["weight"] == "number"
    assert saved.metadata["options"]["candidates"] == ["linear", "rbf"]
    assert saved.metadata["n_rows"] == 40
    assert {"date", "looms_version", "sklearn_version", "seconds"} <= saved.metadata.keys()


@pytest.mark.slow
def test_fit_and_score_regression(looms, fit, data_folder, figures):
    result = fit(data_folder / "yacht.csv", "-t", "target", "-c", "rbf")
    assert result.exit_code == 0, result.stderr
    assert "regression: the target has" in result.stderr
    assert "LOO RMSE" in result.stdout
    rmse, _, r2 = figures(result.stdout)
    machine = load_model("yacht.looms.skops").model
    assert rmse == pytest.approx(np.sqrt(np.mean(machine.loo_.residuals**2)), abs=1e-4)
    assert 0.9 < r2 < 1
    (shown,) = re.findall(r"→ +rbf +squared error +[\d.e-]+ ± [\d.e-]+ +([\d.]+)", result.stdout)
    outputs = machine.fitted_.loo  # not cut at zero, as predictions are
    own = np.sqrt(np.mean(outputs.residuals**2))
    assert float(shown) == pytest.approx(own, rel=1e-3)
    assert rmse < own
    result = looms("score", "yacht.looms.skops", data_folder / "yacht.csv")
    assert result.exit_code == 0, result.stderr
    assert figures(result.stdout)[0] < rmse
    assert "Confusion" not in result.stdout


@pytest.mark.slow
def test_predict_to_standard_output_can_be_piped(looms, pets, pets_model):
    result = looms("predict", pets_model, pets, "--digits", 17)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert looms("predict", pets_model, pets, "--digits", 17, "-o", "-").stdout == result.stdout
    predictions = pd.read_csv(io.StringIO(result.stdout))
    assert list(predictions) == [
        "row",
        "prediction",
        "decision_dog",
        "probability_cat",
        "probability_dog",
    ]
    assert len(predictions) == 40
    columns = ["probability_cat", "probability_dog"]
    model = load_model(pets_model).model
    expected = model.predict_proba(pd.read_csv(pets).drop(columns="kind"))
    assert predictions[columns].to_numpy() == pytest.approx(expected)
    says_dog = predictions["decision_dog"] > 0
    assert (predictions["prediction"] == np.where(says_dog, "dog", "cat")).all()
    assert (predictions["prediction"] == pd.read_csv(pets)["kind"]).mean() > 0.9


@pytest.mark.slow
def test_decision_values_are_of_the_positive_class(looms, fit, pets):
    assert fit(pets, "-t", "kind", "--positive", "cat", "-o", "m.skops").exit_code == 0
    predictions = pd.read_csv(io.StringIO(looms("predict", "m.skops", pets).stdout))
    assert "decision_dog" not in predictions
    says_cat = predictions["decision_cat"] > 0
    assert (predictions["prediction"] == np.where(says_cat, "cat", "dog")).all()
    assert says_cat.any()
    assert not says_cat.all()


@pytest.mark.slow
def test_predict_to_a_file(looms, pets, pets_model, one_line):
    result = looms("predict", pets_model, pets, "-o", "out.csv")
    assert result.stdout == ""
    assert "40 predictions in out.csv" in result.stderr
    first = pd.read_csv("out.csv")
    one_line(looms("predict", pets_model, pets, "-o", "out.csv"), 2, "out.csv exists")
    assert looms("predict", pets_model, pets, "-o", "out.csv", "--force").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv("out.csv"), first)


@pytest.mark.slow
def test_score_counts_by_hand(looms, pets, pets_model, figures):
    machine_says = pd.read_csv(io.StringIO(looms("predict", pets_model, pets).stdout))
    right = (machine_says["prediction"] == pd.read_csv(pets)["kind"]).mean()
    result = looms("score", pets_model, pets)
    assert figures(result.stdout.partition("Confusion")[0])[0] == pytest.approx(right, abs=1e-4)
    assert re.search(r"cat +20 +0 +100.0% *\n", result.stdout)


def test_score_with_labels_that_are_new(looms, pets, pets_model, figures):
    frame = pd.read_csv(pets)
    frame.loc[0, "kind"] = "ferret"
    frame.to_csv("new.csv", index=False)
    result = looms("score", pets_model, "new.csv")
    assert "labels that the model does not know count as errors: ferret" in result.stderr
    assert figures(result.stdout.partition("Confusion")[0])[0] <= 1 - 1 / 40
    assert re.search(r"ferret +1 +0 +0", result.stdout)


@pytest.mark.slow
def test_score_with_labels_read_as_numbers(looms, fit, pets, figures):
    """Labels 1, 2 and A are text; a file with 1 and 2 only is read as numbers."""
    frame = pd.read_csv(pets)
    frame["kind"] = ["1", "2"] * 19 + ["A", "A"]
    frame.to_csv("labels.csv", index=False)
    fit("labels.csv", "-t", "kind")
    frame.head(30).to_csv("some.csv", index=False)
    result = looms("score", "labels.looms.skops", "some.csv")
    assert result.exit_code == 0, result.stderr
    assert "does not know" not in result.stderr
    assert figures(result.stdout.partition("Confusion")[0])[0] > 0.8


@pytest.mark.slow
def test_show(looms, pets):
    fitted = looms("fit", pets, "-t", "kind", "-c", "ard", "--class-weight", "balanced")
    result = looms("show", "pets.looms.skops")
    assert result.exit_code == 0, result.stderr
    assert "Classification of 'kind', pets.csv: 40 rows, 3 features" in result.stdout
    assert "\nOptions: --candidates ard --class-weight balanced\n" in result.stdout
    assert fitted.stdout in result.stdout
    (scales,) = re.findall(r"Largest of 7 scales: (.*weight [\d.]+.*)", result.stdout)
    sizes = [float(scale.split()[-1]) for scale in scales.split(", ")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 7
    assert "color is missing" in result.stdout
    assert "weight is missing" in result.stdout


@pytest.mark.slow
def test_demo_needs_no_file_and_writes_none(looms, figures):
    result = looms("demo", "--seed", 5)
    assert result.exit_code == 0, result.stderr
    assert os.listdir() == []
    for _ in range(2):  # a second run replaces the page of the first
        paged = looms("demo", "--seed", 5, "--report", "demo.html")
        assert paged.exit_code == 0, paged.stderr
    assert "the report is in demo.html" in paged.stderr
    assert os.listdir() == ["demo.html"]
    assert "nested 5-fold, 284 rows  " in result.stdout
    assert "the other half, 285 rows  " in result.stdout
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=5)
    model = TabularClassifier(["linear", "rbf"], random_state=5).fit(X, y)
    right = model.score(X_test, y_test)
    assert figures(result.stdout)[0] == pytest.approx(right, abs=1e-4)


# Options -------------------------------------------------------------------------


@pytest.mark.slow
def test_task_can_be_forced(looms, fit, pets):
    assert fit(pets, "-t", "weight", "-o", "a").exit_code == 2  # a gap in the target
    frame = pd.read_csv(pets).fillna({"weight": 4})
    frame.to_csv("whole.csv", index=False)
    result = fit("whole.csv", "-t", "weight", "--task", "regression", "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "in units of 'weight'" in result.stdout
    assert "in units of <bdi>weight" in Path("r.html").read_text(encoding="utf-8")
    assert load_model("whole.looms.skops").metadata["task"] == "regression"


@pytest.mark.slow
def test_drop(looms, fit, pets, one_line):
    one_line(fit(pets, "-t", "kind", "--drop", "kind"), 2, "--drop kind is the target")
    assert fit(pets, "-t", "kind", "--drop", "weight", "--drop", "color").exit_code == 0
    assert list(load_model("pets.looms.skops").metadata["columns"]) == ["indoors"]
    one_line(
        fit(pets, "-t", "kind", "--drop", "size", "-o", "m.skops"),
        2,
        "there is no column 'size' for --drop besides the target ('weight', 'color'",
    )


@pytest.mark.slow
def test_format_and_output_name(looms, fit, pets, tmp_path):
    pets.rename(tmp_path / "pets.of.mine.txt")
    result = fit("pets.of.mine.txt", "-t", "kind", "--format", "csv")
    assert result.exit_code == 0, result.stderr
    assert "pets.of.mine.looms.skops" in os.listdir()
    result = looms("score", "pets.of.mine.looms.skops", "pets.of.mine.txt", "--format", "csv")
    assert result.exit_code == 0, result.stderr


@pytest.mark.slow
def test_force_replaces_the_model(looms, fit, pets, one_line):
    fit(pets, "-t", "kind", "-c", "linear")
    one_line(fit(pets, "-t", "kind"), 2, "pets.looms.skops exists; use --force")
    one_line(fit(pets, "-t", "sort"), 2, "there is no column 'sort' to be the target")
    assert load_model("pets.looms.skops").metadata["options"]["candidates"] == ["linear"]
    assert fit(pets, "-t", "kind", "--force").exit_code == 0
    assert load_model("pets.looms.skops").metadata["options"]["candidates"] == ["rbf"]


@pytest.mark.slow
def test_warnings_of_the_estimator_are_told(looms, data_folder):
    result = looms(
        *("fit", data_folder / "haberman.csv", "-t", "target", "-c", "rbf", "--criterion", "wmw"),
        *("--max-iter", 1, "--no-evaluate"),
    )
    assert result.exit_code == 0, result.stderr
    assert "raise --max-iter" in result.stderr


@pytest.mark.slow
def test_one_candidate_is_marked_of_equal_ones(fit, pets):
    """The same candidate twice: the first is the one that was chosen."""
    result = fit(pets, "-t", "kind", "-c", "linear", "--criterion", "press", "--criterion", "press")
    assert result.exit_code == 0, result.stderr
    rows = re.findall(r"^ *(→?) +linear +squared error", result.stdout, re.MULTILINE)
    assert rows == ["→", ""]


def predictions_of(result):
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout), dtype=str)


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
    frame["chip"] = [str(2**53 + i) for i in range(38)] + [None, "007"]
    frame.to_csv("new.csv", index=False)
    named = predictions_of(looms("predict", pets_model, "new.csv", "--id", "chip"))
    assert named["chip"].tolist()[:2] == ["9007199254740992", "9007199254740993"]
    assert named["chip"].tolist()[-1] == "007"
    result = looms("predict", pets_model, "new.csv", "--id", "size")
    one_line(result, 2, "there is no column 'size' for --id")
    frame.assign(chip=["a", "a", *range(38)]).to_csv("twice.csv", index=False)
    twice = looms("predict", pets_model, "twice.csv", "--id", "chip", "-o", "twice.out")
    assert "--id chip does not tell 2 of 40 rows apart" in twice.stderr
    frame.rename(columns={"chip": "prediction"}).to_csv("new.csv", index=False)
    result = looms("predict", pets_model, "new.csv", "--keep", "prediction")
    one_line(result, 2, "writes a column 'prediction' of its own")


@pytest.mark.slow
def test_digits_of_predictions(looms, pets, pets_model):
    six, three, all_of_them = (
        predictions_of(looms("predict", pets_model, pets, *options))["decision_dog"]
        for options in ((), ("--digits", 3), ("--digits", 17))
    )
    exact = all_of_them.astype(float)
    assert six.tolist() == [f"{value:.6g}" for value in exact]
    assert three.tolist() == [f"{value:.3g}" for value in exact]
    model = load_model(pets_model).model
    frame = pd.read_csv(pets).drop(columns="kind")
    assert (exact == model.decision_function(frame)).all()


@pytest.mark.slow
def test_out_is_output(looms, fit, pets):
    assert fit(pets, "-t", "kind", "--out", "m.skops").exit_code == 0
    assert looms("predict", "m.skops", pets, "--out", "p.csv").exit_code == 0
    assert len(pd.read_csv("p.csv")) == 40


@pytest.mark.slow
def test_the_area_of_several_classes_is_called_a_mean(looms, fit, pets):
    frame = pd.read_csv(pets)
    frame["kind"] = np.where(frame["weight"] > 28, "bear", frame["kind"])
    frame.to_csv("three.csv", index=False)
    result = fit("three.csv", "-t", "kind")
    assert "mean ROC AUC" in result.stdout
    assert "mean ROC AUC" in looms("score", "three.looms.skops", "three.csv").stdout
    assert "mean ROC AUC" not in fit(pets, "-t", "kind").stdout


@pytest.mark.parametrize("command", ["fit", "predict", "diagnose"])
def test_help_has_no_brackets_for_what_takes_no_value(looms, command):
    text = looms(command, "--help").stdout
    assert "<bool>" not in text
    assert "{" not in text
    assert re.search(r"--force +-f +Overwrite", text)


@pytest.mark.slow
def test_a_test_file_metrics_and_quiet(looms, pets):
    frame = pd.read_csv(pets)
    frame.assign(weight=frame["weight"] + 0.5).head(12).to_csv("new.csv", index=False)
    given = ("-t", "kind", "-c", "linear", "--metric", "f1_macro,roc_auc", "--json", "--quiet")
    result = looms("fit", pets, *given, "--test", "new.csv", "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert not [line for line in result.stderr.splitlines() if not line.startswith("Warning")]
    told, saved = json.loads(result.stdout), load_model("m.skops")
    new = json.loads(looms("score", "m.skops", "new.csv", "--json", "-q").stdout)
    assert told["test"] == new
    decisions = saved.model._scores.get("nested").decisions
    truth = (frame["kind"] == "dog").to_numpy()
    own, area = told["metrics"]["f1_macro"], saved.model.evaluate().with_errors["roc_auc"]
    assert own["value"] == f1_score(truth, decisions.predicted == 1, average="macro")
    assert own["standard_error"] is None
    assert tuple(told["metrics"]["roc_auc"].values()) == (*area, 0.5)
    shown = looms("fit", pets, *given[:-2], "--test", "new.csv", "-o", "m.skops", "-f")
    assert "new.csv, 12 rows" in shown.stdout
    assert f"f1_macro: {own['value']:.4g}\n" in shown.stdout
    assert f"roc_auc: {estimate_text(*area)}\n" in shown.stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--metric", "roc_acu"), "did you mean 'roc_auc'?"),
        (("--metric", "r2"), "--metric: 'r2' cannot score these 2 classes"),
        (("--metric", "neg_log_loss", "--calibration", "none"), "there are no probabilities"),
        (("--test", "nowhere.csv"), "nowhere.csv: there is no such file"),
        (("--sample-weight", "color"), "--sample-weight color has no weight in 13 rows of 40"),
        (("--sample-weight", "size"), "there is no column 'size' for --sample-weight"),
        (("--positive", "bird"), "--positive bird is not one of the classes, ['cat', 'dog']"),
    ],
)
def test_what_they_refuse_is_said_before_the_fit(fit, pets, one_line, options, text):
    result = fit(pets, "-t", "kind", *options)
    one_line(result, 2, text)
    assert "Candidate" not in result.stderr
    assert os.listdir() == ["pets.csv"]


@pytest.mark.slow
def test_nothing_gives_unbiased_scores_of_a_class_of_two_rows(looms, pets):
    frame = pd.read_csv(pets)
    rare = frame["kind"].where(frame.index > 1, "bird")
    frame.assign(kind=rare).to_csv("rare.csv", index=False)
    told = looms("fit", "rare.csv", "-t", "kind", "-c", "rbf").stderr
    assert "cannot be repeated: Class 'bird' has fewer than 3 rows" in told
    assert "its scores are optimistic\n" in told
    assert "unbiased ones" not in told
    assert "--no-evaluate" not in told
    told = looms("predict", "rare.looms.skops", "rare.csv", "--confidence-level", 0.5).stderr
    assert "because the model was tuned on the rows that they come from\n" in told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:'weight' .* alone predicts")
def test_weights_are_those_of_python(looms, fit, pets, one_line):
    frame = pd.read_csv(pets)
    frame.assign(w="heavy").to_csv("text.csv", index=False)
    text = "text.csv: --sample-weight w: column 'w' is a column of numbers, and data row 1 holds"
    one_line(fit("text.csv", "-t", "kind", "--sample-weight", "w"), 2, text)
    weight = np.arange(40) % 3 + 0.5
    frame.assign(w=weight).to_csv("weighted.csv", index=False)
    assert fit("weighted.csv", "-t", "kind", "--sample-weight", "w", "-o", "m.skops").exit_code == 0
    saved, X = load_model("m.skops"), frame.drop(columns="kind")
    model = TabularClassifier(["rbf"]).fit(X, frame["kind"], sample_weight=weight)
    np.testing.assert_array_equal(saved.model.loo_.outputs, model.loo_.outputs)
    plain = TabularClassifier(["rbf"]).fit(X, frame["kind"])
    assert not np.allclose(saved.model.loo_.outputs, plain.loo_.outputs)
    assert list(saved.metadata["columns"]) == list(X)
    assert "ignored" not in looms("score", "m.skops", "weighted.csv").stderr
    # A weight is a number of equal rows.
    times = np.arange(40) % 3
    frame.assign(w=times).to_csv("times.csv", index=False)
    frame.loc[np.repeat(frame.index, times)].to_csv("repeated.csv", index=False)
    results = [looms("score", "m.skops", file, "--json") for file in ("times.csv", "repeated.csv")]
    weighted, repeated = (
        {name: each["value"] for name, each in json.loads(result.stdout)["scores"].items()}
        for result in results
    )
    assert weighted == pytest.approx(repeated)
    told = ["no column 'w' of weights as in the fit" in each.stderr for each in results]
    assert told == [False, True]
    one_line(looms("score", "m.skops", "text.csv"), 2, text)


@pytest.mark.slow
def test_names_are_listed_with_commas(looms, fit, pets):
    names = ("-c", "linear, rbf", "-c", "ard", "--metric", "f1,roc_auc")
    result = fit(pets, "-t", "kind", *names, "--json", "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert load_model("m.skops").model.candidates == ["linear", "rbf", "ard"]
    assert list(json.loads(result.stdout)["metrics"]) == ["f1", "roc_auc"]


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
def test_what_a_graph_cannot_hold_is_refused_with_what_to_do(looms, fit, pets, one_line):
    options = ("-t", "weight", "--task", "regression", "--target-transform", "log")
    fitted = fit(pets, *options, "--drop-missing-targets", "-c", "linear", "-o", "m.skops")
    assert fitted.exit_code == 0, fitted.stderr
    one_line(looms("export", "m.skops"), 2, "fit it with --target-transform none, or use looms pre")
    assert not Path("m.onnx").exists()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["auto", "none"])
def test_a_graph_of_nonnegative_numbers_predicts_none_below_zero(looms, fit, target):
    pytest.importorskip("skl2onnx")
    onnx = pytest.importorskip("onnx")
    x = np.linspace(-1, 1, 40)
    pd.DataFrame({"x": x, "y": np.maximum(x + 0.9, 0.0)}).to_csv("t.csv", index=False)
    options = ("-t", "y", "-c", "linear", "--no-evaluate", "--target-transform", target)
    fitted = fit("t.csv", *options, "-o", "m.skops")
    assert fitted.exit_code == 0, fitted.stderr
    assert load_model("m.skops").model.transform_ == "none"
    looms("export", "m.skops", "-o", "m.onnx")
    (node,) = [n for n in onnx.load("m.onnx").graph.node if n.op_type == "Max"] or [None]
    assert (node is not None) == (target == "auto")


@pytest.mark.parametrize("command", ["fit", "assess", "compare", "predict", "diagnose", "export"])
def test_help_has_panels_and_examples(looms, command):
    text = looms(command, "--help").stdout
    assert "─ Output ─" in text
    assert f"looms {command} " in text[text.index("Examples:") :]
    if command == "fit":
        words = " ".join(text.replace("│", " ").split())
        assert words.count("It is not a feature.") == 2  # --groups, --time
        titles = re.findall(r"╭─ (\w+) ─", text)
        assert set(titles) == {
            *("Arguments", "Options", "Data", "Model", "Validation", "Output", "Expert")
        }
        assert text[text.index("Examples:") :].count("looms fit ") == 3
