"""Checks of a kernel matrix: square, symmetric and positive semi-definite up to rounding."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from looms._typing import Array

#: Fraction of the largest |K| by which K and its transpose may differ, and, per sample, by which
#: the smallest eigenvalue may be negative.
ROUNDING = 1e-8
_ROWS = 64  # compared at a time, so that the matrix is not copied for it


def largest_entry(values: Array) -> float:
    """Largest absolute value, or NaN if there is one; makes no copy."""
    return float(np.maximum(values.max(), -values.min()))


def check_symmetric(K: Array) -> None:
    """ValueError unless a square matrix of finite numbers is symmetric up to rounding."""
    asymmetry = max(
        largest_entry(K[i : i + _ROWS, i:] - K[i:, i : i + _ROWS].T)
        for i in range(0, len(K), _ROWS)
    )
    if asymmetry > ROUNDING * largest_entry(K):
        raise ValueError(
            f"K must be symmetric, but K and its transpose differ by {asymmetry:.3g}. If that is "
            "rounding, pass (K + K.T) / 2."
        )


def negative_eigenvalue(K: Array, scale: float) -> float | None:
    """Smallest eigenvalue of a symmetric matrix if it is below -1e-8 n scale, else None.

    Takes one Cholesky factorization of a copy, and the eigenvalues only if that fails.
    """
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(shifted)] += ROUNDING * scale * len(K)
    _, failed = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
    return float(np.linalg.eigvalsh(K)[0]) if failed else None


def check_kernel_matrix(K: Array) -> None:
    """ValueError unless ``K`` is square, symmetric and positive semi-definite up to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed kernel matrix should be a square matrix, got shape {K.shape}: it needs "
            "one row and one column per training sample."
        )
    check_symmetric(K)
    smallest = negative_eigenvalue(K, largest_entry(K) or 1.0)
    if smallest is not None:
        raise ValueError(
            "The precomputed kernel matrix is not positive semi-definite: its smallest eigenvalue "
            f"is {smallest:.3g}. Clip or flip its negative eigenvalues, or use a valid kernel."
        )
