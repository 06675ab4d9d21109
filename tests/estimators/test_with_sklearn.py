"""The estimators inside scikit-learn's tools."""

import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
)
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search
from looms.kernels import RBF, Linear, Normalized, Polynomial

rng = np.random.default_rng(4)
X = rng.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=60)
LABELS = Y > 0.2

ESTIMATORS = [
    KernelClassifier(
        RBF() + 0.5 * Linear(), mu=0.1, class_weight={True: 2.0}, threshold="balanced"
    ),
    KernelRegressor(Normalized(Polynomial(degree=3)), mu=1e-3, fit_intercept=False),
    stacked_classifier(
        [
            KernelClassifier(k, search=Search(c))
            for k in ["linear", RBF(gamma_bounds=(0.01, 10.0))]
            for c in ["press", "wmw"]
        ],
        combine="best",
    ),
    KernelRegressor("ard", search=Search(prior=True, tol=0.1)),
]
each_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__
)


def fitted(estimator):
    return clone(estimator).fit(X, LABELS if "Classifier" in repr(estimator) else Y)


@each_estimator
@pytest.mark.parametrize("through", ["pickle", "joblib"])
def test_saved_and_loaded(estimator, through, tmp_path):
    model = fitted(estimator)
    if through == "pickle":
        loaded = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model")
        loaded = joblib.load(tmp_path / "model")
    face = "decision_function" if hasattr(model, "classes_") else "predict"
    assert_allclose(getattr(loaded, face)(X), getattr(model, face)(X), rtol=1e-9)
    assert_array_equal(loaded.loo_.residuals, model.loo_.residuals)
    assert repr(loaded.kernel_) == repr(model.kernel_)
    if hasattr(model, "selection_"):
        assert loaded.selection_.stop_reason is model.selection_.stop_reason
        assert len(loaded.candidates_) == len(model.candidates_)


@pytest.mark.slow
@each_estimator
def test_clone_and_set_params(estimator):
    model = fitted(estimator)
    copy = clone(model)
    assert not hasattr(copy, "dual_coef_")
    assert repr(copy) == repr(estimator)
    assert_array_equal(fitted(copy).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
        copy.set_params(gamma=3)


def test_parameters_of_kernels_nest():
    model = KernelClassifier(RBF(gamma=1.0) + 0.5 * Linear(), mu=1e-3)
    model.set_params(kernel__k1__gamma=4.0, mu=0.2)
    assert model.kernel.k1.gamma == 4.0
    assert model.get_params()["kernel__k2__k1__value"] == 0.5
    model.set_params(kernel=Normalized(RBF()), kernel__kernel__gamma=0.25)
    assert model.fit(X, LABELS).kernel_.kernel.gamma == 0.25


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_options_of_a_search_nest():
    model = KernelRegressor("ard", search=Search(max_iter=50))
    model.set_params(search__max_iter=3)
    assert model.get_params()["search__max_iter"] == model.search.max_iter == 3
    copy = clone(model)
    assert copy.search is not model.search
    assert copy.search.get_params() == model.search.get_params()
    assert copy.fit(X, Y).n_iter_ == 3
    expected = KernelRegressor("ard", search=Search(max_iter=3)).fit(X, Y)
    assert_array_equal(copy.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="Invalid parameter 'rank'"):
        model.set_params(search__rank=3)
    assert "search__max_iter" not in KernelRegressor().get_params()
    options = {name: value for name, value in Search().get_params().items() if name != "tol"}
    assert Search(**options, tol=0.1).get_params() == Search().get_params()


def test_grid_search_over_kernel_parameters():
    grid = {"kernel__gamma": [1e-4, 0.3, 50.0], "mu": [1e-2, 1.0]}
    search = GridSearchCV(KernelRegressor(RBF(), mu=1e-3), grid, cv=4).fit(X, Y)
    assert search.best_params_ == {"kernel__gamma": 0.3, "mu": 1e-2}
    assert search.best_estimator_.kernel_.gamma == 0.3
    assert len(set(search.cv_results_["mean_test_score"].round(6))) == 6


def test_precomputed_kernel_in_cross_validation():
    """Tools cut rows and columns of a kernel matrix, as the tags ask them to."""
    kernel = RBF(gamma=0.3)
    given = cross_val_predict(KernelRegressor("precomputed", mu=1e-3), kernel(X), Y, cv=5)
    computed = cross_val_predict(KernelRegressor(kernel, mu=1e-3), X, Y, cv=5)
    assert_allclose(given, computed, rtol=1e-8)
