"""Rows in an order: blocks of consecutive rows against refits, and the level of the test."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refits import refitted
from scipy.signal import lfilter
from scipy.stats import kstest
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.diagnostics import _row_order, row_order
from looms.diagnostics._row_order import N_RANDOM, _adjacent, _blocks, _exchanged
from looms.folds import GapKFold
from looms.units import Units

RNG = np.random.default_rng(0)
N, M = 44, 9
X = RNG.normal(size=(N, 3))
NUMBERS = X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=N)
CLASSES = np.digitize(NUMBERS, [0.3, 1.2])
WEIGHT = np.where(np.arange(N) % 7 == 3, 0.0, RNG.uniform(0.3, 3.0, N))


def by_refits(model, folds):
    """Residuals of every row of a stack, or a machine, trained without its fold."""
    residuals = np.full((N, model.loo_.y.reshape(N, -1).shape[1]), np.nan)
    for fold in np.unique(folds[folds >= 0]):
        rows = np.flatnonzero((folds != fold) & (model.fit_weight_ > 0))
        own = folds == fold
        residuals[own] = (model.loo_.y.reshape(N, -1) - refitted(X, model, rows))[own]
    return residuals


MACHINES = {
    "given": KernelClassifier("rbf", mu=0.02),
    "numbers": KernelRegressor("rbf"),
    "features": KernelClassifier("linear", mu=0.02, class_weight="balanced"),
    "landmarks": KernelClassifier("rbf", n_landmarks=M, class_weight="balanced"),
    "landmarks of numbers": KernelRegressor("matern12", n_landmarks=M),
    "stack": stacked_classifier(
        [KernelClassifier(k, search=Search(max_iter=3)) for k in ["linear", "rbf"]]
    ),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.slow
def test_residuals_and_scores_equal_those_of_refits(name):
    machine = MACHINES[name]
    classes = not name.endswith("numbers")
    model = machine.fit(X, CLASSES if classes else NUMBERS, sample_weight=WEIGHT)
    order, train = row_order(model), np.flatnonzero(WEIGHT)
    assert_array_equal(order.folds < 0, WEIGHT == 0)
    residuals = by_refits(model, order.folds)
    weight = getattr(model, "selection_weight_", WEIGHT)[train]
    press = np.average((residuals[train] ** 2).sum(axis=1), weights=weight)
    assert order.statistic == pytest.approx(press, rel=1e-7)
    random = np.full(N, -1)
    random[train] = np.random.default_rng(3).integers(0, 4, len(train))
    left_out = model.left_out()
    found = left_out.y - left_out.outputs(Units.of_numbers(random[train]))[0]
    assert_allclose(found, by_refits(model, random)[train], rtol=1e-6, atol=1e-8)
    outputs = (model.loo_.y - residuals.reshape(model.loo_.y.shape))[train]
    if classes:
        wrong = (outputs - model.threshold_).argmax(axis=1) != CLASSES[train]
        assert order.scores["accuracy"] == pytest.approx(
            1 - np.average(wrong, weights=WEIGHT[train])
        )
        assert set(order.scores) == set(model.evaluate(nested=False))
    else:
        squares = np.average((NUMBERS[train] - outputs) ** 2, weights=WEIGHT[train])
        assert order.scores["rmse"] == pytest.approx(np.sqrt(squares))


def test_partitions_keep_what_rows_are_alike_in():
    alike = np.sort(RNG.integers(0, 3, 100))
    blocks = _blocks(np.zeros(100, dtype=int))
    assert_array_equal(blocks, np.repeat(np.arange(10), 10))
    for one in _exchanged(blocks, alike):
        for k in range(3):
            assert_array_equal(np.sort(one[alike == k]), blocks[alike == k])
    assert len(np.unique(_exchanged(blocks, alike), axis=0)) == N_RANDOM
    tenths = _blocks(alike)
    for k in range(3):
        assert np.ptp(np.bincount(tenths[alike == k], minlength=10)) <= 1
        assert (np.diff(tenths[alike == k]) >= 0).all()


@pytest.mark.parametrize("n", [20, 41, 105])
@pytest.mark.parametrize("decimals", [8, 0])
def test_a_table_sorted_by_numbers_is_exchanged_among_equal_ones_only(n, decimals):
    up = np.sort(np.round(np.random.default_rng(n).normal(size=n), decimals))
    blocks = _blocks(np.zeros(n, dtype=int))
    for y in (up, -up):
        for one in _exchanged(blocks, _adjacent(y)):
            places = np.flatnonzero(one != blocks)  # alone the row in the middle is of two blocks
            assert set(y[places]) <= set(y[np.flatnonzero(np.diff(y) == 0)]) | set(middle(y))


def middle(y):
    """Targets beside the border of the two halves, if that is in a row."""
    half = len(y) // 2
    return y[half - 6 : half + 6] if len(y) % 2 else []


@pytest.mark.slow
def test_the_p_value_of_rows_in_no_order_is_uniform(monkeypatch):
    """Of a fifth of the partitions, in a fifth of the time."""
    monkeypatch.setattr(_row_order, "N_RANDOM", 39)
    y = NUMBERS > 0.5
    p = []
    for seed in range(60):
        some = np.random.default_rng(seed).permutation(N)
        p.append(row_order(KernelClassifier(mu=0.02).fit(X[some], y[some])).p_value)
    assert kstest(p, "uniform").pvalue > 0.05
    assert min(p) >= 1 / 40


def draw(seed, n, classes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, (f > 0.4).astype(int) + (f > -0.4) if classes else f


@pytest.mark.slow
@pytest.mark.parametrize("classes", [True, False])
def test_a_table_sorted_by_its_target_is_in_no_order(classes, monkeypatch):
    monkeypatch.setattr(_row_order, "N_RANDOM", 39)
    p = []
    for seed in range(30):
        X, y = draw(seed, 50, classes)
        order = np.argsort(y, kind="stable")[:: 1 if seed % 2 else -1]
        machine = KernelClassifier(mu=0.01) if classes else KernelRegressor(mu=0.01)
        p.append(row_order(machine.fit(X[order], y[order])).p_value)
    assert np.mean(np.array(p) <= 0.05) <= 0.1
    assert classes or min(p) == 1.0


def track(n, seed=0):
    """Series of an autocorrelation of 0.95, and another that the target depends on unseen."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(n + 100, 4))
    series = lfilter([np.sqrt(1 - 0.95**2)], [1, -0.95], steps, axis=0)[100:]
    return series[:, :3], np.sin(series[:, 0]) + series[:, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine",
    [
        KernelClassifier("rbf", mu=1e-3),
        KernelClassifier("rbf", n_landmarks=60),
        make_pipeline(StandardScaler(), KernelRegressor("rbf")),
        KernelClassifier("rbf", cv="2x5"),
    ],
)
def test_rows_along_a_track_are_in_an_order(machine):
    X, y = track(150)
    y = y > 0 if "Classifier" in repr(machine) else y
    order = row_order(machine.fit(X, y))
    assert order.p_value <= 0.01
    assert order.statistic > order.random.mean()
    assert "p_value=0.0" in repr(order)
    some = np.random.default_rng(1).permutation(len(y))
    assert row_order(machine.fit(X[some], y[some])).p_value > 0.01


