"""Intercept and slope of calibration against scikit-learn, a root and many draws."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from looms.calibration import net_benefit, recalibration, smooth_reliability


def drawn(rng, n=200):
    """Probabilities that are too extreme and too small, labels and groups of four rows."""
    z = rng.normal(-1, 2, n)
    group = np.arange(n) // 4
    y = np.where(rng.random(n) < expit(0.5 * z + 0.4), 1, -1)
    return y, expit(z), group


@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_those_of_logistic_regression(weighted):
    rng = np.random.default_rng(0)
    y, p, _ = drawn(rng)
    weight = rng.integers(0, 3, len(y)) * 0.7 if weighted else np.ones(len(y))
    p[:3], weight[:3] = [0.0, 1.0, 0.5], [1, 1, 0]  # which tell nothing
    z, w = logit(p[2:]), weight[2:]
    found = recalibration(y, p, weight)
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, None], y[2:], w)
    assert found.slope == pytest.approx(fit.coef_[0, 0], rel=1e-6)
    assert found.constant == pytest.approx(fit.intercept_[0], rel=1e-6)
    level = brentq(lambda c: w @ ((y[2:] > 0) - expit(z + c)), -9, 9, xtol=1e-12)
    assert found.intercept == pytest.approx(level, rel=1e-6)
    np.testing.assert_allclose(
        found.probability(p[2:]), fit.predict_proba(z[:, None])[:, 1], rtol=1e-6
    )


def test_standard_errors_are_those_of_draws():
    rng = np.random.default_rng(1)
    found = [recalibration(*drawn(rng, 400)[:2]) for _ in range(300)]
    for name in ("intercept", "slope"):
        spread = np.std([getattr(one, name) for one in found])
        errors = [getattr(one, f"{name}_error") for one in found]
        assert np.mean(errors) == pytest.approx(spread, rel=0.1)


def test_standard_errors_of_groups():
    """Rows that are there four times say no more than once."""
    y, p, _ = drawn(np.random.default_rng(2), 80)
    once = recalibration(y, p)
    copies, groups = np.repeat(np.arange(80), 4), np.repeat(np.arange(80), 4)
    together = recalibration(y[copies], p[copies], groups=groups)
    apart = recalibration(y[copies], p[copies])
    assert together.slope_error == pytest.approx(once.slope_error, rel=0.02)
    assert apart.slope_error == pytest.approx(once.slope_error / 2, rel=0.02)
    band, of_one = (
        smooth_reliability(y[copies], p[copies], groups=groups),
        smooth_reliability(y, p),
    )
    width = np.median((band.high - band.low) / (of_one.high - of_one.low))
    assert width == pytest.approx(1, rel=0.1)


Y, P = np.array([1, -1, 1, -1]), np.array([0.9, 0.2, 0.4, 0.6])


@pytest.mark.parametrize("function", [recalibration, smooth_reliability, net_benefit])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((Y, P, None, [1, 2]), "groups must hold one label per row, 4 of them"),
        ((Y, P, None, [1, None, 2, 2]), "groups has no label for 1 of 4 rows"),
        ((Y, P, [1, 0, 1, 1], [1, 2, np.nan, 2]), "groups has no label for 1 of 4 rows"),
        ((Y, np.column_stack([P, P])), r"probability, .* shapes \(\(4, 2\), \(4,\), \(4,\)\)"),
        ((Y, P, np.ones(3)), r"of one length, .* shapes \(\(4,\), \(4,\), \(3,\)\)"),
        ((Y[:3], P), r"of one length, .* shapes \(\(4,\), \(3,\), \(3,\)\)"),
        ((Y, [np.nan, *P[1:]]), "probability must be finite"),
        ((["a", "b", "c", "a"], P), "labels must have two classes, but has 3"),
        ((["a", "b", None, "a"], P), "labels must have no gaps"),
        (([1, 0, np.nan, 1], P), "labels must have no gaps"),
        (([0, 0, 0, 0], P), "labels must have two classes, but has 1"),
    ],
)
def test_what_does_not_fit_together(function, given, says):
    with pytest.raises(ValueError, match=says):
        function(*given)


@pytest.mark.parametrize(
    "classes", [[0, 1], [False, True], ["no", "yes"], [-1, 7.5], np.array(["-1", "1"], object)]
)
def test_the_second_class_is_positive(classes):
    labels = np.asarray(classes)[(Y > 0).astype(int)]
    p = np.array([0.9, 0.2, 0.4, 0.5])
    for function in (recalibration, smooth_reliability, net_benefit):
        for one, same in zip(*(vars(function(y, p)).values() for y in (labels, Y)), strict=True):
            np.testing.assert_array_equal(one, same)


def test_level_of_the_band():
    y, p, _ = drawn(np.random.default_rng(4))
    wide, narrow = (smooth_reliability(y, p, confidence_level=level) for level in (0.95, 0.5))
    ratio = (logit(wide.high) - logit(wide.share)) / (logit(narrow.high) - logit(narrow.share))
    assert ratio == pytest.approx(1.959964 / 0.6744898, rel=1e-6)
    for level in (95, 1.0, 0.0):
        with pytest.raises(ValueError, match="confidence_level must be"):
            smooth_reliability(y, p, confidence_level=level)


def test_nothing_to_estimate():
    apart = recalibration([-1, -1, 1, 1], [0.1, 0.2, 0.3, 0.4])
    assert np.isnan([apart.slope, apart.slope_error, apart.constant]).all()
    assert np.isfinite([apart.intercept, apart.intercept_error]).all()
    alike = recalibration([-1, 1, 1, 1], [0.5] * 4)
    assert np.isnan(alike.slope)
    assert alike.intercept == pytest.approx(np.log(3))
    assert np.isnan(recalibration([1, 1], [0.2, 0.7]).intercept)
    with pytest.raises(ValueError, match="between 0 and 1"):
        recalibration([1, -1], [1.2, 0.1])
    assert len(smooth_reliability([-1, 1], [0.5, 0.5]).share) == 0


@pytest.mark.parametrize(("n", "follows"), [(499, False), (500, True)])
def test_the_curve_of_many_rows_follows_a_wave(n, follows):
    p = np.linspace(0.02, 0.98, n)
    share = p + 0.15 * np.sin(3 * np.pi * p)
    curve = smooth_reliability((np.arange(n) * 0.618 % 1) < share, p)
    away = np.abs(curve.share - np.interp(curve.probability, p, share)).mean()
    assert (away < 0.03) == follows


def test_smooth_curve_and_its_band():
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(60):
        y, p, _ = drawn(rng, 600)
        curve = smooth_reliability(y, p)
        true = expit(0.5 * logit(curve.probability) + 0.4)
        inside.append((curve.low <= true) & (true <= curve.high))
    assert 0.89 < np.mean(inside) < 0.99
    assert np.abs(curve.share - true).max() < 0.15
    certain = smooth_reliability([-1] * 9 + [1] * 9, np.linspace(0, 1, 18))  # classes are apart
    assert np.isfinite(certain.share).all()
    assert (np.diff(certain.share) >= 0).all()
