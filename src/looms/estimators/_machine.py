"""What all estimators share: samples in, one least-squares SVM out, predictions from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.estimators._weights import checked_sample_weight
from looms.kernels import Kernel, Samples, as_kernel, centre_of, expansion
from looms.leave_one_out import LeaveOneOut
from looms.lssvm import Fit


class LeastSquaresMachine(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: validation, the fitted machine, its outputs."""

    kernel: Any
    fit_intercept: bool
    kernel_: Kernel
    mu_: float
    dual_coef_: Array
    intercept_: Any
    X_fit_: Matrix
    loo_: LeaveOneOut

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = any(
            kernel == "precomputed" or getattr(kernel, "pairwise", False)
            for kernel in one_or_many(self.kernel)
        )
        return tags

    def _checked_data(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """Validated samples, targets and weights (raw, zeros kept)."""
        check_flag("fit_intercept", self.fit_intercept)
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
        if self.__sklearn_tags__().input_tags.pairwise:
            check_kernel_matrix(X)
        return X, y, checked_sample_weight(sample_weight, X)

    def _kernels(self) -> list[Kernel]:
        return [as_kernel(kernel) for kernel in one_or_many(self.kernel)]

    def _store(
        self, X: Matrix, weight: Array, y: Array, kernel: Kernel, mu: float, fit: Fit
    ) -> None:
        """Keep a machine that was fitted to the samples of positive weight.

        The others get coefficient zero and, as leave-one-out output, the output of
        the machine that never saw them.
        """
        self.X_fit_ = X
        self.kernel_ = kernel
        self.mu_ = mu
        self.intercept_ = fit.intercept
        seen = weight > 0
        if seen.all():
            self.dual_coef_, outputs = fit.alpha, fit.loo.outputs
        else:
            self.dual_coef_, outputs = np.zeros(y.shape), np.empty(y.shape)
            self.dual_coef_[seen] = fit.alpha
            outputs[seen] = fit.loo.outputs
            outputs[~seen] = self._outputs(X[~seen])
        self.loo_ = LeaveOneOut(y, outputs, weight)

    def _checked_new_data(self, X: Any) -> Matrix:
        check_is_fitted(self, "dual_coef_")  # a fit that failed may have left other attributes
        return validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=False, dtype=np.float64, reset=False
        )

    def _outputs(self, X: Matrix) -> Array:
        """f(x) = Σ_j α_j k(x_j, x) + b for validated samples."""
        n_fit = len(self.dual_coef_)
        # For a precomputed kernel X_fit_ is the kernel matrix, of which only the size counts.
        basis = Samples(self.X_fit_, centre=centre_of(self.X_fit_))
        with blas_threads(max(n_fit, X.shape[0])):
            expanded = expansion(self.kernel_, X, basis, self.dual_coef_)
        return np.asarray(expanded + self.intercept_)


def check_flag(name: str, value: Any) -> None:
    """ValueError unless ``value`` is True or False: a string such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def one_or_many(parameter: Any) -> list[Any]:
    """The members of a list or tuple, or the one thing that is not a list."""
    return list(parameter) if isinstance(parameter, (list, tuple)) else [parameter]


def training_rows(X: Matrix, rows: Any, pairwise: bool) -> Matrix:
    """Samples ``rows`` of a training set, which for a kernel matrix are columns too."""
    return X[rows][:, rows] if pairwise else X[rows]


def check_kernel_matrix(K: Matrix) -> None:
    """ValueError unless ``K`` is square, symmetric and positive semi-definite up to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed kernel matrix should be a square matrix, got shape {K.shape}: one row "
            "and one column a training sample."
        )
    K = K.toarray() if hasattr(K, "toarray") else K
    scale = float(np.abs(K).max())
    asymmetry = float(np.abs(K - K.T).max())
    if asymmetry > 1e-8 * scale:
        raise ValueError(
            f"The precomputed kernel matrix is not symmetric: K and its transpose differ by "
            f"{asymmetry:.3g}. If that is rounding, pass (K + K.T) / 2."
        )
    shifted = K.copy()
    shifted[np.diag_indices_from(K)] += 1e-8 * (scale or 1.0) * len(K)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(K)[0])
        raise ValueError(
            "The precomputed kernel matrix is not positive semi-definite: its smallest eigenvalue "
            f"is {smallest:.3g}. Clip or flip its negative eigenvalues, or use a valid kernel."
        ) from None
