"""Scores against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn import metrics

from looms import KernelClassifier, KernelRegressor
from looms._scores import SCORES
from looms.cli._model import scores_on_new_rows
from looms.cli._scores import (
    held_out_scores,
    show_confusion,
)
from looms.report.facts import Facts

RNG = np.random.default_rng(0)


def test_two_classes_against_scikit_learn():
    y = RNG.choice(["a", "b"], size=50, p=[0.8, 0.2]).astype(object)
    decision = RNG.normal(size=50) + (y == "b")
    predicted = np.where(decision > 0.3, "b", "a").astype(object)
    scores = scores_on_new_rows(y, predicted, decision, np.array(["a", "b"], dtype=object))
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert scores["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(y, predicted)
    )
    assert scores["roc_auc"] == pytest.approx(metrics.roc_auc_score(y == "b", decision))


def test_three_classes():
    y = RNG.integers(3, size=60)
    decision = RNG.normal(size=(60, 3)) + 1.5 * np.eye(3)[y]
    predicted = decision.argmax(axis=1)
    scores = scores_on_new_rows(y, predicted, decision, np.arange(3))
    areas = [metrics.roc_auc_score(y == k, decision[:, k]) for k in range(3)]
    assert scores["roc_auc"] == pytest.approx(np.mean(areas))
    assert scores["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(y, predicted)
    )


def test_a_class_that_is_not_there_does_not_count():
    y, decision = np.array([0, 1, 0, 1]), np.eye(3)[[0, 1, 1, 1]]
    scores = scores_on_new_rows(y, decision.argmax(axis=1), decision, np.arange(3))
    assert scores == {"accuracy": 0.75, "balanced_accuracy": 0.75, "roc_auc": 0.75}


def test_one_class_only_has_no_auc():
    scores = scores_on_new_rows(
        np.array([1, 1]), np.array([1, 0]), np.array([1.0, -1.0]), np.arange(2)
    )
    assert scores["accuracy"] == scores["balanced_accuracy"] == 0.5
    assert np.isnan(scores["roc_auc"])


def test_a_confusion_has_counts_and_shares(capsys):
    y = np.array(["a", "b", "c", "a", "z"], dtype=object)
    predicted = np.array(["a", "a", "c", "b", "c"], dtype=object)
    labels = ["a", "b", "c", "z"]
    show_confusion(metrics.confusion_matrix(y, predicted, labels=labels), labels)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "1", "1", "0", "0", "40.0%"] in rows
    assert ["z", "0", "0", "1", "0", "20.0%"] in rows
    assert ["share", "40.0%", "20.0%", "40.0%", "0.0%"] in rows


def test_shares_are_rounded_once(capsys):
    show_confusion([[1, 46], [10, 23]], ["a", "b"])  # 47 of 80, 58.75 %
    assert "58.8%" in capsys.readouterr().out


def test_the_scores_shown_of_a_fit_are_its_scores():
    X = RNG.normal(size=(60, 3))
    two, three = X[:, 0] > 0, np.digitize(X[:, 0] + RNG.normal(size=60), [-0.5, 0.5])
    for machine in (
        KernelClassifier(mu=1e-3).fit(X, two),
        KernelClassifier(mu=1e-3).fit(X, three),
        KernelRegressor(mu=1e-3).fit(X, X[:, 1]),
    ):
        expected = {
            "leave-one-out": machine.evaluate(),
            "± s.e.": machine.evaluate().standard_errors,
        }
        assert held_out_scores(Facts(machine)) == expected
        assert machine.evaluate().keys() <= SCORES.keys()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_against_scikit_learn(n_classes):
    classes = np.array(["a", "b", "c"], dtype=object)[:n_classes]
    y = RNG.choice(classes, size=40)
    p = RNG.dirichlet(np.ones(n_classes), size=40)
    decision = p[:, 1] if n_classes == 2 else p
    scores = scores_on_new_rows(y, classes[p.argmax(axis=1)], decision, classes, p)
    assert list(scores) == ["accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier"]
    assert scores["log_loss"] == pytest.approx(metrics.log_loss(y.astype(str), p))
    truth = (y[:, None] == classes).astype(float)
    brier = ((p - truth) ** 2).sum(axis=1).mean() / (2 if n_classes == 2 else 1)
    assert scores["brier"] == pytest.approx(brier)
    times = RNG.integers(3, size=40)  # a weight is a number of equal rows
    again = [np.repeat(each, times, axis=0) for each in (y, classes[p.argmax(axis=1)], decision, p)]
    repeated = scores_on_new_rows(*again[:3], classes, again[3])
    weighted = scores_on_new_rows(
        y, classes[p.argmax(axis=1)], decision, classes, p, times.astype(float)
    )
    assert weighted == pytest.approx(repeated)


def test_a_label_without_a_probability_has_no_log_loss():
    y, classes = np.array(["a", "z"], dtype=object), np.array(["a", "b"], dtype=object)
    scores = scores_on_new_rows(y, y, np.zeros(2), classes, np.full((2, 2), 0.5))
    assert np.isnan([scores["log_loss"], scores["brier"]]).all()
