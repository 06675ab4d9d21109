"""Models of tables: columns are prepared, candidates are compared or stacked."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils import Tags, _safe_indexing, check_consistent_length, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._checks import check_known, drop_index, readable_table
from looms._classes import class_indices
from looms._threads import openmp_threads
from looms._typing import AnyArray, Array, Matrix
from looms.estimators._base import checked_sample_weight
from looms.estimators._callbacks import CallbackSupportMixin, tell
from looms.estimators._candidates import Candidates, CandidatesClassifier, CandidatesRegressor
from looms.estimators._certificate import Certificate
from looms.estimators._folds import (
    RowsOfFit,
    as_rest_of,
    predicted_without,
    rows_at,
    tuned_in_outer_folds,
    unfitted,
)
from looms.estimators._scored import ScoredModel
from looms.estimators._targets import as_targets
from looms.estimators._warnings import (
    kept_warnings,
    warn_of_columns,
    warn_of_groups,
    warn_of_leakage,
    warn_of_order,
    warn_of_unseen_values,
    warnings_are_kept,
)
from looms.folds import group_numbers, is_grouped
from looms.held_out import HeldOut
from looms.lssvm.fit import Member
from looms.scores import Scores
from looms.selection._candidates import Candidate
from looms.selection._nested import Nested
from looms.tables import TablePreprocessor
from looms.tables._cells import Marks, is_written
from looms.tables._columns import marks_in
from looms.tables._leakage import leaking_columns
from looms.tables._preprocessor import (
    fitted_matrix,
    matrix_of,
    places_of_gaps,
    serious_remarks,
)
from looms.tables._remarks import remark_on_time, sentence
from looms.tables._unseen import UnseenValues
from looms.units import Units


def of_model(name: str, doc: str) -> Any:
    """Property of a model of a table: an attribute of its ``model_``."""
    return property(lambda table: getattr(table.model_, name), doc=doc)


def _of_selection(name: str, doc: str) -> Any:
    """The same, of a selection that there was."""

    def value(table: Any) -> Any:
        check_is_fitted(table)
        try:
            return vars(table.model_)[name]
        except KeyError:
            raise AttributeError(
                f"This {type(table).__name__} has no {name}, since nothing was selected: its "
                "values were given, or rows were removed or added after the fit."
            ) from None

    return property(value, doc=doc)


class Tabular(CallbackSupportMixin, ScoredModel):  # type: ignore[misc]
    """Base class of the models of tables: the columns, and the model that is fitted to them."""

    candidates: Any
    combine: str
    cv: Any
    preprocess: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    #: Fitted transformer of the columns; None if they are taken as they are.
    preprocessor_: Any
    #: Fitted to the prepared columns.
    model_: CandidatesClassifier | CandidatesRegressor
    #: Rows of the fit as they were passed, for `evaluate`; neither copied nor saved.
    _table: Any = None
    #: Of a model without a fold: distances of targets from outputs, for the rows of the fold.
    _distances: Array | None = None
    _made_again = (*ScoredModel._made_again, "_table")
    #: Class of the model of the prepared columns.
    _of_columns: ClassVar[type[Candidates]]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        prepares = self.preprocess is not None
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = prepares
        tags.input_tags.string = prepares
        tags.input_tags.categorical = prepares
        tags.input_tags.pairwise = not prepares and get_tags(self._model()).input_tags.pairwise
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return int(self._first.n_features_in_)

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the columns of the table, as text."""
        return np.asarray(self._first.feature_names_in_)

    @property
    def _first(self) -> Any:
        """What takes the rows first."""
        check_is_fitted(self)
        return self.model_ if self.preprocessor_ is None else self.preprocessor_

    members_: tuple[Member, ...] = of_model(
        "members_",
        "Members of the stack, or the only one: ``weight``, ``kernel``, ``mu``, ``landmarks``.",
    )
    candidates_: list[Candidate] = _of_selection(
        "candidates_", "All candidates in the order in which they were tried."
    )
    cv_results_: dict[str, Any] = _of_selection("cv_results_", "Table of the candidates.")
    candidate_weights_: Array | None = of_model(
        "candidate_weights_", "Weights of the candidates in a stack; None if none was made."
    )
    best_index_: int = _of_selection(
        "best_index_", "Candidate that was selected, or has the largest weight."
    )
    units_: Units = of_model("units_", "Rows that were held out together.")
    _in_folds = of_model("_in_folds", "As of the model of the columns.")
    _tuned_before = of_model("_tuned_before", "As of the model of the columns.")

    def certify(self, n_rows: int = 3) -> Certificate:
        """Comparison of the model of the prepared columns with refits.

        Parameters
        ----------
        n_rows : int, default=3
            Number of rows to hold out.

        Returns
        -------
        certificate : Certificate
            As of `KernelClassifier.certify`, for the same preparation of the columns.
        """
        check_is_fitted(self)
        return self.model_.certify(n_rows)

    def without(self, rows: Any, certify: bool = True) -> Self:
        """The model without some rows, exactly, with the same columns and hyper-parameters.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Indices of the rows to remove, from 0, or a mask of them.
        certify : bool, default=True
            Whether to compare the outputs of three rows with a refit without the three.

        Returns
        -------
        model : object
            A new model; this one does not change. The preparation of the columns stays that of all
            rows.
        """
        check_is_fitted(self)
        return self._of(self.model_.without(rows, certify))

    @property
    def _is_plain(self) -> bool:
        """True if the model is fitted to the rows and targets as they are."""
        return self.preprocessor_ is None

    @property
    def _was_tuned(self) -> bool:
        return self.model_._was_tuned

    def _keep_models(self, scores: Scores) -> None:
        if scores is self._own_scores:
            self.model_.evaluate(nested=False)
        elif self._is_plain:
            self.model_._keep_models(scores)

    def _anew(self, method: str) -> Nested | None:
        """Models that were fitted anew without each fold; None if ``model_`` has them."""
        if self._is_plain or self.model_._nested_scores:
            return None
        scores = self._evaluation(method)
        return scores._nested if scores is self._nested_scores else None

    @property
    def _columns_anew(self) -> bool:
        by_model = self._is_plain or self.model_._nested_scores is not None
        return self._nested_scores is not None and not by_model

    def _nested_anew(self) -> Scores:
        if not self._is_plain:
            return super()._nested_anew()
        self._nested_scores = self.model_._nested_anew()
        return self._nested_scores

    def _chosen_anew(self) -> Nested:
        """By models that are fitted anew without each fold, their columns prepared anew."""
        if self._table is None:
            raise ValueError(
                "Nested evaluation repeats the fit, but a copied or saved model does not hold the "
                "training rows: call evaluate() before saving, or use evaluate(nested=False)."
            )
        model, y = self.model_, self._y_of_fit
        rows, anew = RowsOfFit.of(model, self._table, y), clone(self._unfitted)
        if isinstance(self.preprocessor_, TablePreprocessor):  # cells decide on it one by one
            kinds = self.preprocessor_.kinds_
            anew.set_params(preprocess=clone(self.preprocessor_).set_params(kinds=kinds))
        outer, models = tuned_in_outer_folds(self, anew, model, rows)
        outputs = predicted_without(models, outer, rows, lambda one, X: one._held_out_values(X))
        for one, out, left in zip(models, outer.tested_by, outer, strict=True):
            tested = rows_at(self._table, rows.train[out])
            rest = np.delete(rows.train, left)
            one._keep_distances(as_rest_of(one, tested, rest), y[rows.train[out]])
            one._table = None
        held_out = HeldOut(self.held_out_.y[rows.train], outputs, rows.own(rows.weight))
        rules = None
        if rows.classes:
            rules = [one.model_._rule for one in models]
        tie = max(one._tie for one in (model, *(each.model_ for each in models)))
        return Nested.of_folds(rows.train, outer, held_out, rules, models, tie)

    def _held_out_values(self, X: Any) -> Array:
        """Values of rows that are scored."""
        raise NotImplementedError

    def _keep_distances(self, X: Any, y: AnyArray) -> None:
        """Keep what intervals need of the rows that this model was fitted without."""

    def _outputs_anew(self, nested: Nested, X: Any) -> Iterator[Array]:
        """Outputs for new rows of each model that was fitted anew without a fold."""
        for left, one in zip(nested.units, nested.models, strict=True):
            yield one._outputs_on(as_rest_of(one, X, np.delete(nested.rows, left)))

    def _outputs_on(self, X: Any) -> Array:
        """Outputs of the model for new rows, without warnings of their values."""
        with kept_warnings():
            return self.model_._outputs(self.model_._checked_new_data(self._prepared(X)))

    @property
    def _fitted(self) -> Any:
        """The model; NotFittedError before the fit."""
        check_is_fitted(self)
        return self.model_

    def _model(self) -> Candidates:
        """Unfitted model for the prepared columns, with the parameters and callbacks of this."""
        names = self._of_columns._get_param_names()
        model = self._of_columns(**{name: getattr(self, name) for name in names})
        if callbacks := getattr(self, "_skl_callbacks", ()):
            model.set_callbacks(*callbacks)
        return model

    def _for_evaluation(self, model: Candidates, **parameters: Any) -> Any:
        """Unfitted model that `evaluate` fits without each fold, with the candidates of the fit."""
        later = model._unfitted
        return None if later is None else unfitted(self, candidates=later.candidates, **parameters)

    def _of(self, model: Any) -> Self:
        """This model with another ``model_``, fitted to columns prepared in the same way."""
        one = copy(self)
        one._set_fitted(model_=model)
        one._table = None
        return one

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

    def _fit_columns(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, Any, dict[str, Any]]:
        """A preprocessor fitted to the rows, rows and targets as the model takes them, options."""
        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if type(X) in (str, bytes, dict):  # which a sparse matrix may descend from
            raise TypeError(f"X is a table and y its targets, got {type(X).__name__} for X.")
        if _num_samples(X) == 0:
            raise ValueError("X has no rows (0 samples): there is nothing to learn from.")
        marks = marks_in(X, y) if is_written(y) else None
        y = as_targets(y, is_classifier(self), marks)
        check_consistent_length(X, y, None if np.isscalar(sample_weight) else sample_weight)
        numbers = group_numbers(groups, _num_samples(X))
        warn_of_order(self.cv, X=X, y=y, sample_weight=sample_weight, groups=groups)
        if is_grouped(numbers):
            warn_of_groups(X, groups)
        weight = checked_sample_weight(sample_weight, _num_samples(y))
        preprocessor, matrix = self._prepared_on(X, weight, marks)
        options = {"sample_weight": sample_weight, "groups": groups}
        options = {name: drop_index(values) for name, values in options.items()}
        return preprocessor, matrix, y, options

    def _warn_of_features(self, matrix: Matrix) -> None:
        """ColumnsWarning of columns that tell the target or the time, by the prepared rows."""
        if not isinstance(self.preprocessor_, TablePreprocessor) or warnings_are_kept():
            return
        has_weight, classes = self.model_.fit_weight_ > 0, is_classifier(self)
        y, sources = self.held_out_.y[has_weight], self.preprocessor_.columns_.tolist()
        y, gaps = class_indices(y) if classes else y, places_of_gaps(self.preprocessor_)
        X = matrix if has_weight.all() else matrix[has_weight]
        warn_of_leakage(leaking_columns(sources, gaps, X, y, classes))
        units = self.model_._units
        if units.windows and not (issparse(X) or self.preprocessor_.kinds):
            remark = remark_on_time(sources, X, units.once.tested_by)
            warn_of_columns([sentence(remark)] if remark.columns else [])

    def _prepared(self, X: Any) -> Any:
        """Rows as the model takes them; ColumnsWarning of values that no row of the fit has."""
        check_is_fitted(self)
        X = readable_table(X)
        if _num_samples(X) == 0:
            raise ValueError("X has no rows (0 samples) to predict.")
        if self.preprocessor_ is None:
            return X
        if not isinstance(self.preprocessor_, TablePreprocessor):
            with openmp_threads(_num_samples(X)):
                return self.preprocessor_.transform(X)
        unseen = UnseenValues(self.preprocessor_)
        matrix = unseen.add(X)
        warn_of_unseen_values(unseen)
        return matrix

    def _warn_of_values(self, X: Any) -> None:
        """ColumnsWarning of values that no row of the fit has."""
        if isinstance(self.preprocessor_, TablePreprocessor):
            unseen = UnseenValues(self.preprocessor_)
            unseen.count(X)
            warn_of_unseen_values(unseen)

    def _check_parameters(self) -> None:
        self._model()._check_parameters()

    def _kernel_model(self) -> Any:
        check_is_fitted(self)
        return self.model_
