"""The machine of few features: features of every kind and scale, beside refits and the kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from pairwise import pairwise
from sklearn.linear_model import Ridge

from looms.kernels import Linear
from looms.kernels._samples import dense
from looms.lssvm import solve
from looms.lssvm._system import LeverageError, RangeError
from looms.lssvm.features import decompose_features, has_few_features
from looms.lssvm.refit import refit_loo
from looms.units import Units

N = 14
RNG = np.random.default_rng(0)
FEATURES = {
    "three": RNG.standard_normal((N, 3)),
    "far from zero": 1e3 + RNG.standard_normal((N, 3)),
    "collinear": RNG.standard_normal((N, 2)) @ RNG.standard_normal((2, 5)),
    "more than rows": RNG.standard_normal((N, 20)),
    "constant": np.ones((N, 2)),
    "sparse": sp.csr_array(RNG.poisson(0.3, (N, 4)).astype(float)),
}
UNEVEN = 10.0 ** RNG.uniform(-2, 2, N)
WEIGHTS = {"unweighted": np.ones(N), "uneven": UNEVEN / UNEVEN.mean()}
Y = RNG.standard_normal((N, 3))
FOLDS = {"single": np.arange(N), "folds": np.arange(N) % 4}


@pytest.mark.parametrize(
    ("features", "weights", "folds", "fit_intercept"),
    pairwise(FEATURES, WEIGHTS, FOLDS, [True, False]),
)
def test_equals_refitting_and_the_kernel_matrix(features, weights, folds, fit_intercept):
    X, zeta, folds = FEATURES[features], WEIGHTS[weights], FOLDS[folds]
    projection = decompose_features(X, zeta, fit_intercept=fit_intercept).solve(Y, 0.05)
    options = {"sample_weight": zeta, "fit_intercept": fit_intercept}
    theirs = refit_loo(Linear()(X), Y, 0.05, folds=folds, **options)
    rtol = 1e-6 if features == "far from zero" else 1e-9
    outputs = projection.outputs(Units.of_numbers(folds))[0]
    assert_allclose(outputs, theirs.outputs, rtol=rtol, atol=rtol)
    # Around their mean, which an intercept takes up, other features lose no digits either.
    mean = np.asarray(zeta @ X / N).ravel() if fit_intercept else 0.0
    X = dense(X)
    around = X - mean
    solved = solve(around @ around.T, Y, 0.05, **options)
    assert_allclose(projection.alpha, solved.alpha, rtol=rtol, atol=rtol)
    machine, expected = projection.expansion, solved.fitted()
    assert_allclose(X @ machine.weights + machine.intercept, expected, rtol=rtol, atol=rtol)
    # What rows are removed and added by is that of the features as they are.
    digits = 1e-4 if features == "far from zero" else 1e-9  # of the kernel matrix
    whole = solve(X @ X.T, Y, 0.05, **options)
    for name in ("share", "corner"):
        expected = getattr(whole, name)
        atol = digits * np.abs(expected).max()
        assert_allclose(getattr(projection, name), expected, rtol=digits, atol=atol)


def test_rows_that_others_cannot_replace_are_told():
    X = np.zeros((N, 1))
    X[5] = 1e9
    spectrum = decompose_features(X, np.ones(N), fit_intercept=False)
    with pytest.raises(LeverageError, match="leverage of sample 5"):
        spectrum.solve(Y, 1e-3)
    with pytest.raises(RangeError, match="Scale"):
        decompose_features(1e80 * X, np.ones(N)).solve(Y, 1e-3)


def test_few_features_are_half_as_many_as_rows():
    assert has_few_features(Linear(), (6, 3))
    assert not has_few_features(Linear(), (5, 3))
    assert not has_few_features(2.0 * Linear(), (6, 3))


@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_of_other_units_cost_no_digits(fit_intercept, folds):
    scales, offsets = np.array([1.0, 1e7, 1e-4, 1.0]), np.array([0.0, 0.0, 0.0, 1e6])
    X = RNG.standard_normal((N, 4)) * scales + fit_intercept * offsets
    new, mu = X[:5] + RNG.standard_normal((5, 4)) * scales, 1e-3
    units = Units.of_numbers(FOLDS[folds])
    machines = decompose_features(X, np.ones(N), fit_intercept=fit_intercept).solve(Y, mu)
    outputs, at_new = machines.outputs(units)[0], machines.at(new, units)
    ridge = Ridge(alpha=N * mu, fit_intercept=fit_intercept, solver="svd")
    for k, rows in enumerate(units):
        rest = np.setdiff1d(np.arange(N), rows)
        theirs = ridge.fit(X[rest], Y[rest])
        assert_allclose(outputs[rows], theirs.predict(X[rows]), atol=1e-7)
        assert_allclose(at_new[:, k], theirs.predict(new), rtol=1e-7, atol=1e-7)
    machine, theirs = machines.expansion, ridge.fit(X, Y)
    assert_allclose(X @ machine.weights + machine.intercept, theirs.predict(X), atol=1e-7)
