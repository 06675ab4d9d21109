"""Base of the machines: samples in, a fit with given values, predictions from it."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._kernel_matrix import check_kernel_matrix
from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.estimators._intervals import MachineModels
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, check_finite_lower, expansion, gram_into
from looms.kernels._names import as_kernel
from looms.kernels._samples import Samples, as_matrix, center_of, check_scale, training_rows
from looms.lssvm._held_out_sets import held_out_sets
from looms.lssvm._system import Fit
from looms.lssvm.cholesky import solve_in_place

# Beside weights larger than this by its inverse, too few digits of a sample's ridge are left
# for the machine without one of the heavy samples.
_NEGLIGIBLE = 1e-10


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
        """Samples that all kernels take, targets, and weights as given, zeros kept."""
        pairwise = {kernel.pairwise for kernel in self._kernels()}
        if len(pairwise) > 1:
            raise ValueError(
                "Precomputed kernels and kernels of features cannot be candidates for the same X."
            )
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
        X = as_matrix(X)
        weight = checked_sample_weight(sample_weight, len(y))
        if pairwise == {True}:
            with blas_threads(len(y)):
                check_kernel_matrix(X.toarray() if sp.issparse(X) else X)
        return X, y, weight

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
        return as_matrix(X)


class LeastSquaresMachine(KernelMachine):
    """Base of the least-squares machines: the fitted machine, its outputs."""

    fit_intercept: bool
    kernel_: Kernel
    mu_: float
    intercept_: Any
    X_fit_: Matrix
    fit_weight_: Array
    fit_intercept_: bool
    loo_: HeldOut

    def _set_fitted(self, **attributes: Any) -> None:
        self.__dict__.pop("_machine_models", None)
        super()._set_fitted(fit_intercept_=bool(self.fit_intercept), **attributes)

    def __getstate__(self) -> Any:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_machine_models"}

    def leave_one_out_models(self) -> MachineModels:
        """The n models that are each fitted without one sample, or one group of copies.

        A fit keeps coefficients only: the inverse that these models need is n² numbers, too many
        to keep in memory after every fit and in every model file. It is made again from the
        training samples at the first call, for n³ flops, and kept with the machine, out of
        its pickled and saved state, until the machine is fitted anew.

        Returns
        -------
        models : MachineModels
            ``models.seen`` tells which samples took part; ``models.outputs(X)`` gives the outputs
            of all models at new samples, ``models.models`` their residuals and changes.
        """
        check_is_fitted(self, "dual_coef_")
        kept: MachineModels | None = vars(self).get("_machine_models")
        if kept is not None:
            return kept
        X, kernel, seen = self.X_fit_, self.kernel_, self.fit_weight_ > 0
        n = int(seen.sum())
        X_seen = X if seen.all() else training_rows(X, np.flatnonzero(seen), kernel.pairwise)
        groups = getattr(self, "groups_", None)
        K = np.empty((n, n), order="F")
        with blas_threads(n):
            gram_into(K, kernel, GramBlocks(X_seen, frozenset()))
            solution = solve_in_place(
                K,
                self.loo_.y[seen],
                self.mu_,
                self.fit_weight_[seen],
                fit_intercept=self.fit_intercept_,
                sets=held_out_sets(None if groups is None else groups[seen], n),
            )
            models = solution.models()
        self._machine_models = MachineModels(models, seen, kernel, Samples(X, center=center_of(X)))
        return self._machine_models

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
        "loo_": HeldOut(y, loo, weight),
    }


def outputs(kernel: Kernel, X: Matrix, X_fit: Matrix, dual_coef: Array, intercept: Any) -> Array:
    """f(x) = Σ_j α_j k(x_j, x) + b for validated samples."""
    # For a precomputed kernel X_fit is the kernel matrix, of which only the size counts.
    basis = Samples(X_fit, center=center_of(X_fit))
    with blas_threads(max(len(dual_coef), X.shape[0])):
        expanded = expansion(kernel, X, basis, dual_coef)
    return np.asarray(expanded + intercept)


def check_flag(name: str, value: Any) -> None:
    """ValueError unless ``value`` is True or False: a string such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def one_or_many(parameter: Any) -> list[Any]:
    """The members of a list or tuple, or the one thing that is not a list."""
    return list(parameter) if isinstance(parameter, (list, tuple)) else [parameter]


def fit_given(estimator: Any, X: Matrix, targets: Array, fit_weight: Array) -> tuple[Kernel, Fit]:
    """The estimator's kernel with all its values, and its machine on samples of positive weight.

    ``fit_weight`` is rescaled to mean one over these, so that integer weights are copies.
    """
    check_flag("fit_intercept", estimator.fit_intercept)
    mu = estimator.mu
    if not (isinstance(mu, Real) and 0 < float(mu) < np.inf):
        raise ValueError(f"mu must be a positive number, got {mu!r}.")
    if isinstance(estimator.kernel, (list, tuple)):
        name = type(estimator).__name__
        raise ValueError(
            f"{name} takes one kernel, got a list of {len(estimator.kernel)}; {name}CV chooses "
            "among several."
        )
    (kernel,) = estimator._kernels()
    if not kernel.pairwise:
        check_scale(X)
    seen = np.flatnonzero(fit_weight > 0)
    if len(seen) < 2:
        raise ValueError(
            f"Leave-one-out needs two samples of non-zero weight or more, got {len(seen)}."
        )
    X = training_rows(X, seen, kernel.pairwise) if len(seen) < len(fit_weight) else X
    fit_weight = fit_weight[seen] * (len(seen) / fit_weight[seen].sum())
    with blas_threads(len(seen)):
        blocks = GramBlocks(X, frozenset(), fit_weight)
        kernel = kernel.started(blocks.samples)
        K = np.empty((len(seen), len(seen)), order="F")
        gram_into(K, kernel, blocks)
        check_finite_lower(K, kernel)
        return kernel, solve_in_place(
            K, targets[seen], float(mu), fit_weight, fit_intercept=estimator.fit_intercept
        ).fit


def checked_sample_weight(sample_weight: Any, n: int) -> Array:
    """(n,) weights, ones unless given; ValueError for negative, non-finite or only zero ones."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be numbers, got {sample_weight!r}.") from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity; give every sample a number.")
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight must not be negative; {int((weight < 0).sum())} of {n} are. "
            "A weight of zero leaves a sample out of the fit."
        )
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
        representable = np.isfinite([total, n / total]).all()
    if not representable:
        raise ValueError(
            f"sample_weight is out of range, its largest value is {weight.max():.3g}: multiply all "
            "weights by a constant, only their ratios count."
        )
    least, largest = weight[weight > 0].min(), weight.max()
    if least < _NEGLIGIBLE * largest:
        raise ValueError(
            f"sample_weight ranges from {least:.3g} to {largest:.3g}, beyond double precision: "
            f"give negligible weights, those below {_NEGLIGIBLE:g} of the largest, as zero."
        )
    return weight
