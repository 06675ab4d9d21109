"""What a fit leaves behind: all of a machine or, where it fails, all of the one before."""

import copy
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import BoundWarning, KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms.kernels import RBF

N = 40
rng = np.random.default_rng(16)
X = rng.normal(size=(N, 3))
Y = X[:, 0] + 0.3 * rng.normal(size=N)
LABELS = np.where(Y > 0.3, "b", "a")
AT_BOUND = RBF(gamma=0.5, gamma_bounds=(0.4, 1.0))

GIVEN = [partial(KernelClassifier, mu=1e-3), partial(KernelRegressor, mu=1e-3)]
TUNED = [KernelClassifier, KernelRegressor]
CLASSIFIERS = [GIVEN[0], TUNED[0]]
ALL = [*GIVEN, *TUNED]


def target(Estimator):
    return LABELS if Estimator in CLASSIFIERS else Y


def twice_stored(X):
    """``X`` with every entry in two halves, and the columns of a row in reverse order."""
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], (n, 2)).ravel().astype(np.int32)
    halves = np.hstack([X[:, ::-1] / 2, X[:, ::-1] / 2]).ravel()
    return sp.csr_array((halves, columns, np.arange(n + 1, dtype=np.int32) * 2 * d), shape=(n, d))


@pytest.mark.parametrize(("Estimator", "kernel"), in_turn(ALL, ["rbf", "ard"]))
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
def test_entries_stored_twice(Estimator, kernel):
    X_twice = twice_stored(X)
    before = [a.copy() for a in (X_twice.data, X_twice.indices, X_twice.indptr)]
    once = Estimator(kernel).fit(sp.csr_array(X), target(Estimator))
    twice = Estimator(kernel).fit(X_twice, target(Estimator))
    assert_allclose(twice.loo_.outputs, once.loo_.outputs, rtol=1e-9)
    face = "decision_function" if Estimator in CLASSIFIERS else "predict"
    expected = getattr(once, face)(sp.csr_array(X))
    assert_allclose(getattr(twice, face)(X_twice), expected, rtol=1e-9)
    assert_allclose(getattr(once, face)(X_twice), expected, rtol=1e-9)
    for a, b in zip(before, (X_twice.data, X_twice.indices, X_twice.indptr), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("Estimator", TUNED)
def test_a_warning_that_is_an_error_finds_the_machine_complete(Estimator):
    model = Estimator(AT_BOUND)
    if Estimator is KernelClassifier:
        model.set_params(threshold="balanced")
    with pytest.raises(BoundWarning):
        model.fit(X, target(Estimator))
    with warnings.catch_warnings(action="ignore"):
        quiet = clone(model).fit(X, target(Estimator))
    assert_array_equal(model.predict(X), quiet.predict(X))
    if Estimator is KernelClassifier:
        assert model.threshold_ == quiet.threshold_ != 0


@pytest.mark.parametrize("Estimator", TUNED)
def test_warnings_point_to_the_line_that_called_fit(Estimator):
    with pytest.warns(BoundWarning) as caught:
        Estimator(AT_BOUND).fit(X, target(Estimator))
    assert {w.filename for w in caught} == {__file__}
    with pytest.warns(BoundWarning) as caught:
        make_pipeline(StandardScaler(), Estimator(AT_BOUND)).fit(X, target(Estimator))
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.parametrize(
    "wrong",
    [
        {"kernel": "rfb"},
        {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
        {"threshold": "best"},
        {"calibration": "platt"},
        {"search": Search(tol=-1.0)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_refit_that_fails_leaves_the_machine_before(Estimator, wrong):
    model = Estimator().fit(X, target(Estimator))
    if not wrong.keys() <= model.get_params().keys():
        pytest.skip("no such parameter")
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    values = copy.deepcopy(before)
    y = np.where(Y > 0, "d", "c") if Estimator in CLASSIFIERS else 2 * Y
    with pytest.raises(ValueError):
        model.set_params(**wrong).fit(2 * X, y)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before if name != "n_features_in_")
    assert_array_equal(model.dual_coef_, values["fitted_"].members[0].dual_coef)


@pytest.mark.parametrize("Model", [KernelClassifier, KernelRegressor, TabularRegressor])
def test_what_the_caller_changes_later_changes_no_model(Model):
    """Targets, weights, and the columns of a frame."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    y = np.exp(Y) if Model is TabularRegressor else target(Model)
    models = []
    for changed in (False, True):
        rows, values, weight = frame.copy(), y.copy(), np.linspace(1, 2, N)
        model = Model("rbf").fit(rows, values, sample_weight=weight)
        if changed:
            values[:] = values[0]
            rows["d"] = values
            rows["a"] = 0.0
            weight[: N // 2] = 0
        models.append(model)
    expected, model = models
    assert model.certify().holds
    assert_array_equal(model.held_out_.outputs, expected.held_out_.outputs)
    assert dict(model.evaluate()) == dict(expected.evaluate())
    assert_array_equal(model.without([1]).predict(frame), expected.without([1]).predict(frame))
