"""Equations of the samples on the margin, F_S = y_S and Σβ = 0.

Solved in the differences from one member p [docs/references.md, Leave-one-out path], in which
[[K_SS, 1], [1ᵀ, 0]] becomes the positive semi-definite R_ij = K_ij − K_ip − K_pj + K_pp. A pivoted
Cholesky factorization separates the dependent members.
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
    """Factorized equations of the independent members of a margin set.

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
        """Independent members, the pivot last."""
        return np.append(self.others, self.pivot)

    def changes(self, errors: Array) -> Array:
        """Changes of β on `basic`, (m + 1,), that cancel ``errors`` of the outputs."""
        if len(self.others) == 0:
            return np.zeros(1)
        z, _ = lapack.dpotrs(self.L, errors[:-1] - errors[-1], lower=1)
        return np.append(z, -z.sum())

    def reduced(self, K: Array, columns: Indices) -> Array:
        """R between the other members and ``columns``, (m, len(columns))."""
        return reduced(K, self.pivot, self.others, columns)


def reduced(K: Array, pivot: int, rows: Indices, columns: Indices) -> Array:
    """Reduced kernel R, the inner products of differences from the pivot."""
    right = K[pivot, columns] - K[pivot, pivot]
    return np.asarray((K[np.ix_(rows, columns)] - K[rows, pivot][:, None]) - right)


def factorize(K: Array, members: Indices, pivot: int) -> Margin:
    """Margin of the independent part of ``members``, which contain ``pivot``."""
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
