"""Least-squares SVM and its models without any rows, by several routes.

`solve` takes a kernel matrix, by a Cholesky factorization; `decompose` one kernel matrix and many
μ, by an eigendecomposition; ``landmarks.Streamed`` few landmarks, with rows in blocks;
``features.decompose_features`` the linear kernel with few features. Each gives a projection P,
with the outputs without any unit of rows (``projection.Projection``). `refit_loo` makes n refits,
the oracle.
"""

from looms.lssvm._system import NotPositiveDefiniteError
from looms.lssvm.refit import refit_loo
from looms.lssvm.solve import solve
from looms.lssvm.spectral import decompose

__all__ = [
    "NotPositiveDefiniteError",
    "decompose",
    "refit_loo",
    "solve",
]
