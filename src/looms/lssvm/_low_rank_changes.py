"""Changes of a machine on landmarks when rows are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks
from looms.lssvm.low_rank import Landmarks, Solution, triangular_product

_NUMBERS = 1 << 22  # in the rows of T of the units worked on at once


@dataclass(frozen=True, eq=False)
class _Squares:
    """Sum Σ t tᵀ over a block."""

    landmarks: Landmarks
    V: Array

    def __call__(self, X: Matrix) -> tuple[tuple[Array], tuple[()]]:
        T = triangular_product(self.V, self.landmarks.cross(X))
        return (T @ T.T,), ()


def changes_without(
    solution: Solution, blocks: ArrayBlocks, units: Sequence[AnyArray]
) -> tuple[Array, Array]:
    """Residuals of rows left out with their unit, and the mean squared change at all others.

    With the rows t of T, e_G = (I − T_G T_Gᵀ S_G)⁻¹ r_G and w = T_Gᵀ S_G e_G, at other rows

        f⁽⁻ᴳ⁾(x_j) − f(x_j) = −t_jᵀ w,    Σ_j (t_jᵀ w)² = wᵀ TᵀT w − ‖T_G w‖²;

    landmarks and n μ stay as they are.

    Parameters
    ----------
    solution : solution for the machine on all rows.
    blocks : rows of the fit.
    units : positions, increasing, of the rows that are left out together; all units together hold
        all rows.

    Returns
    -------
    residuals : (n, t) e.
    mean_squares : (n_units,) means over the rows outside of the unit, and over targets.

    Notes
    -----
    About 5 n m² flops; units of s rows add n s (m + s) flops and s (m + s) numbers.
    """
    zeta, r = solution.fit.sample_weight, solution.residuals
    n, t = r.shape
    (M,), _ = blocks.sweep(_Squares(solution.landmarks, solution.V))
    residuals, mean_squares = np.empty((n, t)), np.empty(len(units))
    for part, rows in _of_one_size(units, _NUMBERS // len(M)):
        K = solution.landmarks.cross(blocks.rows(rows.ravel()))
        T = triangular_product(solution.V, K).T.reshape(*rows.shape, len(M))
        held = np.eye(rows.shape[1]) - T @ (zeta[rows][:, :, None] * T).transpose(0, 2, 1)
        e = residuals[rows] = np.linalg.solve(held, r[rows])
        w = (T * zeta[rows][:, :, None]).transpose(0, 2, 1) @ e
        squares = np.sum(w * (M @ w), axis=(1, 2)) - np.sum((r[rows] - e) ** 2, axis=(1, 2))
        mean_squares[part] = np.maximum(squares, 0.0) / max(1, (n - rows.shape[1]) * t)
    return residuals, mean_squares


def _of_one_size(units: Sequence[AnyArray], most_rows: int) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Numbers of some units of equal size, and their rows, (n_units, n_rows)."""
    sizes = np.array([len(G) for G in units])
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = max(1, most_rows // int(size))
        for start in range(0, len(members), step):
            part = members[start : start + step]
            yield part, np.stack([units[k] for k in part])
