"""The machine of few features against refitting, and its slope in μ against differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from pairwise import pairwise
from sklearn.linear_model import Ridge

from looms.kernels import Linear
from looms.kernels._samples import dense
from looms.lssvm import refit_loo, solve
from looms.lssvm._folds import repetitions
from looms.lssvm._system import LeverageError, RangeError
from looms.lssvm.features import decompose_features, has_few_features

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
uneven = 10.0 ** RNG.uniform(-2, 2, N)
WEIGHTS = {"unweighted": np.ones(N), "uneven": uneven / uneven.mean()}
TARGETS = {"one": RNG.standard_normal(N), "three": RNG.standard_normal((N, 3))}
FOLDS = {
    "single": None,
    "folds": np.arange(N) % 4,
    "repeated": np.stack([np.arange(N) % 4, np.arange(N) // 5]),
}


@pytest.mark.parametrize(
    ("features", "weights", "targets", "folds", "fit_intercept"),
    pairwise(FEATURES, WEIGHTS, TARGETS, ["single", "folds"], [True, False]),
)
def test_equals_refitting(features, weights, targets, folds, fit_intercept):
    X, zeta, y = FEATURES[features], WEIGHTS[weights], TARGETS[targets]
    K, parts = Linear()(X), repetitions(FOLDS[folds], N)
    fit = decompose_features(X, zeta, fit_intercept=fit_intercept).solve(y, 0.05, parts).fit
    options = {"sample_weight": zeta, "fit_intercept": fit_intercept}
    theirs = refit_loo(K, y, 0.05, folds=FOLDS[folds], **options)
    rtol = 1e-6 if features == "far from zero" else 1e-9
    assert_allclose(fit.held_out[0], theirs.outputs, rtol=rtol, atol=rtol)
    assert_allclose(fit.outputs, refit_loo(K, y, 0.05, **options).outputs, rtol=rtol, atol=rtol)
    # Around their mean, which an intercept takes up, other features lose no digits either.
    mean = np.asarray(zeta @ X / N).ravel() if fit_intercept else 0.0
    X = dense(X)
    around = X - mean
    solved = solve(around @ around.T, y, 0.05, **options).fit
    assert_allclose(fit.alpha, solved.alpha, rtol=rtol, atol=rtol)
    assert_allclose(
        X @ fit.coef + fit.intercept,
        around @ (around.T @ solved.alpha) + solved.intercept,
        rtol=rtol,
        atol=rtol,
    )


@pytest.mark.parametrize(
    ("folds", "weights", "targets", "fit_intercept"),
    pairwise(FOLDS, WEIGHTS, TARGETS, [True, False]),
)
def test_slope_is_that_of_differences(folds, weights, targets, fit_intercept):
    parts, y = repetitions(FOLDS[folds], N), TARGETS[targets]
    spectrum = decompose_features(FEATURES["three"], WEIGHTS[weights], fit_intercept=fit_intercept)
    slope, mu, step = RNG.standard_normal((len(parts), *y.shape)), 0.3, 1e-3

    def value(at):
        return float(np.vdot(slope, spectrum.solve(y, at, parts).fit.held_out))

    differences = 8 * (value(mu + step) - value(mu - step)) - value(mu + 2 * step)
    differences = (differences + value(mu - 2 * step)) / (12 * step)
    assert_allclose(spectrum.solve(y, mu, parts).slope_mu(slope), differences, rtol=1e-7)


def test_rows_that_others_cannot_replace_are_told():
    X = np.zeros((N, 1))
    X[5] = 1e9
    spectrum = decompose_features(X, np.ones(N), fit_intercept=False)
    with pytest.raises(LeverageError, match="leverage of sample 5"):
        spectrum.solve(TARGETS["one"], 1e-3)
    with pytest.raises(RangeError, match="Scale"):
        decompose_features(1e80 * X, np.ones(N)).solve(TARGETS["one"], 1e-3)


def test_few_features_are_half_as_many_as_rows():
    assert has_few_features(Linear(), np.ones((6, 3)))
    assert not has_few_features(Linear(), np.ones((5, 3)))
    assert not has_few_features(2.0 * Linear(), np.ones((6, 3)))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_of_other_units_cost_no_digits(fit_intercept):
    units, offsets = np.array([1.0, 1e7, 1e-4, 1.0]), np.array([0.0, 0.0, 0.0, 1e6])
    X = RNG.standard_normal((N, 4)) * units + fit_intercept * offsets
    y, mu = TARGETS["one"], 1e-3
    fit = decompose_features(X, np.ones(N), fit_intercept=fit_intercept).solve(y, mu).fit
    for i in range(N):
        others = np.delete(np.arange(N), i)
        ridge = Ridge(alpha=N * mu, fit_intercept=fit_intercept, solver="svd")
        expected = ridge.fit(X[others], y[others]).predict(X[[i]])[0]
        assert fit.outputs[i] == pytest.approx(expected, abs=1e-7)
    machine = Ridge(alpha=N * mu, fit_intercept=fit_intercept, solver="svd").fit(X, y)
    assert_allclose(X @ fit.coef + fit.intercept, machine.predict(X), atol=1e-7)


@pytest.mark.parametrize(
    ("features", "weights", "targets", "folds", "fit_intercept"),
    pairwise(["three", "far from zero"], WEIGHTS, TARGETS, ["single", "folds"], [True, False]),
)
def test_models_are_those_of_the_kernel_matrix(features, weights, targets, folds, fit_intercept):
    X, zeta, y, folds = FEATURES[features], WEIGHTS[weights], TARGETS[targets], FOLDS[folds]
    spectrum = decompose_features(X, zeta, fit_intercept=fit_intercept)
    solution = spectrum.solve(y, 0.3, repetitions(folds, N))
    ours, new = solution.models(), X[:5] + RNG.standard_normal((5, 3))
    options = {"sample_weight": zeta, "fit_intercept": fit_intercept, "folds": folds}
    theirs = solve(X @ X.T, y, 0.3, **options).models()
    digits = 1e-4 if features == "far from zero" else 1e-11  # of the kernel matrix
    for name in ("P", "share", "corner", "residuals", "ridge"):
        expected = getattr(theirs, name)
        atol = digits * np.abs(expected).max()
        assert_allclose(getattr(ours, name), expected, rtol=digits, atol=atol)
    assert len(ours.sets) == len(theirs.sets)
    expected = theirs.outputs(new @ X.T)
    atol = digits * np.abs(expected).max()
    for outputs in (
        ours.outputs(new @ X.T),
        np.vstack([F for _, F in solution.outputs_without_rows(new)]),
    ):
        assert_allclose(outputs, expected, rtol=digits, atol=atol)


@pytest.mark.parametrize("folds", ["single", "folds"])
@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_outputs_without_rows_are_those_of_refits(folds, targets, fit_intercept):
    units, y, mu = np.array([1.0, 1e6, 1e-4]), TARGETS[targets], 1e-3
    X, new = FEATURES["three"] * units, RNG.standard_normal((5, 3)) * units
    number = np.arange(N) if FOLDS[folds] is None else FOLDS[folds]
    spectrum = decompose_features(X, np.ones(N), fit_intercept=fit_intercept)
    ((rows, ours),) = spectrum.solve(y, mu, repetitions(number, N)).outputs_without_rows(new)
    assert rows == slice(0, 5)
    for i in range(N):
        rest = number != number[i]
        ridge = Ridge(alpha=N * mu, fit_intercept=fit_intercept, solver="svd")
        expected = ridge.fit(X[rest], y[rest]).predict(new)
        assert_allclose(ours[:, i], expected, rtol=1e-7, atol=1e-7)


def test_new_points_come_some_at_a_time(monkeypatch):
    monkeypatch.setattr("looms.lssvm.features._NUMBERS", 2 * N)
    X = FEATURES["three"]
    solution = decompose_features(X, np.ones(N)).solve(TARGETS["one"], 0.3)
    blocks = list(solution.outputs_without_rows(X[:5]))
    assert [rows for rows, _ in blocks] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    monkeypatch.undo()
    ((_, whole),) = solution.outputs_without_rows(X[:5])
    assert_allclose(np.vstack([F for _, F in blocks]), whole, rtol=1e-12)


def test_large_folds_take_the_smaller_system():
    X, y = RNG.standard_normal((40, 3)), RNG.standard_normal(40)
    folds = np.arange(40) % 3  # 13 rows or more, beside three features
    fit = decompose_features(X, np.ones(40)).solve(y, 0.05, repetitions(folds, 40)).fit
    assert_allclose(fit.held_out[0], refit_loo(X @ X.T, y, 0.05, folds=folds).outputs, atol=1e-10)