@pytest.mark.slow
def test_a_table_sorted_by_class_along_a_track_is_in_an_order():
    X, y = track(200, 3)
    order = np.argsort(y > 0, kind="stable")
    result = row_order(KernelClassifier("rbf", mu=1e-3).fit(X[order], y[order] > 0))
    assert result.p_value <= 0.01
    for k in range(10):  # a tenth of each class, for whole classes would be missed
        assert 0.2 < np.mean(y[order][result.folds == k] > 0) < 0.8


@pytest.mark.slow
def test_groups_are_exchanged_whole():
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(40), 4)
    X = rng.normal(size=(40, 3))[of] + 0.1 * rng.normal(size=(160, 3))
    y = rng.normal(size=40)[of] + 0.1 * rng.normal(size=160)
    assert row_order(KernelRegressor().fit(X, y)).p_value == 0.005
    names = rng.permutation(40)[of]
    order = row_order(KernelRegressor().fit(X, y, groups=names))
    assert order.p_value > 0.05
    assert_array_equal(order.folds, np.repeat(np.arange(10), 16))
    some = np.concatenate([np.arange(0, 160, 2), np.arange(1, 160, 2)])
    order = row_order(KernelRegressor().fit(X[some], y[some], groups=names[some]))
    assert_array_equal(order.folds, np.tile(np.repeat(np.arange(10), 8), 2))


@pytest.mark.slow
def test_what_is_not_tested(monkeypatch):
    X, y = track(60)
    assert row_order(KernelRegressor(mu=1e-3).fit(X[:19], y[:19])) is None
    assert row_order(KernelRegressor(mu=1e-3).fit(X, np.column_stack([y, -y]))) is None
    assert row_order(KernelRegressor().fit(X, y, groups=np.arange(60) // 4)) is None
    known = [GapKFold(5, gap=2), GapKFold(5, time=np.arange(60) % 7 / 3), KFold(5), 10]
    for cv in known:
        assert row_order(KernelRegressor(cv=cv).fit(X, y)) is None, cv
    for cv in (KFold(5, shuffle=True, random_state=0), KFold(60)):
        assert row_order(KernelRegressor(cv=cv).fit(X, y)) is not None, cv
    in_blocks = KernelRegressor("rbf", n_landmarks=20).fit(ArrayBlocks(X), y)
    assert row_order(in_blocks) is None
    monkeypatch.setattr(_row_order, "MOST", 59)
    assert row_order(KernelRegressor(mu=1e-3).fit(X, y)) is None
    with pytest.raises(TypeError, match="got SVC"):
        row_order(SVC().fit(X, y > 0))


def test_the_test_of_a_fit_is_made_once(monkeypatch):
    X, y = track(60)
    model = KernelRegressor(mu=1e-3).fit(X, y)
    first = row_order(model)
    monkeypatch.setattr(_row_order, "_tested", None)
    assert row_order(copy(model)) is first
    with pytest.raises(TypeError, match="NoneType"):
        row_order(model.fit(X, y))
