"""Tableau of a solution: linear responses of coefficients and outputs, shared by all paths.

With the margin equations solved, the coefficients of the margin set B and b (basic) and the
outputs of the others N (nonbasic) are linear in the coefficients of N and the outputs of B
[docs/references.md, Leave-one-out path]:
    [dβ_B; db; dF_N] = A [dF_B; dΣβ; dβ_N].

With R the reduced kernel and V = L⁻¹ R_BN, the part of A on N is the Schur complement
R_NN − VᵀV. A set that differs from B in k samples P takes a k×k system in A, not a new inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, solve_triangular

from looms._typing import Array
from looms.svm._margin import Indices, Margin
from looms.svm._problem import Problem


@dataclass(frozen=True, eq=False)
class Tableau:
    """Rows and columns of A for the samples of the paths, transposed.

    Attributes
    ----------
    samples : (c,) samples that may change, those of B first.
    n_basic : size of B.
    responses : (r, c + 2) row j is the change of u, which is β of B and F of the others, per unit
        of z_j: column j of A. Row and column c are the intercept, c + 1 is zero and pads index
        sets of different sizes; further rows are of samples that are only left out.
    place : (n,) row of each sample, -1 for none.
    """

    samples: Indices
    n_basic: int
    responses: Array
    place: Indices

    @property
    def intercept(self) -> int:
        return len(self.samples)

    @property
    def padding(self) -> int:
        return len(self.samples) + 1


def tableau(problem: Problem, margin: Margin | None, near: Indices, left_out: Indices) -> Tableau:
    """Tableau at a solution for changes of ``near`` and the margin, with ``left_out`` driven."""
    n = len(problem.y)
    B = np.empty(0, dtype=np.intp) if margin is None else margin.basic
    N = np.setdiff1d(near, B)
    driven = np.setdiff1d(left_out, np.concatenate([B, N]))
    samples = np.concatenate([B, N])
    c = len(samples)
    place = np.full(n, -1)
    place[samples] = np.arange(c)
    place[driven] = np.arange(c + 2, c + 2 + len(driven))
    responses = np.zeros((c + 2 + len(driven), c + 2))
    J = np.concatenate([N, driven])
    rows_J = np.concatenate([np.arange(len(B), c), np.arange(c + 2, len(responses))])
    if margin is None:
        responses[rows_J, :c] = problem.K[np.ix_(J, N)]
        responses[rows_J, c] = responses[c, :c] = 1.0
    else:
        _fill(responses, rows_J, problem.K, margin, N, J)
    return Tableau(samples, len(B), responses, place)


def _fill(
    responses: Array, rows_J: Indices, K: Array, margin: Margin, N: Indices, J: Indices
) -> None:
    """Write the responses to the margin, to b and to the samples J, of which N come first."""
    B, p, q, c = margin.basic, margin.pivot, len(margin.others), len(margin.others) + 1 + len(N)
    inverse = solve_triangular(margin.L, np.eye(q), lower=True) if q else np.zeros((0, 0))
    V = inverse @ margin.reduced(K, J)
    T = K[np.ix_(J, N)]
    T -= (K[p, J] - K[p, p])[:, None]
    T -= K[p, N]
    if V.size and len(N):
        T = blas.dgemm(-1.0, V[:, : len(N)], V, beta=1.0, c=T.T, trans_a=1, overwrite_c=1).T
    D = np.empty((len(J), q + 1))  # of β_B to β_J
    D[:, :q] = -V.T @ inverse
    D[:, q] = -1.0 - D[:, :q].sum(axis=1)
    M = np.empty((q + 1, q + 1))  # of β_B to F_B
    M[:q, :q] = inverse.T @ inverse
    M[:q, q] = M[q, :q] = -M[:q, :q].sum(axis=0)
    M[q, q] = -M[q, :q].sum()
    to_sum = -M @ K[B, p]  # of β_B to Σβ, and of b to F_B
    to_sum[q] += 1.0
    to_J = -K[p, J] - D @ K[B, p]  # of b to β_J
    responses[: q + 1, : q + 1] = M
    responses[: q + 1, q + 1 : c] = -D[: len(N)].T
    responses[: q + 1, c] = responses[c, : q + 1] = to_sum
    responses[c, c] = -K[p, B] @ to_sum
    responses[c, q + 1 : c] = -to_J[: len(N)]
    responses[rows_J, : q + 1] = D
    responses[rows_J, q + 1 : c] = T
    responses[rows_J, c] = to_J
