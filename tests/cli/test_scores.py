"""Scores of new rows against scikit-learn, and as they are printed."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.dummy import DummyClassifier
from sklearn.metrics import fbeta_score
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor
from looms._scores import SCORES, score_with_error
from looms._words import estimate_text, score_text
from looms.cli._scores import rule_scores, show_confusion, show_scores, show_tried
from looms.report.facts import Facts
from looms.threshold import AtLeast, BalancedError, Cost, FBeta

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
#: Of which the first half is that of the fit.
SIGNAL = X[:, 0] + 0.5 * RNG.normal(size=120)
NEW = X[60:]


def of_classes(n):
    """A model of the first half, and the labels of the second."""
    y = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [0.3, 1.0][: n - 1])]
    return KernelClassifier("linear", mu=0.1).fit(X[:60], y[:60]), y[60:]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_against_scikit_learn(n_classes):
    model, new = of_classes(n_classes)
    weight = RNG.integers(3, size=60).astype(float)
    scores = model.scores(NEW, new, weight)
    taken, p = model.predict(NEW), model.predict_proba(NEW)
    decision = model.decision_function(NEW).reshape(60, -1)
    areas = [
        metrics.roc_auc_score(new == label, decision[:, k], sample_weight=weight)
        for k, label in enumerate(model.classes_[-decision.shape[1] :])
    ]
    expected = {
        "accuracy": metrics.accuracy_score(new, taken, sample_weight=weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(new, taken, sample_weight=weight),
        "roc_auc": np.mean(areas),
        "log_loss": metrics.log_loss(new, p, sample_weight=weight),
    }
    assert dict(scores["value"]) == pytest.approx(expected)
    dummy = DummyClassifier(strategy="prior").fit(new, new, weight)
    shares = dummy.predict_proba(new)
    baselines = {
        "accuracy": dummy.score(new, new, weight),
        "balanced_accuracy": 1 / n_classes,
        "roc_auc": 0.5,
        "log_loss": metrics.log_loss(new, shares, sample_weight=weight),
    }
    assert dict(scores["baseline"]) == pytest.approx(baselines)
    losses = -np.log(p[np.arange(60), np.searchsorted(model.classes_, new)])
    error = model.scores(NEW, new).loc["log_loss", "standard_error"]
    assert error == pytest.approx(losses.std(ddof=1) / np.sqrt(60))


def test_errors_are_over_groups():
    model = KernelRegressor("linear", mu=0.1).fit(X[:60], SIGNAL[:60])
    new = SIGNAL[60:]
    alone, pairs = (model.scores(NEW, new, groups=g) for g in (None, np.arange(60) // 2))
    assert alone["value"].equals(pairs["value"])
    misses = np.abs(new - model.predict(NEW))
    errors = alone["standard_error"]["mae"], pairs["standard_error"]["mae"]
    assert errors[0] == pytest.approx(misses.std(ddof=1) / np.sqrt(60))
    of_pairs = misses.reshape(30, 2).mean(axis=1)
    error, sizes = of_pairs.std(ddof=1) / np.sqrt(30), misses.var()
    draws = 1 + sizes / error**2
    draws = 1 / ((1 - 30**-2) / draws + 30**-3)  # a little nearer to 30
    assert errors[1] == pytest.approx(np.sqrt(sizes / (draws - 1)))
    assert errors[1] == pytest.approx(error, rel=30**-2)


def test_what_the_new_rows_lack():
    model, new = of_classes(3)
    one = model.scores(NEW, np.full(60, "b"))["value"]
    assert one["accuracy"] == one["balanced_accuracy"] == (model.predict(NEW) == "b").mean()
    assert np.isnan(one["roc_auc"])
    unknown = model.scores(NEW, np.array(["z", *new[1:]]))["value"]
    assert np.isnan(unknown["log_loss"])
    assert unknown["accuracy"] < 1


def test_a_cost_is_beside_those_of_one_class_for_all():
    scores = rule_scores([[60, 20], [5, 15]], Cost(1.0, 5.0))
    of_one = {"always positive": 0.8, "always negative": 1.0}
    assert scores == pytest.approx(
        {"cost per row": 0.45} | of_one | {"recall": 0.75, "precision": 15 / 35}
    )


LOSSES = {
    **{BalancedError(): "balanced error", FBeta(2.0): "1 - F2", Cost(1.0, 5.0): "cost per row"},
    **{AtLeast("recall", 0.95): "1 - precision", AtLeast("precision", 0.6): "1 - recall"},
}


@pytest.mark.slow
def test_candidates_are_compared_by_the_loss_of_the_rule(capsys):
    assert {rule: rule.loss_name for rule in LOSSES} == LOSSES
    y = np.arange(20) % 2
    rows = X[:20] + y[:, None]
    machine = stacked_classifier(
        ["linear", "rbf"], combine="best", threshold=metrics.matthews_corrcoef
    )
    show_tried(Facts(machine.fit(rows, y)))
    shown = " ".join(capsys.readouterr().out.split())
    assert "5-fold loss of matthews_corrcoef " in shown


@pytest.mark.parametrize("rule", [Cost(1.0, 5.0, -2.0, 0.5), FBeta(2.0), 0.3], ids=str)
def test_scores_of_a_rule_from_python(looms, rule):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3 > 0
    X = rng.normal(size=(40, 2)) + y[:, None]
    fitted = KernelClassifier("linear", mu=1e-3, threshold=rule).fit(X, y)
    fitted.save("m.skops")
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


def test_a_confusion_has_counts_recall_and_precision(capsys):
    y = np.array(["a", "b", "c", "a", "z"], dtype=object)
    predicted = np.array(["a", "a", "c", "b", "c"], dtype=object)
    labels = ["a", "b", "c", "z"]
    show_confusion(metrics.confusion_matrix(y, predicted, labels=labels), labels)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "1", "1", "0", "0", "50.0%"] in rows
    assert ["z", "0", "0", "1", "0", "0.0%"] in rows
    assert ["precision", "50.0%", "0.0%", "50.0%", "–"] in rows
    show_confusion([[47, 33], [10, 23]], ["a", "b"])  # 47 of 80, 58.75 %
    assert "58.8%" in capsys.readouterr().out


def test_long_labels_of_a_confusion_stay_whole(capsys):
    labels = [f"class of place {k}" for k in range(9)]
    show_confusion(45 * np.eye(9, dtype=int), labels)
    lines = capsys.readouterr().out.splitlines()
    heads = next(line for line in lines if "true" in line).split()
    assert heads[3:] == [*map(str, range(1, 10)), "recall"]
    rows = [line.split("  ")[0].strip() for line in lines if "class of" in line]
    assert rows == [f"{k} {label}" for k, label in enumerate(labels, 1)]


def test_standard_errors_are_below_the_scores(capsys):
    model = KernelClassifier(mu=1e-3).fit(X, np.digitize(SIGNAL, [-0.5, 0.5]))
    scores = model.evaluate()
    assert scores.keys() <= SCORES.keys()
    of_both = {"fit": scores.with_errors, "new": {"accuracy": (0.5, 0.125)}}
    show_scores(of_both, scores.baselines, 3)
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()]
    assert "mean ROC AUC" in shown
    assert ["new", "0.5000", "–", "–", "–"] in rows
    assert ["±", "s.e.", "0.1250", "–", "–", "–"] in rows
    assert any(row[:1] == ["fit"] and len(row) == 5 for row in rows)
    assert ["baseline", *map(score_text, scores.baselines.values())] in rows
    show_scores({"two": {"roc_auc": (0.5, 0.1)}}, {"roc_auc": 0.5})
    assert "mean" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (0.0376, None, "0.0376"),
        (0.0, None, "0.0000"),
        (4.7e-8, None, "4.7e-08"),
        (391.9773, None, "392.0"),
        (-12180.7, None, "-12181"),
        (11031258.48, None, "1.103e+07"),
        (440.53, 4740.2, "441"),  # with the decimals of the score that it belongs to
        (1.9e-17, 0.25, "0.0000"),
        (-3e-9, 0.25, "0.0000"),
        (-6.78, 4011.0, "-7"),
        (3.21, 52.0, "3.21"),
    ],
)
def test_scores_have_digits_in_any_units(value, of, text):
    assert score_text(value, *[] if of is None else [of]) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (4740.2, 440.5, "4740 ± 440"),
        (10161.3, 868.0, "10161 ± 870"),
        (0.5479, 0.0769, "0.5479 ± 0.077"),
        (3e-12, 2e-13, "3e-12 ± 2e-13"),
        (0.5, float("nan"), "0.5"),
        (float("nan"), 1.0, "–"),
    ],
)
def test_standard_errors_have_two_digits_and_no_exponents(value, error, text):
    assert estimate_text(value, error) == text


def test_shares_and_r2_have_at_most_four_decimals():
    assert score_with_error("r2", -0.034196, 1.9e-17) == "-0.0342 ± 0"
    assert score_with_error("rmse", 0.034196, 1.9e-17) == "0.0342 ± 1.9e-17"
