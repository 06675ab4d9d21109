"""Scores and their standard errors."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)

from looms import KernelClassifier, KernelRegressor
from looms.duplicates import duplicate_groups
from looms.report import PrecisionRecallDisplay, ResidualsDisplay, RocDisplay, summary
from looms.report.model import model_of
from looms.report.scores import gain_over_mean, recall_by_class


def scores_of(model):
    """Value and standard error of the scores that a report shows."""
    return model_of(model).scores.with_errors


def test_two_classes(binary):
    model, _, y, _ = binary
    predicted = model.classes_[model_of(model).decisions.predicted]
    scores = scores_of(model)
    assert scores["accuracy"][0] == pytest.approx(np.mean(predicted == y))
    assert scores["balanced_accuracy"][0] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert {name: value for name, (value, _) in scores.items()} == model[-1].evaluate(nested=False)
    n, rate = recall_by_class(model_of(model))
    assert n.tolist() == [(y == label).sum() for label in model.classes_]
    p = (rate * n + 1) / (n + 2)
    assert scores["balanced_accuracy"][1] == pytest.approx(np.sqrt(np.sum(p * (1 - p) / n)) / 2)
    drawn = np.random.default_rng(0).binomial(n, p, (4000, 2)) / n
    assert scores["balanced_accuracy"][1] == pytest.approx(drawn.mean(axis=1).std(), rel=0.05)


def test_numbers(regression):
    model, _, y = regression
    outputs = model.loo_.outputs
    scores = scores_of(model)
    assert scores["rmse"][0] == pytest.approx(np.sqrt(np.mean((y - outputs) ** 2)))
    assert scores["mae"][0] == pytest.approx(mean_absolute_error(y, outputs))
    assert scores["r2"][0] == pytest.approx(r2_score(y, outputs))
    drawn = np.random.default_rng(0).choice(model.loo_.residuals, (4000, len(y)))
    spread = np.sqrt(np.mean(drawn**2, axis=1)).std()
    assert scores["rmse"][1] == pytest.approx(spread, rel=0.1)


def test_targets_of_different_means():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.normal([0.0, 1000.0], size=(60, 2))
    model = KernelRegressor(mu=0.1).fit(X, Y)
    scores = scores_of(model)
    outputs = model.loo_.outputs
    assert scores["r2"][0] == pytest.approx(r2_score(Y, outputs))
    assert scores["r2"][0] < 0.1
    assert scores["mae"][0] == pytest.approx(mean_absolute_error(Y, outputs))
    assert scores["rmse"][0] == pytest.approx(np.sqrt(mean_squared_error(Y, outputs)))
    squares = np.mean((Y - outputs) ** 2, axis=1)
    spread = np.sqrt([squares[rng.integers(0, 60, 60)].mean() for _ in range(4000)]).std()
    assert scores["rmse"][1] == pytest.approx(spread, rel=0.1)
    means = DummyRegressor().fit(X, Y).predict(X)
    baseline = np.sqrt(mean_squared_error(Y, means))
    assert summary(model)["headline"]["baseline"] == pytest.approx(baseline)


@pytest.fixture(scope="module")
def weighted():
    """Classifier fitted with weights, some of them zero, and its data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] + rng.normal(size=90) > 0.4).astype(int)
    weight = rng.integers(0, 4, 90) * 1.0
    return KernelClassifier(mu=1e-3, threshold="balanced").fit(X, y, weight), X, y, weight


