"""The estimators inside scikit-learn's tools."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import LSSVMClassifier, LSSVMClassifierCV, LSSVMRegressor
from looms.kernels import RBF, Linear, Normalized

rng = np.random.default_rng(4)
X = rng.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=60)
LABELS = Y > 0.2


def test_parameters_of_kernels_nest():
    model = LSSVMClassifier(RBF(gamma=1.0) + 0.5 * Linear())
    model.set_params(kernel__k1__gamma=4.0, mu=0.2)
    assert model.kernel.k1.gamma == 4.0
    assert model.get_params()["kernel__k2__k1__value"] == 0.5
    model.set_params(kernel=Normalized(RBF()), kernel__kernel__gamma=0.25)
    assert model.fit(X, LABELS).kernel_.kernel.gamma == 0.25


def test_grid_search_over_kernel_parameters():
    grid = {"kernel__gamma": [1e-4, 0.3, 50.0], "mu": [1e-2, 1.0]}
    search = GridSearchCV(LSSVMRegressor(RBF()), grid, cv=4).fit(X, Y)
    assert search.best_params_ == {"kernel__gamma": 0.3, "mu": 1e-2}
    assert search.best_estimator_.kernel_.gamma == 0.3
    assert len(set(search.cv_results_["mean_test_score"].round(6))) == 6


def test_precomputed_kernel_in_cross_validation():
    """Tools cut rows and columns of a kernel matrix, as the tags ask them to."""
    kernel = RBF(gamma=0.3)
    given = cross_val_predict(LSSVMRegressor("precomputed"), kernel(X), Y, cv=5)
    computed = cross_val_predict(LSSVMRegressor(kernel), X, Y, cv=5)
    assert_allclose(given, computed, rtol=1e-8)


def test_pipelines_and_scores():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LSSVMClassifierCV())
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.9
    assert list(pipeline.fit(X, y)[-1].classes_) == [0, 1, 2]
    importance = permutation_importance(pipeline, X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() in (2, 3)


def test_meta_estimators():
    both = np.column_stack([LABELS, X[:, 1] > 0])
    model = MultiOutputClassifier(LSSVMClassifier()).fit(X, both)
    assert model.predict(X).shape == (60, 2)
