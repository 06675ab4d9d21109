"""Least-squares SVM and its models without any rows, by several routes.

`solve` takes a kernel matrix, by a Cholesky factorization; ``spectral.decompose`` one kernel matrix
and many μ, by an eigendecomposition; ``landmarks.Streamed`` few landmarks, with rows in blocks;
``features.decompose_features`` the linear kernel with few features. Each gives a projection P,
with the outputs without any unit of rows (``projection.Projection``). ``refit.refit_loo`` makes n
refits, the oracle.
"""

from looms.lssvm._system import NotPositiveDefiniteError
from looms.lssvm.solve import solve

__all__ = [
    "NotPositiveDefiniteError",
    "solve",
]
