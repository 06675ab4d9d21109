"""The machine on landmarks: other kernels, sparse rows, threads and edges.

What test_left_out.py has is not here: every verb on every kind of units, for one kernel.
"""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn

from looms.blocks import ArrayBlocks
from looms.folds import GapKFold
from looms.kernels import ARD, RBF, Linear, Matern, Polynomial
from looms.kernels._landmarks import pivoted_landmarks
from looms.kernels._samples import Samples, center_of
from looms.lssvm import NotPositiveDefiniteError, landmarks
from looms.lssvm._system import LeverageError
from looms.lssvm.landmarks import Landmarks, Streamed
from looms.units import Units

KERNELS = {
    "rbf": RBF(gamma=0.1),
    "ard": ARD(gammas=[0.1, 0.2, 0.3, 0.05]),
    "matern": Matern(nu=1.5, gamma=0.2),
    "sum": 2.0 * RBF(gamma=0.1) + Linear(),
    "polynomial": Polynomial(degree=2, c=1.0),
}
N = 40
RNG = np.random.default_rng(0)
UNITS = {
    "rows": Units.rows(N),
    "groups": Units.of_numbers(RNG.integers(0, 15, N)),
    "three": Units.of_numbers(np.arange(N) % 3),
    "2x2": Units.of_numbers(RNG.integers(0, 2, (2, N))),
    "windows": Units.of(GapKFold(3, gap=4), np.arange(float(N))),
}


