"""What a fit leaves behind: all of a machine or, where it fails, all of the one before."""

import copy
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
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
        model = Model("linear").fit(rows, values, sample_weight=weight)
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
