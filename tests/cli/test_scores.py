"""Scores and confusions as they are printed."""

import numpy as np
from sklearn import metrics

from looms import KernelClassifier
from looms._scores import SCORES
from looms._words import score_text
from looms.cli._scores import show_confusion, show_scores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SIGNAL = X[:, 0] + 0.5 * RNG.normal(size=120)


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
