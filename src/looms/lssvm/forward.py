"""Outputs of models of the rows before each window of time, by one Cholesky factor of all rows.

In order of time M = K + D = L Lᵀ; L z = y and L o = 1. The leading block of L is that of the first
rows T, whose model has b = Σ_T o z / Σ_T o². It leaves the residuals L_BB (z_B − o_B b) at the rows
B that follow [docs/references.md, Forward in time].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack, solve_triangular

from looms._typing import AnyArray, Array
from looms.lssvm._system import NotPositiveDefiniteError, ridge
from looms.units import Units


def outputs_forward(
    K: Array, y: Array, zeta: Array, fit_intercept: bool, units: Units
) -> Callable[[float], Array] | None:
    """Function of μ: outputs of the windows, (n_repetitions, n, t), in n³/3 flops.

    For rows that do not count it gives their targets. NotPositiveDefiniteError if M is not
    numerically positive definite. None if the windows have no such order, as of `order_of`.

    Parameters
    ----------
    K : (n, n) kernel matrix; only its lower triangle is read.
    y : (n, t) targets.
    zeta : (n,) weights of mean one.
    fit_intercept : whether models have an intercept.
    units : windows that earlier rows test.
    """
    in_order = order_of(units)
    if in_order is None:
        return None
    n, (order, starts) = len(y), in_order
    whole = np.tril(K) + np.tril(K, -1).T
    in_time = np.asfortranarray(whole[np.ix_(order, order)])
    right = np.column_stack([np.full(n, float(fit_intercept)), y[order]])

    def outputs(mu: float) -> Array:
        M = in_time.copy(order="F")
        M[np.diag_indices(n)] += ridge(mu, zeta)[order]
        size = M.diagonal().copy()
        L, failed = lapack.dpotrf(M, lower=1, overwrite_a=1)
        if failed or not (L.diagonal() ** 2 > n * np.finfo(np.float64).eps * size).all():
            raise NotPositiveDefiniteError(mu)
        solved = solve_triangular(L, right, lower=True, check_finite=False)
        o, z = solved[:, :1], solved[:, 1:]
        top, bottom = np.cumsum(o * z, axis=0), np.cumsum(o * o)
        F = np.broadcast_to(y, (*units.shape, y.shape[1])).copy()
        for k, start in starts.items():
            b = top[start - 1] / (bottom[start - 1] or 1.0)
            e = np.tril(L[start:, start:]) @ (z[start:] - o[start:] * b)
            F[units.repetition[k], order[start:]] -= e
        return units.only_tested(F)

    return outputs


def order_of(units: Units) -> tuple[AnyArray, dict[int, int]] | None:
    """Order of the rows in which each window is tested by the first rows.

    And the number of these for each unit that counts. None if there is no such order, as with
    groups that a window shares with rows before it.
    """
    ids = np.unique(units.own[units.counts])
    stays = units.stays(ids)
    sizes = stays.sum(axis=1)
    nested = stays[np.argsort(sizes)]
    if (nested[:-1] > nested[1:]).any():
        return None
    order = np.argsort(-stays.sum(axis=0), kind="stable")
    return order, dict(zip(ids.tolist(), sizes.tolist(), strict=True))
