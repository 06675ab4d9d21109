"""Stationary kernels against scikit-learn and their formulas, and where they start."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from looms.kernels import (
    ARD,
    RBF,
    Boolean,
    Laplacian,
    Matern,
    MaternARD,
    Polynomial,
    PowerExponential,
    PowerExponentialARD,
)
from looms.kernels._samples import Pairs, Samples

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((9, 4)), RNG.standard_normal((5, 4))
ETAS = np.array([0.1, 2.0, 1e-6, 0.5])


@pytest.mark.parametrize("gamma", [1e-6, 0.3, 20.0])
def test_rbf(gamma):
    assert_allclose(RBF(gamma)(X, Z), rbf_kernel(X, Z, gamma=gamma), rtol=1e-12)
    assert_array_equal(np.diag(RBF(gamma)(X)), np.ones(9))


@pytest.mark.parametrize("gamma", [1e-6, 0.3, 20.0])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_laplacian(gamma, convert):
    expected = laplacian_kernel(X, Z, gamma=gamma)
    assert_allclose(Laplacian(gamma)(convert(X), convert(Z)), expected, rtol=1e-12)
    assert_array_equal(np.diag(Laplacian(gamma)(convert(X))), np.ones(9))


def test_ard():
    expected = np.exp(-((X[:, None] - Z) ** 2 @ ETAS))
    assert_allclose(ARD(ETAS)(X, Z), expected, rtol=1e-12)
    assert_array_equal(np.diag(ARD(ETAS)(X)), np.ones(9))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern(nu):
    expected = sklearn_kernels.Matern(length_scale=0.7, nu=nu)(X, Z)
    assert_allclose(Matern(nu, 0.7**-2)(X, Z), expected, rtol=1e-12)
    lengths = [0.7, 2.0, 9.0, 1.0]
    expected = sklearn_kernels.Matern(length_scale=lengths, nu=nu)(X, Z)
    assert_allclose(MaternARD(nu, np.power(lengths, -2.0))(X, Z), expected, rtol=1e-12)


@pytest.mark.parametrize("power", [0.1, 0.7, 1.0, 1.999, 2])
def test_power_exponential(power):
    D = np.linalg.norm(X[:, None] - Z, axis=2)
    expected = np.exp(-((D / 0.7) ** power))
    assert_allclose(PowerExponential(power, 0.7**-2)(X, Z), expected, rtol=1e-12)
    expected = np.exp(-(((X[:, None] - Z) ** 2 @ ETAS) ** (power / 2)))
    assert_allclose(PowerExponentialARD(power, ETAS)(X, Z), expected, rtol=1e-12)


@pytest.mark.parametrize("power", [0.1, 0.5, 1.0, 1.9])
@pytest.mark.parametrize("apart", [1e-100, 1e-12, 1e-6])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_gradient_of_close_samples(power, apart, convert):
    near = np.vstack([X, X[:1], X[:1], X[:1]])
    near[-2:, 1] = 0.0, apart
    G = RNG.standard_normal((12, 12))
    squares = (near[:, None] - near) ** 2
    s = squares @ ETAS
    with np.errstate(divide="ignore", invalid="ignore"):
        W = G * (power / 2 * s ** (power / 2 - 1) * np.exp(-(s ** (power / 2))))
        by_power = -0.5 * s ** (power / 2) * np.log(s) * np.exp(-(s ** (power / 2)))
    W[s == 0] = by_power[s == 0] = 0.0
    expected = [*np.einsum("ij,ijk->k", -W, squares), np.sum(G * by_power)]
    samples = Samples(convert(near))
    ours = PowerExponentialARD(power, ETAS).values_gradient(Pairs(samples, samples), G)
    assert_allclose(ours * [*ETAS, 1], expected * np.array([*ETAS, 1]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [PowerExponential, PowerExponentialARD])
def test_beyond_two_there_is_no_power(kernel):
    for power in (2.1, 0.0, np.nan, "one"):
        with pytest.raises(ValueError, match="power must be a positive number up to 2, got"):
            kernel(power)(X)
    with pytest.raises(ValueError, match=r"power_bounds go up to 3, but beyond 2"):
        kernel(power_bounds=(0.5, 3.0)).started(Samples(X)).theta  # noqa: B018


@pytest.mark.parametrize("kernel", [Matern, MaternARD])
@pytest.mark.parametrize("nu", [1.0, np.inf, None, "1.5", [1.5]])
def test_matern_of_another_nu(kernel, nu):
    with pytest.raises(ValueError, match=r"nu must be 0\.5, 1\.5 or 2\.5, got"):
        kernel(nu).started(Samples(X))


def test_far_from_the_origin_nothing_is_lost():
    kernels = (RBF(0.5), ARD(ETAS), Matern(0.5, 0.3), PowerExponentialARD(0.5, ETAS))
    for kernel in kernels:
        assert_allclose(kernel(X + 1e6), kernel(X), rtol=1e-7)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_ard_values_do_not_depend_on_units(convert):
    scale = np.array([1e-3, 1.0, 50.0, 1e4])
    assert_allclose(ARD()(convert(X * scale)), ARD()(convert(X)), rtol=1e-9)
    expected = 1 / (2 * 4 * X.var(axis=0))
    assert_allclose(ARD().started(Samples(convert(X))).gammas, expected, rtol=1e-12)


def test_ard_start_of_constant_features():
    with_constant = np.column_stack([X, np.full(9, 0.1), np.full(9, -1e8 / 3), np.zeros(9)])
    for samples in (with_constant, sp.csr_array(with_constant)):
        gammas = ARD().started(Samples(samples)).gammas
        assert_allclose(gammas[4:], 1 / 14, rtol=1e-12)
    assert_array_equal(ARD().started(Samples(np.ones((3, 2)))).gammas, [0.25, 0.25])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_rbf_starts_at_one_over_the_mean_squared_distance(convert):
    D = np.square(X[:, None] - X).sum(axis=2)
    assert_allclose(RBF().started(Samples(convert(X))).gamma, 1 / D.mean(), rtol=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_laplacian_starts_at_one_over_the_mean_manhattan_distance(convert):
    gaps = np.column_stack([np.where(X > 0, X, 0.0), np.full(9, 1e8 / 7), X + 1e6, np.round(X)])
    D = np.abs(gaps[:, None] - gaps).sum(axis=2)
    assert_allclose(Laplacian().started(Samples(convert(gaps))).gamma, 1 / D.mean(), rtol=1e-9)


@pytest.mark.parametrize("constant", [0.1, 3.0, -1e8 / 7])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_start_of_constant_samples(constant, convert):
    for n in (1, 3, 6, 7, 13):
        samples = Samples(convert(np.full((n, 2), constant)))
        assert RBF().started(samples).gamma == 1.0
        assert Laplacian().started(samples).gamma == 1.0
        assert_array_equal(ARD().started(samples).gammas, [0.25, 0.25])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), ARD(), Polynomial(), Boolean()])
def test_a_weight_counts_as_copies_in_the_start(kernel, convert):
    times = np.array([1, 3, 2, 1, 1, 4, 1, 2, 1])
    weighted = kernel.started(Samples(convert(X), weight=times.astype(float)))
    copied = kernel.started(Samples(convert(np.repeat(X, times, axis=0))))
    assert_allclose(weighted.theta, copied.theta, rtol=1e-12)
    assert not np.allclose(weighted.theta, kernel.started(Samples(convert(X))).theta)


@pytest.mark.parametrize("gammas", [[1.0, 2.0], np.ones(5), np.ones((1, 4)), []])
def test_one_eta_for_each_feature(gammas):
    with pytest.raises(ValueError, match="one number for each of the 4 features, got shape"):
        ARD(gammas)(X)


@pytest.mark.parametrize("gammas", [0.0, np.nan, [1, 1, 0, 1], [1, 1, np.inf, 1], "many"])
def test_etas_must_be_positive(gammas):
    with pytest.raises(ValueError, match="ARD: gammas must be"):
        ARD(gammas)(X)


def test_given_etas_are_not_kept_by_reference():
    gammas = ETAS.copy()
    started = ARD(gammas).started(Samples(X))
    before = started(X)
    gammas[:] = 99.0
    assert_array_equal(started(X), before)
