"""Least-squares SVM and its exact leave-one-out outputs, by several routes.

All routes return the same `looms.HeldOut`: `solve` by a Cholesky factorization, the
default; ``low_rank.solve`` on landmarks, for rows in blocks; ``features.decompose_features`` for
the linear kernel with few features; `decompose` by an eigendecomposition, for one kernel matrix
and many μ; `gauss_jordan_loo`, the reference algorithm of Saadi, Cawley & Talbot; `refit_loo` by
n refits, the oracle. `Solution.models` returns the n leave-one-out models themselves.
"""

from looms.lssvm._system import NotPositiveDefiniteError
from looms.lssvm.cholesky import solve
from looms.lssvm.gauss_jordan import gauss_jordan_loo
from looms.lssvm.refit import refit_loo
from looms.lssvm.spectral import decompose

__all__ = [
    "NotPositiveDefiniteError",
    "decompose",
    "gauss_jordan_loo",
    "refit_loo",
    "solve",
]
