"""Condition of the systems solved, and the effect of rounding on held-out outputs."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from looms._typing import Array
from looms.held_out import HeldOut
from looms.lssvm._system import targets_as_columns

_STEPS = 12  # of inverse iteration


def condition_of(M: Array) -> float:
    """‖M‖₁ / λ of a symmetric matrix, λ its smallest eigenvalue; n³/3 flops.

    λ comes from inverse iteration with a fixed starting vector. Up to its error, the result is no
    smaller than the ratio of the extreme eigenvalues. It is infinite unless M is numerically
    positive definite.
    """
    R, failed = lapack.dpotrf(M, lower=1)
    if failed:
        return float("inf")
    v = np.random.default_rng(0).normal(size=len(M))
    for _ in range(_STEPS):
        v, _ = lapack.dpotrs(R, v / np.linalg.norm(v), lower=1)
    return float(np.abs(M).sum(axis=0).max() * np.linalg.norm(v))


def rounding_bound(condition: float, loo: HeldOut) -> float:
    """Difference of held-out outputs, in standard deviations, that rounding can explain.

    It is ε (n + cond) times the largest target or output in standard deviations. In
    `benchmarks/conditioning.py`, differences from solutions with 60 digits are at most a sixth of
    it.
    """
    y, outputs = targets_as_columns(loo.y), targets_as_columns(loo.outputs)
    largest = np.maximum(np.abs(y), np.abs(outputs)).max(axis=0) / spread_of(y)
    eps = float(np.finfo(np.float64).eps)
    return eps * (len(y) + condition) * float(largest.max())


def tie_of(
    y: Array, diagonal: Array, alpha: Array, eps: float = float(np.finfo(np.float64).eps)
) -> float:
    """Difference up to which held-out outputs are equal up to rounding, for labels ±1.

    For other targets it is relative to the largest.

    A Cholesky factorization is that of M + ΔM with |ΔM_jk| of the order of ε √(M_jj M_kk), and an
    output moves by w ΔM α, where its model has weights w for the targets and coefficients α.
    As w is of the order of one, 2 ε (n + 2 m Σ_k √M_kk |α_k|) is an estimate for two outputs, with
    m² the mean of the diagonal. It never exceeds √ε, half of the digits.

    Parameters
    ----------
    y : (n,) or (n, t) targets.
    diagonal : (n,) of the kernel matrix plus ridge M.
    alpha : (n, t) coefficients of the model.
    eps : spacing of numbers at one.

    Examples
    --------
    >>> 1e-15 < tie_of(np.ones(9), np.ones(9), np.ones((9, 1))) < 4e-14
    True
    """
    alpha = np.abs(alpha) / largest_of(targets_as_columns(y))
    moved = 2.0 * np.sqrt(diagonal.mean()) * float((np.sqrt(diagonal) @ alpha).max())
    return float(min(2.0 * eps * (len(alpha) + moved), np.sqrt(eps)))


def largest_of(y: Array) -> Array:
    """() or (t,) largest absolute value of the targets; 1 if all are zero."""
    largest = np.abs(y).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def spread_of(y: Array) -> Array:
    """(t,) standard deviations of the targets; 1 for targets that do not vary."""
    spread = targets_as_columns(y).std(axis=0)
    return np.where(spread > 0, spread, 1.0)
