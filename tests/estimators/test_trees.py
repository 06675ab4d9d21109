"""Boosted trees: those of scikit-learn as arrays, and beside kernels from many rows on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from stacks import stacked_regressor

import looms
from looms import TabularClassifier
from looms.blocks import ArrayBlocks
from looms.estimators import _trees
from looms.estimators._trees import BoostedTreesClassifier, BoostedTreesRegressor
from looms.folds import GapKFold
from looms.kernels import RBF, Linear, Ranked, Weighted

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).round(1)
Y = np.sign(X[:, 0] - 0.3) + np.sign(X[:, 1]) + 0.1 * RNG.normal(size=N)
THREE = np.digitize(Y, [-0.5, 0.5])
NEW = RNG.normal(size=(31, 3))
OPTIONS = {"max_iter": 50, "learning_rate": 0.2}


def test_numbers_are_those_of_scikit_learn(monkeypatch):
    own = HistGradientBoostingRegressor(**OPTIONS).fit(X, Y).predict(NEW)
    trees = BoostedTreesRegressor().fit(X, Y)
    assert_allclose(trees.predict(NEW), own)
    monkeypatch.setattr(_trees, "_NUMBERS", 1000)
    assert_allclose(trees.predict(NEW), own)
    weight = RNG.integers(1, 4, N)
    weighted = HistGradientBoostingRegressor(**OPTIONS).fit(X, Y, weight).predict(NEW)
    assert_allclose(BoostedTreesRegressor().fit(X, Y, weight).predict(NEW), weighted)
    assert abs(weighted - own).max() > 0.01


@pytest.mark.parametrize("y", [np.where(Y > 0, "yes", "no"), THREE], ids=["two", "three"])
def test_classes_are_those_of_scikit_learn_with_half_the_log_odds(y):
    own = HistGradientBoostingClassifier(**OPTIONS).fit(X, y)
    trees, raw = BoostedTreesClassifier().fit(X, y), own.decision_function(NEW)
    p = softmax(raw / 2, axis=1) if raw.ndim == 2 else np.c_[expit(-raw / 2), expit(raw / 2)]
    assert_allclose(trees.predict_proba(NEW), p)
    assert (trees.predict(NEW) == own.predict(NEW)).all()


@pytest.fixture
def few(monkeypatch):
    for name in ("ROWS_OF_TREES", "ROWS_WITHOUT_RBF"):
        monkeypatch.setattr(f"looms.estimators._tabular.{name}", N)


@pytest.mark.slow
class TestBesideKernels:
    @pytest.fixture(autouse=True)
    def from_few_rows(self, few):
        pass

    def test_of_many_rows_of_a_dense_matrix(self, tmp_path):
        model = TabularClassifier(cv=4).fit(X, THREE)
        *kernels, trees = (one.kernel for one in model.candidates_)
        assert [type(one) for one in kernels] == [Linear, Ranked, Weighted]
        assert isinstance(trees, BoostedTreesClassifier)
        assert model.candidate_weights_[-1] > 0
        nested = model.evaluate()._nested
        for one in nested.models:  # which have fewer rows than trees are from
            assert (len(one.candidates), one.choice_units.n_units) == (4, 3)
        model.save(tmp_path / "model.looms")
        loaded = looms.load(tmp_path / "model.looms")
        assert (loaded.predict(NEW) == model.predict(NEW)).all()
        assert loaded.evaluate() == model.evaluate()

    @pytest.mark.parametrize(
        ("name", "rows", "kinds"),
        [
            ("ROWS_OF_TREES", N + 1, [Linear, RBF, Ranked, Weighted]),
            ("ROWS_WITHOUT_RBF", N + 1, [Linear, RBF, Ranked, Weighted, BoostedTreesRegressor]),
            ("MANY_ROWS", N - 1, [Linear, Ranked, BoostedTreesRegressor]),
        ],
    )
    def test_of_fewer_and_of_very_many_rows(self, name, rows, kinds, monkeypatch):
        monkeypatch.setattr(f"looms.estimators._tabular.{name}", rows)
        model = stacked_regressor(cv=3).fit(X, Y)
        assert [type(one.kernel) for one in model.candidates_] == kinds

    def test_not_of_sparse_rows(self):
        model = stacked_regressor(cv=3).fit(csr_array(X), Y)
        assert not any(hasattr(one.kernel, "fit") for one in model.candidates_)


@pytest.mark.parametrize("cv", [None, GapKFold(5, gap=7)], ids=["folds of two sizes", "gaps"])
def test_a_fit_to_all_rows_and_one_without_each_fold_are_enough(cv):
    fits = []

    class Counted(BoostedTreesRegressor):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    model = stacked_regressor([BoostedTreesRegressor(), Counted()], cv=cv)
    model.fit(ArrayBlocks(X[:-7]), Y[:-7])
    outer, nested, n = model.choice_units_, model.fitted_.in_folds, N - 7
    assert len(fits) == 1 + 5
    for k, (fold, tested) in enumerate(zip(outer, outer.tested_by, strict=True)):
        rest = np.delete(np.arange(n), fold)
        trees = nested.models[k][-1]
        alone = BoostedTreesRegressor().fit(X[rest], Y[rest])
        assert_allclose(trees.values(NEW)[:, 0], alone.predict(NEW))
        assert_allclose(nested.held_out.outputs[tested], alone.predict(X[tested]))
        assert_allclose(trees.held_out, nested.held_out.outputs[rest])


def test_several_targets_and_a_single_class(few):
    Y2 = np.column_stack([Y, -(Y**2)])
    model = stacked_regressor().fit(X, Y2)
    assert isinstance(model.candidates_[-1].kernel, BoostedTreesRegressor)
    trees = BoostedTreesRegressor().fit(X, Y2)
    for k, y in enumerate(Y2.T):
        assert_allclose(trees.predict(NEW)[:, k], BoostedTreesRegressor().fit(X, y).predict(NEW))
    assert BoostedTreesClassifier().fit(X, np.zeros(N)).predict_proba(NEW).tolist() == [[1.0]] * 31


def test_many_values_are_binned_and_many_rows_have_more_rounds(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    monkeypatch.setattr(_trees, "_RATE", 0.1)
    own = HistGradientBoostingRegressor(max_iter=50).fit(X, y)
    trees = BoostedTreesRegressor().fit(X, y)
    assert np.std(trees.predict(X) - own.predict(X)) < 0.1 * np.std(y - own.predict(X)) + 0.03
    assert trees.roots_.shape == (50, 1)
    monkeypatch.setattr(_trees, "_ROWS_PER_ROUND", 10)
    assert BoostedTreesRegressor().fit(X, y).roots_.shape == (90, 1)
