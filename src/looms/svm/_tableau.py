"""What follows from what at a solution: the tableau that all paths share.

With the margin equations solved, the coefficients of the margin set B and b (basic) and the
outputs of the others N (nonbasic) are linear in the coefficients of N and the outputs of B:

    [dβ_B; db; dF_N] = A [dF_B; dΣβ; dβ_N].

With R the reduced kernel and V = L⁻¹ R_BN, the part of A on N is the Schur complement
R_NN − VᵀV. A set that differs from B in k samples P takes a k×k system in A, not a new inverse.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, solve_triangular

from looms._typing import Array
from looms.svm._margin import Margin, reduced
from looms.svm._problem import Problem


def tableau(problem: Problem, margin: Margin | None) -> Array:
    """(n + 2, n + 2) Aᵀ: row j is how all answer to j. Index n is the intercept, n + 1 is zero.

    The last row and column pad index sets of different sizes.
    """
    K, n = problem.K, len(problem.y)
    AT = np.zeros((n + 2, n + 2))
    if margin is None:
        AT[:n, :n] = K
        AT[:n, n] = AT[n, :n] = 1.0
        return AT
    basic, p = margin.basic, margin.pivot
    nonbasic = np.ones(n, dtype=bool)
    nonbasic[basic] = False
    N = np.flatnonzero(nonbasic)
    RNN = reduced(K, p, N, N)
    M = np.zeros((len(basic), len(basic)))  # of β_B to F_B
    D = np.zeros((len(basic), len(N)))  # of β_B to β_N
    D[-1] = -1.0
    if len(margin.others):
        inverse = solve_triangular(margin.L, np.eye(len(margin.others)), lower=True)
        V = inverse @ margin.reduced(K, N)
        if len(N):
            RNN = blas.dgemm(-1.0, V.T, V, beta=1.0, c=RNN.T, overwrite_c=1).T
        R_inverse = inverse.T @ inverse
        M[:-1, :-1] = R_inverse
        M[:-1, -1] = M[-1, :-1] = -R_inverse.sum(axis=0)
        M[-1, -1] = R_inverse.sum()
        D[:-1] = -inverse.T @ V
        D[-1] -= D[:-1].sum(axis=0)
    to_sum = -M @ K[basic, p]  # of β_B to Σβ, which is also how b answers to F_B
    to_sum[-1] += 1.0
    AT[np.ix_(basic, basic)] = M
    AT[np.ix_(N, basic)] = D.T
    AT[np.ix_(basic, N)] = -D
    AT[np.ix_(N, N)] = RNN
    AT[n, basic] = AT[basic, n] = to_sum
    AT[n, n] = -K[p, basic] @ to_sum
    to_N = -K[p, N] - K[p, basic] @ D  # of b to β_N
    AT[N, n] = to_N
    AT[n, N] = -to_N
    return AT
