"""Boosted trees: those of scikit-learn as arrays, and beside kernels from many rows on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import looms
from looms import TabularClassifier, TabularRegressor
from looms.estimators import _trees
from looms.estimators._candidates import CandidatesRegressor
from looms.estimators._trees import BoostedTreesClassifier, BoostedTreesRegressor
from looms.kernels import Linear, Ranked, Weighted

N = 160
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).round(1)
Y = np.sign(X[:, 0] - 0.3) + np.sign(X[:, 1]) + 0.1 * RNG.normal(size=N)
THREE = np.digitize(Y, [-0.5, 0.5])
NEW = RNG.normal(size=(31, 3))


def test_numbers_are_those_of_scikit_learn(monkeypatch):
    own = HistGradientBoostingRegressor(random_state=0).fit(X, Y).predict(NEW)
    trees = BoostedTreesRegressor(random_state=0).fit(X, Y)
    assert_allclose(trees.predict(NEW), own)
    monkeypatch.setattr(_trees, "_NUMBERS", 1000)
    assert_allclose(trees.predict(NEW), own)
    weight = RNG.integers(1, 4, N)
    weighted = HistGradientBoostingRegressor(random_state=0).fit(X, Y, weight).predict(NEW)
    assert_allclose(BoostedTreesRegressor(random_state=0).fit(X, Y, weight).predict(NEW), weighted)
    assert abs(weighted - own).max() > 0.01


@pytest.mark.parametrize("y", [np.where(Y > 0, "yes", "no"), THREE], ids=["two", "three"])
def test_classes_are_those_of_scikit_learn_with_half_the_log_odds(y):
    own = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    trees, raw = BoostedTreesClassifier(random_state=0).fit(X, y), own.decision_function(NEW)
    p = softmax(raw / 2, axis=1) if raw.ndim == 2 else np.c_[expit(-raw / 2), expit(raw / 2)]
    assert_allclose(trees.predict_proba(NEW), p)
    assert (trees.predict(NEW) == own.predict(NEW)).all()


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr("looms.estimators._candidates.ROWS_OF_TREES", N)


@pytest.mark.slow
class TestBesideKernels:
    @pytest.fixture(autouse=True)
    def from_few_rows(self, few):
        pass

    @pytest.mark.parametrize("y", [Y, THREE], ids=["numbers", "classes"])
    def test_of_many_rows_of_a_dense_matrix(self, y, tmp_path):
        Model = TabularClassifier if y is THREE else TabularRegressor
        model = Model().fit(X, y)
        *kernels, trees = (one.kernel for one in model.candidates_)
        assert [type(one) for one in kernels] == [Linear, Ranked, Weighted]
        assert isinstance(trees, BoostedTreesClassifier | BoostedTreesRegressor)
        assert model.candidate_weights_[-1] > 0
        model.evaluate()
        model.save(tmp_path / "model.looms")
        loaded = looms.load(tmp_path / "model.looms")
        assert (loaded.predict(NEW) == model.predict(NEW)).all()
        assert loaded.evaluate() == model.evaluate()
        fewer = Model().fit(X[1:], y[1:])
        assert len(fewer.candidates_) == 4
        assert not any(hasattr(one.kernel, "fit") for one in fewer.candidates_)

    def test_not_of_sparse_rows(self):
        model = TabularRegressor(preprocess=None).fit(csr_array(X), Y)
        assert not any(hasattr(one.kernel, "fit") for one in model.candidates_)

    def test_of_very_many_rows_beside_two_kernels(self, monkeypatch):
        monkeypatch.setattr("looms.estimators._candidates.MANY_ROWS", N - 1)
        kinds = [type(one.kernel) for one in TabularRegressor().fit(X, Y).candidates_]
        assert kinds == [Linear, Ranked, BoostedTreesRegressor]


def test_in_folds_they_are_fitted_without_every_two():
    fits = []

    class Counted(BoostedTreesRegressor):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    model = CandidatesRegressor(["linear", Counted()]).fit(X, Y)
    outer, nested = model.choice_units_, model._in_folds
    assert len(fits) == 1 + 5 + 5 + 10  # to all, for held-out outputs, and without one and two
    for k, fold in enumerate(outer):
        rest = np.delete(np.arange(N), fold)
        trees = nested.models[k][-1]
        alone = BoostedTreesRegressor().fit(X[rest], Y[rest])
        assert_allclose(trees.values(NEW)[:, 0], alone.predict(NEW))
        assert len(trees.held_out) == len(rest)
        other = np.isin(rest, list(outer)[k - 1])
        without_two = BoostedTreesRegressor().fit(X[rest[~other]], Y[rest[~other]])
        assert_allclose(trees.held_out[other], without_two.predict(X[rest[other]]))
