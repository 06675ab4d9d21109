"""The least-squares SVM and its exact leave-one-out, by several routes.

All give the same `looms.LeaveOneOut`: `solve` by a Cholesky factorisation, the one
to use; `decompose` by eigenvectors, for one kernel matrix and many μ;
`gauss_jordan_loo`, the reference algorithm of Saadi, Cawley & Talbot; `refit_loo`
by n refits, the oracle.
"""

from looms.lssvm._system import NotPositiveDefiniteError
from looms.lssvm.cholesky import Fit, Solution, solve, solve_in_place
from looms.lssvm.gauss_jordan import cached_flops, gauss_jordan_loo, plain_flops
from looms.lssvm.refit import refit_loo
from looms.lssvm.spectral import Spectrum, decompose

__all__ = [
    "Fit",
    "NotPositiveDefiniteError",
    "Solution",
    "Spectrum",
    "cached_flops",
    "decompose",
    "gauss_jordan_loo",
    "plain_flops",
    "refit_loo",
    "solve",
    "solve_in_place",
]
