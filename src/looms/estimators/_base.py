"""Base classes of the machines: scores, validation of samples, fitted attributes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags, check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._checks import one_or_many
from looms._kernel_matrix import check_kernel_matrix
from looms._scores import Scores, number_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks, as_blocks, rows_in_memory
from looms.dask._blocks import in_blocks
from looms.estimators._certificate import CertifiedMachine
from looms.estimators._warnings import warn_of_optimistic_scores
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._names import as_kernel
from looms.kernels._samples import as_matrix
from looms.lssvm._system import checked_weights
from looms.lssvm.fit import Member
from looms.lssvm.left_out import LeftOut
from looms.scores import Scored
from looms.selection._nested import Nested
from looms.units import Units

#: Attributes that not every fit sets.
_OF_SOME_FITS = (
    *("certificate_", "_tuned_before"),
    *("candidates_", "best_index_", "cv_results_", "selection_", "n_iter_"),
)
# Beside weights larger than this by its inverse, too few digits of a sample's ridge are left
# for the machine without one of the heavy samples.
_NEGLIGIBLE = 1e-10


class ScoredMachine(BaseEstimator):  # type: ignore[misc]
    """Base class of the machines with scores from held-out predictions."""

    #: Attributes that are made from others when they are needed; neither pickled nor saved.
    _made_again: ClassVar[tuple[str, ...]] = ("_held_out_scores", "_said_optimistic")
    _nested: Nested | None = None
    #: Unfitted machine, to be tuned in outer folds; None where it was, or is not to be.
    _unfitted: Any = None

    @property
    def nested_(self) -> Nested | None:
        """Predictions for each sample by machines that were chosen without it, or None.

        Unless the fit did, the first access computes them, at the cost of ten fits.
        """
        check_is_fitted(self)
        if self._unfitted is not None:
            self._nested, self._unfitted = self._tuned_in_folds() or self._nested, None
        return self._nested

    @property
    def scores_(self) -> dict[str, float]:
        """Figures to quote, from held-out predictions.

        For classes "error", "ber" (the mean over classes of the error rate), "auc" and, with
        probabilities, "log_loss"; for numbers "rmse", "mae" and "r2". With ``nested_`` the whole
        choice was made without the row. Without, as on landmarks, beyond 1000 rows by default, or
        after `without`, the hyper-parameters were chosen on the same rows, so the scores are
        optimistic, and the first access gives an `OptimisticScoresWarning` (not where
        ``nested=None`` was asked for). The first access costs n³ flops for a least-squares machine,
        or the ten fits of ``nested_``.

        "auc" compares two rows under one machine that has seen neither: leave-pair-out. `SVCCV`,
        and machines that were fitted to rows in blocks, compare rows within the
        folds of `cv`, or within ten folds made for this, whose outputs the other scores of the
        latter are of as well; "auc" is then NaN if some class has fewer than three rows, or groups.
        After a choice among several candidates, rows are compared within its folds.
        """
        return {name: value for name, (value, _) in self._read_scores().items()}

    @property
    def scores_se_(self) -> dict[str, float]:
        """Standard errors of ``scores_`` over draws of the rows, or groups, for a fixed machine.

        Over draws of the training rows too, the distance from the score on new rows is larger:
        1.0 to 1.4 times (root mean square, error rates and areas of 150 or 200 rows), for log loss
        and numbers up to 2.9 times [benchmarks/results/standard_errors.csv].
        """
        return {name: error for name, (_, error) in self._read_scores().items()}

    @property
    def _remedy_of_optimism(self) -> str | None:
        """Advice for honest scores, if the machine was tuned on the rows of ``scores_``."""
        return None if self.nested_ else self._remedy

    @property
    def _remedy(self) -> str | None:
        """Advice for honest scores of a machine without ``nested_``; None if it needs none."""
        return None

    def _read_scores(self) -> Scores:
        """``scores_`` with standard errors; the first access warns if they are optimistic."""
        scores = self._scored().scores
        warn_of_optimistic_scores(self)
        return scores

    def _scored(self) -> Scored:
        """``scores_``, their standard errors and the decisions that they rest on."""
        check_is_fitted(self)
        cached: Scored | None = vars(self).get("_held_out_scores")
        if cached is None:
            cached = self._held_out_scores = self._scored_anew()
        return cached

    def _checked_new_data(self, X: Any) -> Matrix:
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return X
        X = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=False, dtype=np.float64, reset=False
        )
        return as_matrix(X)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Table of fitted attributes, without scores."""
        fitted = super(ScoredMachine, self._at_rest())._get_fitted_attr_html(doc_link)
        for name in ("scores_", "scores_se_"):
            fitted.pop(name, None)
        return fitted

    def __dir__(self) -> Iterable[str]:
        names: Iterable[str] = super(ScoredMachine, self._at_rest()).__dir__()
        return names

    def _at_rest(self) -> Self:
        """A copy all of whose attributes can be read without work, warnings and ten fits."""
        one = copy(self)
        one._unfitted, one._said_optimistic = None, True
        one._held_out_scores = Scored({}, np.zeros(0, dtype=np.intp), None)
        return one

    def _set_fitted(self, **attributes: Any) -> None:
        """Set fitted attributes, all at once: a fit that failed before changed none of them."""
        for name in self._made_again:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._made_again}

    @abstractmethod
    def _scored_anew(self) -> Scored:
        """`_scored`, computed."""

    @abstractmethod
    def _kernel_machine(self) -> Any:
        """The kernel machine that it is, or that it holds; NotFittedError if that is not made."""

    def _check_parameters(self) -> None:
        """ValueError or TypeError for parameters that no rows could mend."""

    def _tuned_in_folds(self) -> Nested | None:
        """Predictions of every fold by a machine that was tuned anew without it."""
        raise NotImplementedError

    def _holding_out(self, units: Units) -> Self:
        """An unfitted machine with the same parameters, which is tuned by other units."""
        machine: Self = clone(self).set_params(cv=units.codes)
        return machine


