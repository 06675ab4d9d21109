"""Scores of a report are those of `evaluate`; what it counts beside them counts by weight."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    roc_auc_score,
    root_mean_squared_error,
)

from looms import KernelClassifier, KernelRegressor
from looms.duplicates import duplicate_groups
from looms.report import PrecisionRecallDisplay, ResidualsDisplay, RocDisplay, summary
from looms.report.model import model_of
from looms.report.scores import gain_over_mean, recall_by_class


@pytest.fixture(scope="module")
def weighted():
    """Classifier fitted with weights, some of them zero, and its data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] + rng.normal(size=90) > 0.4).astype(int)
    weight = rng.integers(0, 4, 90) * 1.0
    return KernelClassifier(mu=1e-3, threshold="balanced").fit(X, y, weight), X, y, weight


@pytest.mark.parametrize("which", ["binary", "several", "regression", "weighted"])
def test_scores_are_those_of_evaluate(which, request):
    model = request.getfixturevalue(which)[0]
    last = model[-1] if which == "binary" else model
    assert model_of(model).scores.with_errors == last.evaluate(nested=False).with_errors


def test_samples_count_by_their_weight(weighted):
    model, _, y, weight = weighted
    made = model_of(model).scores
    rows, decisions = made.rows, made.decisions
    n, rate = recall_by_class(model_of(model))
    assert n.tolist() == np.bincount(y[weight > 0]).tolist()
    of_class = [y[rows] == k for k in range(2)]
    expected = [np.average(1 - decisions.wrong[k], weights=weight[rows][k]) for k in of_class]
    np.testing.assert_allclose(rate, expected)
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
    few = summary(KernelClassifier(mu=1e-3).fit(X, y, 3.0 * seen))
    alone = summary(KernelClassifier(mu=1e-3).fit(X[seen], y[seen]))
    for ours, theirs in zip(few["loo"]["scores"], alone["loo"]["scores"], strict=True):
        assert ours["value"] == pytest.approx(theirs["value"])
        assert ours["standard_error"] == pytest.approx(theirs["standard_error"])
    assert few["headline"]["baseline"] == pytest.approx(alone["headline"]["baseline"])
    assert few["loo"]["confusion"] == alone["loo"]["confusion"]
    assert few["loo"]["confusion"]["weighted"] is False
    assert few["samples"]["n_samples"] == seen.sum()
    assert not {row["name"] for row in few["samples"]["rows"]} & set(
        map(str, np.flatnonzero(~seen))
    )


def test_numbers_count_by_their_weight(weighted):
    _, X, _, weight = weighted
    y = X[:, 0] + np.random.default_rng(1).normal(size=90)
    shown = ResidualsDisplay.compute(
        KernelRegressor(mu=0.1).fit(X, y, weight), confidence_level=0.8
    )
    assert len(shown.target) == np.count_nonzero(weight)
    low, high = shown.interval.T
    inside = (low <= shown.target) & (shown.target <= high)
    assert 0.8 <= np.average(inside, weights=weight[weight > 0]) < 0.8 + 4 / weight.sum()
    both = np.column_stack([y, 9 * y + 1000])
    means = np.broadcast_to(both.mean(axis=0), both.shape)
    baseline = summary(KernelRegressor(mu=0.1).fit(X, both))["headline"]["baseline"]
    each = root_mean_squared_error(both, means, multioutput="raw_values")
    assert baseline == pytest.approx(np.sqrt(np.mean(each**2)))


def test_the_gain_of_samples_entered_three_times_and_held_out_together_is_that_of_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    weight = rng.uniform(0.5, 2.0, 60) * (np.arange(60) > 3)
    once = KernelRegressor("linear").fit(X, y, weight)
    thrice = [np.repeat(each, 3, axis=0) for each in (X, y, weight)]
    together = KernelRegressor("linear").fit(*thrice, groups=duplicate_groups(thrice[0]))
    # The machine that was chosen once; searches agree to their tolerance only.
    together.fitted_ = replace(
        together.fitted_,
        members=(replace(together.members_[0], mu=once.mu_),),
        held_out_outputs=np.repeat(once.loo_.outputs, 3),
    )
    assert gain_over_mean(model_of(together)) == pytest.approx(gain_over_mean(model_of(once)))
