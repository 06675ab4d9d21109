"""Checks of a kernel matrix: what is rounding, and what is not."""

import numpy as np
import pytest

from looms._kernel_matrix import check_kernel_matrix, check_symmetric, negative_eigenvalue

N = 150
ROOT = np.random.default_rng(0).normal(size=(N, 20))
K = ROOT @ ROOT.T
K.flags.writeable = False


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_singular_kernel_matrix_of_any_scale_passes(scale):
    check_kernel_matrix(scale * K)


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 0), (3, N - 1), (N - 1, 70), (140, 149)])
def test_one_entry_that_differs_from_its_mirror_is_noticed_wherever_it_is(i, j):
    largest = np.abs(K).max()
    for part, allowed in ((0.9e-8, True), (1.1e-8, False)):
        tilted = K.copy()
        tilted[i, j] += part * largest
        if allowed:
            check_symmetric(tilted)
        else:
            with pytest.raises(ValueError, match=r"differ by .* pass \(K \+ K.T\) / 2"):
                check_symmetric(tilted)


def test_an_eigenvalue_below_zero_by_more_than_rounding_is_returned():
    direction = np.linalg.eigh(K)[1][:, 0]
    for below, expected in ((0.5e-8 * N, None), (2e-8 * N, pytest.approx(-2e-8 * N, rel=1e-3))):
        assert negative_eigenvalue(K - below * np.outer(direction, direction), 1.0) == expected
    with pytest.raises(ValueError, match=r"smallest eigenvalue is -1\. Clip or flip"):
        check_kernel_matrix(K - np.outer(direction, direction))