class ScoredRegressor(RegressorMixin, ScoredMachine):  # type: ignore[misc]
    """Base class of the regressors with scores from held-out predictions."""

    held_out_: HeldOut

    def _scored_anew(self) -> Scored:
        machine, nested = self._kernel_machine(), self.nested_
        train = np.flatnonzero(machine.fit_weight_)
        y, _, weight = (each[train] for each in self.held_out_)
        outputs = nested.held_out.outputs[None] if nested else self._by_repetition()
        return Scored(number_scores(y, outputs, weight, machine._units.clusters), train, None)

    @abstractmethod
    def _by_repetition(self) -> Array:
        """Held-out predictions of the rows fitted, (n_repetitions, n) or (n_repetitions, n, t).

        NaN where a row is not tested.
        """


class KernelMachine(CertifiedMachine, ScoredMachine):
    """Base class of the kernel machines: kernels, validation of samples, fitted attributes."""

    kernel: Any
    kernel_: Kernel
    dual_coef_: Array
    X_fit_: Matrix
    fit_weight_: Array
    loo_: HeldOut
    held_out_: HeldOut
    #: Rows that were held out together for ``held_out_``; those of weight zero stay.
    units_: Units
    _made_again = (
        *ScoredMachine._made_again,
        "_left_out",
        "_units_of_fit",
        "_machine_models",
        "_local_scales",
        "_blocks",
    )

    @property
    @abstractmethod
    def _summed(self) -> tuple[Member, ...]:
        """The members whose weighted outputs are summed."""

    @property
    def _pairwise(self) -> bool:
        """True if it takes kernel values instead of features."""
        return self.kernel_.pairwise

    @property
    def _whole_matrix(self) -> bool:
        """True if the machine takes all rows at once, by their kernel matrix."""
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = any(
            (isinstance(kernel, str) and kernel == "precomputed")
            or getattr(kernel, "pairwise", False)
            for kernel in self._given_kernels
        )
        return tags

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, AnyArray, Array]:
        """Samples that all kernels take, targets, and weights as given.

        Rows in blocks stay as they are, and dask collections become such; their X is not checked
        here.
        """
        pairwise = {kernel.pairwise for kernel in self._kernels()}
        if len(pairwise) > 1:
            raise ValueError(
                "Precomputed kernels and kernels of features cannot be candidates for the same X."
            )
        X, y, sample_weight = in_blocks(X, y, sample_weight)
        if isinstance(X, np.memmap) and X.ndim == 2:
            X = ArrayBlocks(X)
        names = getattr(X, "feature_names", None)
        if self._whole_matrix:
            X = rows_in_memory(X)
        if isinstance(X, RowBlocks):
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
        if names is not None and options.get("reset", True):
            self.feature_names_in_ = np.array(names, dtype=object)
        weight = checked_sample_weight(sample_weight, len(y))
        if pairwise == {True}:
            with blas_threads(len(y)):
                check_kernel_matrix(X.toarray() if sp.issparse(X) else X)
        return X, y, weight

    def _validated_targets(self, X: RowBlocks, y: Any, **options: Any) -> AnyArray:
        """Targets of rows in blocks; stores the number and names of the features."""
        multi_output = options.get("multi_output", False)
        y = check_array(y, ensure_2d=False, dtype=None) if multi_output else column_or_1d(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y has {len(y)}.")
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            self.feature_names_in_ = np.array(X.feature_names, dtype=object)
        return np.asarray(y)

    @property
    def _given_kernels(self) -> list[Any]:
        """Kernels as they were passed."""
        return one_or_many(self.kernel)

    def _kernels(self) -> list[Kernel]:
        return [as_kernel(kernel) for kernel in self._given_kernels]

    def _set_fitted(self, **attributes: Any) -> None:
        for name in _OF_SOME_FITS:
            self.__dict__.pop(name, None)
        super()._set_fitted(**attributes)

    def _kernel_machine(self) -> KernelMachine:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "fit_weight_" in vars(self)  # a fit that failed may have left other attributes

    @property
    def _units(self) -> Units:
        """Rows of the fit that are held out together."""
        cached: Units | None = vars(self).get("_units_of_fit")
        if cached is None:
            cached = self._units_of_fit = self.units_.among(np.flatnonzero(self.fit_weight_))
        return cached

    def _models_without_rows(
        self, X: Matrix, chosen: bool = True
    ) -> tuple[Array, Iterator[tuple[slice, Array]]]:
        """Held-out residuals of the rows of the fit, and outputs of the models without each.

        The outputs come in blocks: the rows of ``X``, and (rows, n_train) or (rows, n_train,
        n_targets) numbers. With ``nested_`` the models were chosen without the row, unless
        ``chosen`` is false.
        """
        nested, shape = self.nested_ if chosen else None, (-1, *self.loo_.y.shape[1:])
        if nested is not None:
            left_out, units = self._chosen_without(nested), nested.units
            residuals = nested.held_out.residuals
        else:
            left_out, units = self.left_out(), self._units.draws
            with blas_threads(len(left_out.y)):
                residuals = (left_out.y - left_out.outputs(units)[0]).reshape(shape)
        new = as_blocks(X[:, np.flatnonzero(self.fit_weight_)] if self._pairwise else X)

        def outputs() -> Iterator[tuple[slice, Array]]:
            for rows in left_out.parts(new.shape[0]):
                with blas_threads(len(left_out.y)):
                    F = left_out.at(new.rows(np.arange(rows.start, rows.stop)), units)
                yield rows, F[:, units.own].reshape(len(F), *shape)

        return residuals, outputs()

    @abstractmethod
    def left_out(self) -> LeftOut:
        """The machine without any of the rows of its fit."""

    @abstractmethod
    def _chosen_without(self, nested: Nested) -> LeftOut:
        """Machines that were chosen without each fold of ``nested``."""


def check_parameters(machine: ScoredMachine) -> None:
    """ValueError or TypeError, as `fit` raises it, for parameters that no rows could mend."""
    machine._check_parameters()


def scored_of(machine: ScoredMachine) -> Scored:
    """Scores of a fitted machine, and the decisions that they rest on."""
    return machine._scored()


def checked_sample_weight(sample_weight: Any, n: int) -> Array:
    """(n,) weights, default ones; ValueError if any is negative or not finite, or all are zero."""
    scalar = isinstance(sample_weight, Real)
    weight = checked_weights(np.full(n, sample_weight) if scalar else sample_weight, n, zeros=True)
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
        representable = np.isfinite([total, n / total]).all()
    if not representable:
        raise ValueError(
            f"sample_weight is out of range: its largest value is {weight.max():.3g}. Multiply all "
            "weights by a constant; only their ratios count."
        )
    least, largest = weight[weight > 0].min(), weight.max()
    if least < _NEGLIGIBLE * largest:
        raise ValueError(
            f"sample_weight ranges from {least:.3g} to {largest:.3g}, beyond double precision: "
            f"set negligible weights, below {_NEGLIGIBLE:g} times the largest, to zero."
        )
    return weight
