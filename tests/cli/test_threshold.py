"""--threshold: what is printed of a rule, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import fbeta_score, matthews_corrcoef
from stacks import stacked_classifier

from looms import KernelClassifier
from looms.cli._request import ModelRequest
from looms.cli._scores import show_tried
from looms.model_files import save_model
from looms.report.facts import Facts
from looms.threshold import AtLeast, Cost, FBeta

LOSSES = {
    **{0.5: "balanced error", "balanced": "balanced error", "f1": "1 - F1", FBeta(2.0): "1 - F2"},
    **{AtLeast("recall", 0.95): "1 - precision", AtLeast("precision", 0.6): "1 - recall"},
    **{Cost(1.0, 5.0): "cost per row", matthews_corrcoef: "loss of matthews_corrcoef"},
}


@pytest.mark.parametrize("rule", LOSSES, ids=lambda rule: getattr(rule, "__name__", str(rule)))
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
@pytest.mark.slow
def test_candidates_are_compared_by_the_loss_of_the_rule(rule, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 2)) + y[:, None]
    machine = stacked_classifier(["linear", "rbf"], combine="best", threshold=rule)
    show_tried(Facts(machine.fit(X, y)))
    assert f"5-fold {LOSSES[rule]} " in " ".join(capsys.readouterr().out.split())


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


def test_what_is_refused_is_refused_before_any_work(fit, looms, pets, one_line):
    for command in ("fit", "assess"):
        result = looms(command, pets, "-t", "kind", "--threshold", "cost=1")
        one_line(result, 2, "Unknown --threshold 'cost=1'")
    pd.read_csv(pets).assign(kind=["a", "b", "c", "d"] * 10).to_csv(pets, index=False)
    one_line(fit(pets, "-t", "kind", "--threshold", "f1"), 2, "--threshold f1 needs two classes")


@pytest.mark.parametrize(
    ("rule", "share", "told"),
    [
        ("recall=0.9", 0.75, True),
        ("f1", 0.75, True),
        ("f1", 0.25, False),
        ("balanced", 0.75, False),
        ("0.5", 0.75, False),
    ],
)
def test_a_positive_class_of_most_rows_is_warned_of(capsys, rule, share, told):
    y = np.where(np.arange(40) < 40 * share, "nein", "ja")
    assert ModelRequest(threshold=rule)._check_classes(y) is None
    text = f"Warning: --threshold {rule} treats nein as the positive class"
    assert capsys.readouterr().err.startswith(text) == told
    assert ModelRequest(threshold=rule, positive="ja")._check_classes(y) == "ja"
    assert capsys.readouterr().err == ""


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
