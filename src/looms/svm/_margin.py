"""The equations of the samples on the margin, F_S = y_S and Σβ = 0.

They are solved in the differences from one member p, in which [[K_SS, 1], [1ᵀ, 0]] becomes
the positive semi-definite R_ij = K_ij − K_ip − K_pj + K_pp: a pivoted Cholesky factorisation
finds which members depend on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from looms._typing import Array
from looms.svm._problem import EPS

Indices: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Margin:
    """Independent members of a margin set, factorised.

    Attributes
    ----------
    pivot : the member p that the others are measured from.
    others : (m,) independent members beside it.
    dependent : (d,) members whose outputs follow from those of the independent ones.
    L : (m, m) lower Cholesky factor of R.
    """

    pivot: int
    others: Indices
    dependent: Indices
    L: Array

    @property
    def basic(self) -> Indices:
        """The independent members, the pivot last."""
        return np.append(self.others, self.pivot)

    def changes(self, errors: Array) -> Array:
        """(m + 1,) changes of β on `basic` that take ``errors`` of the outputs away."""
        if len(self.others) == 0:
            return np.zeros(1)
        z, _ = lapack.dpotrs(self.L, errors[:-1] - errors[-1], lower=1)
        return np.append(z, -z.sum())

    def reduced(self, K: Array, columns: Indices) -> Array:
        """(m, len(columns)) R between the other members and ``columns``."""
        return reduced(K, self.pivot, self.others, columns)


def reduced(K: Array, pivot: int, rows: Indices, columns: Indices) -> Array:
    """Inner products of differences from the pivot."""
    right = K[pivot, columns] - K[pivot, pivot]
    return np.asarray((K[np.ix_(rows, columns)] - K[rows, pivot][:, None]) - right)


def factorise(K: Array, members: Indices, pivot: int) -> Margin:
    """The independent part of ``members``, which contain ``pivot``."""
    rest = members[members != pivot]
    if len(rest) == 0:
        return Margin(pivot, rest, rest, np.zeros((0, 0)))
    R = reduced(K, pivot, rest, rest)
    tolerance = 4 * EPS * len(rest)  # |K| ≤ 1: below it a pivot is rounding
    factor, order, rank, _ = lapack.dpstrf(R, tol=tolerance, lower=1)
    order = order - 1
    if rank == 1 and R[order[0], order[0]] <= tolerance:
        rank = 0
    L = np.asfortranarray(np.tril(factor[:rank, :rank]))
    return Margin(pivot, rest[order[:rank]], rest[order[rank:]], L)