def problem(kernel, seed):
    """Rows, targets, weights, μ and landmarks: sparse, weighted, of two targets for some seeds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(N, 1))
    if seed % 3 == 1:
        y = np.column_stack([y, X[:, 1] ** 2])
    zeta = rng.uniform(0.3, 3.0, N) if seed % 2 else np.ones(N)
    if seed % 5 == 2:
        X = sp.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))
    Z = X[rng.choice(N, int(rng.integers(3, 20)), replace=False)]
    mu = 10.0 ** rng.uniform(-5, 0)
    return (
        X,
        y,
        zeta * (N / zeta.sum()),
        mu,
        Landmarks(KERNELS[kernel], Samples(Z, center=center_of(Z))),
    )


def solved(X, y, zeta, mu, on, fit_intercept=True, **blocks):
    blocks = ArrayBlocks(X, **({"size": 32} | blocks))
    return Streamed(blocks, y, mu, zeta, on, fit_intercept=fit_intercept, keeps=True)


def independent(on):
    """Those of the landmarks that span all: beyond these a slope in K_ZZ is one in rounding."""
    chosen = pivoted_landmarks(on.kernel, on.samples, len(on), np.random.RandomState(0))
    return Landmarks(on.kernel, Samples(on.samples.X[chosen], center=on.samples.center))


@pytest.mark.parametrize(
    ("kernel", "units", "seed", "fit_intercept"),
    [
        (kernel, units, seed, seed % 4 > 0)
        for seed, (kernel, units) in enumerate(in_turn(KERNELS, UNITS, each=2))
    ],
)
def test_slopes_are_those_of_differences(
    kernel, units, seed, fit_intercept, numerical_gradient, monkeypatch
):
    """Also of large units, and where the features of the rows are not kept between sweeps."""
    (X, y, zeta, mu, on), units = problem(kernel, seed), UNITS[units]
    on = independent(on)
    w = np.random.default_rng(0).normal(size=(units.shape[0], *y.shape))

    def at(theta):
        other = Landmarks(on.kernel.with_theta(theta[:-1]), on.samples)
        return solved(X, y, zeta, 2.0 ** theta[-1], other, fit_intercept)

    def value(theta):
        f = at(theta).outputs(units)
        return float(np.nansum(w * f + f**2))

    theta = np.append(on.kernel.theta, np.log2(max(mu, 1e-3)))
    expected = numerical_gradient(value, theta)
    for n_kept, largest in product((N**2, 0), (N, 1)):
        monkeypatch.setattr(landmarks, "KEPT", n_kept)
        monkeypatch.setattr(landmarks, "_WITHIN_BLOCK", largest)
        projection = at(theta)
        slope = np.nan_to_num(w + 2 * projection.outputs(units))
        ours = np.append(*projection.slopes(units, slope)) * np.log(2.0) * 2.0**theta
        assert_allclose(ours, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def everything(projection, units):
    e = projection.residuals(units)
    slope = np.where(units.tested[:, :, None], e, 0.0)
    return [
        *(e, projection.loo_residuals, *projection.slopes(units, slope)),
        *(projection.solve(units, projection.y), projection.mean_square_changes(units)),
    ]


@pytest.mark.parametrize(("units", "n_threads"), in_turn(UNITS, [2, 4]))
def test_threads_give_the_same_bits(n_threads, units):
    one, other = (
        everything(solved(*problem("ard", 1), size=8, n_threads=k), UNITS[units])
        for k in (1, n_threads)
    )
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("units", UNITS)
def test_kept_features_give_the_same_bits(monkeypatch, units):
    kept = everything(solved(*problem("ard", 1), size=8), UNITS[units])
    monkeypatch.setattr(landmarks, "KEPT", 0)
    for a, b in zip(
        kept, everything(solved(*problem("ard", 1), size=8), UNITS[units]), strict=True
    ):
        assert_array_equal(a, b)


@pytest.mark.parametrize("units", ["groups", "2x2", "windows"])
def test_large_units_some_at_a_time_are_the_same(monkeypatch, units):
    monkeypatch.setattr(landmarks, "_WITHIN_BLOCK", 1)
    whole = everything(solved(*problem("ard", 1)), UNITS[units])
    monkeypatch.setattr(landmarks, "_NUMBERS", 1)
    for a, b in zip(whole, everything(solved(*problem("ard", 1)), UNITS[units]), strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_what_cannot_be_solved():
    X, y, zeta, mu, on = problem("rbf", 2)
    broken = Landmarks(RBF(gamma=np.nan), on.samples)
    with pytest.raises(NotPositiveDefiniteError):
        solved(X, y, zeta, mu, broken)
    zeta[5] = 1e14
    with pytest.raises(LeverageError, match="sample 5"):
        _ = solved(X, y, zeta, mu, on).loo_residuals
    rows = np.where(np.arange(N) < 2, 0, np.arange(N))
    zeta[:6] = [1e14, 1e14, 1, 1, 1, 1]
    with pytest.raises(LeverageError, match=r"sample [01] "):
        solved(X, y, zeta, mu, on).residuals(Units.of_numbers(rows))


def test_landmarks_are_different_and_span_more_than_any_others():
    rng = np.random.RandomState(0)
    X = np.concatenate([0.01 * rng.normal(size=(300, 3)), 3 * rng.normal(size=(60, 3))])
    X = np.concatenate([X, X])  # a copy of a landmark tells nothing
    samples, kernel = Samples(X, center=center_of(X)), RBF(gamma=0.05)

    def left(places):
        K, K_ZZ = kernel(X, X[places]), kernel(X[places]) + 1e-10 * np.eye(len(places))
        return len(X) - np.einsum("ij,ji->", K, np.linalg.solve(K_ZZ, K.T))

    drawn = [pivoted_landmarks(kernel, samples, 30, np.random.RandomState(k)) for k in range(5)]
    uniform = [rng.choice(len(X), 30, replace=False) for _ in range(5)]
    assert np.mean([left(p) for p in drawn]) < 0.2 * np.mean([left(p) for p in uniform])
    assert len(np.unique(X[drawn[0]], axis=0)) == 30
    line = Samples(np.arange(50.0)[:, None], center=np.zeros(1))
    assert len(pivoted_landmarks(Linear(), line, 20, rng)) == 1  # all that there is to span
