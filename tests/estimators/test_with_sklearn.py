"""The estimators inside scikit-learn's tools."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
)

from looms import KernelRegressor, Search
from looms.kernels import RBF

rng = np.random.default_rng(4)
X = rng.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=60)
LABELS = Y > 0.2


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
