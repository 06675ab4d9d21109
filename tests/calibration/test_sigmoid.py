"""Platt's sigmoid against minimizers not written here, rows together against rows apart."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from looms.calibration._sigmoid import Sigmoid, fit_sigmoid, fit_sigmoids


def random_outputs(seed, n=60, overlap=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1, -1
    return 0.5 * y + overlap * rng.normal(size=n), y, rng.uniform(0.1, 3, size=n)


def objective(parameters, f, y, weight):
    """The loss by its definition, apart from any scaling."""
    weight = weight * np.count_nonzero(weight) / weight.sum()
    n_positive, n_negative = weight[y > 0].sum(), weight[y < 0].sum()
    t = np.where(y > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    z = parameters[0] * f + parameters[1]
    return np.sum(weight * (t * np.logaddexp(0, z) + (1 - t) * np.logaddexp(0, -z)))


CASES = ["plain", "weighted", "shifted", "tiny", "separable", "zeros", "rare and far away"]


def case(name, seed):
    f, y, weight = random_outputs(seed, overlap=0.02 if name == "separable" else 1.0)
    if name != "weighted" and name != "zeros":
        weight = np.ones(len(f))
    if name == "zeros":
        weight[2:20] = 0
        f[2:20] *= 100
    if name == "rare and far away":  # where the first step of Newton's method goes too far
        y = np.where(np.arange(len(f)) < 2, 1.0, -1.0)
        f = f + 10 * y
    if name == "shifted":
        f = f + 1e4
    if name == "tiny":
        f = f * 1e-9
    return f, y, weight


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_the_loss_has_its_minimum_there(name, seed, numerical_gradient):
    f, y, weight = case(name, seed)
    sigmoid = fit_sigmoid(f, y, weight)
    center, spread = np.average(f, weights=weight), np.std(f[weight > 0])

    def standardized(a):
        return objective([a[0] / spread, a[1] - a[0] * center / spread], f, y, weight)

    here = [sigmoid.slope * spread, sigmoid.intercept + sigmoid.slope * center]
    assert np.abs(numerical_gradient(standardized, here)).max() < 1e-8
    found = minimize(standardized, [0.0, 0.0], method="BFGS", options={"gtol": 1e-7})
    assert standardized(here) == pytest.approx(found.fun, rel=1e-9)
    assert standardized(here) <= found.fun * (1 + 1e-12)


@pytest.mark.parametrize("shared_weight", [True, False], ids=["(n,)", "(m, n)"])
def test_rows_together_equal_rows_apart(shared_weight):
    rng = np.random.default_rng(3)
    f, y, weight = random_outputs(3, n=90)
    rows = f + rng.normal(size=(40, 90)) * rng.uniform(0.01, 10, size=(40, 1))
    rows[7] = 5.0  # no information
    rows[8] = y * (1 + rng.random(90))  # separable
    rows[9] *= 1e8
    weights = weight
    if not shared_weight:
        weights = rng.uniform(0.1, 3, (40, 90)) * (rng.random((40, 90)) < 0.8)
    slopes, intercepts = fit_sigmoids(rows, y, weights)
    for i, row in enumerate(rows):
        alone = fit_sigmoid(row, y, weights if shared_weight else weights[i])
        assert slopes[i] == pytest.approx(alone.slope, rel=1e-10, abs=1e-13)
        assert intercepts[i] == pytest.approx(alone.intercept, rel=1e-10, abs=1e-10)


def test_a_dozen_steps_are_enough(monkeypatch):
    """Newton's steps are right, not only downhill: few positives, the curvature among them."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(600) < 15, 1.0, -1.0)
    f = 1.5 * y + rng.normal(size=600)
    converged = fit_sigmoid(f, y)
    monkeypatch.setattr("looms.calibration._sigmoid._MAX_ITERATIONS", 12)
    early = fit_sigmoid(f, y)
    assert early.slope == pytest.approx(converged.slope, rel=1e-12)
    assert early.intercept == pytest.approx(converged.intercept, rel=1e-12)


def test_blocks_of_rows_make_no_difference(monkeypatch):
    f, y, _ = random_outputs(5, n=30)
    rows = f * np.arange(1, 12)[:, None]
    together = fit_sigmoids(rows, y)
    monkeypatch.setattr("looms.calibration._sigmoid._BLOCK", 60)
    assert np.array_equal(np.array(fit_sigmoids(rows, y)), np.array(together))


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
@pytest.mark.parametrize("seed", range(3))
def test_any_scale(scale, seed):
    f, y, _ = random_outputs(seed)
    plain, scaled = fit_sigmoid(f, y), fit_sigmoid(f * scale, y)
    assert scaled.slope * scale == pytest.approx(plain.slope, rel=1e-9)
    assert scaled.probability(f * scale) == pytest.approx(plain.probability(f), rel=1e-9)


@pytest.mark.parametrize("gap", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_separable_outputs_have_a_finite_sigmoid(gap):
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 50)
    f = gap * y + 1e-3 * gap * rng.normal(size=100)
    sigmoid = fit_sigmoid(f, y)
    assert np.isfinite([sigmoid.slope, sigmoid.intercept]).all()
    p = sigmoid.probability(f)
    assert p[y > 0].mean() == pytest.approx(51 / 52, abs=1e-6)
    assert p[y < 0].mean() == pytest.approx(1 / 52, abs=1e-6)


def test_equal_outputs_give_the_share_of_the_class():
    sigmoid = fit_sigmoid(np.full(10, 3.7), np.repeat([1, -1], [3, 7]))
    assert sigmoid.slope == 0
    assert sigmoid.probability(3.7) == pytest.approx((3 * 4 / 5 + 7 * 1 / 9) / 10)


def test_outputs_too_small_for_a_slope_are_equal():
    sigmoid = fit_sigmoid([-1e-310, 1e-310], [-1, 1])
    assert sigmoid.slope == 0
    assert sigmoid.probability(0.0) == pytest.approx(0.5)


def test_one_class_gives_a_constant():
    sigmoid = fit_sigmoid([0.3, 0.5, 2.0], [1, 1, 1])
    assert sigmoid.slope == pytest.approx(0, abs=1e-12)
    assert sigmoid.probability([-9.0, 9.0]) == pytest.approx([4 / 5, 4 / 5])


def test_probability_of_extreme_outputs():
    sigmoid = Sigmoid(-1e200, 0.0)
    assert sigmoid.probability([-1e200, 0.0, 1e200]).tolist() == [0.0, 0.5, 1.0]
    assert Sigmoid(0.5, -1.0).probability(3.0) == pytest.approx(expit(-0.5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], [1, 0]), "-1 and \\+1"),
        (([0.1, np.nan], [1, -1]), "finite"),
        (([0.1, 0.2], [1, -1], [1, -1]), "negative"),
        (([0.1, 0.2], [1, -1], [1, np.nan]), "finite"),
        (([0.1, 0.2], [1, -1], [0, 0]), "at least one sample"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_sigmoid(*arguments)


def test_arguments_stay_as_they_were(read_only):
    f, y, weight = map(read_only, random_outputs(0))
    fit_sigmoid(f, y, weight)
    fit_sigmoids(f[None], y, weight[None])
