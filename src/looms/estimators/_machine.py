"""What estimators share: samples in, a kernel machine out, predictions from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.estimators._weights import checked_sample_weight
from looms.kernels import Kernel
from looms.kernels._gram import expansion
from looms.kernels._names import as_kernel
from looms.kernels._samples import Samples, centre_of
from looms.leave_one_out import LeaveOneOut
from looms.lssvm._system import Fit

_ROWS = 256  # compared at a time, so that a kernel matrix is not copied for it


class KernelMachine(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: kernels, validated samples, fitted attributes set at once."""

    kernel: Any
    dual_coef_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = any(
            kernel == "precomputed" or getattr(kernel, "pairwise", False)
            for kernel in one_or_many(self.kernel)
        )
        return tags

    def _validated(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """Validated samples, targets and weights (raw, zeros kept)."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            accept_large_sparse=False,
            dtype=np.float64,
            ensure_min_samples=2,
            **options,
        )
        X = without_duplicates(X)
        return X, y, checked_sample_weight(sample_weight, X)

    def _kernels(self) -> list[Kernel]:
        return [as_kernel(kernel) for kernel in one_or_many(self.kernel)]

    def _set_fitted(self, **attributes: Any) -> None:
        """Set fitted attributes, all at once: a fit that failed before changed none of them."""
        for name, value in attributes.items():
            setattr(self, name, value)

    def _checked_new_data(self, X: Any) -> Matrix:
        check_is_fitted(self, "dual_coef_")  # a fit that failed may have left other attributes
        X = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=False, dtype=np.float64, reset=False
        )
        return without_duplicates(X)


class LeastSquaresMachine(KernelMachine):
    """Base of the least-squares machines: the fitted machine, its outputs."""

    fit_intercept: bool
    kernel_: Kernel
    mu_: float
    intercept_: Any
    X_fit_: Matrix
    fit_weight_: Array
    fit_intercept_: bool
    loo_: LeaveOneOut

    def _checked_data(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """Validated samples, targets and weights (raw, zeros kept)."""
        check_flag("fit_intercept", self.fit_intercept)
        return self._validated(X, y, sample_weight, **options)

    def _set_fitted(self, **attributes: Any) -> None:
        self.__dict__.pop("_machine_models", None)
        super()._set_fitted(fit_intercept_=bool(self.fit_intercept), **attributes)

    def __getstate__(self) -> Any:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_machine_models"}

    def _outputs(self, X: Matrix) -> Array:
        """f(x) = Σ_j α_j k(x_j, x) + b for validated samples."""
        return outputs(self.kernel_, X, self.X_fit_, self.dual_coef_, self.intercept_)


def fitted_machine(
    X: Matrix, weight: Array, y: Array, kernel: Kernel, mu: float, fit: Fit
) -> dict[str, Any]:
    """Fitted attributes of a machine that was fitted to the samples of positive weight.

    The others get coefficient zero and, as leave-one-out output, the output of
    the machine that never saw them.
    """
    seen = weight > 0
    dual_coef, loo, fit_weight = fit.alpha, fit.outputs, fit.sample_weight
    if not seen.all():
        fit_weight = np.zeros(len(y))
        fit_weight[seen] = fit.sample_weight
        dual_coef, loo = np.zeros(y.shape), np.empty(y.shape)
        dual_coef[seen] = fit.alpha
        loo[seen] = fit.outputs
        loo[~seen] = outputs(kernel, X[~seen], X, dual_coef, fit.intercept)
    return {
        "X_fit_": X,
        "kernel_": kernel,
        "mu_": mu,
        "intercept_": fit.intercept,
        "dual_coef_": dual_coef,
        "fit_weight_": fit_weight,
        "loo_": LeaveOneOut(y, loo, weight),
    }


def outputs(kernel: Kernel, X: Matrix, X_fit: Matrix, dual_coef: Array, intercept: Any) -> Array:
    """f(x) = Σ_j α_j k(x_j, x) + b for validated samples."""
    # For a precomputed kernel X_fit is the kernel matrix, of which only the size counts.
    basis = Samples(X_fit, centre=centre_of(X_fit))
    with blas_threads(max(len(dual_coef), X.shape[0])):
        expanded = expansion(kernel, X, basis, dual_coef)
    return np.asarray(expanded + intercept)


def without_duplicates(X: Matrix) -> Matrix:
    """Sparse ``X`` with every entry stored once, in order; a copy where that takes a change."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def check_flag(name: str, value: Any) -> None:
    """ValueError unless ``value`` is True or False: a string such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def one_or_many(parameter: Any) -> list[Any]:
    """The members of a list or tuple, or the one thing that is not a list."""
    return list(parameter) if isinstance(parameter, (list, tuple)) else [parameter]


def check_kernel_matrix(K: Matrix) -> None:
    """ValueError unless ``K`` is square, symmetric and positive semi-definite up to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed kernel matrix should be a square matrix, got shape {K.shape}: one row "
            "and one column a training sample."
        )
    K = K.toarray() if hasattr(K, "toarray") else K
    scale = float(max(K.max(), -K.min()))
    asymmetry = max(
        float(np.abs(K[i : i + _ROWS] - K[:, i : i + _ROWS].T).max())
        for i in range(0, len(K), _ROWS)
    )
    if asymmetry > 1e-8 * scale:
        raise ValueError(
            f"The precomputed kernel matrix is not symmetric: K and its transpose differ by "
            f"{asymmetry:.3g}. If that is rounding, pass (K + K.T) / 2."
        )
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(K)] += 1e-8 * (scale or 1.0) * len(K)
    with blas_threads(len(K)):
        _, failed = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return
        smallest = float(np.linalg.eigvalsh(K)[0])
    raise ValueError(
        "The precomputed kernel matrix is not positive semi-definite: its smallest eigenvalue "
        f"is {smallest:.3g}. Clip or flip its negative eigenvalues, or use a valid kernel."
    )
