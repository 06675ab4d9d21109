"""Sets of rows of a block that are held out together, in terms of the vectors t."""

from __future__ import annotations

import numpy as np

from looms._typing import AnyArray, Array


def sets_of(labels: AnyArray | None = None) -> list[AnyArray]:
    """Rows of the sets of two or more in a block, (n_sets, size) for each size."""
    if labels is None:
        return []
    _, number, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order, ends = np.argsort(number, kind="stable"), np.cumsum(counts)
    sizes = np.unique(counts[counts > 1])
    return [order[(ends - counts)[counts == size][:, None] + np.arange(size)] for size in sizes]


def leverages_left(T: Array, G: AnyArray, root: Array) -> Array:
    """1 − √ζ T Tᵀ √ζ for each of some sets of equal size, (n_sets, size, size)."""
    T_G = np.moveaxis(T[:, G], 0, 2) * root
    return -T_G @ T_G.swapaxes(1, 2) + np.eye(G.shape[1])


def times_C(T: Array, e: Array, u: Array, zeta: Array, sets: list[AnyArray]) -> Array:
    """T C with C = ½ (ζ e uᵀ + u eᵀ ζ) within each set, and within each row that is in no set."""
    e = zeta[:, None] * e
    product: Array = T * (e * u).sum(axis=1)
    for G in sets:
        half = 0.5 * e[G] @ u[G].swapaxes(1, 2)
        C = half + half.swapaxes(1, 2)
        product[:, G] = (T[:, G].swapaxes(0, 1) @ C).swapaxes(0, 1)
    return product
