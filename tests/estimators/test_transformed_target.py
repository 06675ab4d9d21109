"""Transforms of the target: their choice, and predictions on the scale of the target."""

from dataclasses import astuple

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit

from looms import HeldOut, KernelRegressor, Search
from looms import TransformedTargetRegressorCV as Transformed
from looms.folds import GapKFold
from looms.selection._target_transforms import (
    TARGET_TRANSFORMS,
    log_likelihood,
    means_without_own,
    smeared_means,
)

rng = np.random.default_rng(0)
N = 60
X = rng.uniform(-1, 1, size=(N, 2))
X_NEW = rng.uniform(-1, 1, size=(15, 2))
Y = np.exp(1.5 * X[:, 0] + 0.5 * rng.normal(size=N))
WEIGHT = rng.uniform(0.3, 3.0, size=N)
FIXED = KernelRegressor("linear", mu=0.01)

each_transform = pytest.mark.parametrize("name", TARGET_TRANSFORMS)


@each_transform
def test_transforms_have_the_inverse_and_derivative_that_they_say(name):
    g = TARGET_TRANSFORMS[name]
    assert_allclose(g.inverse(g.forward(Y)), Y, rtol=1e-12)
    h = 1e-3 * Y
    steps = [g.forward(Y + k * h) for k in (-2, -1, 1, 2)]
    slope = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    assert_allclose(g.log_derivative(Y), np.log(slope), atol=1e-8)
    far = g.inverse(np.array([-1e9, -3.0, 0.0, 3.0, 1e9]))
    assert np.isfinite(far).all()
    assert (np.diff(far) >= 0).all()
    assert name == "none" or far[0] >= 0


def test_the_log_likelihood_is_that_of_the_log_normal_distribution():
    held_out = HeldOut(np.log(Y), 1.5 * X[:, 0], WEIGHT)
    r = held_out.residuals
    s = np.sqrt(np.average(r**2, weights=WEIGHT))
    density = norm.pdf(np.log(Y), held_out.outputs, s) / Y
    value = log_likelihood(TARGET_TRANSFORMS["log"], Y, held_out)
    assert_allclose(value, np.average(np.log(density), weights=WEIGHT), rtol=1e-12)


def test_means_are_averages_over_residuals_of_the_other_rows():
    f, weight = 1.5 * X[:, 0], np.where(np.arange(N) < 5, 0.0, WEIGHT)
    r, g = np.log(Y) - f, TARGET_TRANSFORMS["log"]
    held_out = HeldOut(np.log(Y), f, weight)
    means = [np.average(np.exp(z + r), weights=weight) for z in X_NEW[:, 0]]
    assert_allclose(smeared_means(g, X_NEW[:, 0], held_out), means)
    for i in (2, 7):
        others = np.arange(N) != i
        expected = np.average(np.exp(f[i] + r[others]), weights=weight[others])
        assert_allclose(means_without_own(g, f, held_out)[i], expected)


def test_a_fit_is_that_of_the_transformed_target_and_loo_is_that_of_refits():
    model = Transformed(FIXED, "log").fit(X, Y, sample_weight=WEIGHT)
    machine = KernelRegressor("linear", mu=0.01).fit(X, np.log(Y), sample_weight=WEIGHT)
    f, r = machine.predict(X_NEW), machine.loo_.residuals
    expected = np.average(np.exp(f[:, None] + r), axis=1, weights=WEIGHT)
    assert_allclose(model.predict(X_NEW), expected)
    assert_allclose(model.machine_.loo_.outputs, machine.loo_.outputs)
    others = np.arange(N) != 3
    own = np.average(np.exp(machine.loo_.outputs[3] + r[others]), weights=WEIGHT[others])
    assert_allclose(model.loo_.outputs[3], own)
    median = clone(model).set_params(statistic="median").fit(X, Y, sample_weight=WEIGHT)
    assert_allclose(median.predict(X_NEW), np.exp(f))
    ends = np.exp(evaluated(machine).predict_interval(X_NEW, 0.8))
    assert_allclose(evaluated(model).predict_interval(X_NEW, 0.8), ends)


