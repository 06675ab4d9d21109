"""The overview of a fitted model, as lines and tables, and as text."""

import numpy as np
import pytest
from sklearn import metrics
from stacks import stacked_classifier

from looms import KernelClassifier
from looms._words import score_text
from looms.report import summary
from looms.report.model import model_of
from looms.report.overview import (
    rule_scores,
    table_of_confusion,
    table_of_scores,
    tried,
)
from looms.threshold import AtLeast, Cost, FBeta

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=60) > 0, "yes", "no")


def cells_of(table):
    """Cells of each line of a table as text."""
    return [line.split() for line in str(table).splitlines()]


def test_a_confusion_has_counts_recall_and_precision():
    y = np.array(["a", "b", "c", "a", "z"], dtype=object)
    predicted = np.array(["a", "a", "c", "b", "c"], dtype=object)
    labels = ["a", "b", "c", "z"]
    counts = metrics.confusion_matrix(y, predicted, labels=labels)
    rows = cells_of(table_of_confusion(counts, labels))
    assert ["a", "1", "1", "0", "0", "50.0%"] in rows
    assert ["b", "1", "0", "0", "0", "0.0%"] in rows
    assert ["z", "0", "0", "1", "0", "0.0%"] in rows
    assert ["precision", "50.0%", "0.0%", "50.0%", "–"] in rows
    assert "58.8%" in str(table_of_confusion([[47, 33], [10, 23]], ["a", "b"]))  # rounded once


def test_long_labels_of_a_confusion_stay_whole():
    labels = [f"class of place {k}" for k in range(9)]
    table = table_of_confusion(45 * np.eye(9, dtype=int), labels)
    assert table.names[1:] == [*map(str, range(1, 10)), "recall"]
    assert [row[0] for row in table.rows[:-1]] == [f"{k} {one}" for k, one in enumerate(labels, 1)]


def test_standard_errors_are_below_the_scores():
    scores = KernelClassifier(mu=1e-3).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])).evaluate()
    of_both = {"fit": scores.with_errors, "new": {"accuracy": (0.5, 0.125)}}
    rows = cells_of(table_of_scores(of_both, scores.baselines, 3))
    assert ["new", "0.5000", "–", "–", "–"] in rows
    assert ["±", "s.e.", "0.1250", "–", "–", "–"] in rows
    assert ["fit", *map(score_text, scores.values())] in rows
    assert ["baseline", *map(score_text, scores.baselines.values())] in rows


def test_a_cost_is_beside_those_of_one_class_for_all():
    scores = rule_scores([[60, 20], [5, 15]], Cost(1.0, 5.0))
    of_one = {"always positive": 0.8, "always negative": 1.0}
    assert scores == pytest.approx(
        {"cost per row": 0.45} | of_one | {"recall": 0.75, "precision": 15 / 35}
    )
    f_score = rule_scores([[60, 20], [5, 15]], FBeta(1.0))["F1"]
    assert f_score == pytest.approx(2 * 15 / (2 * 15 + 20 + 5))


LOSSES = {
    **{0.5: "balanced error", "f1": "1 - F1", AtLeast("recall", 0.95): "1 - precision"},
    **{Cost(1.0, 5.0): "cost per row", metrics.matthews_corrcoef: "loss of matthews_corrcoef"},
}


@pytest.mark.parametrize("rule", LOSSES, ids=lambda rule: getattr(rule, "__name__", str(rule)))
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
@pytest.mark.slow
def test_candidates_are_compared_by_the_loss_of_the_rule(rule):
    model = stacked_classifier(["linear", "rbf"], combine="best", threshold=rule)
    model.fit(X[::2], Y[::2])
    table = next(iter(tried(model_of(model), wide=False)))
    assert f"5-fold {LOSSES[rule]}" in table.names


@pytest.mark.slow
def test_a_summary_prints_the_candidates_the_choice_and_the_scores():
    model = stacked_classifier(["linear", "rbf"], threshold="recall=0.9").fit(X, Y)
    found = summary(model)
    text = str(found)
    assert found["task"] == "classification"
    for shown in (*model.cv_results_["kernel"], "weight", "mu = ", "baseline", "precision", "yes"):
        assert shown in text
    assert max(map(len, text.splitlines())) <= 100
