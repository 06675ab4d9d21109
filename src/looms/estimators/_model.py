"""Base class of the models of looms: what a fit keeps, its scores, and models of other rows."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_n_features, _num_samples, check_is_fitted, validate_data

from looms._advice import setting
from looms._checks import check_count, check_flag
from looms._optional import require
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, rows_in_memory
from looms.dask._blocks import blocks_and_arrays, is_dask
from looms.estimators._base import checked_sample_weight, validated
from looms.estimators._callbacks import CallbackSupportMixin, CallbackWatcher, with_callbacks
from looms.estimators._evaluation import chosen_anew
from looms.estimators._folds import unfitted
from looms.estimators._metrics import judged, scorers_of
from looms.estimators._one_kernel import check_candidate, has_kernel
from looms.estimators._selection import selected
from looms.estimators._targets import check_numbers, order_of
from looms.estimators._warnings import (
    kept_warnings,
    warn,
    warn_of_duplicates,
    warn_of_missed_precision,
    warn_of_order,
    warn_of_search,
)
from looms.fitted._certificate import Certificate, certified, certified_change
from looms.fitted._changes import add_rows, checked_rows, class_weight, remove_rows
from looms.fitted._fitted import SAMPLES, Fitted
from looms.fitted._rows import Rows
from looms.fitted._scores import NewScores, held_out_scores, new_scores, scored
from looms.fitted._without_units import (
    jackknife_errors,
    models_at_hand,
    models_without,
    predictions_without,
)
from looms.folds import label_numbers
from looms.held_out import HeldOut
from looms.kernels import Kernel, Samples
from looms.kernels._names import as_kernel
from looms.kernels._samples import as_matrix, check_scale
from looms.lssvm.fit import Member
from looms.lssvm.left_out import LeftOut
from looms.scores import Scores, WithoutUnits
from looms.selection._candidates import Candidate, Choice
from looms.selection._tuning import Tuning
from looms.units import Units

#: Why a model may be without a part of its ``fitted_``.
_LACKING = {
    "selection": (
        "no {}, since nothing was selected: its values were given, or rows were removed or added "
        "after the fit."
    ),
    "leading": "no kernel model.",
}


class _Part(property):
    """A part of the ``fitted_`` of a model, by its path; NotFittedError before the fit.

    AttributeError if the model is without what the part is of.
    """

    def __init__(self, path: str, doc: str) -> None:
        super().__init__(self._value)
        self.__doc__ = doc
        self._of, _, self._name_there = path.rpartition(".")

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _value(self, model: Model) -> Any:
        check_is_fitted(model)
        of = getattr(model.fitted_, self._of) if self._of else model.fitted_
        if of is None:
            why = _LACKING[self._of].format(self._name)
            raise AttributeError(f"This {type(model).__name__} has {why}")
        return getattr(of, self._name_there)


def fitted_part(path: str, doc: str) -> Any:
    """Property of a model with a part of its ``fitted_``."""
    return _Part(path, doc)


#: What a fit that fails puts back.
_OF_FIT = "n_features_in_", "feature_names_in_", "_target", "fitted_"


class Model(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the models: the best of some candidates, or their stack.

    Attributes
    ----------
    fitted_ : looms.fitted.Fitted
        The fitted model as one value, of which the other attributes are parts.
    """

    fitted_: Fitted
    random_state: Any
    cv: Any
    n_jobs: int | None
    verbose: int
    fit_intercept: bool
    certificate_: Certificate
    n_features_in_: int
    feature_names_in_: AnyArray
    #: What `evaluate` returned, "nested" and of the "fit", until the next fit.
    _scores: dict[str, Scores]
    #: Name of the target of the fit, if it had one.
    _target: str | None = None
    #: True if the columns of a table are prepared.
    _prepares = False
    #: True if several candidates are stacked, by the outputs of the fit if without folds.
    _stacks = False
    #: Parameters of this model on a matrix, and on the targets that are fitted.
    _as_given: ClassVar[dict[str, Any]] = {}

    members_: tuple[Member, ...] = fitted_part(
        "members",
        "Members of the stack, or the only one: ``weight``, ``kernel``, ``mu``, ``landmarks``.",
    )
    units_: Units = fitted_part("units", "Rows that were held out together.")
    choice_units_: Units | None = fitted_part(
        "choice_units",
        "Folds without which candidates were tuned anew, to be compared; None if by ``units_``.",
    )
    loo_: HeldOut = fitted_part("loo_predicted", "Leave-one-out outputs.")
    held_out_: HeldOut = fitted_part("held_out_predicted", "Outputs of models without each unit.")
    fit_weight_: Array = fitted_part("rows.fit_weight", "Weights of the rows in the fit.")
    selection_weight_: Array = fitted_part(
        "rows.selection_weight", "Weights of the rows in the criterion."
    )
    fit_intercept_: bool = fitted_part("fit_intercept", "True if it was fitted with an intercept.")
    candidate_weights_: Array | None = fitted_part(
        "candidate_weights", "Weights of the candidates in a stack; None if none was made."
    )
    candidates_: list[Candidate] = fitted_part(
        "selection.candidates", "All candidates in the order in which they were tried."
    )
    cv_results_: dict[str, Any] = fitted_part("selection.cv_results", "Table of the candidates.")
    best_index_: int = fitted_part(
        "selection.index", "Candidate that was selected, or has the largest weight."
    )
    selection_: Tuning = fitted_part("selection.tuning", "Record of the search.")
    n_iter_: int = fitted_part("selection.n_iter", "Iterations of the last search, at least 1.")
    kernel_: Kernel = fitted_part("leading.kernel", "The kernel with its values.")
    mu_: float = fitted_part("leading.mu", "The regularization.")
    dual_coef_: Array = fitted_part("leading.dual_coef", "Coefficients of the kernel expansion.")
    intercept_: Any = fitted_part("leading.intercept", "The intercept.")
    landmarks_: Matrix | None = fitted_part("leading.landmarks", "Landmarks; None without.")

    @property
    def X_fit_(self) -> Matrix | None:
        """The training samples; None for rows in blocks."""
        check_is_fitted(self)
        X = self.fitted_.rows.X
        return None if isinstance(X, RowBlocks) else X

    @property
    def coef_(self) -> Array:
        """Feature weights of a linear model; AttributeError for other models, and for stacks."""
        kernel = self.kernel_
        leading: Any = self.fitted_.leading
        if len(self.fitted_.members) > 1:
            raise AttributeError(
                f"coef_ is of one linear model, and this one has {len(self.fitted_.members)} "
                "members: see members_, or looms.report.RelevanceDisplay."
            )
        if leading.coef is not None:
            return np.asarray(leading.coef)
        coef = kernel.feature_weights(Samples(leading.basis(self.X_fit_)), leading.dual_coef)
        if coef is None:
            raise AttributeError(
                f"Only linear models have coef_, and the kernel is {kernel!r}: see "
                "looms.report.RelevanceDisplay, or sklearn.inspection.permutation_importance."
            )
        return coef

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)  # a fit that failed may have left other attributes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = any(
            (isinstance(kernel, str) and kernel == "precomputed")
            or getattr(kernel, "pairwise", False)
            for kernel in (one.kernel for one in self._kernel_candidates)
        )
        return tags

    def evaluate(self, *, nested: bool = True, scoring: Any = None) -> Scores:
        """Scores of held-out predictions, with standard errors.

        For classes "accuracy", "balanced_accuracy" (the mean over classes of the recall), "roc_auc"
        and, with probabilities, "log_loss"; for numbers "rmse", "mae" and "r2"; for ordered classes
        "accuracy", "mean_rank_error", "quadratic_kappa" and, with probabilities,
        "ranked_probability" (the sum over cuts of squared errors) and "log_loss". As in
        scikit-learn, scores are better when greater, losses and errors when smaller.

        Parameters
        ----------
        nested : bool, default=True
            Whether model selection, in models of tables with the preparation of the columns, is
            repeated without the rows that are scored. It is repeated without each of ten folds
            (five for several candidates; fewer if the rarest class has fewer samples
            or groups), or without each of the three to ten folds of a splitter `cv`. That takes as
            many fits, which `n_jobs` or `joblib.parallel_config` runs in parallel. Of several
            candidates these are quicker than that to all rows: searches along gradients end on a
            quarter of the rows, and up to 2000 rows three folds compare the candidates, not five,
            unless `cv` has folds. Numbers of up to 2000 rows that the fit predicts with a held-out
            R² above 0.95 have ten folds, and searches on all rows: with hardly any noise, errors
            are of the rows and searches that a fold lacks. For a grid on
            all samples, each of them in one of three folds or more, it is repeated in closed form
            without every sample, group or fold; that takes four times the time of the grid, and 3
            n² numbers in memory for each class of several. With given hyper-parameters nothing was
            selected, and leave-one-out scores are unbiased. False scores the held-out predictions
            of the fit. If the model was tuned on them, these scores are optimistic, and
            ``optimistic`` is True.
        scoring : str, callable, list of these or dict, default=None
            Other scores than these, as in scikit-learn: names of scorers, callables ``(estimator,
            X, y)``, or a dict of these by name. They are computed once on all held-out predictions,
            and have no standard errors. For scikit-learn's scorers, greater is better. Callables
            get an estimator with the held-out predictions, for which ``X`` is a column of row
            numbers.

        Returns
        -------
        scores : looms.scores.Scores
            A mapping from names to values. The model keeps it until the next fit, also in its
            files. It also keeps the models of nested scores, for intervals and sets.

        Raises
        ------
        ValueError
            If there are too few rows or groups for outer folds, or model selection cannot be
            repeated, as after `without`, or by a model of a table that was pickled or saved.

        Warns
        -----
        UserWarning
            If the fits will take more than a minute.

        Notes
        -----
        "roc_auc" compares two rows under one model that was trained on neither: leave-pair-out.
        Models tuned in folds, and models fitted to rows in blocks, compare rows within the
        folds. Without folds of their own, the last use ten folds for this, and for
        their other scores. "roc_auc" is then NaN if some class has fewer than three rows or groups.
        Without refits, a least-squares model takes n³ flops. It keeps the n² numbers that intervals
        need, which shallow copies share, and pickles and files lack; a grid keeps as many for each
        of its points that was selected without some unit.
        """
        check_is_fitted(self)
        check_flag("nested", nested)
        rows = self.fitted_.rows
        scorers = scorers_of(scoring, self, rows.y, rows.weight)
        with blas_threads(len(rows.weight)):
            again = nested and (self.fitted_.tuned or self.fitted_.units_of_fit.forward)
            if not again and "fit" not in self._scores and self.fitted_.has_rows:
                self.fitted_.left_out  # noqa: B018 (solved once, for scores and what follows)
            scores = self._scored(again)
            if scores._without is None and self.fitted_.has_rows:
                models = None if again else models_without(self.fitted_, None)
                if models is None or scores._nested is not None:
                    models = models_without(self.fitted_, scores._nested)
                scores = replace(scores, _without=models)
                self._scores = self._scores | {"nested" if again else "fit": scores}
        return judged(scores, scorers, self.fitted_.outcome)

    def scores(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Scores of the predictions for new rows, with standard errors: those of `evaluate`.

        Parameters
        ----------
        X : as for `predict`
            New rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets. Labels that are no class of the fit count as errors, and the log loss is
            then NaN; ordered classes must be known.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each row. Rows of a group count as one draw in the standard
            errors, which are too small without it if some belong together.

        Returns
        -------
        scores : pandas.DataFrame
            A row for each score by its name, with the columns ``value``, ``standard_error`` and
            ``baseline``, that of these targets without any columns.

        Raises
        ------
        ValueError
            If rows have no target: they are to be left out.
        ImportError
            If pandas is not installed.

        Warns
        -----
        UserWarning
            If labels are no class of the fit, or the rows of the fit had groups and these have
            none.

        See Also
        --------
        score : The accuracy, or R², alone.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from looms import KernelClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = KernelClassifier("normalized_linear", mu=1e-3).fit(X[::2], y[::2])
        >>> model.scores(X[1::2], y[1::2]).round(3)
                           value  standard_error  baseline
        accuracy           0.901           0.018     0.613
        balanced_accuracy  0.884           0.021     0.500
        roc_auc            0.963           0.010     0.500
        log_loss           0.233           0.028     0.668
        """
        pandas: Any = require("pandas", "A table of scores")
        _check_in_memory(X)
        warn_of_order(X=X, y=y, sample_weight=sample_weight, groups=groups)
        made = self._scores_of_new(self._matrix(X), y, sample_weight, groups)
        rows = {
            name: (*pair, made.baselines.get(name, np.nan)) for name, pair in made.scores.items()
        }
        columns = ["value", "standard_error", "baseline"]
        return pandas.DataFrame.from_dict(rows, orient="index", columns=columns)

    def _scores_of_new(self, matrix: Any, y: Any, sample_weight: Any, groups: Any) -> NewScores:
        """What `scores` is made of, for rows as the members take them."""
        if y is None:
            raise ValueError("y is None: give the targets of the rows.")
        with kept_warnings():  # a column says nothing here that the fit has not said
            y = np.asarray(self._as_known(y))
        n = matrix.shape[0]
        check_consistent_length(matrix, y)
        if self.fitted_.outcome.decides:
            y = column_or_1d(y)
        else:
            check_numbers(y, "a classifier")
            y = self._coded_targets(np.asarray(y, dtype=np.float64))
            assert_all_finite(y, input_name="y")
        weight = checked_sample_weight(sample_weight, n)
        numbers = None if groups is None else label_numbers(groups, n, "groups")
        if numbers is None and self.fitted_.rows.grouped:
            warn(
                "The rows of the fit had groups, and these have none, so each counts as one draw: "
                "standard errors are too small if some belong together. Give groups.",
                UserWarning,
            )
        return new_scores(self.fitted_, y, self.fitted_.outputs(matrix), weight, numbers)

    def _frame(self, X: Any, confidence_level: float | None, **coverage: Any) -> Any:
        """Data frame of predictions for new rows, by the index of theirs."""
        pandas: Any = require("pandas", "A table of predictions")
        _check_in_memory(X)
        columns = self._columns(self._matrix(X), self._readable(X), confidence_level, **coverage)
        return pandas.DataFrame(columns, index=X.index if hasattr(X, "iloc") else None)

    def _columns(
        self, matrix: Any, table: Any, confidence_level: float | None, **coverage: Any
    ) -> dict[str, AnyArray]:
        """Predictions by names of columns, for rows as the members take them, and as they were
        passed."""
        covered: dict[str, AnyArray] = {}
        if confidence_level is not None:
            covered = self._covered(matrix, table, confidence_level, **coverage)
        return self.fitted_.prediction_columns(self.fitted_.outputs(matrix)) | covered

    @abstractmethod
    def _covered(
        self, matrix: Any, table: Any, confidence_level: float, **coverage: Any
    ) -> dict[str, AnyArray]:
        """Intervals or sets by names of columns; the rest as of `_columns`."""

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        groups: Any = None,
        assessment: Any = None,
        title: str | None = None,
        notes: Sequence[str] | None = None,
    ) -> None:
        """Write a report on the fitted model: one HTML page that loads nothing else.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced.
        X, y, groups, assessment, title, notes : see `looms.report.summary`
            The rows, targets and groups of the fit name the rows, the target and the groups.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.

        See Also
        --------
        looms.report.write_html : The same for pipelines too.
        """
        from looms.report import write_html

        check_is_fitted(self)
        more = {"groups": groups, "assessment": assessment, "title": title, "notes": notes}
        write_html(self, path, X=X, y=y, **more)

    def save(self, path: str | os.PathLike[str], *, trusted: Collection[type | str] = ()) -> None:
        """Write the fitted model to a file, which `looms.load` and the command line read.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced.
        trusted : collection of types or of their names, default=()
            As for `looms.model_files.save_model`.

        Raises
        ------
        looms.model_files.ModelFileError
            If the model holds something that a model file may not hold, such as a function, or the
            file cannot be written.
        ImportError
            If skops is not installed.

        Notes
        -----
        ``looms score`` finds the target by its name, which the model has of a pandas Series.
        """
        from looms.model_files import save_model

        check_is_fitted(self)
        metadata = {} if self._target is None else {"target": self._target}
        save_model(path, self, metadata, trusted=trusted)

    def _scored(self, nested: bool = False) -> Scores:
        """Scores of choices that are repeated without each fold, or of the fit; those of before, if
        any."""
        name = "nested" if nested else "fit"
        if name not in self._scores:
            fitted = self.fitted_
            made = scored(fitted, chosen_anew(self)) if nested else held_out_scores(fitted)
            self._scores = self._scores | {name: made}  # copies of this model keep theirs
        return self._scores[name]

    def _models_without(self, of_fit: bool = False) -> WithoutUnits:
        """Models without each unit that `evaluate` scored, nested if it was.

        With ``of_fit`` those of the fit without each row, in closed form.
        """
        if not self._scores:
            raise NotFittedError(
                "Intervals and sets use the models of evaluate(): call that first, or "
                "evaluate(nested=False)."
            )
        nested = "nested" in self._scores and not of_fit
        scores = self._scores.get("nested" if nested else "fit")
        if of_fit or scores is None:
            models = models_at_hand(self.fitted_, None)
        else:
            models = scores._without or models_at_hand(self.fitted_, scores._nested)
        if models is not None:
            return models
        again = "evaluate()" if nested else "evaluate(nested=False)"
        if scores is None:
            raise NotFittedError(
                f"{setting('method', 'scaled')} takes the models of the fit without each row, "
                f"which {again} makes: call that too."
            )
        self.fitted_.X  # noqa: B018 (an error without the rows)
        raise NotFittedError(
            f"The models without each row, n² numbers, are not at hand: call {again} to make "
            "them, since other scores need none, and a pickled or saved model holds none. The "
            "scores stay the same."
        )

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        """All that `fit` does. If it fails, the model and the names of its features stay."""
        state = self.__dict__
        before = {name: state[name] for name in _OF_FIT if name in state}
        try:
            began, table = time.perf_counter(), self._readable(X)
            columns, X, y, given, groups = self._prepared(table, y, sample_weight, groups)
            order = order_of(y)
            X, y, weight = self._validated(X, y, given)
            watcher = CallbackWatcher(self, X, y, None if given is None else weight)
            model = self
            if isinstance(self.cv, Iterator):  # which gives its folds once
                model = copy(self)
                model.cv = list(self.cv)
            fitted = model._fit_on(self._rows(X, y, weight, groups, order), watcher, columns)
            fitted = replace(fitted, seconds=time.perf_counter() - began)
            self._set_fit(fitted, columns, table)
            watcher.ends()
            self._warn_of_fit()
        except BaseException:
            if state.get("fitted_") is before.get("fitted_"):
                for name in _OF_FIT:
                    state.pop(name, None)
                state.update(before)
            raise

    def _prepared(
        self, table: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, Any, Any, Any]:
        """What prepares the columns, None for nothing; rows, targets, weights and groups."""
        self._check_parameters()
        warn_of_order(self.cv, X=table, y=y, sample_weight=sample_weight, groups=groups)
        return None, table, y, sample_weight, groups

    @abstractmethod
    def _rows(
        self, X: Any, y: AnyArray, weight: Array, groups: Any, order: AnyArray | None = None
    ) -> Rows:
        """Rows of a fit with their outcome; ``order`` is of ordered classes."""

    def _set_fit(self, fitted: Fitted, columns: Any, table: Any) -> None:
        """Keep a fitted model, what prepares its columns, and the table of its fit."""
        self._set_fitted(fitted)

    def _warn_of_fit(self) -> None:
        """Warnings of what a fit has found."""
        warn_of_search(self.fitted_.selection, self.fitted_.rows.targets)

    def _set_fitted(self, fitted: Fitted) -> None:
        """Keep a fitted model, and nothing of one before."""
        self.__dict__.pop("certificate_", None)
        self._scores = {}
        self.fitted_ = fitted

    def _matrix(self, X: Any, prepare: bool = True) -> Any:
        """Rows as the members take them; without ``prepare`` as models of tables do."""
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            _check_n_features(self, X, reset=False)
            return X
        return as_matrix(validate_data(self, X, reset=False, **SAMPLES))

    def _readable(self, X: Any) -> Any:
        """Rows in a form whose columns can be read."""
        return X

    def _prepared_model(self) -> Self:
        """This model for rows as the members take them."""
        return self

    def _outputs(self, X: Any) -> Array:
        """Outputs of the model for new rows, on the scale of the targets that were fitted."""
        matrix = self._matrix(X)
        return self.fitted_.outputs(matrix)

    def predict_standard_error(self, X: Any) -> Array:
        r"""Standard error of each prediction, over draws of the rows of the fit.

        .. math:: \mathrm{se}(x)^2 = \frac{m - 1}{m} \sum_k (f_k(x) - \bar f(x))^2

        where f_k is the prediction by the model without unit k of m, a row or a group, and
        :math:`\bar f` is the mean of these: the jackknife [ES81]. It is not the error of a new
        target, which also has noise of its own: that is ``predict(X, return_std=True)``.

        Parameters
        ----------
        X : array-like, sparse matrix or table, as of ``predict``
            New rows.

        Returns
        -------
        errors : ndarray of the shape of the prediction
            Of numbers in units of the target. Of classes (n_samples, n_classes): those of
            ``predict_proba``, or without a calibrator of the decision values.

        Raises
        ------
        ValueError
            If the rows of the fit were in blocks, and are not kept.

        Notes
        -----
        Hyper-parameters, calibration, and the residuals by which a transform goes back, stay the
        same, so that errors of tuned models are a little too small: on a made problem the standard
        deviation over tables is 0.97 to 1.13 times the error [benchmarks/results/stability.csv]. In
        a stack with estimators of scikit-learn the units are the folds that the fit kept models
        without, and errors are rough. They are NaN for such stacks in windows of time that earlier
        rows test.

        n³ flops for the models without each unit, once, and n² for each row; for a transform of the
        target the time of n predictions.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from looms import KernelClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = KernelClassifier("normalized_linear", mu=1e-3).fit(X[:200], y[:200])
        >>> risk = model.predict_proba(X[300:303])[:, 1]
        >>> error = model.predict_standard_error(X[300:303])[:, 1]
        >>> np.column_stack([risk, error]).round(2)
        array([[0.  , 0.  ],
               [0.93, 0.02],
               [0.02, 0.01]])
        """
        matrix, fitted = self._matrix(X), self.fitted_
        errors = jackknife_errors(fitted, predictions_without(fitted, matrix)[:, 1:])
        one = not fitted.outcome.decides and fitted.loo_outputs.ndim == 1
        return np.asarray(errors[:, 0] if one else errors)

    def left_out(self) -> LeftOut:
        """The model, or stack, without any of the rows of its fit.

        A fit keeps coefficients only: the system that these models need has up to n² numbers,
        too many to keep in memory after every fit and in every model file. The first call solves
        it from the training rows, for n³ flops, or n q² for a model of q landmarks or features.
        It is cached with the model, but not pickled or saved, until the model is fitted again.

        Returns
        -------
        left_out : looms.lssvm.left_out.LeftOut
            Of the rows with positive weight, in their order; targets and outputs in columns. New
            rows of a table are those that ``preprocessor_`` has transformed.
        """
        check_is_fitted(self)
        return self.fitted_.left_out

    def without(self, rows: Any, certify: bool = True) -> Any:
        """The model without some rows, with the same hyper-parameters.

        It equals a fit to the other rows with these values, including leave-one-out outputs,
        threshold and probabilities. A model of one kernel has the values as its parameters, a model
        of a table in ``members_``; its columns stay prepared as they were. If candidates were
        compared in folds, their weights, threshold and calibration stay those of the fit, for these
        folds are not repeated.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Indices of the rows to remove, from 0, or a mask of them.
        certify : bool, default=True
            Whether to compare the outputs of three rows with a refit without the three.

        Returns
        -------
        model : model of the same class
            A new model; this one does not change. Its ``mu_`` keeps the ridge of the other rows,
            ``n_samples * mu / weight``, as it was, and "balanced" class weights keep their
            values. ``certificate_`` has the largest difference from the refit. With groups
            the rest of a group is held out together; folds of `cv` are dropped, and each row is
            held out by itself. After a search the hyper-parameters were tuned on the removed rows
            too, so only ``evaluate(nested=False)`` is available, which is optimistic.

        Raises
        ------
        ValueError
            If rows are out of range or repeated, or too few are left: fewer than two, none of
            some class, or a single group.
        RuntimeError
            If the outputs differ from those of the refit by more than 1e-6.

        Notes
        -----
        k rows cost k n² flops, after n³ for the inverse at the first call, which
        `left_out` keeps; the new model has its own, of n² numbers. The refit
        costs 2n³/3 more. On m landmarks, which stay, a pass over the rows costs n m² flops, and the
        members of a stack cost as much each; their weights stay. The new model does not contain
        the removed rows, but it keeps what was tuned on them, such as ``kernel_``.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import KernelRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = KernelRegressor(mu=1e-6).fit(X, np.sin(6 * X[:, 0]))
        >>> others = model.without([0, 7])
        >>> len(others.X_fit_), others.certificate_.relative < 1e-8
        (48, True)
        >>> again = KernelRegressor(others.kernel, mu=others.mu).fit(others.X_fit_, others.loo_.y)
        >>> bool(np.abs(again.loo_.outputs - others.loo_.outputs).max() < 1e-8)
        True
        """
        check_is_fitted(self)
        check_flag("certify", certify)
        fitted = remove_rows(self.fitted_, rows)
        n = len(self.fitted_.rows.weight)
        gone: Any = checked_rows(rows, n) if fitted.pairwise else []
        return self._changed(fitted, gone, certify)

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> Any:
        """The model with rows added after its own, with the same hyper-parameters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Samples to add.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets, or classes that the model knows.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        model : model of the same class
            As for `without`.

        Raises
        ------
        ValueError
            If there is a class that the model does not know; if its kernel is precomputed, since
            only a fit can check that the larger kernel matrix is positive semi-definite; or if it
            holds out groups, since it does not keep their labels.
        RuntimeError
            As for `without`.

        Notes
        -----
        k rows cost k n² flops, as for `without`.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import KernelRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = KernelRegressor(mu=1e-6).fit(X[:48], np.sin(6 * X[:48, 0]))
        >>> more = model.with_rows(X[48:], np.sin(6 * X[48:, 0]))
        >>> len(more.X_fit_), more.certificate_.relative < 1e-8
        (50, True)
        """
        check_is_fitted(self)
        check_flag("certify", certify)
        fitted = self.fitted_
        if fitted.pairwise:
            raise ValueError(
                "with_rows needs samples with features, but this kernel is precomputed: fit a "
                f"model to the larger kernel matrix, with mu = {self.mu_:.6g} times the sum of "
                "the weights before over that after, which keeps the ridge."
            )
        if self.units_.grouped:
            raise ValueError(
                "with_rows does not know the groups of new rows, but this model holds out groups "
                "of rows: fit it anew to all rows with their groups."
            )
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y, sample_weight = blocks_and_arrays(self._readable(X), y, sample_weight)
        X = rows_in_memory(X)
        if _num_samples(X) == 0:
            return self.without([], certify)
        X, targets, numbers, weight = self._more_rows(X, y, sample_weight)
        # Weights of several orders of magnitude are refused together as each by itself.
        together = np.concatenate([fitted.rows.weight, weight])
        weights = checked_sample_weight(together, len(together))
        check_scale(X)
        changed = add_rows(fitted, X, targets, numbers, weights)
        if fitted.tuned:
            warn_of_duplicates(changed.X[weights > 0])
        return self._changed(changed, [], certify)

    def _changed(self, fitted: Fitted, gone: Any, certify: bool) -> Self:
        """This model with another fit, without some features, as an estimator with its values."""
        member, known = fitted.kernel_members[0], self.get_params(deep=False)
        values = {
            "kernel": member.kernel,
            "mu": member.mu,
            "fit_intercept": fitted.fit_intercept,
            "cv": None,
            "class_weight": class_weight(fitted),
            **fitted.outcome.parameters,
        }
        values = {name: value for name, value in values.items() if name in known}
        model: Self = clone(self).set_params(**values)
        model._set_fitted(fitted)
        model._target = self._target
        if hasattr(self, "n_features_in_"):
            model.n_features_in_ = self.n_features_in_ - len(gone)
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = np.delete(self.feature_names_in_, gone)
        warn_of_missed_precision(fitted.outcome.threshold, fitted.loss)
        fitted.left_out  # noqa: B018 (which the next change starts from)
        if certify:
            model.certificate_ = certified_change(fitted)
        return model

    def _more_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Matrix, Array, Array | None, Array]:
        """Samples, coded targets, those given if they are transformed, and weights, to be added."""
        X, y, weight = self._validated(X, y, sample_weight, reset=False, ensure_min_samples=1)
        return X, self._coded_targets(y), None, weight

    def certify(self, n_rows: int = 3, X: Any = None) -> Certificate:
        """Largest difference between some outputs, held-out and ordinary, and refits.

        Held-out outputs are compared with models refitted without the row, or its group or
        fold. The model's ordinary outputs, as ``predict`` computes them and by the dual
        coefficients, are compared with a model refitted to all rows. The hyper-parameters stay
        the same. The refits share only the kernel with the fit: a least-squares model is solved
        anew by LU with partial pivoting, a support vector machine by scikit-learn's ``SVC``. On
        landmarks, or with the linear kernel of few features, normal equations are solved.

        Parameters
        ----------
        n_rows : int, default=3
            Number of rows to hold out, at most all: the one with the largest residual, and others
            drawn at random, the same at every call.
        X : array-like, sparse matrix, dask collection or RowBlocks, default=None
            The training samples, as they were passed to ``fit``, by default those that the model
            holds. A saved model that was fitted to rows in blocks holds none.

        Returns
        -------
        certificate : Certificate
            Also stored as ``certificate_``. It covers ``loo_``, and ``held_out_`` if rows are held
            out in groups or folds, but not outputs of models that were tuned anew, as by
            `evaluate`. If a model without the rows cannot be fitted, the difference is infinite.

        Raises
        ------
        ValueError
            If ``n_rows`` is not a positive integer, or the samples are neither kept nor given, or
            others are given than those of the fit.
        MemoryError
            If the refits would take more memory than is free.
        sklearn.exceptions.NotFittedError
            If the model is not fitted.

        Notes
        -----
        Each row, or fold, and the model of all rows cost 2n³/3 flops, and the condition number
        n³/3; on q landmarks, or with the linear kernel of q features, few beside n, each costs
        n q² flops. At n = 1000, three rows cost a quarter of the fit of a model that tunes its
        hyper-parameters, and five times the fit with given ones; at n = 2000, 0.8 s, as much as
        the fit. Memory: six n×n arrays, or a few q×q.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> certificate = KernelClassifier(mu=1e-3).fit(*load_iris(return_X_y=True)).certify()
        >>> certificate.verdict, len(certificate.rows), certificate.relative < certificate.bound
        ('agrees', 3, True)
        """
        check_is_fitted(self)
        check_count(n_rows, "n_rows")
        fitted = self.fitted_
        if X is not None:
            X, *_ = blocks_and_arrays(self._readable(X), fitted.rows.targets, None)
            X = self._matrix(X)
            if X.shape[0] != len(fitted.rows.weight):
                raise ValueError(
                    f"X has {X.shape[0]} rows, but the model was fitted to "
                    f"{len(fitted.rows.weight)}: certify takes the rows of the fit."
                )
            fitted = replace(fitted, rows=replace(fitted.rows, X=X))
        self.certificate_ = certified(fitted, int(n_rows))
        return self.certificate_

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, AnyArray, Array]:
        """Samples, targets and weights as models with kernels take them."""
        return validated(self, X, y, sample_weight, **options)

    @abstractmethod
    def _coded_targets(self, y: AnyArray) -> Array:
        """Targets of new rows, coded as those of the fit."""

    def _check_parameters(self) -> None:
        """ValueError or TypeError for parameters that no rows could mend."""
        if not (self.n_jobs is None or isinstance(self.n_jobs, Integral)):
            raise TypeError(
                f"{setting('n_jobs')} must be None or an integer, -1 for all, got {self.n_jobs!r}."
            )
        if not isinstance(self.verbose, bool):
            check_count(self.verbose, "verbose", 0)
        for model in self._kernel_candidates:
            check_candidate(model, is_classifier(self))

    # Choice -----------------------------------------------------------------------------

    @property
    def _candidates(self) -> list[Any]:
        """Models with one kernel, and estimators of scikit-learn, to choose from."""
        return [self]

    def _candidates_for(self, X: Matrix | RowBlocks) -> list[Any]:
        """The candidates for rows."""
        return self._candidates

    @property
    def _kernel_candidates(self) -> list[Any]:
        """The candidates with a kernel."""
        return [candidate for candidate in self._candidates if has_kernel(candidate)]

    def _kernels(self) -> list[Kernel]:
        return [as_kernel(one.kernel) for one in self._kernel_candidates]

    @property
    def _whole_matrix(self) -> bool:
        """True if the model takes all rows at once, by their kernel matrix."""
        return all(one.n_landmarks is None for one in self._kernel_candidates)

    @property
    def _tunes(self) -> bool:
        """True unless all values are given; estimators of scikit-learn may tune themselves."""
        kernels = self._kernel_candidates
        return len(self._candidates) > 1 or not kernels or kernels[0].mu is None

    def _fit_on(self, rows: Rows, watcher: CallbackWatcher, columns: Any) -> Fitted:
        """The fitted model of rows: the candidate with the smallest loss, or a stack of several.

        ``columns`` has prepared the rows, unless it is None.
        """
        with blas_threads(len(rows.train)):
            return selected(self, rows, watcher, columns)

    def _recipe(self, choice: Choice, candidates: Sequence[Any]) -> Any:
        """Unfitted model that `evaluate` fits without each fold.

        ``candidates`` are those of the fit, as they are fitted without a fold.
        """
        return unfitted(self)


def _check_in_memory(X: Any) -> None:
    if is_dask(X):
        raise TypeError(
            "Data frames of predictions and scores are of rows in memory: give X.compute(), or use "
            "predict, which is lazy."
        )


def scores_of(model: Model) -> Scores:
    """What `evaluate` returned, nested if it was; otherwise the scores that take no refits.

    Models for intervals are not made.
    """
    known = model._scores
    return known.get("nested") or known.get("fit") or held_out_scores(model.fitted_)
