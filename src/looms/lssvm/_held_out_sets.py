"""Residuals of sets of rows that are held out together, in closed form.

Without the rows G, the machine trained on the others has residuals

    e_G = (P_GG)⁻¹ α_G,    P = M⁻¹ − η ηᵀ / Ση,

of which leave-one-out, e_i = α_i / p_i, is the case of one row. λ_i = n μ / ζ_i stays as
it is while rows are out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError


def held_out_sets(groups: npt.ArrayLike | None, n: int) -> tuple[AnyArray, ...]:
    """Rows of every group that has two or more, each in increasing order.

    Parameters
    ----------
    groups : (n,) label of the group of each row; None for each row by itself.
    n : number of rows.

    Raises
    ------
    ValueError
        If there is not one label a row, or all rows are in one group.
    """
    if groups is None:
        return ()
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must have one label per row, {n} of them, but has shape {labels.shape}."
        )
    _, number, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(sizes) == 1:
        raise ValueError("All rows are in one group: holding it out leaves none to train on.")
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(sizes) - sizes
    return tuple(order[starts[k] : starts[k] + sizes[k]] for k in np.flatnonzero(sizes > 1))


class HeldOutBlocks:
    """Factorized diagonal blocks of P that belong to sets of rows.

    Parameters
    ----------
    p : (n,) diagonal of P, positive: the blocks of the rows that are in no set.
    sets : rows of each set; disjoint.
    block : P_GG for the rows G of a set.
    mu : regularization, for messages.

    Raises
    ------
    LeverageError
        If the machine without some set is singular in double precision.

    Notes
    -----
    Σ |G|³ / 3 flops.
    """

    def __init__(
        self, p: Array, sets: Sequence[AnyArray], block: Callable[[AnyArray], Array], mu: float
    ) -> None:
        self.p = p
        self.sets = sets
        self._factors = []
        for G in sets:
            P_GG = block(G)
            smallest = len(p) * np.finfo(np.float64).eps * P_GG.diagonal()
            R, failed = lapack.dpotrf(np.asfortranarray(P_GG), lower=1, overwrite_a=1)
            safe = R.diagonal() ** 2 > smallest
            if failed or not safe.all():
                raise LeverageError(mu, int(G[failed - 1 if failed else np.argmin(safe)]))
            self._factors.append(R)

    def solve(self, columns: Array) -> Array:
        """Blocks⁻¹ times (n, t) columns: residuals from α, and U from ∂J/∂e."""
        solved = np.asarray(columns / self.p[:, None])
        for G, R in zip(self.sets, self._factors, strict=True):
            solved[G], _ = lapack.dpotrs(R, np.asfortranarray(columns[G]), lower=1)
        return solved

    def eigen(self, e: Array, u: Array) -> tuple[Array, list[Array]]:
        """Eigenvalues h and eigenvectors of the block-diagonal H = ½ Σ_t (e uᵀ + u eᵀ).

        Parameters
        ----------
        e, u : (n, t) columns.

        Returns
        -------
        h : (n,) eigenvalues; those of a set of rows stand in the first places of its rows, at
            most 2t of them, and the rest there is zero.
        vectors : (|G|, ≤ 2t) eigenvectors of each set.
        """
        h = np.einsum("nt,nt->n", e, u)
        vectors = []
        for G in self.sets:
            Q, R = np.linalg.qr(np.hstack([e[G], u[G]]))
            half = R[:, : e.shape[1]] @ R[:, e.shape[1] :].T
            values, V = np.linalg.eigh(0.5 * (half + half.T))
            h[G] = 0.0
            h[G[: len(values)]] = values
            vectors.append(Q @ V)
        return h, vectors
