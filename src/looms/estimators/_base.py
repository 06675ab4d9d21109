"""Base class of the kernel machines: validation of samples, fitted attributes, models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_array, column_or_1d
from sklearn.utils.validation import validate_data

from looms._checks import check_target, one_or_many
from looms._kernel_matrix import check_kernel_matrix
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks, as_blocks, rows_in_memory
from looms.dask._blocks import in_blocks
from looms.estimators._certificate import CertifiedMachine
from looms.estimators._scored import OfFit, ScoredMachine, name_of, source_of
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._names import as_kernel
from looms.kernels._samples import as_matrix
from looms.lssvm._system import checked_weights
from looms.lssvm.fit import Member
from looms.lssvm.left_out import LeftOut
from looms.scores import Scores
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


class KernelMachine(CertifiedMachine, ScoredMachine):
    """Base class of the kernel models: kernels, validation of samples, fitted attributes."""

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
        if getattr(self, "n_jobs", None) == 0:
            raise ValueError("n_jobs=0 is no number of fits at once: 1 is one, and -1 all cores.")
        X, y, sample_weight = in_blocks(X, y, sample_weight)
        if y is not None:
            check_target(y)
        if isinstance(X, np.memmap) and X.ndim == 2:
            X = ArrayBlocks(X)
        names = getattr(X, "feature_names", None)
        if options.get("reset", True):
            self._target = name_of(y)
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
        evaluated, shape = self._evaluation(method), (-1, *self.loo_.y.shape[1:])
        source = source_of(evaluated._nested) if chosen else OfFit()
        left_out, units, residuals = source.models(self)
        residuals = residuals.reshape(shape)
        new = as_blocks(X[:, np.flatnonzero(self.fit_weight_)] if self._pairwise else X)

        def outputs() -> Iterator[tuple[slice, Array]]:
            for rows in left_out.parts(new.shape[0]):
                with blas_threads(len(left_out.y)):
                    F = left_out.at(new.rows(np.arange(rows.start, rows.stop)), units)
                yield rows, F[:, units.own].reshape(len(F), *shape)

        return residuals, outputs()

    def _kept(self, name: str, again: str) -> LeftOut:
        """Models in closed form that `evaluate` has made; NotFittedError if they are lost.

        Parameters
        ----------
        name : "_left_out" for those of the fit, "_chosen" for points of a grid chosen anew.
        again : call that makes them.
        """
        left_out: LeftOut | None = vars(self).get(name)
        if left_out is None:
            self._check_closed_forms()
            raise NotFittedError(
                f"The models without each row, n² numbers, are not at hand: call {again} to make "
                "them, since other scores need none, and a copied or saved model holds none. The "
                "scores stay the same."
            )
        return left_out

    @property
    def _has_closed_forms(self) -> bool:
        """True if the machines without each row follow from the rows at hand, without fits."""
        return True

    def _check_closed_forms(self) -> None:
        """ValueError or NotFittedError if there are none."""

    def _keep_models(self, scores: Scores) -> None:
        if scores is self._own_scores:
            OfFit().keep(self)
        source_of(scores._nested).keep(self)

    def _make_ready(self, left_out: LeftOut) -> None:
        """Compute what the first prediction would, so that predictions only read."""

    @abstractmethod
    def left_out(self) -> LeftOut:
        """The model without any of the rows of its fit."""

    @abstractmethod
    def _refits_of(self, nested: Nested) -> LeftOut:
        """Models that were tuned anew without each fold of ``nested``."""

    def _settings_of(self, nested: Nested) -> LeftOut:
        """Models of the points of a grid that were chosen without each unit."""
        raise NotImplementedError


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
