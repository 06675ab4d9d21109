"""Equalities that held-out outputs have on any data, whatever kernel, weights and criterion.

Tolerances are those that rounding explains, by the condition number of the system. A few examples,
always the same; HYPOTHESIS_PROFILE=hand takes many, new ones.
"""

import os
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("hypothesis")

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from looms import KernelClassifier, KernelRegressor
from looms.criteria import as_criterion
from looms.kernels._names import as_kernel
from looms.kernels._samples import Samples, center_of
from looms.lssvm import solve
from looms.svm.dual import solve as solve_svm
from looms.units import Units

settings.register_profile("suite", max_examples=15, derandomize=True, deadline=None, database=None)
settings.register_profile("hand", max_examples=500, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

KERNELS = (
    *("linear", "quadratic", "rbf", "ard", "laplacian", "matern12", "matern32", "matern52"),
    *("powexp", "normalized_cubic", "ranked_laplacian", "boolean", "tanimoto"),
)
DENSE_ONLY = {"ranked_laplacian"}
CRITERIA = ("press", "hinge", "squared_hinge", "smoothed_error", "wmw", "cross_entropy")
#: Kernel values are rounded, too, before the system is solved.
KERNEL_ROUNDING = 16.0
#: Machines with rows removed or added refuse a larger difference from a refit.
LIMIT_OF_UPDATES = 1e-6


class Problem(NamedTuple):
    """Samples, targets, classes, weights, a machine with given values, and where to shuffle."""

    X: Any
    y: Any
    labels: Any
    weight: Any
    kernel: str
    mu: float
    fit_intercept: bool
    rng: Any

    def regressor(self):
        return KernelRegressor(self.kernel, mu=self.mu, fit_intercept=self.fit_intercept)

    def classifier(self):
        return KernelClassifier(self.kernel, mu=self.mu, fit_intercept=self.fit_intercept)


@st.composite
def problems(draw, kernels=KERNELS, least=4):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(least, 16)), draw(st.integers(1, 4))
    kernel = draw(st.sampled_from(kernels))
    X = rng.normal(size=(n, d))
    if kernel in ("boolean", "tanimoto"):
        X = (X > 0).astype(float)
    if draw(st.booleans()):
        X *= rng.random((n, d)) < 0.5
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    labels = np.where(rng.permutation(n) < draw(st.integers(2, n - 2)), 1, -1)
    weight = rng.choice([1.0, 2.0, 3.0], size=n) if draw(st.booleans()) else np.ones(n)
    mu = 10.0 ** draw(st.integers(-6, 1))
    return Problem(X, y, labels, weight, kernel, mu, draw(st.booleans()), rng)


def tolerance(machine):
    """Difference of outputs that rounding explains."""
    return KERNEL_ROUNDING * machine.certify().bound * float(np.std(machine.loo_.y))


@given(problems())
@pytest.mark.slow
def test_every_held_out_output_is_that_of_a_refit(p):
    for machine, y in ((p.regressor(), p.y), (p.classifier(), p.labels)):
        assert machine.fit(p.X, y, p.weight).certify(n_rows=len(y)).holds


@given(problems())
@pytest.mark.slow
def test_the_order_of_rows_does_not_matter(p):
    order = p.rng.permutation(len(p.y))
    one = p.regressor().fit(p.X, p.y, p.weight)
    other = p.regressor().fit(p.X[order], p.y[order], p.weight[order])
    atol = tolerance(one)
    assert_allclose(other.loo_.outputs, one.loo_.outputs[order], rtol=0, atol=atol)
    assert_allclose(other.predict(p.X), one.predict(p.X), rtol=0, atol=atol)


@given(problems())
@pytest.mark.slow
def test_a_weight_is_as_many_copies_held_out_together(p):
    kernel = as_kernel(p.kernel).started(Samples(p.X, center=center_of(p.X)))
    K, times = kernel(p.X), p.weight.astype(int)
    rows = np.repeat(np.arange(len(p.y)), times)
    weighted = solve(K, p.y, p.mu, sample_weight=p.weight, fit_intercept=p.fit_intercept)
    copied = solve(
        K[np.ix_(rows, rows)],
        p.y[rows],
        mu=p.mu * len(p.y) / len(rows),
        fit_intercept=p.fit_intercept,
    ).outputs(Units.of_numbers(rows))[0, :, 0]
    machine = KernelRegressor("precomputed", mu=p.mu * len(p.y) / len(rows))
    atol = tolerance(machine.fit(K[np.ix_(rows, rows)], p.y[rows]))
    assert_allclose(copied, weighted.loo.outputs[rows], rtol=0, atol=atol)


