"""Windows of time that models of earlier rows test: what comes later tells of nothing before."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import TimeSeriesSplit
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms._scores import ranked_probability_scores
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import RBF

N = 90
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 3))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + np.linspace(0, 2, N) + 0.3 * RNG.normal(size=N)
PLACE = RNG.permutation(N)  # in time, of each row
FORWARD = ForwardSplit(5, gap=1, time=PLACE)
KERNEL = RBF(0.3, gamma_bounds="fixed")
MODELS = {
    "kernel": KernelRegressor(cv=FORWARD, search=Search(max_iter=5)),
    "grid": KernelClassifier(KERNEL, cv=FORWARD, search=Search(method="grid")),
    "given": KernelRegressor(KERNEL, mu=0.01, cv=FORWARD),
    "given classes": KernelClassifier(KERNEL, mu=0.01, class_weight="balanced", cv=FORWARD),
    "given landmarks": KernelRegressor(KERNEL, mu=0.01, n_landmarks=6, cv=FORWARD),
    "transforms": TabularRegressor(["linear", KERNEL], target=["none", "sqrt"], cv=FORWARD),
    "stack of classes": stacked_classifier(["linear", KERNEL], cv=FORWARD),
    "stack of balanced classes": stacked_classifier(
        ["linear", KERNEL], class_weight="balanced", cv=FORWARD
    ),
    "trees": stacked_regressor(
        [KERNEL, RandomForestRegressor(5, max_depth=3, random_state=0)], cv=FORWARD
    ),
}


def target_of(name):
    moved = np.exp(SIGNAL) if name == "transforms" else SIGNAL
    return SIGNAL > 1.2 if name == "grid" or "classes" in name else moved


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_come_later_change_no_prediction(name):
    y, start = target_of(name), N - N // 6  # of the last window
    later, known = start <= PLACE, start > PLACE
    changed = np.where(later, ~y if y.dtype == bool else y.max() - y, y)
    turned = np.where(later[:, None], -X, X)
    ours, theirs = (MODELS[name].fit(*data).evaluate() for data in ((X, y), (turned, changed)))
    first = N // 6 <= PLACE
    assert_array_equal(ours.rows, np.flatnonzero(first))
    scored = known & first
    for one, other in zip(ours.predictions, theirs.predictions, strict=True):
        assert_allclose(one[scored], other[scored], rtol=1e-9)
    assert not np.allclose(ours.predictions.outputs[later], theirs.predictions.outputs[later])
    if ours.decisions is not None:
        places = np.flatnonzero(known[ours.rows])
        of_each = (one.decisions.probabilities[places] for one in (ours, theirs))
        assert_allclose(*of_each, rtol=1e-9)


def test_scores_are_those_of_the_windows():
    model = MODELS["given"].fit(X, SIGNAL)
    for scores in (model.evaluate(), MODELS["kernel"].fit(X, SIGNAL).evaluate()):
        tested = scores.rows
        away = (SIGNAL - scores.predictions.outputs)[tested]
        assert len(tested) == N - N // 6
        assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(away**2)))
        known = np.empty(N)
        for window in range(15, N, 15):  # the mean of the rows before it, less the gap
            known[(window <= PLACE) & (window + 15 > PLACE)] = SIGNAL[window - 1 > PLACE].mean()
        baseline = np.sqrt(np.mean((SIGNAL - known)[tested] ** 2))
        assert scores.baselines["rmse"] == pytest.approx(baseline)
        assert scores.baselines["r2"] < 0  # of a target that rises
        groups = scores.by(np.where(PLACE < N // 6, "first", "others"))
        assert groups.index.tolist() == ["others"]


@pytest.mark.parametrize("ordered", [False, True])
def test_baselines_of_classes_are_the_shares_before_each_window(ordered):
    y = np.digitize(SIGNAL, [0.3, 1.4])
    rows = pd.Series(pd.Categorical(y, ordered=True)) if ordered else y
    scores = KernelClassifier(KERNEL, mu=0.01, cv=FORWARD).fit(X, rows).evaluate()
    p = np.empty((N, 3))
    for window in range(15, N, 15):
        shares = np.bincount(y[window - 1 > PLACE], minlength=3) / (window - 1)
        p[(window <= PLACE) & (window + 15 > PLACE)] = shares
    own, p = y[scores.rows], p[scores.rows]
    assert scores.baselines["log_loss"] == pytest.approx(log_loss(own, p))
    assert scores.baselines["accuracy"] == pytest.approx(np.mean(p.argmax(axis=1) == own))
    if ordered:
        ranked = ranked_probability_scores(own, p).mean()
        assert scores.baselines["ranked_probability"] == pytest.approx(ranked)
    else:
        balanced = balanced_accuracy_score(own, p.argmax(axis=1))
        assert scores.baselines["balanced_accuracy"] == pytest.approx(balanced)


def test_the_first_rows_do_not_count_in_the_criterion():
    model = KernelRegressor("linear", cv=FORWARD).fit(X, SIGNAL)
    tested = np.flatnonzero(model.units_.counts)
    assert_array_equal(model.selection_weight_ > 0, N // 6 <= PLACE)
    squares = (model.held_out_.residuals[tested]) ** 2
    assert model.candidates_[0].value == pytest.approx(squares.mean())
    around = KernelRegressor("linear", cv=GapKFold(5, gap=1, time=PLACE)).fit(X, SIGNAL)
    assert model.mu_ != pytest.approx(around.mu_, rel=1e-3)


def test_windows_of_scikit_learn_are_the_same():
    ours, theirs = (
        KernelRegressor("linear", cv=cv(5, gap=2)).fit(X, SIGNAL)
        for cv in (ForwardSplit, TimeSeriesSplit)
    )
    assert_array_equal(ours.units_.codes, theirs.units_.codes)
    assert theirs.evaluate().kind == ours.evaluate().kind  # windows inside differ by a row


def test_estimators_are_fitted_to_the_rows_before_each_window():
    fits = []

    class Counted(RandomForestRegressor):
        def fit(self, X, y, **weights):
            fits.append(len(y))
            return super().fit(X, y, **weights)

    forest = Counted(5, random_state=0)
    model = stacked_regressor([forest], cv=FORWARD).fit(X, SIGNAL)
    # And the rows before the first, by those after it, which do not count.
    expected = [*range(14, 75, 15), N, N - N // 6]
    assert Counter(fits) == Counter(expected)
    refits = np.empty(N)
    for rows, tested in zip(model.units_, model.units_.tested_by, strict=True):
        rest = np.delete(np.arange(N), rows)
        refits[tested] = Counted(5, random_state=0).fit(X[rest], SIGNAL[rest]).predict(X[tested])
    assert_allclose(model.held_out_.outputs, refits)


def test_thresholds_before_a_window_with_one_class():
    y = (np.arange(N) > 40) | np.isin(np.arange(N), [2, 7, 12, 13])  # none in the first window
    model = stacked_classifier(["linear", KERNEL], threshold="balanced", cv=ForwardSplit(5))
    assert np.isfinite(list(model.fit(X, y).evaluate().values())).all()


@pytest.mark.parametrize("cv", [ForwardSplit(10), TimeSeriesSplit(5, test_size=1)])
def test_many_windows_and_short_ones(cv):
    scores = KernelRegressor("linear", cv=cv).fit(X, SIGNAL).evaluate()
    assert scores.kind.startswith(f"nested {cv.n_splits} windows of time")


def test_few_rows_before_a_window_are_told_of():
    model = KernelRegressor("linear", cv=ForwardSplit(5)).fit(X[:30], SIGNAL[:30])
    assert model.evaluate(nested=False).optimistic
    with pytest.raises(ValueError, match=r"5 rows .*fewer windows.*nested=False"):
        model.evaluate()
    sorted_classes = np.arange(N) > N // 2
    with pytest.raises(
        ValueError, match=r"All rows of class True are in one window.*fewer windows"
    ):
        KernelClassifier(cv=ForwardSplit(5)).fit(X, sorted_classes)
