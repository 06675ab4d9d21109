"""--threshold and --calibration: what they stand for, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, fbeta_score

from looms import KernelClassifier
from looms.estimators._in_pipelines import parts_of
from looms.model_files import load_model, save_model
from looms.threshold import Cost, FBeta


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "text"),
    [
        ("squared", "f1"),
        ("hinge", "cost=1:5"),
    ],
)
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
def test_rules_reach_the_estimator_and_its_file(looms, fit, data_folder, text, loss):
    file = data_folder / "haberman.csv"
    options = ("-t", "target", "--loss", loss, "-c", "linear", "--threshold", text)
    result = fit(file, *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    saved = load_model("m.skops").model
    fitted = parts_of(saved).last
    assert fitted.threshold == text
    assert f"threshold = {fitted.threshold_:.4g}" in result.stdout
    assert fitted.threshold_ != 0
    assert f"--threshold {text}" in looms("show", "m.skops").stdout
    truth, taken = fitted.loo_.y > 0, fitted.evaluate(nested=False).decisions.predicted == 1
    recall, precision = taken[truth].mean(), truth[taken].mean()
    cost = ((truth & ~taken) * 5.0 + (~truth & taken)).mean()
    of_one = f"always positive {(~truth).mean():.4f}, always negative {5.0 * truth.mean():.4f}, "
    costs = f"cost per row {cost:.4f}, {of_one}"
    first = {"f1": f"F1 {f1_score(truth, taken):.4f}, ", "cost=1:5": costs}
    assert (
        f"at threshold {text} (positive: {fitted.classes_[1]}): {first.get(text, '')}"
        f"recall {recall:.4f}, precision {precision:.4f}" in result.stdout
    )
    if loss == "squared":
        assert "LOO 1 - F1 " in result.stdout


@pytest.mark.parametrize("rule", [Cost(1.0, 5.0, -2.0, 0.5), FBeta(2.0), "f1", 0.3], ids=str)
def test_scores_of_a_rule_from_python(looms, rule):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3 > 0
    X = rng.normal(size=(40, 2)) + y[:, None]
    fitted = KernelClassifier("linear", mu=1e-3, threshold=rule).fit(X, y)
    save_model("m.skops", fitted)
    found = looms("show", "m.skops")
    assert found.exit_code == 0, found.stderr
    taken = fitted.evaluate(nested=False).decisions.predicted == 1
    cost = np.mean(np.where(y, np.where(taken, -2.0, 5.0), np.where(taken, 1.0, 0.5)))
    beta = 2.0 if isinstance(rule, FBeta) else 1.0
    score = f"F{beta:g} {fbeta_score(y, taken, beta=beta):.4f}, "
    of_one = np.where(y, -2.0, 1.0).mean(), np.where(y, 5.0, 0.5).mean()
    costs = f"cost per row {cost:.4f}, always positive {{:.4f}}, always negative {{:.4f}}, "
    costs = costs.format(*of_one)
    first = costs if isinstance(rule, Cost) else "" if rule == 0.3 else score
    recall = f"recall {taken[y].mean():.4f}"
    assert f"(positive: True): {first}{recall}" in " ".join(found.stdout.split())


@pytest.mark.slow
def test_a_precision_out_of_reach_is_a_note(fit, data_folder):
    options = ("-t", "target", "-c", "linear", "--threshold", "precision=1")
    result = fit(data_folder / "haberman.csv", *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "No threshold reaches a leave-one-out precision of 1" in result.stderr


def test_what_is_refused_is_refused_before_any_work(looms, fit, pets, one_line, data_folder):
    for command in ("fit", "assess"):
        for text in ("recall", "cost=1"):
            result = looms(command, pets, "-t", "kind", "--threshold", text)
            known = f"Unknown --threshold '{text}'; known are a probability between 0 and 1, 'bal"
            one_line(result, 2, known)
    result = fit(data_folder / "liver.csv", "-t", "target", "--threshold", "f1")
    one_line(result, 2, "--threshold f1 needs two classes, but y has 4")


@pytest.mark.slow
def test_a_positive_class_of_most_rows_is_warned_of(fit, pets):
    frame = pd.read_csv(pets)
    frame["ill"] = ["ja" if k % 4 == 0 else "nein" for k in range(len(frame))]
    frame["healthy"] = ["no" if k % 4 else "yes" for k in range(len(frame))]
    frame.to_csv(pets, index=False)
    for rule in ("recall=0.9", "f1"):
        options = ("--threshold", rule, "-c", "linear", "-o", "m.skops", "--force")
        result = fit(pets, "-t", "ill", *options)
        assert result.exit_code == 0, result.stderr
        assert f"Warning: --threshold {rule} treats nein as the positive class" in result.stderr
        result = fit(pets, "-t", "ill", *options, "--positive", "ja")
        assert "as the positive class" not in result.stderr
        assert "(positive: ja): " in result.stdout
    for options in (("ill", "--threshold", "balanced"), ("healthy", "--threshold", "f1")):
        result = fit(pets, "--drop", "indoors", "-t", *options, "-o", "m.skops", "--force")
        assert result.exit_code == 0, result.stderr
        assert "positive class" not in result.stderr


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