@pytest.mark.slow
def test_without_a_transform_it_is_the_machine_itself():
    model = Transformed(KernelRegressor(), "none", statistic="median").fit(X, Y)
    machine = KernelRegressor().fit(X, Y)
    assert_allclose(model.predict(X_NEW), machine.predict(X_NEW))
    assert_allclose(model.evaluate()["rmse"], machine.evaluate()["rmse"])
    assert_allclose(
        model.evaluate().standard_errors["mae"], machine.evaluate().standard_errors["mae"]
    )
    assert_allclose(
        evaluated(model).predict_interval(X_NEW), evaluated(machine).predict_interval(X_NEW)
    )


BLOCKS = [np.flatnonzero(np.arange(N) // 15 == k) for k in range(4)]
WITH_GAPS = [(np.setdiff1d(np.arange(N), np.arange(b[0] - 3, b[-1] + 4)), b) for b in BLOCKS]


@pytest.mark.parametrize("cv", ["5x2", WITH_GAPS])
def test_scores_of_repeated_folds_are_those_of_the_machine_itself(cv):
    machine = KernelRegressor(cv=cv).fit(X, Y, sample_weight=WEIGHT)
    model = Transformed(KernelRegressor(cv=cv), "none", statistic="median")
    model.fit(X, Y, sample_weight=WEIGHT)
    for name, value in machine.evaluate(nested=False).items():
        assert_allclose(model.evaluate(nested=False)[name], value)
        assert_allclose(
            model.evaluate(nested=False).standard_errors[name],
            machine.evaluate(nested=False).standard_errors[name],
        )
    assert_allclose(model.candidates_[0].error, machine.evaluate(nested=False)["mae"])


def test_each_repetition_is_scored_and_not_the_mean_of_their_outputs():
    options = {"transforms": "log"}
    model = Transformed(KernelRegressor(cv="5x2"), **options).fit(X, Y, sample_weight=WEIGHT)
    machine, f = model.machine_, np.empty((5, N))
    for row, folds in zip(f, machine.units_.codes, strict=True):
        for out in (folds == k for k in np.unique(folds)):
            mu = machine.mu_ * WEIGHT.sum() / WEIGHT[~out].sum()
            alone = KernelRegressor(machine.kernel_, mu=mu)
            alone.fit(X[~out], np.log(Y[~out]), sample_weight=WEIGHT[~out])
            row[out] = alone.predict(X[out])
    medians = Transformed(KernelRegressor(cv="5x2"), statistic="median", **options)
    medians.fit(X, Y, sample_weight=WEIGHT)
    expected = np.average(np.abs(Y - np.exp(f)).mean(axis=0), weights=WEIGHT)
    assert_allclose(medians.evaluate(nested=False)["mae"], expected, rtol=1e-5)
    assert_allclose(medians.candidates_[0].error, expected, rtol=1e-5)

    g, r = TARGET_TRANSFORMS["log"], machine.held_out_.residuals
    others = WEIGHT * ~np.eye(N, dtype=bool)
    means = np.exp(f) * (others @ np.exp(r)) / others.sum(axis=1)
    expected = np.sqrt(np.average(((Y - means) ** 2).mean(axis=0), weights=WEIGHT))
    assert_allclose(model.evaluate(nested=False)["rmse"], expected, rtol=1e-5)
    assert_allclose(model.candidates_[0].error, expected, rtol=1e-5)
    of_all = HeldOut(np.tile(np.log(Y), 5), f.ravel(), np.tile(WEIGHT, 5))
    expected = log_likelihood(g, np.tile(Y, 5), of_all)
    assert_allclose(model.candidates_[0].log_likelihood, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("cv", [None, "5x2"])
def test_rows_of_weight_zero_take_no_part(cv):
    used = np.arange(N) >= 6
    y = np.where(used, Y, [-1.0, 0.0, 1e300] * (N // 3))
    for transforms in ("auto", ["sqrt", "log"]):
        model = Transformed(KernelRegressor(cv=cv), transforms)
        alone = clone(model).fit(X[used], Y[used])
        model.fit(X, y, sample_weight=used.astype(float))
        assert [each.name for each in model.candidates_] == [c.name for c in alone.candidates_]
        for one, other in zip(model.candidates_, alone.candidates_, strict=True):
            assert_allclose(astuple(one)[1:], astuple(other)[1:], rtol=1e-6)
        assert_allclose(model.predict(X_NEW), alone.predict(X_NEW), rtol=1e-5)
        assert_allclose(model.evaluate()["rmse"], alone.evaluate()["rmse"], rtol=1e-6)
        assert_array_equal(model.loo_.y, y)


def test_error_and_likelihood_choose_among_the_same_candidates():
    growing = np.exp(0.2 * np.random.default_rng(3).normal(size=N))
    linear = (2 + 1.8 * X[:, 0]) * growing
    chosen = {}
    for criterion in ("error", "likelihood"):
        model = Transformed(FIXED, criterion=criterion).fit(X, linear)
        chosen[criterion] = model.transform_
        assert [each.name for each in model.candidates_] == ["none", "sqrt", "log"]
    by_error = min(model.candidates_, key=lambda each: each.error)
    by_likelihood = max(model.candidates_, key=lambda each: each.log_likelihood)
    assert chosen == {"error": by_error.name, "likelihood": by_likelihood.name}
    assert chosen == {"error": "none", "likelihood": "sqrt"}


def test_nested_figures_repeat_the_choice_of_the_transform_without_each_fold():
    y = np.where(X[:, 0] > 0.3, Y, 0.0)
    model = Transformed(FIXED, ["none", "sqrt", "log1p"]).fit(X, y, sample_weight=WEIGHT)
    model._repr_html_()
    nested = model.evaluate()._nested
    for k in (0, 4):
        out = nested.folds == k
        assert out.any()
        alone = Transformed(FIXED, ["none", "sqrt", "log1p"])
        alone.fit(X[~out], y[~out], sample_weight=WEIGHT[~out])
        assert nested.machines[k].transform_ == alone.transform_
        assert_allclose(nested.held_out.outputs[out], alone.predict(X[out]))
    residuals = y - nested.held_out.outputs
    assert_allclose(model.evaluate()["rmse"], np.sqrt(np.average(residuals**2, weights=WEIGHT)))


@pytest.mark.parametrize("cv", [GapKFold(4, gap=3), PredefinedSplit(np.arange(N) % 4)])
def test_nested_figures_are_of_the_folds_and_gaps_of_a_splitter(cv):
    tuned = KernelRegressor("linear", cv=cv)
    nested = Transformed(tuned, ["none", "log"]).fit(X, Y).evaluate()._nested
    assert nested.units.n_units == 4
    left, tested = next(iter(nested.units)), nested.units.tested_by[0]
    rest = np.delete(np.arange(N), left)
    alone = Transformed(tuned.set_params(cv=nested.units.among(rest).codes), ["none", "log"])
    assert_allclose(nested.held_out.outputs[tested], alone.fit(X[rest], Y[rest]).predict(X[tested]))
    assert any(np.array_equal(rest, train) for train, _ in cv.split(X))


@pytest.mark.slow
def test_intervals_of_a_precomputed_kernel_leave_out_the_gaps_too():
    options = {"cv": GapKFold(4, gap=3), "search": "grid"}
    ends = [
        evaluated(
            Transformed(KernelRegressor(kernel, **options), "log").fit(given, Y)
        ).predict_interval(new)
        for kernel, given, new in (
            ("linear", X, X_NEW),
            ("precomputed", X @ X.T, X_NEW @ X.T),
        )
    ]
    assert_allclose(*ends, rtol=1e-6)


def test_intervals_compare_each_residual_under_the_machine_and_transform_it_is_of():
    model = Transformed(FIXED, ["sqrt", "log"]).fit(X, Y)
    nested = model.evaluate()._nested
    lower, upper = np.empty((2, N))
    for i, k in enumerate(nested.folds):
        one = nested.machines[k]
        g = TARGET_TRANSFORMS[one.transform_]
        f, at = one.machine_.predict(np.vstack([X_NEW[:1], X[i : i + 1]]))
        r = abs(g.forward(Y[i]) - at)
        lower[i], upper[i] = g.inverse(f - r), g.inverse(f + r)
    expected = [np.sort(lower)[5], np.sort(upper)[54]]  # ranks 6 and 55 of 60
    assert_allclose(evaluated(model).predict_interval(X_NEW[:1], 0.9)[0], expected)


def test_counts_get_predictions_that_are_not_negative():
    counts = np.random.default_rng(1).poisson(np.exp(2 * X[:, 0] - 1))
    model = Transformed(FIXED).fit(X, counts)
    assert [each.name for each in model.candidates_] == ["none", "sqrt", "log1p"]
    by_density = Transformed(FIXED, criterion="likelihood").fit(X, counts)
    assert [each.name for each in by_density.candidates_] == ["none", "log1p"]
    far = np.array([[-9.0, 0.0], [9.0, 0.0]])
    for statistic in ("mean", "median"):
        bounded = Transformed(FIXED, ["sqrt", "log1p"], statistic=statistic)
        bounded.fit(X, counts)
        assert (bounded.predict(far) >= 0).all()
        assert (evaluated(bounded).predict_interval(far) >= 0).all()
    assert Transformed(FIXED, "none").fit(X, counts).predict(far).min() < 0


@pytest.mark.slow
def test_groups_and_kernel_matrices_reach_the_machine():
    groups = np.arange(N) // 3
    model = Transformed(transforms="log").fit(X, Y, groups=groups)
    assert_array_equal(model.machine_.units_.clusters, groups)
    assert all(len(np.unique(model.evaluate()._nested.folds[groups == k])) == 1 for k in range(20))
    given = Transformed(KernelRegressor("precomputed", mu=0.01), "log").fit(X @ X.T, Y)
    plain = Transformed(FIXED, "log").fit(X, Y)
    assert_allclose(given.evaluate(nested=False)["mae"], plain.evaluate(nested=False)["mae"])
    ends = evaluated(given).predict_interval(X_NEW @ X.T)
    assert_allclose(ends, evaluated(plain).predict_interval(X_NEW))


def test_only_the_machine_taken_warns():
    with pytest.warns(ConvergenceWarning) as caught:
        Transformed(KernelRegressor("ard", search=Search(max_iter=1))).fit(X, X[:, 0] ** 2 + 0.1)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transforms": "cube"}, "Unknown transform 'cube'"),
        ({"transforms": []}, "at least one candidate"),
        ({"transforms": "log"}, "does not admit all targets, the smallest of which is -1"),
        ({"transforms": "sqrt", "criterion": "likelihood"}, "with criterion='likelihood'"),
        ({"criterion": "press"}, "Unknown criterion 'press'"),
        ({"statistic": "mode"}, "Unknown statistic 'mode'"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        Transformed(**options).fit(X, np.arange(N) - 1.0)


def test_other_regressors_are_refused():
    with pytest.raises(TypeError, match="KernelRegressor or KernelRegressor"):
        Transformed(Transformed()).fit(X, Y)


def test_groups_reach_a_machine_with_given_values():
    groups = np.arange(N) // 3
    model = Transformed(FIXED, "log").fit(X, Y, groups=groups)
    machine = clone(FIXED).fit(X, np.log(Y), groups=groups)
    assert_allclose(model.machine_.held_out_.outputs, machine.held_out_.outputs)
    alone = Transformed(FIXED, "log").fit(X, Y)
    assert abs(model.evaluate()["mae"] - alone.evaluate()["mae"]) > 1e-3


def test_rows_leave_and_join_under_the_same_transform():
    rows = np.array([3, 11, 40])
    rest = np.delete(np.arange(N), rows)
    for statistic in ("mean", "median"):
        whole = Transformed(FIXED, "log", statistic=statistic).fit(X, Y)
        ours = whole.without(rows)
        anew = KernelRegressor("linear", mu=ours.machine_.mu_)
        theirs = Transformed(anew, "log", statistic=statistic).fit(X[rest], Y[rest])
        assert_allclose(ours.predict(X_NEW), theirs.predict(X_NEW))
        assert_allclose(ours.held_out_.outputs, theirs.held_out_.outputs)
        assert ours.evaluate() == pytest.approx(theirs.evaluate())
        assert_allclose(
            evaluated(ours).predict_interval(X_NEW), evaluated(theirs).predict_interval(X_NEW)
        )
        again = ours.with_rows(X[rows], Y[rows])
        assert_allclose(again.predict(X_NEW), whole.predict(X_NEW))
        assert again.certify(2).relative < 1e-8
    with pytest.raises(ValueError, match="'log' does not admit all targets"):
        ours.with_rows(X[:1], [-1.0])


@pytest.mark.parametrize("method", ["plus", "minmax", "scaled"])
def test_methods_of_intervals_are_those_of_the_machine(method):
    model = Transformed(FIXED, "log").fit(X, Y)
    machine = clone(FIXED).fit(X, np.log(Y))
    ends = evaluated(model).predict_interval(X_NEW, 0.8, method)
    assert_allclose(ends, np.exp(evaluated(machine).predict_interval(X_NEW, 0.8, method)))
