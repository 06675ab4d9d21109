"""The default model tells the same at every number of rows, with boosted trees in it or without."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

from looms import TabularClassifier, TabularRegressor
from looms.diagnostics import case_deletion, left_out_fits, row_order
from looms.estimators._candidates import ROWS_OF_TREES, ROWS_WITHOUT_RBF
from looms.report import cautions, feature_importance, summary

SIZES = 300, ROWS_OF_TREES + 50, ROWS_WITHOUT_RBF + 100
EACH = 3  # rows of a unit, such as a patient, one after another


def table(n, numbers):
    """Rows of units that differ by little; the target is the unit's, with a step that trees see."""
    rng = np.random.default_rng(n)
    unit = np.arange(n) // EACH
    Z = rng.normal(size=(-(-n // EACH), 4))
    signal = Z[:, 0] + 2.0 * (Z[:, 1] > 0) + rng.normal(size=len(Z))
    X = pd.DataFrame(Z[unit] + 0.05 * rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    X["noise"] = rng.choice(["east", "west"], n)
    y = signal[unit] + 0.3 * rng.normal(size=n)
    return X, y if numbers else np.where(y > np.median(y), "yes", "no")


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a bound, or of one class
        return model.fit(X, y)


@cache
def fitted(n, numbers):
    X, y = table(n, numbers)
    model = quietly(TabularRegressor(target="none") if numbers else TabularClassifier(), X, y)
    assert (n >= ROWS_OF_TREES) == any(one.units is not None for one in model.members_)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("n", SIZES)
def test_sections_and_cautions(n, numbers):
    model = fitted(n, numbers)
    told = summary(model)
    titles = {one["title"] for one in told["cautions"]}
    assert titles >= {"Rows in an order", "Rows like repeats of others"}
    assert {one["title"] for one in cautions(model)} <= titles
    by_kernels = [one["title"] for one in told["cautions"] if "kernels of the stack" in one["text"]]
    assert len(by_kernels) == (2 if n >= ROWS_OF_TREES else 0)
    features = {row["name"]: row["importance"] for row in told["features"]["rows"]}
    assert min(features["a"], features["b"]) > features["noise"]
    for row in told["samples"]["rows"]:
        assert row["surprise"] > 0
        assert row["rms_change"] > 0
        assert row["leverage"] > 0
    assert told["certificate"]["holds"]


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_nothing_is_fitted_again(n, monkeypatch):
    """Importance takes the models that the fit has kept, everything else the kernels."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model, (X, y) = fitted(n, False), table(n, False)

    def refuse(*arguments, **options):
        raise AssertionError("trees were grown again")

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", refuse)
    importance = feature_importance(model)
    assert importance.value[importance.names.index("noise")] < importance.value.max() / 10
    order, deletion = row_order(model), case_deletion(model)
    assert order.p_value < 0.01
    assert np.isfinite(deletion.surprise).all()
    assert order.by_kernels == deletion.by_kernels == (n >= ROWS_OF_TREES)
    fits = left_out_fits(model, X, y)
    assert ("kernels" in fits.method) == (n >= ROWS_OF_TREES)
    model.evaluate(nested=False)
    assert model.predict_set(X[:5]).shape == (5, 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plus", "minmax", "scaled"])
@pytest.mark.parametrize("n", SIZES)
def test_every_interval_is_there(n, method):
    model, (X, _) = fitted(n, True), table(n, True)
    model.evaluate(nested=False)
    lower, upper = model.predict_interval(X[:20], method=method).T
    assert (lower < upper).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_faults_of_a_table(n):
    """A rare class, copies of rows, and a target of noise."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X.iloc[: n // 10] = X.iloc[n // 10 : 2 * (n // 10)].to_numpy()
    y = np.where(np.arange(n) % (n // 15) == 0, "ill", "well")
    titles = {one["title"] for one in cautions(quietly(TabularClassifier(), X, y))}
    assert titles >= {"Duplicates", "A small class"}
    assert titles & {"May be no better than the baseline", "One class for all"}