@given(problems(), st.integers(-40, 40), st.floats(-50, 50))
@pytest.mark.slow
def test_outputs_follow_shifts_and_scales_of_the_targets(p, power, shift):
    shift = shift if p.fit_intercept else 0.0
    one = p.regressor().fit(p.X, p.y, p.weight)
    factor = 2.0**power
    other = p.regressor().fit(p.X, factor * (p.y + shift), p.weight)
    expected = one.loo_.outputs + shift
    atol = tolerance(other) / factor
    assert_allclose(other.loo_.outputs / factor, expected, rtol=0, atol=atol)


@given(problems([k for k in KERNELS if k not in ("boolean", "linear", "quadratic")]))
@pytest.mark.slow
def test_kernels_that_are_set_by_the_data_follow_scales_of_the_features(p):
    one = p.regressor().fit(p.X, p.y, p.weight)
    for factor in (2.0**-20, 2.0**20):
        other = p.regressor().fit(p.X * factor, p.y, p.weight)
        assert_allclose(other.loo_.outputs, one.loo_.outputs, rtol=0, atol=tolerance(one))


@given(problems())
@pytest.mark.slow
def test_classes_may_change_names(p):
    one = p.classifier().fit(p.X, p.labels, p.weight)
    other = p.classifier().fit(p.X, -p.labels, p.weight)
    atol = tolerance(one)
    assert_allclose(other.loo_.outputs, -one.loo_.outputs, rtol=0, atol=atol)
    slope = abs(getattr(one.calibrator_, "slope", 1.0))
    assert_allclose(
        other.predict_proba(p.X)[:, ::-1], one.predict_proba(p.X), atol=1e-6 + slope * atol
    )


@given(problems(least=6), st.integers(1, 3))
@pytest.mark.slow
def test_rows_that_go_and_come_back_change_nothing(p, n_out):
    whole = p.regressor().fit(p.X, p.y, p.weight)
    out = np.sort(p.rng.choice(len(p.y), n_out, replace=False))
    order = np.append(np.delete(np.arange(len(p.y)), out), out)
    try:
        back = whole.without(out).with_rows(p.X[out], p.y[out], p.weight[out])
    except RuntimeError:  # more digits are lost than rows of the inverse may cost
        reject()
    atol = 10 * LIMIT_OF_UPDATES * np.abs(whole.loo_.outputs).max()
    assert_allclose(back.loo_.outputs, whole.loo_.outputs[order], rtol=0, atol=atol)
    assert_allclose(back.mu_, whole.mu_, rtol=1e-12)


@given(problems(), st.sampled_from(CRITERIA))
def test_a_criterion_counts_rows_by_their_weight_in_any_order_under_any_name(p, name):
    criterion, f = as_criterion(name), p.rng.normal(size=len(p.y))
    labels = p.labels.astype(float)
    value = criterion.evaluate(labels, f, p.weight).value
    rows = p.rng.permutation(np.repeat(np.arange(len(f)), p.weight.astype(int)))
    assert_allclose(criterion.evaluate(labels[rows], f[rows], np.ones(len(rows))).value, value)
    assert_allclose(criterion.evaluate(-labels, -f, p.weight).value, value)


@given(problems(["rbf", "linear", "matern32"], least=6), st.integers(-3, 6))
@pytest.mark.slow
def test_support_vector_machines_take_rows_in_any_order_and_classes_by_any_name(p, power):
    labels, K = p.labels.astype(float), as_kernel(p.kernel).started(Samples(p.X))(p.X)
    C, order = 2.0**power * p.weight, p.rng.permutation(len(labels))
    one = solve_svm(K, labels, C).leave_one_out()[0].diagonal()
    other = (
        solve_svm(K[np.ix_(order, order)], -labels[order], C[order]).leave_one_out()[0].diagonal()
    )
    assert_allclose(-other, one[order], rtol=0, atol=1e-7)
