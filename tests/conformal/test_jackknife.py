"""Order statistics of the jackknife+ and minmax, by hand and against a plain loop."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looms.conformal import jackknife_minmax, jackknife_plus
from looms.conformal._jackknife import required_rank

RNG = np.random.default_rng(0)
N, M = 19, 4
R, F = RNG.normal(size=N), RNG.normal(size=(M, N))
S, S_NEW = RNG.uniform(0.5, 2, N), RNG.uniform(0.5, 2, (M, N))
METHODS = {"plus": jackknife_plus, "minmax": jackknife_minmax}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def by_a_loop(r, F, level, scale=None):
    """The definition, with exact fractions; ``level`` is one."""
    n = len(r)
    lower = math.floor((1 - level) * (n + 1))
    upper = math.ceil(level * (n + 1))
    scale = np.ones_like(F) if scale is None else scale
    return np.array(
        [
            [
                sorted(f - s * abs(e) for f, e, s in zip(row, r, by, strict=True))[lower - 1],
                sorted(f + s * abs(e) for f, e, s in zip(row, r, by, strict=True))[upper - 1],
            ]
            for row, by in zip(F, scale, strict=True)
        ]
    )


def assert_just_outside(ours, exact):
    """Ends are rounded outwards, by a few times the rounding error."""
    assert ((ours[..., 0] < exact[..., 0]) & (ours[..., 1] > exact[..., 1])).all()
    assert_allclose(ours, exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("percent", [1, 10, 50, 70, 80, 90, 95])
@pytest.mark.parametrize("n", [19, 18, 12])
def test_order_statistics(percent, n):
    level = Fraction(percent, 100)
    if (n + 1) * (1 - level) < 1:
        with pytest.raises(ValueError, match="needs"):
            jackknife_plus(R[:n], F[:, :n], percent / 100)
        return
    ours = jackknife_plus(R[:n], F[:, :n], percent / 100)
    assert_just_outside(ours, by_a_loop(R[:n], F[:, :n], level))


def test_locally_scaled():
    ours = jackknife_plus(R, F, 0.8, loo_scales=S, scales=S_NEW)
    assert_just_outside(ours, by_a_loop(R, F, Fraction(4, 5), S_NEW / S))
    plain = jackknife_plus(R, F, 0.8)
    assert np.abs(ours - plain).max() > 0.01
    same = jackknife_plus(R, F, 0.8, loo_scales=np.full(N, 3.0), scales=np.full((M, N), 3.0))
    assert_allclose(same, plain, rtol=1e-13)


def test_scales_of_about_zero():
    """Below the rounding error they are all alike, and a residual of about zero stays one."""
    r, f, error = np.array([0, 0, 0, 0, 0, 1e-3]), np.zeros((1, 6)), 6e-3 * np.finfo(float).eps
    tiny = np.array([1e-300] * 5 + [1.0])
    ours = jackknife_plus(r, f, 0.5, loo_scales=tiny, scales=tiny[None])
    assert_allclose(ours, [[0.0, 0.0]], rtol=0, atol=3 * error)
    assert ours[0, 0] < 0 < ours[0, 1]
    unlike = np.array([1e-300, 1e-200, 1e-100, 1e-50, 1e-25, 1.0])
    assert_array_equal(jackknife_plus(r, f, 0.5, loo_scales=unlike, scales=tiny[None]), ours)
    one = np.eye(6)[0], f, 0.85  # the largest of six, of a model whose scales are zero
    scales = {
        "loo_scales": np.array([1e-16] + [1.0] * 5),
        "scales": np.array([[1e-16] + [1.0] * 5]),
    }
    ours = jackknife_plus(*one, rounding_error=1e-12, **scales)
    assert_allclose(ours, [[-1.0, 1.0]], rtol=1e-3)


def test_scaled_ends_hold_what_errors_of_rounding_can_hide():
    """Residuals, predictions and scales, each moved by up to the error, with scales of its size."""
    error, rng = 0.1, np.random.default_rng(1)
    r, f, s, S = np.abs(R), F, np.maximum(S_NEW[0] - 0.5, error), np.maximum(S_NEW - 0.5, error)
    for _ in range(100):
        near = [one + rng.choice([-0.09, 0.0, 0.09], size=one.shape) for one in (r, f, s, S)]
        near[2:] = [np.maximum(one, 1e-9) for one in near[2:]]
        ours = jackknife_plus(
            *near[:2], 0.8, rounding_error=error, loo_scales=near[2], scales=near[3]
        )
        exact = by_a_loop(r, f, Fraction(4, 5), S / s)
        assert ((ours[:, 0] < exact[:, 0]) & (ours[:, 1] > exact[:, 1])).all()


def weighted_by_a_loop(r, F, level, w, v, scale=None):
    """The definition: the share is counted from the other end, with the new point beyond all."""
    scale = np.ones_like(F) if scale is None else scale

    def reached(ends, total):
        weight = Fraction(0)
        for end, own in sorted(zip(ends, w, strict=True)):
            weight += own
            if weight >= level * total:
                return end
        return np.inf

    ends = []
    for row, by, new in zip(F, scale, v, strict=True):
        away = by * np.abs(r)
        below, above = (reached(one, sum(w) + new) for one in (away - row, away + row))
        ends.append([-below, above])
    return np.array(ends)


@pytest.mark.parametrize(
    ("percent", "scaled"), [(50, False), (70, False), (80, False), (90, False), (70, True)]
)
def test_density_ratio(percent, scaled):
    level, rng = Fraction(percent, 100), np.random.default_rng(0)
    w, v = [[Fraction(int(k), 4) for k in rng.integers(0, 9, size)] for size in (N, M)]
    v[0], v[1] = Fraction(0), Fraction(200)  # nothing like it, and like nothing
    more = {"loo_scales": S, "scales": S_NEW} if scaled else {}
    ratio = np.array(w, dtype=float), np.array(v, dtype=float)
    ours = jackknife_plus(R, F, percent / 100, density_ratio=ratio, **more)
    exact = weighted_by_a_loop(R, F, level, w, v, S_NEW / S if scaled else None)
    assert_array_equal(ours[1], [-np.inf, np.inf])
    assert_array_equal(exact[1], ours[1])
    others = np.delete(np.arange(M), 1)
    assert_just_outside(ours[others], exact[others])
    several = jackknife_plus(
        *(np.stack([R, -R / 2], 1), np.stack([F, F + 1], 2), percent / 100),
        density_ratio=[3 * ratio[0], 3 * ratio[1]],
    )
    for one, r, f in zip(several.swapaxes(0, 1), (R, R / 2), (F, F + 1), strict=True):
        alone = jackknife_plus(r, f, percent / 100, density_ratio=ratio)
        assert_allclose(one, alone, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [19, 18, 12])
@pytest.mark.parametrize("percent", [10, 50, 70, 80, 90])
def test_equal_ratios_change_nothing(n, percent):
    one = R[:n], F[:, :n], percent / 100
    if (n + 1) * (100 - percent) < 100:
        return
    equal = np.full(n, 0.3), np.full(M, 0.3)
    assert_array_equal(jackknife_plus(*one, density_ratio=equal), jackknife_plus(*one))


@pytest.mark.parametrize(
    ("w", "v", "says"),
    [
        (np.ones(N - 1), np.ones(M), "each of 19 training rows and each of 4 new rows"),
        (np.ones(N), np.ones((M, 1)), "each of 19 training rows and each of 4 new rows"),
        (-np.ones(N), np.ones(M), "not negative"),
        (np.ones(N), np.full(M, np.nan), "finite"),
        (np.zeros(N), np.ones(M), "positive for some training row"),
    ],
)
def test_ratios_that_are_none(w, v, says):
    with pytest.raises(ValueError, match=says):
        jackknife_plus(R, F, 0.5, density_ratio=(w, v))
    with pytest.raises(ValueError, match="must be a pair"):
        jackknife_plus(R, F, 0.5, density_ratio=np.ones(N))


def test_minmax():
    q = np.sort(np.abs(R))[16 - 1]
    expected = np.column_stack([F.min(axis=1) - q, F.max(axis=1) + q])
    assert_just_outside(jackknife_minmax(R, F, 0.8), expected)


@each_method
def test_error_of_rounding(method):
    """A given one is for each target; ends that are large have their own."""
    ours, plain = (method(R, F, 0.8, rounding_error=error) for error in (0.25, 0.0))
    assert_allclose(ours - plain, [[-0.25, 0.25]] * M, rtol=1e-12)
    several = method(np.stack([R, R], 1), np.stack([F, F], 2), 0.8, rounding_error=[0.25, 0.0])
    assert_array_equal(several, np.stack([ours, plain], 1))
    far = method(np.zeros(N), np.full((1, N), 1e6), 0.8, rounding_error=0.0)
    assert_allclose(far - 1e6, [[-4e-9, 4e-9]], rtol=0.2)


@each_method
@pytest.mark.parametrize("where", [0, 7])
def test_no_number_is_an_error(method, where):
    bad, one = R.copy(), F.copy()
    bad[where] = one[2, where] = np.nan
    for r, f in [(bad, F), (R, one)]:
        with pytest.raises(ValueError, match="not a number"):
            method(r, f, 0.5)


@each_method
def test_infinite_residuals_give_infinite_intervals(method):
    far = np.where(np.arange(N) < 5, np.inf, R)
    assert_array_equal(method(far, F, 0.9), [[-np.inf, np.inf]] * M)
    assert np.isfinite(method(far, F, 0.5)).all()


@each_method
def test_several_targets(method):
    r, f = RNG.normal(size=(N, 3)), RNG.normal(size=(M, N, 3))
    ours = method(r, f, 0.75)
    assert ours.shape == (M, 3, 2)
    for k in range(3):
        assert_array_equal(ours[:, k], method(r[:, k], f[:, :, k], 0.75))


@each_method
def test_inputs_are_not_changed(method, read_only):
    before = R.copy(), F.copy()
    method(read_only(R), read_only(F), 0.9)
    method(R, F, 0.9)
    assert_array_equal(R, before[0])
    assert_array_equal(F, before[1])


def test_rank_is_that_of_the_decimal():
    for n in range(1, 200):
        for percent in range(1, 100):
            k = math.ceil(Fraction(percent, 100) * (n + 1))
            if k <= n:
                assert required_rank(percent / 100, n) == k


@pytest.mark.parametrize(
    ("level", "least"),
    [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999)],
)
def test_fewest_samples(level, least):
    assert required_rank(level, least) == least
    with pytest.raises(ValueError, match=rf"needs {least} .*, got {least - 1}"):
        required_rank(level, least - 1)


@pytest.mark.parametrize("n", [1, 2, 40, 998, 2000])
def test_what_the_error_offers_is_possible(n):
    with pytest.raises(ValueError, match="at most") as raised:
        required_rank(0.9999, n)
    offered = float(str(raised.value).split()[-3])
    assert required_rank(offered, n) <= n


@each_method
@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, 90, np.nan, np.inf, None, "0.9", [0.9]])
def test_bad_coverage(method, level):
    with pytest.raises(ValueError, match="confidence_level must be"):
        method(R, F, level)


@each_method
@pytest.mark.parametrize(
    ("r", "f"), [(R, F[0]), (R[:-1], F), (R[:, None], F), (R, F[:, :, None]), (R[0], F)]
)
def test_shapes_that_do_not_agree(method, r, f):
    with pytest.raises(ValueError, match="loo_predictions"):
        method(r, f, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": S_NEW}, "give both, or neither"),
        ({"loo_scales": S}, "give both, or neither"),
        ({"loo_scales": S[:-1], "scales": S_NEW}, "shaped like"),
        ({"loo_scales": S, "scales": S_NEW[0]}, "shaped like"),
        ({"loo_scales": 0 * S, "scales": S_NEW}, "must be positive"),
        ({"loo_scales": S, "scales": -S_NEW}, "must be positive"),
    ],
)
def test_bad_scales(options, message):
    with pytest.raises(ValueError, match=message):
        jackknife_plus(R, F, 0.5, **options)
