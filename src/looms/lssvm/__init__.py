"""The least-squares SVM and its exact leave-one-out, by several routes.

All give the same `looms.LeaveOneOut`: `solve` by a Cholesky factorisation, the one
to use; `decompose` by eigenvectors, for one kernel matrix and many μ;
`gauss_jordan_loo`, the reference algorithm of Saadi, Cawley & Talbot; `refit_loo`
by n refits, the oracle. `Solution.models` has the n leave-one-out models themselves.
"""

from looms.lssvm._held_out_sets import held_out_sets
from looms.lssvm._system import Fit, NotPositiveDefiniteError
from looms.lssvm.cholesky import Solution, solve, solve_in_place
from looms.lssvm.gauss_jordan import gauss_jordan_loo
from looms.lssvm.leave_one_out_models import LeaveOneOutModels
from looms.lssvm.refit import refit_loo
from looms.lssvm.spectral import Spectrum, decompose

__all__ = [
    "Fit",
    "LeaveOneOutModels",
    "NotPositiveDefiniteError",
    "Solution",
    "Spectrum",
    "decompose",
    "gauss_jordan_loo",
    "held_out_sets",
    "refit_loo",
    "solve",
    "solve_in_place",
]
