"""The surface of a search against machines fitted at its points."""

import numpy as np
import pytest

from looms import KernelClassifier, KernelRegressor, Search
from looms.criteria import as_criterion
from looms.held_out import HeldOut
from looms.kernels import ARD, RBF
from looms.report import SearchPathDisplay


def value_at(model, machine, X, y, weight=None):
    loo = machine.fit(X, y).loo_
    if weight is not None:
        loo = HeldOut(loo.y, loo.outputs, weight)
    return as_criterion(model.candidates_[model.best_index_].criterion).evaluate(*loo).value


def test_surface_is_that_of_machines_fitted_there(several):
    model, X, y = several
    shown = SearchPathDisplay.from_estimator(model, resolution=5)
    assert shown.n_surface == len(y)
    for i, j in ((0, 0), (2, 3), (4, 1)):
        kernel, mu = RBF(2.0 ** shown.axes[0][i]), 2.0 ** shown.axes[1][j]
        expected = value_at(model, KernelClassifier(kernel, mu=mu), X, y)
        assert shown.surface[i, j] == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_weights_of_classes_count(binary):
    _, X, y, _ = binary
    X = (X - X.mean()) / X.std()
    model = KernelClassifier(
        class_weight="balanced", search=Search(class_weight={"benign": 3.0})
    ).fit(X, y)
    shown = SearchPathDisplay.from_estimator(model, resolution=3)
    kernel, mu = RBF(2.0 ** shown.axes[0][1]), 2.0 ** shown.axes[1][1]
    machine = KernelClassifier(kernel, mu=mu, class_weight="balanced")
    expected = value_at(model, machine, X, y, np.where(y == "benign", 3.0, 1.0))
    assert shown.surface[1, 1] == pytest.approx(expected, rel=1e-6)
    plain = value_at(model, KernelClassifier(kernel, mu=mu), X, y)
    assert shown.surface[1, 1] != pytest.approx(plain, rel=1e-3)
    model.set_params(search__class_weight=None)  # takes no effect before the next fit
    again = SearchPathDisplay.from_estimator(model, resolution=3)
    assert again.surface[1, 1] == shown.surface[1, 1]


def test_slice_goes_through_the_optimum(regression):
    model, X, y = regression
    shown = SearchPathDisplay.compute(model, along=("gammas[1]", "gammas[3]"), resolution=3)
    assert shown.names == ["gamma of sex", "gamma of bp"]
    gammas = np.array(model.kernel_.gammas)
    gammas[1], gammas[3] = 2.0 ** shown.axes[0][0], 2.0 ** shown.axes[1][2]
    expected = value_at(model, KernelRegressor(ARD(gammas), mu=model.mu_), X, y)
    assert shown.surface[0, 2] == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(shown.best, np.log2(np.array(model.kernel_.gammas)[[1, 3]]))
    relevance = np.asarray(model.kernel_.gammas) * model.X_fit_.var(axis=0)
    default = SearchPathDisplay.compute(model, resolution=3)
    assert default.names == [f"gamma of {X.columns[relevance.argmax()]}", "mu"]


@pytest.mark.parametrize("along", [("gammas[1]",), ("gammas[1]", "gamma"), ("mu", "mu")])
def test_unknown_slices_are_refused(regression, along):
    with pytest.raises(ValueError, match="gammas"):
        SearchPathDisplay.from_estimator(regression[0], along=along)


def test_one_hyperparameter_is_a_curve(regression):
    _, X, y = regression
    model = KernelRegressor("linear").fit(X, y)
    shown = SearchPathDisplay.from_estimator(model, resolution=4).plot()
    assert shown.names == ["mu"]
    mu = 2.0 ** shown.axes[0][2]
    expected = value_at(model, KernelRegressor("linear", mu=mu), X, y)
    assert shown.surface[2] == pytest.approx(expected, rel=1e-6)


def test_subsample_keeps_the_classes(binary):
    model = binary[0]
    shown = SearchPathDisplay.from_estimator(model, n_samples=30, resolution=3)
    assert 29 <= shown.n_surface <= 32
    again = SearchPathDisplay.from_estimator(model, n_samples=30, resolution=3)
    np.testing.assert_array_equal(shown.surface, again.surface)
    other = SearchPathDisplay.from_estimator(model, n_samples=30, resolution=3, random_state=1)
    assert not np.allclose(shown.surface, other.surface)
