"""Dual problem of a scikit-learn SVC: its kernel matrix and bounds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from looms._recording import recorded_warnings
from looms._threads import blas_threads
from looms._typing import Array
from looms.held_out import HeldOut
from looms.kernels import RBF
from looms.kernels._samples import Pairs, samples_of
from looms.svm._problem import KKT_TOLERANCE, Loss, RoundingWarning, checked, problem_of
from looms.svm.dual import DualSolution, solve, solve_convex


def leave_one_out(
    svc: Any,
    X: Any,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    loss: Loss = "hinge",
) -> HeldOut:
    """Exact leave-one-out decision values of a two-class ``sklearn.svm.SVC``.

    Entry ``i`` is the decision value for sample ``i`` of the model trained on the others,
    positive for ``classes_[1]``. The KKT conditions of each of these models hold to 1e-9,
    whereas with ``cross_val_predict`` and ``LeaveOneOut`` they hold to the tolerance of LIBSVM.

    Parameters
    ----------
    svc : SVC, with any kernel that is positive semi-definite on ``X``; looms kernels are callables.
        It is not changed, and is solved anew, so that the result always belongs to the arguments.
        A fitted SVC must be fitted to them; they are compared with the samples, labels and bounds
        that it keeps.
    X : (n, n_features) array, data frame or sparse matrix, or the (n, n) matrix of a precomputed
        kernel. A callable kernel receives an array if ``X`` is numeric.
    y : (n,) labels of two classes.
    sample_weight : (n,) weights, the factor of C for each sample; ones by default. Samples of
        weight zero are ignored in training, but have an output.
    loss : "hinge", as in an SVC, or "squared_hinge" for the 2-norm model with the same kernel, C
        and weights.

    Returns
    -------
    loo : labels as -1 and 1 for ``classes_[0]`` and ``classes_[1]``, with ``sample_weight``.

    Raises
    ------
    TypeError
        If ``svc`` is not an SVC.
    ValueError
        For more than two classes, or if a fitted ``svc`` was fitted to other arguments.
    IndefiniteKernelError
        If the kernel is not positive semi-definite on ``X``, as with most sigmoid kernels. LIBSVM
        then stops at some stationary point, and which one without a sample is undefined.
    NotConvergedError
        If the KKT conditions cannot be met in double precision.

    Warns
    -----
    RoundingWarning
        If for some samples the KKT conditions do not hold to 1e-9, or may not, because the
        rounding of the outputs, 2.2e-16 Σ_j α_j times the largest value of the kernel (minus a
        constant), exceeds that. It has the number of these samples and the exactness.

    Notes
    -----
    The error of the output of a left-out sample is that of the KKT conditions times the condition
    of the equations on the margin. Compared with solutions of the same kernel matrices in extended
    precision, the error was below 1e-9 (1 + |f|) without a warning, mostly near 1e-15, and below
    twice the exactness in the warning otherwise.

    ``gamma="scale"`` and ``class_weight="balanced"`` keep their full-sample values while a sample
    is held out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> leave_one_out(SVC(kernel="linear", C=10), X, ["a", "a", "b", "b"]).outputs.round(6)
    array([-2.      , -0.333333,  0.      ,  3.      ])
    """
    problem = dual_problem(svc, X, y, sample_weight)
    outputs, to = problem.solve(loss).leave_one_out()
    if to.max() > KKT_TOLERANCE:
        warnings.warn(
            RoundingWarning(int((to > KKT_TOLERANCE).sum()), len(to), to.max()), stacklevel=2
        )
    return HeldOut(problem.y, outputs.diagonal().copy(), problem.sample_weight)


@dataclass(frozen=True, eq=False)
class SVCProblem:
    """Arguments of `solve` from an SVC.

    Attributes
    ----------
    K : (n, n) kernel matrix.
    y : (n,) labels, 1 for ``classes_[1]``, else -1.
    C : (n,) C times sample weight and class weight.
    sample_weight : (n,) as given, or ones.
    semidefinite : whether the kernel is always positive semi-definite, so that ``K`` need not be
        checked.
    """

    K: Array
    y: Array
    C: Array
    sample_weight: Array
    semidefinite: bool = False

    def solve(self, loss: Loss = "hinge") -> DualSolution:
        """Solution to machine precision."""
        if not self.semidefinite:
            return solve(self.K, self.y, self.C, loss=loss)
        K, y, C = checked(self.K, self.y, self.C, loss)
        return solve_convex(problem_of(K, y, C, loss), y, C, None)


def dual_problem(
    svc: Any, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> SVCProblem:
    """Dual problem of a two-class SVC on these samples, whose clone sees them for one iteration."""
    if not any(
        one.__name__ == "SVC" and one.__module__.startswith("sklearn.svm")
        for one in type(svc).__mro__
    ):
        raise TypeError(
            "leave_one_out takes a sklearn.svm.SVC, fitted or not, but got "
            f"{svc if isinstance(svc, type) else type(svc).__name__}; for a pipeline, give its SVC "
            "and the samples as transformed by its other steps."
        )
    labels, X = np.asarray(y), _array_of_numbers(X)
    classes, n = np.unique(labels), len(labels)
    if len(classes) > 2:
        raise ValueError(
            f"leave_one_out takes two classes, but y has {len(classes)}: call it for "
            "each pair of classes, one against one."
        )
    own = clone(svc).set_params(max_iter=1)  # for gamma, class weights and checks of arguments
    with recorded_warnings() as recorded:
        own.fit(X, labels, sample_weight=sample_weight)
    for warning in recorded:
        if "Solver terminated early" not in str(warning):
            warnings.warn(warning, stacklevel=3)
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    signs = np.where(labels == own.classes_[1], 1.0, -1.0)
    C = own.C * weight * own.class_weight_[(signs > 0).astype(np.intp)]
    if hasattr(svc, "dual_coef_") and not _may_be_of(svc, own, X, signs * C):
        raise ValueError(
            "This SVC was fitted to other samples, labels or weights than those passed: fit it to "
            "them, or pass it unfitted."
        )
    return SVCProblem(kernel_matrix(own, X), signs, C, weight, _always_semidefinite(svc))


def kernel_matrix(svc: Any, X: Any) -> Array:
    """Kernel matrix of the samples of a fitted SVC, (n, n)."""
    X = _array_of_numbers(X)
    if isinstance(svc.kernel, str) and svc.kernel == "precomputed":
        return np.asarray(X, dtype=np.float64)
    with blas_threads(np.shape(X)[0]):
        if callable(svc.kernel):
            K = svc.kernel(X, X)
            return np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        pairs = Pairs(*samples_of(X, None))
        if svc.kernel == "linear":
            return pairs.dot
        if svc.kernel == "rbf":
            return RBF(svc._gamma).values(pairs)
        inner = svc._gamma * pairs.dot + svc.coef0
        return np.asarray(inner**svc.degree if svc.kernel == "poly" else np.tanh(inner))


def _array_of_numbers(X: Any) -> Any:
    """``X`` as a float64 array or CSR matrix; unchanged if it is not numeric, such as texts."""
    if sp.issparse(X):
        return sp.csr_array(X, dtype=np.float64)
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return X


def _always_semidefinite(svc: Any) -> bool:
    """True if the kernel is positive semi-definite on any samples (gamma is never negative)."""
    if svc.kernel == "poly":  # a sum of powers of inner products, of coefficients ≥ 0
        return bool(svc.coef0 >= 0 and svc.degree == int(svc.degree))
    return svc.kernel in ("linear", "rbf")


def _may_be_of(svc: Any, own: Any, X: Any, bounds: Array) -> bool:
    """False if a fitted SVC has other samples, classes or bounds of its coefficients y α."""
    rows = np.flatnonzero(bounds)  # LIBSVM counts only rows with a weight
    if svc.shape_fit_[0] != len(bounds) or not np.array_equal(svc.classes_, own.classes_):
        return False
    if svc.support_.max(initial=0) >= len(rows):
        return False
    support = rows[svc.support_]
    share = sp.csr_array(svc.dual_coef_).toarray()[0] / bounds[support]
    if ((share < 0) | (share > 1 + 1e-6)).any():
        return False
    if svc.kernel == "precomputed" or callable(svc.kernel):
        return True
    same = X[support].shape == svc.support_vectors_.shape
    return bool(same and abs(X[support] - svc.support_vectors_).max() == 0)
