"""Models of tables: columns are prepared, candidates are compared or stacked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils import Tags, _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._advice import setting
from looms._checks import check_known, drop_index, ensure_list, readable_table
from looms._threads import openmp_threads
from looms._typing import Array, Matrix
from looms._words import one_line
from looms.blocks import RowBlocks
from looms.estimators._base import checked_sample_weight
from looms.estimators._callbacks import tell
from looms.estimators._folds import unfitted
from looms.estimators._kernel_classifier import KernelClassifier
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._model import Model, fitted_part
from looms.estimators._one_kernel import has_kernel
from looms.estimators._targets import plain_targets
from looms.estimators._trees import BoostedTrees, BoostedTreesClassifier, BoostedTreesRegressor
from looms.estimators._warnings import (
    warn_of_columns,
    warn_of_groups,
    warn_of_leakage,
    warn_of_order,
    warn_of_unseen_values,
    warnings_are_kept,
)
from looms.fitted._fitted import Fitted, prepared
from looms.folds import group_numbers, is_grouped
from looms.kernels import Ranked
from looms.kernels._names import as_kernel, is_estimator, kernel_name
from looms.lssvm.fit import LandmarkMember
from looms.selection._candidates import Choice
from looms.selection._stack import COMBINATIONS
from looms.tables import TablePreprocessor
from looms.tables._cells import Marks, is_written
from looms.tables._columns import marks_in
from looms.tables._leakage import leaking_columns
from looms.tables._preprocessor import fitted_matrix, matrix_of, places_of_gaps, serious_remarks
from looms.tables._remarks import remark_on_time, sentence
from looms.tables._unseen import UnseenValues

#: Kernels that "auto" stands for. On 23 tables of 500 rows a stack of them has 0.95 × the error of
#: "rbf", and on 20 others 0.95; "ard" as a fifth gains 0.4 % [benchmarks/tables/README.md].
AUTO_KERNELS = ("linear", "rbf", "ranked_laplacian", "weighted_matern12")
#: Boosted trees stand beside them from so many rows on: a stack of 460 or 500 rows has 0.988 × the
#: error, of fewer 0.997. From 1000 rows on "rbf" gains nothing beside them and is left out; the
#: stack has 0.967 × the error of the four kernels with 2000 rows, and 0.962 × with all of up to
#: 6700 [benchmarks/tables/README.md].
ROWS_OF_TREES, ROWS_WITHOUT_RBF = 400, 1000
BESIDE_TREES = ("linear", "ranked_laplacian", "weighted_matern12")
#: Kernels beside trees beyond so many rows: the search of the third takes minutes.
MANY_ROWS, BESIDE_MANY = 100_000, ("linear", "ranked_laplacian")


class Tabular(Model):
    """Base class of the models of tables: several candidates on columns that are prepared."""

    candidates: Any
    combine: str
    preprocess: Any
    columns: str
    #: Class of a candidate that is named by its kernel.
    _model: ClassVar[type[KernelClassifier | KernelRegressor]]
    #: Boosted trees that "auto" has beside kernels.
    _trees: ClassVar[type[BoostedTreesClassifier | BoostedTreesRegressor]]
    #: Of all candidates with a kernel.
    fit_intercept = True
    _as_given: ClassVar[dict[str, Any]] = {"preprocess": None}

    preprocessor_: Any = fitted_part(
        "columns",
        "Fitted transformer of the columns; None if they are taken as they are.",
    )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._prepares
        tags.input_tags.string = self._prepares
        tags.input_tags.categorical = self._prepares
        tags.input_tags.pairwise &= not self._prepares
        return tags

    @property
    def _candidates(self) -> list[Any]:
        return self._expanded(AUTO_KERNELS)

    def _candidates_for(self, X: Matrix | RowBlocks) -> list[Any]:
        """The candidates; those of "auto" depend on the rows."""
        return self._expanded(self._automatic(X))

    def _expanded(self, automatic: Sequence[Any]) -> list[Any]:
        """Models of the candidates, with others in the place of "auto", each kernel once."""
        given, tried = ensure_list(self.candidates), list[Any]()
        known = {kernel_name(one.kernel if has_kernel(one) else one) for one in given}
        others = [each for each in automatic if kernel_name(each) not in known]
        for one in given:
            tried += others if isinstance(one, str) and one == "auto" else [one]
        return [one if is_estimator(one) else self._model(one) for one in tried]

    def _automatic(self, X: Matrix | RowBlocks) -> list[Any]:
        """Candidates that "auto" stands for. Ranks and trees need a dense matrix.

        Of many sparse rows, or rows in blocks, they are the first two.
        """
        n = X.shape[0]
        if not isinstance(X, np.ndarray):
            some = AUTO_KERNELS[:2] if n > MANY_ROWS else AUTO_KERNELS
            return [name for name in some if not isinstance(as_kernel(name), Ranked)]
        if n < ROWS_OF_TREES:
            return list(AUTO_KERNELS)
        beside = AUTO_KERNELS if n < ROWS_WITHOUT_RBF else BESIDE_TREES
        return [*(beside if n <= MANY_ROWS else BESIDE_MANY), self._trees()]

    def _recipe(self, choice: Choice, candidates: Sequence[Any]) -> Any:
        """Several candidates are those of the fit, also those of "auto" with fewer rows.

        They are on as many landmarks, the search for whose number takes most of the time.
        """
        tried = list(candidates)
        if len(tried) < 2:
            return unfitted(self)
        for k, fit in choice.fits.items():
            if isinstance(fit.member, LandmarkMember):
                tried[k] = clone(tried[k]).set_params(n_landmarks=len(fit.member.landmarks))
        return unfitted(self, candidates=tried)

    def _columns_before(self, candidate: Any, columns: Any) -> TablePreprocessor | None:
        """Preparation whose inverse a candidate takes, None if it takes prepared columns."""
        if self.columns == "prepared" or columns is None or isinstance(candidate, BoostedTrees):
            return None
        if isinstance(columns, TablePreprocessor):
            return columns
        raise ValueError(
            f"columns='raw' undoes preprocess='auto' for {one_line(candidate)}, and cannot undo "
            f"{one_line(columns)}: use columns='prepared', or make that a step of the candidate."
        )

    @property
    def _prepares(self) -> bool:  # type: ignore[override]
        return self.preprocess is not None

    @property
    def _stacks(self) -> bool:  # type: ignore[override]
        return self.combine == "stack"

    def _check_parameters(self) -> None:
        several = isinstance(self.candidates, (str, list, tuple)) and self.candidates
        given = ensure_list(self.candidates)
        wrong = [one for one in given if not _is_candidate(one)] if several else [self.candidates]
        if wrong:
            raise ValueError(
                f"{setting('candidates')} must be 'auto', the name of a kernel, or a list of "
                f"these, kernel models and estimators of scikit-learn, got {one_line(wrong[0])}."
            )
        check_known(self.combine, "combine", COMBINATIONS)
        check_known(self.columns, "columns", ("prepared", "raw"))
        names = [one for one in given if isinstance(one, str)]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"candidates has {twice[0]!r} more than once: name it once.")
        for one in self._kernel_candidates:
            if not isinstance(one, self._model):
                name = self._model.__name__
                raise ValueError(f"{one_line(one)} is no {name}: give one, or leave it out.")
            if not one.fit_intercept:
                raise ValueError(
                    f"{one_line(one)}: candidates are compared and stacked with intercepts."
                )
        super()._check_parameters()

    def _prepared_on(self, X: Any, weight: Array, marks: Marks | None = None) -> tuple[Any, Any]:
        """Transformer of the columns, fitted to the rows of positive weight, and all rows by it."""
        if self.preprocess is None:
            return None, X
        automatic = isinstance(self.preprocess, str)
        if automatic:
            check_known(self.preprocess, "preprocess", ("auto",), ", a transformer and None")
        one = TablePreprocessor(decimal=marks) if automatic else clone(self.preprocess)
        rows = np.flatnonzero(weight)
        own = isinstance(one, TablePreprocessor)
        with openmp_threads(len(weight)):
            if len(rows) == len(weight):
                matrix = fitted_matrix(one, X) if own else one.fit_transform(X)
            else:
                one.fit(_safe_indexing(X, rows))
                matrix = matrix_of(one, X) if own else one.transform(X)
        if own:
            warn_of_columns([*serious_remarks(one, len(rows))])
            tell(self, "on_columns", one)
        return one, matrix

    def _prepared(
        self, table: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, Any, Any, Any]:
        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if _num_samples(table) == 0:
            raise ValueError("X has no rows (0 samples): there is nothing to learn from.")
        marks = marks_in(table, y) if is_written(y) else None
        y = plain_targets(y, is_classifier(self), marks)
        check_consistent_length(table, y, None if np.isscalar(sample_weight) else sample_weight)
        numbers = group_numbers(groups, _num_samples(table))
        warn_of_order(self.cv, X=table, y=y, sample_weight=sample_weight, groups=groups)
        if is_grouped(numbers):
            warn_of_groups(table, groups)
        weight = checked_sample_weight(sample_weight, _num_samples(y))
        columns, matrix = self._prepared_on(table, weight, marks)
        return columns, matrix, y, drop_index(sample_weight), drop_index(groups)

    def _warn_of_fit(self) -> None:
        """Also of columns that tell the target or the time, by the prepared rows."""
        super()._warn_of_fit()
        columns, rows = self.fitted_.columns, self.fitted_.rows
        if not isinstance(columns, TablePreprocessor) or warnings_are_kept():
            return
        has_weight, outcome = rows.weight > 0, rows.outcome
        y, sources = self.held_out_.y[has_weight], columns.columns_.tolist()
        y, gaps = outcome.codes(y) if outcome.decides else y, places_of_gaps(columns)
        X = rows.X if has_weight.all() else rows.X[has_weight]
        warn_of_leakage(leaking_columns(sources, gaps, X, y, outcome.decides))
        units = self.fitted_.units_of_fit
        if units.windows and not (issparse(X) or columns.kinds):
            remark = remark_on_time(sources, X, units.once.tested_by)
            warn_of_columns([sentence(remark)] if remark.columns else [])

    def _set_fit(self, fitted: Fitted, columns: Any, table: Any) -> None:
        if hasattr(table, "iloc"):  # to which the caller may add columns
            table = table.copy(deep=False)
        super()._set_fit(replace(fitted, table=table), columns, table)
        if columns is not None:
            self._set_columns(columns)

    def _set_columns(self, columns: Any) -> None:
        """Keep what prepares the columns of the matrix that the members were fitted to."""
        self.fitted_ = self.fitted_.replace_parts(columns=columns)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(columns, name):
                setattr(self, name, getattr(columns, name))

    def _prepared_model(self) -> Self:
        """This model for prepared rows."""
        if self.fitted_.columns is None:
            return self
        model = copy(self)
        model.fitted_ = self.fitted_.replace_parts(columns=None, table=None)
        model.n_features_in_ = self.fitted_.n_features
        model.__dict__.pop("feature_names_in_", None)
        return model

    def _more_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Matrix, Array, Array | None, Array]:
        return super()._more_rows(self._matrix(X), self._as_known(y), sample_weight)

    def _readable(self, X: Any) -> Any:
        return readable_table(X)

    def _matrix(self, X: Any, prepare: bool = True) -> Any:
        """Rows as the members take them; ColumnsWarning of values that no row of the fit has."""
        check_is_fitted(self)
        table, columns = readable_table(X), self.fitted_.columns
        if _num_samples(table) == 0:
            raise ValueError("X has no rows (0 samples) to predict.")
        if columns is None:
            return super()._matrix(table)
        if not isinstance(columns, TablePreprocessor):
            return prepared(columns, table) if prepare else table
        unseen = UnseenValues(columns)
        counted = (unseen.add if prepare else unseen.count)(table)
        warn_of_unseen_values(unseen)
        return counted if prepare else table


def _is_candidate(one: Any) -> bool:
    """True for what can be a kernel, or an estimator; not for their classes."""
    is_kernel = isinstance(one, str) or (callable(one) and not isinstance(one, type))
    return is_kernel or is_estimator(one)