def test_samples_count_by_their_weight(weighted):
    model, _, y, weight = weighted
    scores, made = scores_of(model), model_of(model).scores
    rows, decisions = made.rows, made.decisions
    rate = np.average(1 - decisions.wrong, weights=weight[rows])
    assert scores["accuracy"][0] == pytest.approx(rate)
    assert scores["accuracy"][0] != pytest.approx(1 - decisions.wrong.mean())
    n, rate = recall_by_class(model_of(model))
    assert n.tolist() == np.bincount(y[weight > 0]).tolist()
    of_class = [y[rows] == k for k in range(2)]
    expected = [np.average(1 - decisions.wrong[k], weights=weight[rows][k]) for k in of_class]
    np.testing.assert_allclose(rate, expected)
    assert scores["balanced_accuracy"][0] == pytest.approx(np.mean(expected))
    found = summary(model)["loo"]["confusion"]
    counts = confusion_matrix(y[rows], decisions.predicted, sample_weight=weight[rows])
    np.testing.assert_allclose(found["counts"], counts)
    assert found["weighted"] is True
    roc, precision = RocDisplay.compute(model), PrecisionRecallDisplay.compute(model)
    y, f, by_weight = y[rows], decisions.outputs, {"sample_weight": weight[rows]}
    assert roc.areas["1"] == pytest.approx(roc_auc_score(y, f, **by_weight))
    assert precision.areas["1"] == pytest.approx(average_precision_score(y, f, **by_weight))
    counts = confusion_matrix(y, f > model.threshold_, **by_weight, normalize="true")
    assert roc.chosen == pytest.approx(tuple(counts[:, 1]))
    assert precision.chosen[0] == pytest.approx(counts[1, 1])
    assert precision.shares["1"] == pytest.approx(np.average(y, weights=weight[rows]))


@pytest.mark.slow
def test_samples_of_weight_zero_take_no_part(weighted):
    _, X, y, weight = weighted
    seen = weight > 0
    model = KernelClassifier(mu=1e-3).fit(X, y, 1.0 * seen)
    without = KernelClassifier(mu=1e-3).fit(X[seen], y[seen])
    for key, value in scores_of(without).items():
        assert scores_of(model)[key] == pytest.approx(value)
    baselines = [model_of(each).scores.baselines for each in (model, without)]
    assert baselines[0] == pytest.approx(baselines[1])
    few, alone = summary(model), summary(without)
    assert few["loo"]["confusion"] == alone["loo"]["confusion"]
    assert few["samples"]["n_samples"] == seen.sum()
    assert not {row["name"] for row in few["samples"]["rows"]} & set(
        map(str, np.flatnonzero(~seen))
    )


def test_numbers_count_by_their_weight(weighted):
    _, X, _, weight = weighted
    y = X[:, 0] + np.random.default_rng(1).normal(size=90)
    model = KernelRegressor(mu=0.1).fit(X, y, weight)
    f, scores = model.loo_.outputs, scores_of(model)
    assert scores["rmse"][0] == pytest.approx(
        np.sqrt(mean_squared_error(y, f, sample_weight=weight))
    )
    assert scores["mae"][0] == pytest.approx(mean_absolute_error(y, f, sample_weight=weight))
    assert scores["r2"][0] == pytest.approx(r2_score(y, f, sample_weight=weight))
    shown = ResidualsDisplay.compute(model, confidence_level=0.8)
    assert len(shown.target) == np.count_nonzero(weight)
    low, high = shown.interval.T
    inside = (low <= shown.target) & (shown.target <= high)
    assert 0.8 <= np.average(inside, weights=weight[weight > 0]) < 0.8 + 4 / weight.sum()


@pytest.mark.parametrize("Estimator", [KernelClassifier, KernelRegressor])
def test_scores_of_samples_entered_three_times_and_held_out_together_are_those_of_once(Estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    weight = rng.uniform(0.5, 2.0, 60) * (np.arange(60) > 3)
    once = Estimator("linear").fit(X, y, weight)
    thrice = [np.repeat(each, 3, axis=0) for each in (X, y, weight)]
    together = Estimator("linear").fit(*thrice, groups=duplicate_groups(thrice[0]))
    # The machine that was chosen once; searches agree to their tolerance only.
    together.fitted_ = replace(
        together.fitted_,
        members=(replace(together.members_[0], mu=once.mu_),),
        held_out_outputs=np.repeat(once.loo_.outputs, 3),
        rule=once.fitted_.rule,
    )
    ours, expected = scores_of(together), scores_of(once)
    for name, (value, error) in expected.items():
        assert ours[name] == pytest.approx((value, error), rel=1e-9), name
    if Estimator is KernelRegressor:
        assert gain_over_mean(model_of(together)) == pytest.approx(gain_over_mean(model_of(once)))
