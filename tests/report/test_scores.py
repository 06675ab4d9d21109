"""Figures of merit and their standard errors."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score, roc_auc_score

from looms.report._model import model_of
from looms.report._scores import area_under_curve, error_by_class, guess_error, loo_scores


def test_two_classes(binary):
    model, _, y, _ = binary
    loo, threshold = model[-1].loo_, model[-1].threshold_
    predicted = model.classes_[(loo.outputs > threshold).astype(int)]
    scores = loo_scores(model_of(model))
    assert scores["error"][0] == pytest.approx(np.mean(predicted != y))
    assert scores["ber"][0] == pytest.approx(1 - balanced_accuracy_score(y, predicted))
    assert scores["auc"][0] == pytest.approx(roc_auc_score(y == model.classes_[1], loo.outputs))
    n, rate = error_by_class(model_of(model))
    assert n.tolist() == [(y == label).sum() for label in model.classes_]
    p = (rate * n + 1) / (n + 2)
    assert scores["ber"][1] == pytest.approx(np.sqrt(np.sum(p * (1 - p) / n)) / 2)
    drawn = np.random.default_rng(0).binomial(n, p, (4000, 2)) / n
    assert scores["ber"][1] == pytest.approx(drawn.mean(axis=1).std(), rel=0.05)
    assert guess_error(model_of(model)) == pytest.approx(1 - max(n) / sum(n))


def test_several_classes(several):
    model, _, y = several
    predicted = model.classes_[model.loo_.outputs.argmax(axis=1)]
    scores = loo_scores(model_of(model))
    assert scores["ber"][0] == pytest.approx(1 - balanced_accuracy_score(y, predicted))
    areas = [roc_auc_score(y == k, model.loo_.outputs[:, k]) for k in range(3)]
    assert scores["auc"][0] == pytest.approx(np.mean(areas))


def test_numbers(regression):
    model, _, y = regression
    outputs = model.loo_.outputs
    scores = loo_scores(model_of(model))
    assert scores["rmse"][0] == pytest.approx(np.sqrt(np.mean((y - outputs) ** 2)))
    assert scores["mae"][0] == pytest.approx(mean_absolute_error(y, outputs))
    assert scores["r2"][0] == pytest.approx(r2_score(y, outputs))


def test_standard_error_of_rmse_is_that_of_resamples(regression):
    residuals = regression[0].loo_.residuals
    rng = np.random.default_rng(0)
    drawn = rng.choice(residuals, (4000, len(residuals)))
    spread = np.sqrt(np.mean(drawn**2, axis=1)).std()
    assert loo_scores(model_of(regression[0]))["rmse"][1] == pytest.approx(spread, rel=0.1)


def test_standard_error_of_auc():
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(0.7, 1, 60).round(1), rng.normal(0, 1, 90).round(1)
    area, error = area_under_curve(positive, negative)
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    assert area == pytest.approx(wins.mean())
    expected = wins.mean(axis=1).var(ddof=1) / 60 + wins.mean(axis=0).var(ddof=1) / 90
    assert error == pytest.approx(np.sqrt(expected))
    assert np.isnan(area_under_curve(positive, negative[:0])).all()
