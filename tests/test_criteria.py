"""Selection criteria: values, slopes, standard errors, error rates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from scipy.special import expit
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    hinge_loss,
    log_loss,
    mean_squared_error,
)

from looms import HeldOut
from looms.criteria import (
    DIFFERENTIABLE,
    PRESS,
    WMW,
    Criterion,
    CrossEntropy,
    Hinge,
    SmoothedError,
    SquaredHinge,
    _differentiable,
    as_criterion,
)
from looms.criteria._error_rates import balanced_error_rate, error_rate

N = 23
RNG = np.random.default_rng(0)
Y = np.where(RNG.random(N) < 0.4, 1.0, -1.0)
F = 0.5 * Y + 0.8 * RNG.standard_normal(N)
Y3 = -np.ones((N, 3))
Y3[np.arange(N), RNG.integers(0, 3, N)] = 1.0
F3 = 0.5 * Y3 + 0.8 * RNG.standard_normal((N, 3))
CRITERIA = {
    **DIFFERENTIABLE,
    "smoothed error at 3": SmoothedError(3.0),
    "wmw at 2": WMW(2.0),
    "cross-entropy at 5": CrossEntropy(5.0),
}
TARGETS = {
    "one": (Y, F),
    "column": (Y[:, None], F[:, None]),
    "three": (Y3, F3),
}
WITH_ZEROS = RNG.uniform(0.1, 3.0, N)
WITH_ZEROS[::4] = 0.0
WEIGHTS = {
    "unweighted": None,
    "weighted": RNG.uniform(0.1, 3.0, N),
    "zeros": WITH_ZEROS,
}
each_criterion = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA.keys())
grid = pytest.mark.parametrize(("name", "targets", "weights"), pairwise(CRITERIA, TARGETS, WEIGHTS))


def loo_of(targets, weights):
    return HeldOut(*TARGETS[targets], WEIGHTS[weights])


@grid
def test_slope_against_differences(name, targets, weights, numerical_gradient):
    criterion = CRITERIA[name]
    loo = loo_of(targets, weights)
    # The hinge has a kink where t f = 1: no difference below crosses one.
    assert np.abs(1 - loo.y * loo.outputs).min() > 2.1e-3
    expected = numerical_gradient(
        lambda f: criterion.evaluate(loo.y, f, loo.sample_weight).value, loo.outputs
    )
    slope = criterion.evaluate(*loo).slope
    assert slope.shape == loo.y.shape
    assert_allclose(slope, expected, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize(("name", "targets"), pairwise(CRITERIA, TARGETS))
def test_values_of_many_machines_are_those_of_each(name, targets):
    criterion, rng = CRITERIA[name], np.random.default_rng(1)
    y, f = (part.reshape(N, -1) for part in TARGETS[targets])
    outputs = f[:, None] + rng.standard_normal((N, 9, f.shape[1]))
    weight = rng.uniform(0.1, 3.0, (N, 9)) * (rng.random((N, 9)) < 0.8)
    each = [
        criterion.evaluate(y[w > 0], g[w > 0], w[w > 0]).value
        for g, w in zip(outputs.transpose(1, 0, 2), weight.T, strict=True)
    ]
    assert_allclose(criterion.values(y, outputs, weight), each, rtol=1e-13)
    assert_allclose(Criterion.values(criterion, y, outputs, weight), each, rtol=1e-13)


@each_criterion
def test_whole_weights_are_copies(criterion):
    times = np.arange(N) % 3
    copies = np.repeat(np.arange(N), times)
    ours = criterion.evaluate(Y, F, times).value
    assert_allclose(ours, criterion.evaluate(*HeldOut(Y[copies], F[copies])).value, rtol=1e-13)


@each_criterion
@pytest.mark.parametrize("targets", ["column", "three"])
def test_several_targets_are_averaged(criterion, targets):
    loo = loo_of(targets, "zeros")
    whole = criterion.evaluate(*loo)
    columns = zip(loo.y.T, loo.outputs.T, strict=True)
    parts = [criterion.evaluate(*HeldOut(y, f, loo.sample_weight)) for y, f in columns]
    assert_allclose(whole.value, np.mean([part.value for part in parts]), rtol=1e-13)
    slopes = np.column_stack([part.slope for part in parts]) / len(parts)
    assert_allclose(whole.slope, slopes, rtol=1e-12, atol=1e-17)


@pytest.mark.parametrize(
    ("criterion", "expected", "slope"),
    [
        # y = 1, -1 and f = 0.5, 2: residuals 0.5, -3; margins 0.5, -2; weights 3 to 1.
        (PRESS(), (3 * 0.25 + 9) / 4, [-3 * 1 / 4, 6 / 4]),
        (Hinge(), (3 * 0.5 + 3) / 4, [-3 / 4, 1 / 4]),
        (SquaredHinge(), (3 * 0.25 + 9) / 4, [-3 * 1 / 4, 6 / 4]),
        (
            SmoothedError(np.log(4)),
            (3 / 3 + 16 / 17) / 4,
            [-3 / 4 * np.log(4) * 2 / 9, 1 / 4 * np.log(4) * 16 / 17**2],
        ),
        (
            CrossEntropy(np.log(4)),
            (3 * np.log(1.5) + np.log(17)) / 4,
            [-3 / 4 * np.log(4) / 3, 1 / 4 * np.log(4) * 16 / 17],
        ),
        (WMW(np.log(4)), 8 / 9, [-np.log(4) * 8 / 81, np.log(4) * 8 / 81]),
    ],
)
def test_by_hand(criterion, expected, slope):
    evaluation = criterion.evaluate(*HeldOut([1, -1], [0.5, 2.0], [3, 1]))
    assert_allclose(evaluation.value, expected, rtol=1e-14)
    assert_allclose(evaluation.slope, slope, rtol=1e-13)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_against_scikit_learn(weights):
    weight = WEIGHTS[weights]
    loo = loo_of("one", weights)
    for criterion, theirs in [
        (PRESS(), mean_squared_error(Y, F, sample_weight=weight)),
        (Hinge(), hinge_loss(Y, F, sample_weight=weight)),
        (CrossEntropy(2.0), log_loss(Y, expit(2 * F), sample_weight=weight)),
    ]:
        assert_allclose(criterion.evaluate(*loo).value, theirs, rtol=1e-12)


# WMW -----------------------------------------------------------------------


def double_loop(y, f, weight, steepness):
    total = mass = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > 0 > y[j]:
                w = weight[i] * weight[j]
                total += w / (1 + np.exp(-steepness * (f[j] - f[i])))
                mass += w
    return total / mass


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("steepness", [0.5, 10.0])
def test_wmw_is_its_double_sum(weights, steepness):
    loo = loo_of("one", weights)
    expected = double_loop(Y, F, loo.sample_weight, steepness)
    assert_allclose(WMW(steepness).evaluate(*loo).value, expected, rtol=1e-12)


@pytest.mark.parametrize("block", [1, 20, 50])
def test_wmw_by_blocks(block, monkeypatch):
    whole = WMW().evaluate(*loo_of("one", "zeros"))
    monkeypatch.setattr(_differentiable, "_BLOCK", block)
    parts = WMW().evaluate(*loo_of("one", "zeros"))
    for ours, theirs in zip(parts, whole, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-17)


@pytest.mark.parametrize(
    ("y", "weight"), [(np.ones(4), None), (-np.ones(4), None), ([1, 1, -1, -1], [1, 1, 0, 0])]
)
def test_wmw_needs_both_classes(y, weight):
    loo = HeldOut(y, np.arange(4.0), weight)
    with pytest.raises(ValueError, match="two classes"):
        WMW().evaluate(*loo)
    outputs, weight = (
        np.zeros((4, 2, 1)),
        np.column_stack([[1.0, 1.0, 1.0, 1.0], loo.sample_weight]),
    )
    with pytest.raises(ValueError, match="two classes"):
        WMW().values(loo.y[:, None], outputs, weight)


# Standard errors --------------------------------------------------------------


@pytest.mark.parametrize("targets", ["one", "three"])
def test_standard_error_is_that_of_a_mean_over_samples(targets):
    loo = loo_of(targets, "unweighted")
    losses = (loo.residuals**2).reshape(N, -1).mean(axis=1)
    ours = PRESS().evaluate(*loo).standard_error
    assert_allclose(ours, losses.std() / np.sqrt(N), rtol=1e-13)


@each_criterion
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_error_against_the_bootstrap(criterion, weighted):
    rng = np.random.default_rng(1)
    n = 200
    y = np.where(np.arange(n) < 80, 1.0, -1.0)
    f = 0.5 * y + 0.7 * rng.standard_normal(n)
    weight = rng.uniform(0.2, 2.0, n) if weighted else np.ones(n)
    values = []
    for _ in range(400):
        i = rng.integers(0, n, n)
        values.append(criterion.evaluate(y[i], f[i], weight[i]).value)
    ours = criterion.evaluate(y, f, weight).standard_error
    assert_allclose(ours, np.std(values), rtol=0.15)


# Options -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SmoothedError, WMW, CrossEntropy])
def test_extreme_gamma_neither_warns_nor_overflows(kind):
    evaluation = kind(steepness=1e5).evaluate(*HeldOut(Y, F))
    assert np.isfinite(evaluation.value)
    assert np.isfinite(evaluation.slope).all()


def test_steep_smoothed_error_is_the_error_rate():
    for weights in WEIGHTS:
        loo = loo_of("one", weights)
        assert_allclose(SmoothedError(1e6).evaluate(*loo).value, error_rate(*loo), rtol=1e-12)


# Error rates ---------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("threshold", [0.0, -0.4, 0.3])
@pytest.mark.parametrize("targets", ["one", "column"])
def test_two_class_rates_against_scikit_learn(weights, threshold, targets):
    loo, weight = loo_of(targets, weights), WEIGHTS[weights]
    predicted = np.where(threshold < F, 1.0, -1.0)
    theirs = 1 - accuracy_score(Y, predicted, sample_weight=weight)
    assert_allclose(error_rate(*loo, threshold=threshold), theirs, rtol=1e-12)
    theirs = 1 - balanced_accuracy_score(Y, predicted, sample_weight=weight)
    assert_allclose(balanced_error_rate(*loo, threshold=threshold), theirs, rtol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_multi_class_rates_against_scikit_learn(weights):
    loo, weight = loo_of("three", weights), WEIGHTS[weights]
    true, predicted = Y3.argmax(axis=1), F3.argmax(axis=1)
    theirs = 1 - accuracy_score(true, predicted, sample_weight=weight)
    assert_allclose(error_rate(*loo), theirs, rtol=1e-12)
    theirs = 1 - balanced_accuracy_score(true, predicted, sample_weight=weight)
    assert_allclose(balanced_error_rate(*loo), theirs, rtol=1e-12)


def test_outputs_must_be_above_the_threshold():
    loo = HeldOut([1, -1], [0.25, 0.25])
    assert error_rate(*loo, threshold=0.25) == 0.5
    assert_array_equal([error_rate(*HeldOut([1], [0.25]), threshold=0.25)], [1.0])
    assert_array_equal([error_rate(*HeldOut([-1], [0.25]), threshold=0.25)], [0.0])


def test_a_class_without_weight_does_not_count():
    loo = HeldOut([1, 1, -1], [1.0, -1.0, 1.0], [1, 1, 0])
    assert balanced_error_rate(*loo) == error_rate(*loo) == 0.5


# Names -----------------------------------------------------------------------------


def test_criteria_are_values_with_names():
    assert WMW(3.0) == WMW(steepness=3.0) != WMW(4.0)
    for name, criterion in DIFFERENTIABLE.items():
        assert as_criterion(name) is as_criterion(criterion) is criterion
        assert criterion.needs_labels == (name != "press")
    with pytest.raises(ValueError, match="'auc'; known are press, hinge"):
        as_criterion("auc")
    for other in (None, WMW, 3, np.mean):
        with pytest.raises(TypeError, match="criterion"):
            as_criterion(other)


@grid
def test_samples_entered_twice_and_held_out_together_are_no_more_certain(name, targets, weights):
    criterion = CRITERIA[name]
    once = loo_of(targets, weights)
    twice = np.repeat(np.arange(N), 2)
    loo = HeldOut(once.y[twice], once.outputs[twice], once.sample_weight[twice])
    value, standard_error, slope, _ = criterion.evaluate(*loo, 3 * twice)
    assert_allclose(value, criterion.evaluate(*once).value, rtol=1e-12)
    assert_allclose(standard_error, criterion.evaluate(*once).standard_error, rtol=1e-12)
    apart = criterion.evaluate(*loo)
    assert_allclose(apart.standard_error, standard_error / np.sqrt(2), rtol=1e-12)
    assert_allclose(slope, apart.slope, rtol=1e-12)
