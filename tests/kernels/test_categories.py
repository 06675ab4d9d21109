"""Kernels of categories against their formula and against columns of zeros and ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.preprocessing import OneHotEncoder

from looms.kernels import ARD, RBF, Columns, Hamming, HammingARD, Linear, Precomputed
from looms.kernels._samples import Samples

RNG = np.random.default_rng(0)
CODES = RNG.integers(-1, [3, 2, 5], (20, 3)).astype(float)
NEW = RNG.integers(-2, [3, 4, 5], (6, 3)).astype(float)
WEIGHTS = np.array([0.1, 2.0, 0.7])


def test_formula():
    differ = CODES[:, None] != NEW
    assert_allclose(HammingARD(WEIGHTS)(CODES, NEW), np.exp(-(differ @ WEIGHTS)), rtol=1e-13)
    assert_allclose(Hamming(0.4)(CODES, NEW), np.exp(-0.4 * differ.sum(axis=2)), rtol=1e-13)


def test_it_is_the_rbf_of_columns_of_zeros_and_ones():
    one_hot = OneHotEncoder(sparse_output=False).fit_transform(CODES)
    assert_allclose(Hamming(0.4)(CODES), RBF(0.2)(one_hot), rtol=1e-12)
    of_level = np.repeat(WEIGHTS, [len(np.unique(column)) for column in CODES.T])
    assert_allclose(HammingARD(WEIGHTS)(CODES), ARD(of_level / 2)(one_hot), rtol=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_starts_at_one_over_the_mean_number_of_differences(convert):
    with_constant = np.column_stack([CODES, np.full(20, 7.0)])
    means = (CODES[:, None] != CODES).mean(axis=(0, 1))
    samples = Samples(convert(with_constant))
    assert_allclose(Hamming().started(samples).weight, 1 / means.sum(), rtol=1e-12)
    assert_allclose(HammingARD().started(samples).weights, 1 / (4 * np.append(means, 1)))
    times = RNG.integers(1, 4, 20)
    weighted = Samples(convert(with_constant), weight=times.astype(float))
    copied = Samples(convert(np.repeat(with_constant, times, axis=0)))
    for kernel in (Hamming(), HammingARD()):
        assert_allclose(kernel.started(weighted).theta, kernel.started(copied).theta, rtol=1e-12)
    assert Hamming().started(Samples(np.ones((3, 2)))).weight == 1.0


def test_columns_see_no_others():
    X = RNG.standard_normal((9, 4))
    kernel = Columns(ARD([0.2, 0.5]), [3, 1])
    assert_allclose(kernel(X), ARD([0.2, 0.5])(X[:, [3, 1]]), rtol=1e-13)
    changed = X.copy()
    changed[:, [0, 2]] = 1e6
    assert_allclose(kernel(changed), kernel(X), rtol=1e-13)
    assert [h.name for h in kernel.hyperparameters] == ["kernel__gammas[3]", "kernel__gammas[1]"]


@pytest.mark.parametrize("columns", [[4], [-1], [], [0.5], [[0, 1]], "ab", None, [True, False]])
def test_columns_that_are_not_there(columns):
    with pytest.raises(ValueError, match="columns must be column numbers, from 0 to 2 here"):
        Columns(Linear(), columns)(CODES)


def test_columns_twice_and_of_a_kernel_matrix():
    with pytest.raises(ValueError, match="columns must not repeat a number"):
        Columns(Linear(), [0, 0])(CODES)
    with pytest.raises(ValueError, match="the columns of a precomputed kernel matrix are samples"):
        Columns(Precomputed(), [0])(np.eye(3))
