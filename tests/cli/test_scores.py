"""Scores of new rows against scikit-learn, and as they are printed."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.dummy import DummyClassifier

from looms import KernelClassifier, KernelRegressor
from looms._scores import SCORES
from looms._words import score_text
from looms.cli._model import Predictions, SavedModel
from looms.cli._scores import show_confusion, show_scores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
#: Of which the first half is that of the fit.
SIGNAL = X[:, 0] + 0.5 * RNG.normal(size=120)


def of_new_rows(model, y):
    """Predictions of the second half, by a model of the first, and the true values."""
    fitted = model.fit(X[:60], y[:60])
    task = "classification" if hasattr(fitted, "classes_") else "regression"
    saved = SavedModel(fitted, {"task": task, "columns": None, "n_features": 3, "target": None})
    return Predictions(saved, pd.DataFrame(X[60:])), y[60:], fitted


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_against_scikit_learn(n_classes):
    y = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [0.3, 1.0][: n_classes - 1])]
    predictions, new, model = of_new_rows(KernelClassifier("linear", mu=0.1), y)
    weight = RNG.integers(3, size=60).astype(float)
    scores, baselines = predictions.scores(pd.Series(new), weight)
    taken, p = model.predict(X[60:]), model.predict_proba(X[60:])
    decision = model.decision_function(X[60:]).reshape(60, -1)
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
    assert {name: value for name, (value, _) in scores.items()} == pytest.approx(expected)
    dummy = DummyClassifier(strategy="prior").fit(new, new, weight)
    shares = dummy.predict_proba(new)
    assert baselines["log_loss"] == pytest.approx(
        metrics.log_loss(new, shares, sample_weight=weight)
    )
    assert baselines["accuracy"] == pytest.approx(dummy.score(new, new, weight))
    assert baselines["balanced_accuracy"] == pytest.approx(1 / n_classes)
    losses = -np.log(p[np.arange(60), np.searchsorted(model.classes_, new)])
    _, error = predictions.scores(pd.Series(new))[0]["log_loss"]
    assert error == pytest.approx(losses.std(ddof=1) / np.sqrt(60))


def test_errors_are_over_groups():
    predictions, new, _ = of_new_rows(KernelRegressor("linear", mu=0.1), SIGNAL)
    alone, pairs = (predictions.scores(new, None, g)[0] for g in (None, np.arange(60) // 2))
    assert {k: v for k, (v, _) in alone.items()} == {k: v for k, (v, _) in pairs.items()}
    misses = np.abs(new - predictions.predicted)
    assert alone["mae"][1] == pytest.approx(misses.std(ddof=1) / np.sqrt(60))
    of_pairs = misses.reshape(30, 2).mean(axis=1)
    error, sizes = of_pairs.std(ddof=1) / np.sqrt(30), misses.var()
    draws = 1 + sizes / error**2
    draws = 1 / ((1 - 30**-2) / draws + 30**-3)  # a little nearer to 30
    assert pairs["mae"][1] == pytest.approx(np.sqrt(sizes / (draws - 1)))
    assert pairs["mae"][1] == pytest.approx(error, rel=30**-2)


def test_what_the_new_rows_lack():
    model = KernelClassifier("linear", mu=0.1)
    y = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [0.3, 1.0])]
    predictions, *_ = of_new_rows(model, y)
    one = predictions.scores(pd.Series(["b"] * 60))[0]
    assert (
        one["accuracy"][0] == one["balanced_accuracy"][0] == (predictions.predicted == "b").mean()
    )
    assert np.isnan(one["roc_auc"]).all()
    unknown = predictions.scores(pd.Series(["z", *y[61:]]))[0]
    assert np.isnan(unknown["log_loss"][0])
    assert unknown["accuracy"][0] < 1


def test_a_confusion_has_counts_recall_and_precision(capsys):
    y = np.array(["a", "b", "c", "a", "z"], dtype=object)
    predicted = np.array(["a", "a", "c", "b", "c"], dtype=object)
    labels = ["a", "b", "c", "z"]
    show_confusion(metrics.confusion_matrix(y, predicted, labels=labels), labels)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "1", "1", "0", "0", "50.0%"] in rows
    assert ["b", "1", "0", "0", "0", "0.0%"] in rows
    assert ["z", "0", "0", "1", "0", "0.0%"] in rows
    assert ["precision", "50.0%", "0.0%", "50.0%", "–"] in rows


def test_long_labels_of_a_confusion_stay_whole(capsys):
    labels = [f"class of place {k}" for k in range(9)]
    show_confusion(45 * np.eye(9, dtype=int), labels)
    lines = capsys.readouterr().out.splitlines()
    heads = next(line for line in lines if "true" in line).split()
    assert heads[3:] == [*map(str, range(1, 10)), "recall"]
    rows = [line.split("  ")[0].strip() for line in lines if "class of" in line]
    assert rows == [f"{k} {label}" for k, label in enumerate(labels, 1)]


def test_shares_are_rounded_once(capsys):
    show_confusion([[47, 33], [10, 23]], ["a", "b"])  # 47 of 80, 58.75 %
    assert "58.8%" in capsys.readouterr().out


def test_standard_errors_are_below_the_scores(capsys):
    model = KernelClassifier(mu=1e-3).fit(X, np.digitize(SIGNAL, [-0.5, 0.5]))
    scores = model.evaluate()
    assert scores.keys() <= SCORES.keys()
    of_both = {"fit": scores.with_errors, "new": {"accuracy": (0.5, 0.125)}}
    show_scores(of_both, scores.baselines, 3)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["new", "0.5000", "–", "–", "–"] in rows
    assert ["±", "s.e.", "0.1250", "–", "–", "–"] in rows
    assert any(row[:1] == ["fit"] and len(row) == 5 for row in rows)
    assert ["baseline", *map(score_text, scores.baselines.values())] in rows
