"""Base classes of the machines: scores, validation of samples, fitted attributes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._checks import check_flag, one_or_many
from looms._kernel_matrix import check_kernel_matrix
from looms._scores import ValuesAndErrors, number_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks, as_blocks, rows_in_memory
from looms.dask._blocks import in_blocks
from looms.estimators._certificate import CertifiedMachine
from looms.estimators._metrics import as_scorers, judged
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._names import as_kernel
from looms.kernels._samples import as_matrix
from looms.lssvm._system import checked_weights
from looms.lssvm.fit import Member
from looms.lssvm.left_out import LeftOut
from looms.scores import Scores, kind_of_nested, kind_of_units
from looms.selection._decisions import Decisions
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
    _made_again: ClassVar[tuple[str, ...]] = ()
    #: Predictions of candidates that the fit tuned without each fold, to compare them.
    _in_folds: Nested | None = None
    #: Unfitted machine with the parameters of the fit, whose choice can be repeated.
    _unfitted: Any = None
    #: Wall time of the fit, in seconds.
    _fit_seconds: float = 0.0
    #: What `evaluate` returned, nested and not, until the next fit.
    _nested_scores: Scores | None = None
    _own_scores: Scores | None = None

    def evaluate(self, *, nested: bool = True, metrics: Any = None) -> Scores:
        """Scores of held-out predictions, with standard errors.

        For classes "error", "ber" (the mean over classes of the error rate), "auc" and, with
        probabilities, "log_loss"; for numbers "rmse", "mae" and "r2".

        Parameters
        ----------
        nested : bool, default=True
            Whether the whole choice is repeated without the rows that are scored: without each of
            ten folds (five after several candidates in folds), or of as many as the rarest class
            has samples, or groups, or of three to ten folds of a splitter `cv`. That takes as many
            fits, which `joblib.parallel_config` runs in parallel. A grid on all samples, each of
            them in one of three folds or more, repeats the choice in closed form without every
            sample, group or fold, for four times the time of the grid and 3 n² numbers in memory
            for each class of several. With given hyper-parameters there is no choice, and
            leave-one-out is as honest. With False the held-out predictions of the fit are scored,
            by which the machine may have been tuned: ``optimistic`` tells.
        metrics : str, callable or list of these, default=None
            Names of scorers of scikit-learn, or metrics of ``(y_true, y_pred)``, in the place of
            the scores above. They judge the held-out predictions, all together, and of scorers
            greater is better. They have no standard errors.

        Returns
        -------
        scores : looms.scores.Scores
            A mapping from names to values. It is kept with the machine, also in its files, until
            the next fit, and so are the models of nested scores, which intervals and sets take.

        Raises
        ------
        ValueError
            If there are too few rows, or groups, for outer folds, or the machine cannot repeat its
            choice, as after `without`.

        Warns
        -----
        UserWarning
            If the fits will take more than a minute.

        Notes
        -----
        "auc" compares two rows under one machine that has seen neither: leave-pair-out. `SVCCV`,
        machines that were tuned in folds, and those that were fitted to rows in blocks compare rows
        within the folds, or within ten folds made for this, whose outputs the other scores of the
        latter are of as well; "auc" is then NaN if some class has fewer than three rows, or groups.
        Without refits, a least-squares machine takes n³ flops, and keeps the n² numbers that
        intervals need, though not in copies and files.
        """
        check_is_fitted(self)
        check_flag("nested", nested)
        scorers = None if metrics is None else as_scorers(metrics)
        scores = self._nested_anew() if nested and self._was_tuned else self._scores_of_fit()
        self._keep_models(scores)
        return scores if scorers is None else judged(scores, scorers, self._labels_or_none)

    def _nested_anew(self) -> Scores:
        """Scores of choices that are repeated without each fold; those of before, if any."""
        if self._nested_scores is None:
            if self._tuned_before:
                raise ValueError(
                    "The hyper-parameters were chosen before rows were removed or added, and that "
                    "choice cannot be repeated: fit the self-tuning machine anew to these rows, or "
                    "use evaluate(nested=False), whose scores are optimistic."
                )
            if self._unfitted is None:
                raise ValueError(
                    "The fit has used up cv, an iterator of folds: give a list of them, or use "
                    "evaluate(nested=False)."
                )
            self._nested_scores = self._scored(self._chosen_anew())
        return self._nested_scores

    def _scores_of_fit(self) -> Scores:
        """Scores of the held-out predictions of the fit; those of before, if any."""
        if self._own_scores is None:
            self._own_scores = self._scored(self._in_folds)
        return self._own_scores

    def _evaluation(self, method: str) -> Scores:
        """What `evaluate` returned, nested if it was; NotFittedError before that."""
        scores = self._own_scores if self._nested_scores is None else self._nested_scores
        if scores is None:
            raise NotFittedError(
                f"{method} takes the models of evaluate(): call that first, or "
                "evaluate(nested=False)."
            )
        return scores

    def _as_scores(
        self, pairs: ValuesAndErrors, decisions: Decisions | None, nested: Nested | None
    ) -> Scores:
        """Scores by name, with what they are of."""
        machine, (y, outputs, weight) = self._kernel_machine(), self.held_out_
        rows, outputs = np.flatnonzero(machine.fit_weight_), outputs.copy()
        if decisions is not None:
            outputs[rows] = decisions.outputs
        elif nested is not None:
            outputs[rows] = nested.held_out.outputs
        optimistic = nested is None and self._was_tuned
        if nested is None:
            kind = kind_of_units(machine._scored_units, optimistic=optimistic)
        else:
            kind = kind_of_nested(nested, getattr(machine, "candidate_weights_", None) is not None)
        held_out = HeldOut(y, outputs, weight)
        return Scores(pairs, kind, optimistic, held_out, rows, decisions, nested)

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

    def _set_fitted(self, **attributes: Any) -> None:
        """Set fitted attributes, all at once: a fit that failed before changed none of them."""
        for name in (*self._made_again, "_nested_scores", "_own_scores"):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._made_again}

    held_out_: HeldOut

    @abstractmethod
    def _scored(self, nested: Nested | None) -> Scores:
        """Scores of choices made without each row, or of the held-out predictions of the fit."""

    @property
    @abstractmethod
    def _was_tuned(self) -> bool:
        """True if hyper-parameters were chosen by the held-out predictions of the fit."""

    @property
    def _tuned_before(self) -> bool:
        """True if they were chosen for other rows, so that the choice cannot be repeated."""
        return False

    @property
    def _labels_or_none(self) -> AnyArray | None:
        """The classes; None for numbers."""
        return getattr(self, "classes_", None)

    @abstractmethod
    def _keep_models(self, scores: Scores) -> None:
        """Keep in memory the models of some scores that neither pickles nor files hold."""

    @abstractmethod
    def _kernel_machine(self) -> Any:
        """The kernel machine that it is, or that it holds; NotFittedError if that is not made."""

    def _check_parameters(self) -> None:
        """ValueError or TypeError for parameters that no rows could mend."""

    @abstractmethod
    def _chosen_anew(self) -> Nested:
        """Predictions by machines that were chosen without the rows; ValueError if too few."""

    def _holding_out(self, units: Units) -> Self:
        """An unfitted machine with the same parameters, which is tuned by other units."""
        machine: Self = clone(self).set_params(cv=units.codes)
        return machine


class ScoredRegressor(RegressorMixin, ScoredMachine):  # type: ignore[misc]
    """Base class of the regressors with scores from held-out predictions."""

    def _scored(self, nested: Nested | None) -> Scores:
        machine = self._kernel_machine()
        train = np.flatnonzero(machine.fit_weight_)
        y, _, weight = (each[train] for each in self.held_out_)
        outputs = nested.held_out.outputs[None] if nested else self._by_repetition()
        pairs = number_scores(y, outputs, weight, machine._units.clusters)
        return self._as_scores(pairs, None, nested)

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
    #: True for a machine made from a tuned one by adding or removing rows.
    _tuned_before: bool = False
    _made_again = (
        "_left_out",
        "_chosen",
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

    @property
    def _scored_units(self) -> Units:
        """Units whose held-out predictions the scores of the fit are of."""
        return self._units

    def _models_without_rows(
        self, X: Matrix, method: str, chosen: bool = True
    ) -> tuple[Array, Iterator[tuple[slice, Array]]]:
        """Held-out residuals of the rows of the fit, and outputs of the models without each.

        The outputs come in blocks: the rows of ``X``, and (rows, n_train) or (rows, n_train,
        n_targets) numbers. After nested scores the models were chosen without the row, unless
        ``chosen`` is false. ``method`` asks for them.
        """
        nested, shape = self._evaluation(method)._nested, (-1, *self.loo_.y.shape[1:])
        if nested is not None and chosen:
            left_out, units = self._kept(nested), nested.units
            residuals = nested.held_out.residuals
        else:
            left_out, units = self._kept(None), self._units.draws
            with blas_threads(len(left_out.y)):
                residuals = (left_out.y - left_out.outputs(units)[0]).reshape(shape)
        new = as_blocks(X[:, np.flatnonzero(self.fit_weight_)] if self._pairwise else X)

        def outputs() -> Iterator[tuple[slice, Array]]:
            for rows in left_out.parts(new.shape[0]):
                with blas_threads(len(left_out.y)):
                    F = left_out.at(new.rows(np.arange(rows.start, rows.stop)), units)
                yield rows, F[:, units.own].reshape(len(F), *shape)

        return residuals, outputs()

    def _kept(self, nested: Nested | None) -> LeftOut:
        """Machines without each unit, which `evaluate` has made; NotFittedError if they are lost.

        They are those of ``nested``, or for None the closed forms.
        """
        if nested is not None and not nested.in_closed_form:
            return self._refits_of(nested)
        left_out: LeftOut | None = vars(self).get("_left_out" if nested is None else "_chosen")
        if left_out is None:
            self._check_closed_forms()
            again = f"evaluate({'nested=False' * (nested is None)})"
            raise NotFittedError(
                "Models in closed form, n² numbers, are neither copied nor saved with a machine: "
                f"call {again} to make them, which keeps the scores that there are."
            )
        return left_out

    @property
    def _has_closed_forms(self) -> bool:
        """True if the machines without each row follow from the rows at hand, without fits."""
        return True

    def _check_closed_forms(self) -> None:
        """ValueError or NotFittedError if there are none."""

    def _keep_models(self, scores: Scores) -> None:
        nested = scores._nested
        if scores is self._own_scores and self._has_closed_forms:
            self.left_out()
        if nested is not None and nested.in_closed_form and "_chosen" not in vars(self):
            self._chosen = self._settings_of(nested)

    @abstractmethod
    def left_out(self) -> LeftOut:
        """The machine without any of the rows of its fit."""

    @abstractmethod
    def _refits_of(self, nested: Nested) -> LeftOut:
        """Machines that were tuned anew without each fold of ``nested``."""

    def _settings_of(self, nested: Nested) -> LeftOut:
        """Machines of the points of a grid that were chosen without each unit."""
        raise NotImplementedError


def check_parameters(machine: ScoredMachine) -> None:
    """ValueError or TypeError, as `fit` raises it, for parameters that no rows could mend."""
    machine._check_parameters()


def scores_of(machine: ScoredMachine) -> Scores:
    """What `evaluate` returned, nested if it was; otherwise the scores that take no refits.

    Models for intervals are not made.
    """
    nested = machine._nested_scores
    return machine._scores_of_fit() if nested is None else nested


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
