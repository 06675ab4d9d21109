"""Base of the machines: samples in, a fit with given values, predictions from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._arrays import on_host
from looms._classes import class_indices
from looms._kernel_matrix import check_kernel_matrix
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks
from looms.dask._blocks import in_blocks
from looms.estimators._held_out_models import MachineModels, NestedModels, nested_outputs
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, check_finite_lower, expansion, gram_into
from looms.kernels._names import as_kernel
from looms.kernels._samples import (
    Samples,
    as_matrix,
    center_of,
    check_scale,
    training_rows,
)
from looms.lssvm import low_rank
from looms.lssvm._folds import Repetition, repetitions
from looms.lssvm._system import Fit, checked_weights, targets_as_columns
from looms.lssvm.cholesky import solve_in_place
from looms.scores import (
    Scored,
    class_scores,
    fold_outputs,
    held_out_decisions,
    number_scores,
    pooled_auc,
)
from looms.selection._decisions import Decided, Decisions
from looms.selection._low_rank import LARGEST_SET
from looms.selection._nested import Nested
from looms.tensors import rows_of_tensors

# Beside weights larger than this by its inverse, too few digits of a sample's ridge are left
# for the machine without one of the heavy samples.
_NEGLIGIBLE = 1e-10


#: Attributes that are made of others when they are needed.
_MADE_AGAIN = ("_machine_models", "_nested_models", "_held_out_scores", "_system_on_landmarks")
#: Attributes that only some fits set.
_OF_SOME_FITS = ("certified_", "groups_", "landmarks_", "members_")


class KernelMachine(BaseEstimator):  # type: ignore[misc]
    """Base of the kernel machines: kernels, validated samples, fitted attributes set at once."""

    kernel: Any
    kernel_: Kernel
    dual_coef_: Array
    X_fit_: Matrix
    fit_weight_: Array
    loo_: HeldOut
    held_out_: HeldOut
    #: Predictions by machines chosen without the sample; machines with given values have none.
    nested_: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = any(
            kernel == "precomputed" or getattr(kernel, "pairwise", False)
            for kernel in one_or_many(self.kernel)
        )
        return tags

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, AnyArray, Array]:
        """Samples that all kernels take, targets, and weights as given, zeros cached.

        Rows in blocks stay what they are, and dask collections become that; of these X is not
        checked here.
        """
        pairwise = {kernel.pairwise for kernel in self._kernels()}
        if len(pairwise) > 1:
            raise ValueError(
                "Precomputed kernels and kernels of features cannot be candidates for the same X."
            )
        X, y, sample_weight = in_blocks(X, y, sample_weight)
        X, y, sample_weight = rows_of_tensors(X, y, sample_weight, getattr(self, "rank", None))
        if isinstance(X, np.memmap) and X.ndim == 2 and getattr(self, "rank", None) is not None:
            X = ArrayBlocks(X)
        if isinstance(X, RowBlocks):
            if not hasattr(self, "rank"):
                raise ValueError(
                    f"{type(self).__name__} takes all rows in memory. LSSVMClassifierCV and "
                    "LSSVMRegressorCV with rank='auto' take them in blocks or dask collections."
                )
            y = self._validated_targets(X, y, **options)
            return X, y, checked_sample_weight(sample_weight, len(y))
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            accept_large_sparse=False,
            dtype=np.float64,
            **{"ensure_min_samples": 2, **options},
        )
        X = as_matrix(X)
        weight = checked_sample_weight(sample_weight, len(y))
        if pairwise == {True}:
            with blas_threads(len(y)):
                check_kernel_matrix(X.toarray() if sp.issparse(X) else X)
        return X, y, weight

    def _validated_targets(self, X: RowBlocks, y: Any, **options: Any) -> AnyArray:
        """Targets of rows in blocks; the number and names of the features are kept."""
        multi_output = options.get("multi_output", False)
        y = check_array(y, ensure_2d=False, dtype=None) if multi_output else column_or_1d(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y has {len(y)}.")
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            self.feature_names_in_ = np.array(X.feature_names, dtype=object)
        return np.asarray(y)

    def _kernels(self) -> list[Kernel]:
        return [as_kernel(kernel) for kernel in one_or_many(self.kernel)]

    def _set_fitted(self, **attributes: Any) -> None:
        """Set fitted attributes, all at once: a fit that failed before changed none of them."""
        for name in (*_MADE_AGAIN, *_OF_SOME_FITS):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _MADE_AGAIN}

    def _checked_new_data(self, X: Any) -> Matrix:
        check_is_fitted(self, "dual_coef_")  # a fit that failed may have left other attributes
        if isinstance(X, RowBlocks):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return X
        X = validate_data(
            self,
            on_host(X),
            accept_sparse="csr",
            accept_large_sparse=False,
            dtype=np.float64,
            reset=False,
        )
        return as_matrix(X)

    @property
    def scores_(self) -> dict[str, float]:
        """Figures to quote, of held-out predictions.

        For classes "error", "ber" (the mean over classes of the error rate), "auc" (leave-pair-out,
        of `SVCCV` as said there) and, with probabilities, "log_loss"; for numbers "rmse", "mae" and
        "r2". With ``nested_`` the whole choice was made without the row; otherwise the
        hyper-parameters were chosen by the same rows, which flatters. The first access costs n³
        flops of a least-squares machine, or the ten fits of ``nested_``.
        """
        return {name: value for name, (value, _) in self._scored().scores.items()}

    @property
    def scores_se_(self) -> dict[str, float]:
        """Standard errors of ``scores_`` over draws of the rows, or groups, the machine given."""
        return {name: error for name, (_, error) in self._scored().scores.items()}

    def _scored(self) -> Scored:
        """``scores_``, their standard errors and the decisions that they are of."""
        check_is_fitted(self, "dual_coef_")
        cached: Scored | None = vars(self).get("_held_out_scores")
        if cached is None:
            cached = self._held_out_scores = self._scored_anew()
        return cached

    @abstractmethod
    def _scored_anew(self) -> Scored:
        """`_scored`, computed."""

    @abstractmethod
    def _models_without_rows(self, X: Matrix) -> tuple[Array, Iterator[tuple[slice, Array]]]:
        """Held-out residuals of the samples of the fit, and the models without each at new ones.

        Of these in blocks the rows of ``X`` and the outputs, (rows, n_train) or (rows, n_train,
        n_targets).
        """


def machine_of(model: Any) -> KernelMachine | None:
    """The machine of looms, with leave-one-out outputs, that gives a model's outputs.

    Parameters
    ----------
    model : estimator
        Of a pipeline the last step counts, of a search its ``best_estimator_``.

    Returns
    -------
    machine : estimator or None
        A least-squares machine or `SVCCV`, fitted if the model is; None if there is none.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from looms import LSSVMRegressor
    >>> machine_of(make_pipeline(StandardScaler(), LSSVMRegressor()))
    LSSVMRegressor()
    """
    if isinstance(model, Pipeline):
        return machine_of(model.steps[-1][1])
    if hasattr(model, "best_estimator_"):
        return machine_of(model.best_estimator_)
    return model if isinstance(model, KernelMachine) else None


@dataclass(frozen=True, eq=False)
class Member:
    """Least-squares machine in a stack, whose outputs are the weighted sum of those of its members.

    Attributes
    ----------
    weight : of its outputs, positive; those of all members sum to one.
    kernel, mu : with their values.
    dual_coef : (n,) or (n, t) coefficients of the training samples.
    intercept : float or (t,)
    """

    weight: float
    kernel: Kernel
    mu: float
    dual_coef: Array
    intercept: Any


def members_of(machine: Any) -> tuple[Member, ...]:
    """Members of a stack, or the machine as the only one."""
    values = machine.kernel_, machine.mu_, machine.dual_coef_, machine.intercept_
    return tuple(machine.members_ or (Member(1.0, *values),))


class LeastSquaresMachine(KernelMachine):
    """Base of the least-squares machines: the fitted machine, its outputs."""

    #: Machines of a stack; of one machine there are none.
    members_: tuple[Member, ...] = ()
    #: Samples that the coefficients are of; None where these are all samples.
    landmarks_: Matrix | None = None
    fit_intercept: bool
    mu_: float
    intercept_: Any
    fit_intercept_: bool

    def _set_fitted(self, **attributes: Any) -> None:
        super()._set_fitted(fit_intercept_=bool(self.fit_intercept), **attributes)

    def leave_one_out_models(self) -> MachineModels:
        """The n models that are each fitted without one sample, or one group of copies.

        A fit keeps coefficients only: the inverse that these models need is n² numbers, too many
        to keep in memory after every fit and in every model file. It is made again from the
        training samples at the first call, for n³ flops, and cached with the machine, out of
        its pickled and saved state, until the machine is fitted anew.

        Returns
        -------
        models : MachineModels
            ``models.train`` are the samples that took part; ``models.outputs(X)`` gives the outputs
            of all models at new samples, ``models.models`` their residuals and changes.
        """
        check_is_fitted(self, "dual_coef_")
        self._check_single()
        cached: MachineModels | None = vars(self).get("_machine_models")
        if cached is not None:
            return cached
        groups = getattr(self, "groups_", None)
        groups = None if groups is None else groups[np.flatnonzero(self.fit_weight_)]
        self._machine_models = self._models_of(self.kernel_, self.mu_, groups)
        return self._machine_models

    @property
    def _basis(self) -> Matrix:
        """Samples that the coefficients are of."""
        return self.X_fit_ if self.landmarks_ is None else self.landmarks_

    def _check_single(self) -> None:
        """ValueError for a stack, and for a machine on landmarks."""
        if self.landmarks_ is not None:
            raise ValueError(
                f"This takes the whole kernel matrix, and this machine has {self._basis.shape[0]} "
                "landmarks: fit with rank=None, on fewer rows if there are too many."
            )
        if self.members_:
            raise ValueError(
                f"This is for one machine, and here {len(self.members_)} are stacked: fit with "
                "combine='best'."
            )

    def _models_of(self, kernel: Kernel, mu: float, folds: AnyArray | None) -> MachineModels:
        """Models of a kernel and μ without each sample of the fit, or its fold."""
        X, train = self.X_fit_, np.flatnonzero(self.fit_weight_)
        n = len(train)
        X_train = training_rows(X, train, kernel.pairwise)
        K = np.empty((n, n), order="F")
        with blas_threads(n):
            gram_into(K, kernel, GramBlocks(X_train, frozenset()))
            solution = solve_in_place(
                K,
                self.loo_.y[train],
                mu,
                self.fit_weight_[train],
                fit_intercept=self.fit_intercept_,
                parts=repetitions(folds, n),
            )
            models = solution.models()
        return MachineModels(models, train, kernel, Samples(X, center=center_of(X)))

    def _models_without_rows(self, X: Matrix) -> tuple[Array, Iterator[tuple[slice, Array]]]:
        # If the choice was repeated without every fold, these are the models without the fold that
        # were chosen so.
        nested: Nested | None = self.nested_
        if self.landmarks_ is not None:
            if isinstance(X, RowBlocks):
                raise ValueError("Intervals and sets take samples in memory, not rows in blocks.")
            known = vars(self).get("_system_on_landmarks")
            if known is None:
                known = self._low_rank_solution(getattr(self, "groups_", None))
                self._system_on_landmarks = known
            solution, blocks = known
            residuals = solution.held_out_residuals.reshape(solution.fit.y.shape)
            return residuals, solution.outputs_without_rows(X, blocks)
        if nested is None:
            trained = self.leave_one_out_models()
            outputs = ((rows, F) for rows, _, F in trained.outputs(X))
            return trained.models.residuals, outputs
        cached: list[NestedModels] | None = vars(self).get("_nested_models")
        if cached is None:
            cached = self._nested_models = list(self._nested_models_of(nested))
        basis = Samples(self.X_fit_, center=center_of(self.X_fit_))
        residuals = nested.held_out.residuals
        return residuals, nested_outputs(cached, X, basis, nested.rows, residuals.shape)

    def _low_rank_solution(
        self, groups: AnyArray | None = None
    ) -> tuple[low_rank.Solution, ArrayBlocks]:
        """System of a machine on landmarks, solved again, and the rows of its fit.

        Its held-out residuals are without the groups, where these are given.
        """
        if self.X_fit_ is None:
            raise ValueError(
                "Intervals, sets and case deletion take the training rows, and those of a table in "
                "blocks are not kept."
            )
        train = np.flatnonzero(self.fit_weight_)
        blocks = ArrayBlocks(training_rows(self.X_fit_, train, False))
        sets = None if groups is None else groups[train]
        if sets is not None and np.bincount(sets).max() > LARGEST_SET:
            raise ValueError(
                f"Some group has more than {LARGEST_SET} rows: of a machine on landmarks models "
                "without groups as large are not to be had."
            )
        blocks = blocks if sets is None else blocks.holding(sets)
        y, zeta = self.loo_.y[train], self.fit_weight_[train]
        samples = Samples(self._basis, center=center_of(self._basis))
        landmarks = low_rank.Landmarks(self.kernel_, samples)
        solution = low_rank.solve(
            *(blocks, y, self.mu_, zeta, landmarks),
            fit_intercept=self.fit_intercept_,
            sets=sets,
        )
        return solution, blocks

    def _nested_models_of(self, nested: Nested) -> Iterator[NestedModels]:
        """Models without each fold, of every candidate that was chosen without some."""
        for k, kernel in enumerate(nested.kernels):
            members = np.flatnonzero(nested.chosen[k])
            numbers, fold = np.unique(nested.folds[members], return_inverse=True)
            if nested.alphas is not None and nested.intercepts is not None:
                alpha, intercepts = nested.alphas[k][:, None], nested.intercepts[k][None]
            else:
                models = self._models_of(kernel, float(nested.mus[k]), nested.folds).models
                e = targets_as_columns(models.residuals)
                alpha = np.empty((len(e), len(numbers), e.shape[1]))
                intercepts = np.empty(alpha.shape[1:])
                for place, number in enumerate(numbers):
                    G = np.flatnonzero(nested.folds == number)
                    alpha[:, place] = targets_as_columns(models.fit.alpha) - models.P[:, G] @ e[G]
                    intercepts[place] = models.fit.intercept - models.share[G] @ e[G]
            yield NestedModels(kernel, members, fold, alpha, intercepts)

    def _repetitions(self) -> tuple[Repetition, ...]:
        """Rows of the fit that are held out in every pass over them."""
        train = np.flatnonzero(self.fit_weight_)
        groups, folds = getattr(self, "groups_", None), getattr(self, "folds_", None)
        groups = None if groups is None else groups[train]
        return repetitions(groups if folds is None else folds[:, train], len(train))

    def _outputs_by_repetition(self) -> Array:
        """Held-out outputs that are scored, (n_repetitions, n) or (n_repetitions, n, t).

        Of the rows of the fit; NaN where a row is not tested. Those of ``nested_`` are one
        repetition.
        """
        nested: Nested | None = self.nested_
        if nested is not None:
            return nested.held_out.outputs[None]
        train, parts = np.flatnonzero(self.fit_weight_), self._repetitions()
        if len(parts) == 1 or self.landmarks_ is not None:
            return self.held_out_.outputs[None, train]
        P, alpha = self._inverse_and_coefficients()
        y = self.loo_.y[train]
        outputs = fold_outputs(P, alpha, targets_as_columns(y), parts, self.mu_)
        return outputs.reshape(len(parts), *y.shape)

    def _scored_anew(self) -> Scored:
        train = np.flatnonzero(self.fit_weight_)
        y, weight = self.loo_.y[train], self.loo_.sample_weight[train]
        groups = getattr(self, "groups_", None)
        groups = None if groups is None else np.unique(groups[train], return_inverse=True)[1]
        if not is_classifier(self):
            outputs = self._outputs_by_repetition()
            return Scored(number_scores(y, outputs, weight, groups), train, None)
        nested: Nested | None = self.nested_
        if nested is not None and nested.decisions is not None and nested.auc is not None:
            decisions, auc = nested.decisions, nested.auc
        elif self.landmarks_ is not None:  # of so many rows outputs lean, by 1 / n, no more
            f = self.held_out_.outputs[train]
            rounds = [Decided.of(np.arange(len(y)), f, self.threshold_, self.calibrator_)]
            decisions = Decisions.of(rounds, class_indices(y))
            auc = pooled_auc(y, f, weight)
        else:
            parts, (P, alpha) = self._repetitions(), self._inverse_and_coefficients()
            decisions, auc = held_out_decisions(
                P, alpha, y, parts, weight, self.threshold_, self.calibrator_, self.mu_
            )
        labels = class_indices(y)
        scores = class_scores(labels, decisions.wrong, auc, weight, groups, decisions.losses)
        return Scored(scores, train, decisions)

    def _inverse_and_coefficients(self) -> tuple[Array, Array]:
        """P and the coefficients, (n, t), of the samples of the fit."""
        models = self.leave_one_out_models().models
        return models.P, targets_as_columns(models.fit.alpha)

    def _outputs(self, X: Matrix) -> Array:
        """f(x) = Σ_j α_j k(x_j, x) + b for validated samples, or the weighted sum of a stack."""
        parts = [
            one.weight * outputs(one.kernel, X, self._basis, one.dual_coef, one.intercept)
            for one in members_of(self)
        ]
        return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)


class GivenMachine(LeastSquaresMachine):
    """Base of the machines with given hyper-parameters."""

    mu: float

    def _fitted(
        self, X: Matrix, targets: Array, weight: Array, fit_weight: Array
    ) -> dict[str, Any]:
        """Fitted attributes of the machine on samples of positive weight.

        ``fit_weight`` is rescaled to mean one over these, so that integer weights are copies.
        """
        check_flag("fit_intercept", self.fit_intercept)
        if not (isinstance(self.mu, Real) and 0 < float(self.mu) < np.inf):
            raise ValueError(f"mu must be a positive number, got {self.mu!r}.")
        if isinstance(self.kernel, (list, tuple)):
            name = type(self).__name__
            raise ValueError(
                f"{name} takes one kernel, got a list of {len(self.kernel)}; {name}CV chooses "
                "among several."
            )
        (kernel,) = self._kernels()
        if not kernel.pairwise:
            check_scale(X)
        train, mu = np.flatnonzero(fit_weight), float(self.mu)
        n = len(train)
        if n < 2:
            raise ValueError(
                f"Leave-one-out needs two samples of non-zero weight or more, got {n}."
            )
        zeta = fit_weight[train] * (n / fit_weight[train].sum())
        with blas_threads(n):
            blocks = GramBlocks(training_rows(X, train, kernel.pairwise), frozenset(), zeta)
            kernel = kernel.started(blocks.samples)
            K = np.empty((n, n), order="F")
            gram_into(K, kernel, blocks)
            check_finite_lower(K, kernel)
            solution = solve_in_place(K, targets[train], mu, zeta, fit_intercept=self.fit_intercept)
        return fitted_machine(X, weight, targets, kernel, mu, solution.fit)

    def _set_given(self, fitted: dict[str, Any]) -> None:
        """Set the attributes of a fit, and what follows from its held-out outputs."""
        self._set_fitted(**fitted)


def fitted_machine(
    X: Matrix, weight: Array, y: Array, kernel: Kernel, mu: float, fit: Fit
) -> dict[str, Any]:
    """Fitted attributes of a machine that was fitted to the samples of positive weight.

    The others get coefficient zero and, as leave-one-out output, the output of
    the machine that never saw them.
    """
    train, others = np.flatnonzero(weight), np.flatnonzero(weight == 0)
    if isinstance(X, RowBlocks):  # all of positive weight, and not kept
        X = None
    dual_coef, loo, fit_weight = fit.alpha, fit.outputs, fit.sample_weight
    held_out, basis = fit.mean_held_out.outputs, X if fit.landmarks is None else fit.landmarks
    if len(others):
        fit_weight = np.zeros(len(y))
        fit_weight[train] = fit.sample_weight
        if fit.landmarks is None:
            dual_coef = np.zeros(y.shape)
            dual_coef[train] = fit.alpha
        loo = np.empty(y.shape)
        loo[train] = fit.outputs
        loo[others] = outputs(kernel, X[others], basis, dual_coef, fit.intercept)
        held_out_of_train, held_out = held_out, loo.copy()
        held_out[train] = held_out_of_train
    return {
        "X_fit_": X,
        "kernel_": kernel,
        "mu_": mu,
        "intercept_": fit.intercept,
        "dual_coef_": dual_coef,
        "fit_weight_": fit_weight,
        "loo_": HeldOut(y, loo, weight),
        "held_out_": HeldOut(y, held_out, weight),
        **({} if fit.landmarks is None else {"landmarks_": fit.landmarks}),
    }


def outputs(kernel: Kernel, X: Matrix, X_fit: Matrix, dual_coef: Array, intercept: Any) -> Array:
    """f(x) = Σ_j α_j k(x_j, x) + b for validated samples."""
    # For a precomputed kernel X_fit is the kernel matrix, of which only the size counts.
    basis = Samples(X_fit, center=center_of(X_fit))
    if isinstance(X, RowBlocks):
        landmarks = low_rank.Landmarks(kernel, basis, X.dtype)
        return low_rank.outputs(X, landmarks, dual_coef, intercept)
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


def checked_sample_weight(sample_weight: Any, n: int) -> Array:
    """(n,) weights, ones unless given; ValueError for negative, non-finite or only zero ones."""
    scalar = isinstance(sample_weight, Real)
    weight = checked_weights(np.full(n, sample_weight) if scalar else sample_weight, n, zeros=True)
    if not weight.any():
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
