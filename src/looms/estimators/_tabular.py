"""Models of tables: columns are prepared, candidates are compared or stacked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing, check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._checks import check_known, check_target, one_or_many
from looms._classes import class_indices, with_ties
from looms._scores import number_scores
from looms._typing import AnyArray, Array
from looms.calibration._calibrators import Calibrator
from looms.conformal._jackknife import intervals_of_ends, order_statistic, required_rank
from looms.estimators._base import checked_sample_weight
from looms.estimators._callbacks import CallbackSupportMixin
from looms.estimators._candidates import Candidates, CandidatesClassifier, CandidatesRegressor
from looms.estimators._certificate import Certificate
from looms.estimators._folds import (
    CHOICE_FOLDS,
    OUTER_FOLDS,
    RowsOfFit,
    outer_units_of,
    predicted_without,
    rows_at,
    tuned_without,
    unfitted,
)
from looms.estimators._prevalence import PrevalenceClassifier, at_prevalence
from looms.estimators._regressor import METHODS, Regressor
from looms.estimators._scored import ScoredMachine, ScoredRegressor, name_of
from looms.estimators._warnings import (
    kept_warnings,
    told_of_time,
    warn,
    warn_of_columns,
    warn_of_new_values,
    warn_of_time,
)
from looms.folds import group_numbers
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.lssvm.fit import Member
from looms.scores import Scores
from looms.selection._candidates import Candidate
from looms.selection._decisions import Decided
from looms.selection._nested import Nested
from looms.selection._target_transforms import (
    TARGET_TRANSFORMS,
    TargetTransform,
    means_without_own,
    smeared_means,
)
from looms.tables import TablePreprocessor
from looms.tables._preprocessor import serious_remarks
from looms.tables._unlike import Unlike
from looms.units import Units

_NUMBERS = 1 << 20  # in the outputs of a block of rows


class Tabular(CallbackSupportMixin, ScoredMachine):  # type: ignore[misc]
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
    _made_again = (*ScoredMachine._made_again, "_table")
    #: Class of the machine of the prepared columns.
    _of_columns: ClassVar[type[Candidates]]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        prepares = self.preprocess is not None
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = prepares
        tags.input_tags.string = prepares
        tags.input_tags.categorical = prepares
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return int(self._first.n_features_in_)

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the columns of the table."""
        return np.asarray(self._first.feature_names_in_)

    @property
    def _first(self) -> Any:
        """What takes the rows first."""
        check_is_fitted(self)
        return self.model_ if self.preprocessor_ is None else self.preprocessor_

    @property
    def members_(self) -> tuple[Member, ...]:
        """Members of the stack, or the only one: ``weight``, ``kernel``, ``mu``, ``landmarks``."""
        return self.model_.members_

    @property
    def candidates_(self) -> list[Candidate]:
        """All candidates in the order in which they were tried."""
        return self.model_.candidates_

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Table of the candidates."""
        return self.model_.cv_results_

    @property
    def candidate_weights_(self) -> Array | None:
        """Weights of the candidates in a stack; None for a single one."""
        return self.model_.candidate_weights_

    @property
    def best_index_(self) -> int:
        """Candidate that was selected, or has the largest weight."""
        return self.model_.best_index_

    @property
    def units_(self) -> Units:
        """Rows that were held out together."""
        return self.model_.units_

    def evaluate(self, *, nested: bool = True, scoring: Any = None) -> Scores:
        """Scores of held-out predictions, with standard errors.

        For classes "accuracy", "balanced_accuracy" (the mean over classes of the recall), "roc_auc"
        and, with probabilities, "log_loss"; for numbers "rmse", "mae" and "r2". As in scikit-learn,
        scores are better when greater, losses and errors when smaller.

        Parameters
        ----------
        nested : bool, default=True
            Whether everything, the preparation of the columns too, is repeated without the rows
            that are scored: without each of ten folds (five for several candidates), or of as many
            as the rarest class has rows, or groups, or of three to ten folds of a splitter `cv`.
            That takes as many fits, `n_jobs` of them at once. With False the held-out predictions
            of the fit are scored, by which the model was tuned: ``optimistic`` tells.
        scoring : str, callable, list of these or dict, default=None
            Other scores than these, as in scikit-learn: names of scorers, callables ``(estimator,
            X, y)``, or a dict of these by name. They are computed once on all held-out predictions,
            and have no standard errors. For scikit-learn's scorers, greater is better. Callables
            get an estimator with the held-out predictions, for which ``X`` is a column of row
            numbers.

        Returns
        -------
        scores : looms.scores.Scores
            A mapping from names to values, which prints itself as a table. It is kept with the
            model, also in its files, until the next fit, and so are the models without each fold,
            which intervals and sets take.

        Raises
        ------
        ValueError
            If there are too few rows, or groups, for outer folds; or if the rows are not at hand,
            as in a copy or a model file.

        Warns
        -----
        UserWarning
            If the fits will take more than a minute.
        """
        return super().evaluate(nested=nested, scoring=scoring)

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
        """True if the machine is fitted to the rows and targets as they are."""
        return self.preprocessor_ is None

    @property
    def _was_tuned(self) -> bool:
        return self.model_._was_tuned

    @property
    def _tuned_before(self) -> bool:
        return self.model_._tuned_before

    @property
    def _in_folds(self) -> Nested | None:  # type: ignore[override]
        return self.model_._in_folds

    def _keep_models(self, scores: Scores) -> None:
        if scores is self._own_scores:
            self.model_.evaluate(nested=False)
        elif self._is_plain:
            self.model_._keep_models(scores)

    def _anew(self, method: str) -> Nested | None:
        """Models that were fitted anew without each fold; None if the machine has the models."""
        if self._is_plain or self.model_._nested_scores:
            return None
        scores = self._evaluation(method)
        return scores._nested if scores is self._nested_scores else None

    @property
    def _columns_anew(self) -> bool:
        by_machine = self._is_plain or self.model_._nested_scores is not None
        return self._nested_scores is not None and not by_machine

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
        machine, y = self.model_, self._labels_of_rows()
        weights = machine.loo_.sample_weight, machine.fit_weight_, machine.selection_weight_
        groups, classes = machine.units_.clusters, is_classifier(self)
        data = self._table, y, machine.loo_.y, *weights, groups, classes
        rows, most = RowsOfFit(*data, seed=machine._outer_seed), OUTER_FOLDS
        if machine.choice_units_ is not None:  # others than those that compared the candidates
            most, rows = CHOICE_FOLDS, replace(rows, seed=rows.seed + 1)
        outer = outer_units_of(rows, self.cv, most)
        warn_of_time(outer.n_units * self._fit_seconds, self.n_jobs)
        anew = clone(self._unfitted)
        if isinstance(self.preprocessor_, TablePreprocessor):  # cells decide on it one by one
            kinds = self.preprocessor_.kinds_
            anew.set_params(preprocess=clone(self.preprocessor_).set_params(kinds=kinds))
        (models,) = tuned_without(self, [anew], outer, rows, self.cv, self.n_jobs)
        outputs = predicted_without(models, outer, rows, lambda one, X: one._held_out_values(X))
        for one, out in zip(models, outer.tested_by, strict=True):
            one._keep_distances(rows_at(self._table, rows.train[out]), y[rows.train[out]])
            one._table = None
        held_out = HeldOut(self.held_out_.y[rows.train], outputs, rows.own(rows.weight))
        decided = self._decided_by(models, outer, outputs)
        return Nested.of_folds(rows.train, outer, held_out, decided, models, machine._tie)

    def _labels_of_rows(self) -> AnyArray:
        """Targets of the fit as they were passed."""
        raise NotImplementedError

    def _held_out_values(self, X: Any) -> Array:
        """Values of rows that are scored."""
        raise NotImplementedError

    def _keep_distances(self, X: Any, y: AnyArray) -> None:
        """Keep what intervals need of the rows that this model was fitted without."""

    def _decided_by(
        self, models: Sequence[Any], outer: Units, outputs: Array
    ) -> list[Decided] | None:
        """Decisions of each model on the rows of its fold; None of numbers."""
        return None

    def _outputs_on(self, X: Any) -> Array:
        """Outputs of the machine for new rows, without warnings of their values."""
        with kept_warnings():
            return self.model_._outputs(self.model_._checked_new_data(self._prepared(X)))

    @property
    def _fitted(self) -> Any:
        """The machine; NotFittedError before the fit."""
        check_is_fitted(self)
        return self.model_

    def _machine(self) -> Candidates:
        """Unfitted machine for the prepared columns, with the parameters and callbacks of this."""
        names = self._of_columns._get_param_names()
        machine = self._of_columns(**{name: getattr(self, name) for name in names})
        if callbacks := getattr(self, "_skl_callbacks", ()):
            machine.set_callbacks(*callbacks)
        return machine

    def _of(self, machine: Any) -> Self:
        """This model with another machine, fitted to columns prepared in the same way."""
        one = copy(self)
        one._set_fitted(model_=machine)
        one._table = None
        return one

    def _prepared_on(self, X: Any, weight: Array) -> tuple[Any, Any]:
        """Transformer of the columns, fitted to the rows of positive weight, and all rows by it."""
        if self.preprocess is None:
            return None, X
        automatic = isinstance(self.preprocess, str)
        if automatic:
            check_known(self.preprocess, "preprocess", ("auto",))
        one = TablePreprocessor() if automatic else clone(self.preprocess)
        rows = np.flatnonzero(weight)
        if len(rows) == len(weight):
            matrix = one.fit_transform(X)
        else:
            matrix = one.fit(_safe_indexing(X, rows)).transform(X)
        if isinstance(one, TablePreprocessor):
            warn_of_columns([*serious_remarks(one, len(rows))])
        return one, matrix

    def _fit_columns(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """A preprocessor fitted to the rows, the rows as the machine takes them, and options."""
        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if _num_samples(X) == 0:
            raise ValueError("X has no rows (0 samples): there is nothing to learn from.")
        check_consistent_length(X, y, sample_weight)
        group_numbers(groups, _num_samples(X))
        check_target(y)
        weight = checked_sample_weight(sample_weight, _num_samples(y))
        preprocessor, matrix = self._prepared_on(X, weight)
        return preprocessor, matrix, {"sample_weight": sample_weight, "groups": groups}

    def _prepared(self, X: Any) -> Any:
        """Rows as the machine takes them; ColumnsWarning of values that no row of the fit has."""
        check_is_fitted(self)
        if _num_samples(X) == 0:
            raise ValueError("X has no rows (0 samples) to predict.")
        if not isinstance(self.preprocessor_, TablePreprocessor):
            return X if self.preprocessor_ is None else self.preprocessor_.transform(X)
        unlike = Unlike(self.preprocessor_)
        matrix = unlike.add(X)
        warn_of_new_values(unlike.new_values)
        return matrix

    def _check_parameters(self) -> None:
        self._machine()._check_parameters()

    def _kernel_machine(self) -> Any:
        check_is_fitted(self)
        return self.model_


def _calibrated(model: TabularClassifier) -> bool:
    if "model_" in vars(model):
        return hasattr(model.model_, "predict_proba")
    if model.calibration is None:
        raise AttributeError(
            "There are no probabilities with calibration=None; fit with calibration='sigmoid'."
        )
    return True


class TabularClassifier(ClassifierMixin, Tabular):  # type: ignore[misc]
    """Classifier of tables with exact held-out predictions: kernels, stacked or compared.

    It takes data frames with numbers, text, categories, booleans, dates and gaps, tunes each
    candidate by the exact held-out predictions of its training rows, and stacks them. `evaluate`
    gives nested scores: the whole fit, with the preparation of the columns, is repeated without the
    rows that are scored.

    Parameters
    ----------
    candidates : "auto", str or list, default="auto"
        Names of kernels, or one name, as of `KernelClassifier`; `KernelClassifier` with options of
        their own (of which the kernel, its values, the loss, landmarks and search count); any
        classifier of scikit-learn, which is refitted in folds where kernels have closed forms.
        "auto" stands for "linear", "rbf", "ranked_laplacian" (not for sparse rows) and
        "weighted_matern12", with landmarks from 5000 rows on; beyond 20,000 rows for the first two.
    combine : {"stack", "best"}, default="stack"
        Candidates are tuned anew without each of five folds and combined on the rows of these
        folds. "stack" weights the outputs of all, with the nonnegative weights of the smallest log
        loss; "best" takes the one with the smallest loss of the threshold.
    threshold : float, str, looms.threshold.ThresholdRule or callable, default=0.5
        Probability of the positive class above which it is predicted; or a rule, as for
        `KernelClassifier`: "balanced", "f1", ``Cost(...)``, ``Recall(0.9)``. More than two classes
        admit only 0.5.
    calibration : {"sigmoid", "isotonic", "beta"} or None, default="sigmoid"
        Calibration of probabilities, fitted to the held-out outputs.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the fit and in the threshold; they multiply
        ``sample_weight``.
    pos_label : label or None, default=None
        The positive class of two, which `threshold` refers to; None for the later one in order.
    cv : int, str, splitter, iterable, ndarray or None, default=None
        Which rows are held out together, as for `KernelClassifier`: None for each by itself, or
        each group; `looms.folds.GapKFold` for rows in order of time.
    preprocess : "auto", transformer or None, default="auto"
        Preparation of the columns: `looms.tables.TablePreprocessor`, another transformer, or None
        for numbers as they are.
    n_jobs : int or None, default=None
        Number of fits at once in `evaluate`, as for joblib.
    verbose : int, default=0
        With 1, progress of long fits goes to stderr.
    random_state : int, RandomState instance or None, default=0
        Draws subsamples, landmarks and folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    members_ : tuple
        Members of the stack, or the only one: ``weight``, ``kernel`` with its values, ``mu``,
        ``landmarks``; or ``weight`` and ``estimator``.
    preprocessor_ : transformer or None
        The fitted preparation: its ``kinds_`` and ``remarks_`` say how the columns were read.
    model_ : estimator
        The model of the prepared columns.
    loo_, held_out_ : HeldOut
        Exact leave-one-out outputs, and those without each unit of `cv`, or the folds that compared
        the candidates. Hyper-parameters were tuned on them, so errors counted on them are
        optimistic: use `evaluate`.
    candidates_ : list
        All candidates in the order in which they were tried; ``pandas.DataFrame(candidates_)``
        makes a table of them.
    cv_results_ : dict of lists and arrays
        A row for each candidate.
    best_index_ : int
        Candidate that was selected, or has the largest weight.
    candidate_weights_ : ndarray of shape (n_candidates,) or None
        Weights of the candidates in a stack; None for a single one.
    threshold_, calibrator_, units_
        As for `KernelClassifier`.
    n_features_in_, feature_names_in_
        Number and names of the columns of the table.

    See Also
    --------
    KernelClassifier : One kernel model, on numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from looms import TabularClassifier
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(
    ...     {"size": rng.normal(size=80), "color": rng.choice(["red", "blue"], 80)}
    ... )
    >>> signal = table["size"] + (table["color"] == "red") + 0.5 * rng.normal(size=80)
    >>> table.loc[::10, "size"] = None                                          # gaps
    >>> model = TabularClassifier(["linear", "rbf"]).fit(table, np.where(signal > 0, "yes", "no"))
    >>> model.predict(pd.DataFrame({"color": ["red", "blue"], "size": [1.5, -2.0]})).tolist()
    ['yes', 'no']
    >>> model.evaluate()["accuracy"] > 0.75
    True
    """

    model_: CandidatesClassifier
    _of_columns = CandidatesClassifier

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "stack",
        threshold: Any = 0.5,
        calibration: str | None = "sigmoid",
        class_weight: Any = None,
        pos_label: Any = None,
        cv: Any = None,
        preprocess: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.threshold = threshold
        self.calibration = calibration
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.cv = cv
        self.preprocess = preprocess
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Prepare the columns, tune the candidates, and combine them.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The rows: numbers, text, categories, booleans, dates; None and NaN are gaps. With
            ``preprocess=None`` also what `KernelClassifier` takes.
        y : array-like of shape (n_samples,)
            Class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A row of weight zero takes no part.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each row, such as the patient that was measured; rows of a
            group are held out together.

        Returns
        -------
        self : TabularClassifier
            The fitted model.

        Raises
        ------
        ValueError
            If a column cannot be understood, or y has one class, or a gap.
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.

        Warns
        -----
        ColumnsWarning
            If a column has a few words among numbers, dates of unclear order, or identifiers.
        """
        began = time.perf_counter()
        preprocessor, matrix, options = self._fit_columns(X, y, sample_weight, groups)
        machine = self._machine().fit(matrix, y, **options)
        self._set_fitted(
            preprocessor_=preprocessor,
            model_=machine,
            _unfitted=unfitted(self),
            _target=name_of(y),
            _fit_seconds=time.perf_counter() - began,
        )
        self._table = X
        return self

    def predict(self, X: Any) -> AnyArray:
        """Class of each row, by the threshold.

        Parameters
        ----------
        X : table as in `fit`
            New rows; columns are found by name, in any order. Values that no training row has, of
            which a `ColumnsWarning` tells, and gaps where there were none tell the model nothing.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        return np.asarray(self._fitted.predict(self._prepared(X)))

    def decision_function(self, X: Any) -> Array:
        """Outputs less the threshold, so that 0 is the boundary.

        Parameters
        ----------
        X : table as in `fit`
            New rows.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for ``classes_[1]``; for more, the largest wins.
        """
        return np.asarray(self._fitted.decision_function(self._prepared(X)))

    @available_if(_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : table as in `fit`
            New rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to one.
        """
        return np.asarray(self._fitted.predict_proba(self._prepared(X)))

    @available_if(_calibrated)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : table as in `fit`
            New rows.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.asarray(self._fitted.predict_log_proba(self._prepared(X)))

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> Self:
        """The model with rows added after its own, exactly, with the same hyper-parameters.

        Parameters
        ----------
        X : table as in `fit`
            Rows to add, whose columns are prepared as those of the fit were.
        y : array-like of shape (n_rows,)
            Classes that the model knows.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        model : TabularClassifier
            A new model; this one does not change.
        """
        machine = self.model_.with_rows(self._prepared(X), y, sample_weight, certify)
        return self._of(machine)

    def predict_set(
        self, X: Any, confidence_level: float = 0.9, class_conditional: bool = False
    ) -> AnyArray:
        """Conformal prediction set for each row: the classes that it may belong to.

        The models are those of `evaluate`, which has to be called first.

        Parameters
        ----------
        X : table as in `fit`
            New rows.
        confidence_level : float, default=0.9
            Nominal share of new rows whose class is in their set, between 0 and 1.
        class_conditional : bool, default=False
            Whether each class, even a rare one, has that share. The sets get larger.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            Columns as in ``classes_``. A set of several classes means that the row may belong to
            any of them; an empty one, that it is typical of none.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `evaluate`.
        ValueError
            As of `KernelClassifier.predict_set`.
        """
        check_is_fitted(self)
        nested = self._anew("predict_set")
        if not nested:
            return self.model_.predict_set(self._prepared(X), confidence_level, class_conditional)
        self.model_._check_coverage(confidence_level, class_conditional)
        F = np.stack([one._outputs_on(X) for one in nested.machines], axis=1)
        step = max(1, _NUMBERS // (F[0].size // F.shape[1] * len(nested.rows)))
        parts = [slice(start, start + step) for start in range(0, len(F), step)]
        blocks = ((rows, F[rows][:, nested.units.own]) for rows in parts)
        residuals = nested.held_out.residuals
        return self.model_._sets(len(F), residuals, blocks, confidence_level, class_conditional)

    def at_prevalence(self, prevalence: Any) -> PrevalenceClassifier:
        """The model for a population in which classes have other shares.

        Parameters
        ----------
        prevalence : dict
            Share of each class, or of some: the others have the rest, in their training
            proportions.

        Returns
        -------
        model : PrevalenceClassifier
            Fitted, with probabilities and decisions at these shares.
        """
        check_is_fitted(self)
        return at_prevalence(self, prevalence)

    @property
    def classes_(self) -> AnyArray:
        """The classes, sorted."""
        return self.model_.classes_

    @property
    def threshold_(self) -> float | Array:
        """Threshold of the outputs."""
        return self.model_.threshold_

    @property
    def calibrator_(self) -> Calibrator | None:
        """Turns outputs into probabilities."""
        calibrator: Calibrator | None = self.model_.calibrator_
        return calibrator

    @property
    def loo_(self) -> HeldOut:
        """Exact leave-one-out outputs."""
        return self.model_.loo_

    @property
    def held_out_(self) -> HeldOut:  # type: ignore[override]
        """Outputs of models without each unit."""
        return self.model_.held_out_

    def _scores_of_fit(self) -> Scores:
        if self._own_scores is None:
            self._own_scores = self.model_._scores_of_fit()
        return self._own_scores

    def _scored(self, nested: Nested | None) -> Scores:
        return self.model_._scored(nested)

    def _labels_of_rows(self) -> AnyArray:
        return np.asarray(self.classes_[class_indices(self.model_.loo_.y)])

    def _held_out_values(self, X: Any) -> Array:
        return with_ties(self._outputs_on(X), self.model_._tie)

    def _decided_by(
        self, models: Sequence[Any], outer: Units, outputs: Array
    ) -> list[Decided] | None:
        return [
            Decided.of(out, outputs[out], one.threshold_, one.calibrator_, one.model_._tie)
            for one, out in zip(models, outer.tested_by, strict=True)
        ]


class TabularRegressor(ScoredRegressor, Tabular):
    """Regressor of tables with exact held-out predictions: kernels, stacked or compared.

    It takes data frames with numbers, text, categories, booleans, dates and gaps, tunes each
    candidate by the exact held-out predictions of its training rows, and stacks them. `evaluate`
    gives nested scores: the whole fit, with the preparation of the columns and the selection of a
    transform, is repeated without the rows that are scored.

    Parameters
    ----------
    candidates : "auto", str or list, default="auto"
        Names of kernels, or one name, as of `KernelRegressor`; `KernelRegressor` with options of
        their own (of which the kernel, its values, the loss, landmarks and search count); any
        regressor of scikit-learn. "auto" as for `TabularClassifier`.
    combine : {"stack", "best"}, default="stack"
        As for `TabularClassifier`, by squared errors.
    target : str or list of str, default="auto"
        Transform of the target that is fitted, for numbers that are skewed or counts: "none",
        "sqrt", "log" (positive targets), "log1p" (log(1 + y)). A list selects the transform
        whose held-out predictions with the first kernel of the candidates ("rbf" for "auto") have
        the smallest squared error on the scale of the target. "auto" compares those that the range
        of the targets admits: none; for positive targets also sqrt and log, for other nonnegative
        ones sqrt and log1p. Predictions are means, by Duan's smearing estimate [D83] with held-out
        residuals; with all transforms but "none" they are never negative.
    cv, preprocess, n_jobs, verbose, random_state
        As for `TabularClassifier`.

    Attributes
    ----------
    transform_ : str
        Name of the transform.
    transforms_ : dict of str to float
        Root mean square error of the held-out predictions by each transform that was compared;
        empty if there was one.
    model_ : estimator
        The model of the prepared columns and the transformed target; its attributes are on that
        scale.
    loo_, held_out_ : HeldOut
        Targets and held-out predictions in units of the target.
    members_, preprocessor_, candidates_, cv_results_, best_index_, candidate_weights_, units_, \
n_features_in_, feature_names_in_
        As for `TabularClassifier`.

    References
    ----------
    Duan (1983), Smearing estimate: a nonparametric retransformation method, JASA 78.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import TabularRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 1))
    >>> y = np.exp(3 * X[:, 0] + 0.4 * rng.normal(size=100))
    >>> model = TabularRegressor(["linear"]).fit(X, y)
    >>> model.transform_
    'log'
    >>> bool((model.predict(X) > 0).all())
    True
    """

    model_: CandidatesRegressor
    _of_columns = CandidatesRegressor
    transform_: str
    transforms_: dict[str, float]
    loo_: HeldOut
    held_out_: HeldOut
    _repeated: Array  # predictions in every repetition of the folds, of rows of positive weight

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "stack",
        target: Any = "auto",
        cv: Any = None,
        preprocess: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.target = target
        self.cv = cv
        self.preprocess = preprocess
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Prepare the columns, select a transform of the target, tune and combine the candidates.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The rows: numbers, text, categories, booleans, dates; None and NaN are gaps. With
            ``preprocess=None`` also what `KernelRegressor` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. Several are not transformed.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A row of weight zero takes no part.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each row; rows of a group are held out together.

        Returns
        -------
        self : TabularRegressor
            The fitted model.

        Raises
        ------
        ValueError
            If a column cannot be understood, y has gaps, or a transform does not admit all targets.
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.

        Warns
        -----
        ColumnsWarning
            If a column has a few words among numbers, dates of unclear order, or identifiers.
        """
        began = time.perf_counter()
        preprocessor, matrix, options = self._fit_columns(X, y, sample_weight, groups)
        machine, targets = self._machine(), _numbers(y)
        weight = checked_sample_weight(sample_weight, len(targets))
        _warn_of_constant(targets[weight > 0])
        names, errors = self._admitted(targets, weight), dict[str, float]()
        with ExitStack() as stack:
            if len(names) > 1:
                first = [] if machine._is_auto else machine._of_kernels[:1]
                one = clone(machine).set_params(candidates=first or ["rbf"])
                vars(one).pop("_skl_callbacks", None)  # which are told of the candidates
                trained = training_rows(matrix, np.flatnonzero(weight), pairwise=False)
                (operations, n_arrays), (each, _) = machine.cost_on(trained), one.cost_on(trained)
                operations += len(names) * each
                cost = operations, trained.shape[0], n_arrays, machine.remedies_of_time
                stack.enter_context(told_of_time(*cost))
                with kept_warnings():
                    data = matrix, targets, options
                    errors = {name: self._error(name, one, *data) for name in names}
            name = min(errors, key=errors.__getitem__) if errors else names[0]
            z = _transformed(name, targets, weight)
            machine.fit(matrix, z, **options)
        self._set_fitted(
            preprocessor_=preprocessor,
            model_=machine,
            transform_=name,
            transforms_=errors,
            _unfitted=unfitted(self),
            _target=name_of(y),
            _fit_seconds=time.perf_counter() - began,
        )
        self._table = X
        self._set_predictions(targets)
        return self

    def predict(self, X: Any) -> Array:
        """Mean of the target of each row.

        Parameters
        ----------
        X : table as in `fit`
            New rows; columns are found by name, in any order. Values that no training row has, of
            which a `ColumnsWarning` tells, and gaps where there were none tell the model nothing.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In units of the targets.
        """
        return self._means_of(self._fitted.predict(self._prepared(X)))

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> Self:
        """The model with rows added after its own, exactly, with the same hyper-parameters.

        Parameters
        ----------
        X : table as in `fit`
            Rows to add, whose columns are prepared as those of the fit were.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        model : TabularRegressor
            A new model; this one does not change.

        Raises
        ------
        ValueError
            If the transform does not admit the targets.
        """
        X, y = self._prepared(X), _numbers(y)
        if not self._transform.takes(y):
            raise ValueError(
                f"The transform {self.transform_!r} does not admit all targets, the smallest of "
                f"which is {y.min():.3g}: fit anew to all rows."
            )
        z = self._transform.forward(y)
        return self._of(self.model_.with_rows(X, z, sample_weight, certify))

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9, method: str = "plus"
    ) -> Array:
        """Prediction interval for each row, from models that were trained without some rows.

        The models are those of `evaluate`; call it first. The ends are those of
        intervals on the transformed scale, transformed back.

        Parameters
        ----------
        X : table as in `fit`
            New rows.
        confidence_level : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax", "scaled"}, default="plus"
            As for `KernelRegressor.predict_interval`, on the transformed scale. "scaled" needs
            ``evaluate(nested=False)``; the others take the models that were fitted anew without
            each fold, too.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the targets.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `evaluate`.
        ValueError
            As of `KernelRegressor.predict_interval`.

        Notes
        -----
        The guarantee of `KernelRegressor.predict_interval` holds here too, since an increasing
        transform moves no target into or out of an interval. After nested scores, residuals of
        different transforms are each compared under their own model, as in [RSC20].
        """
        check_is_fitted(self)
        check_known(method, "method", METHODS)
        nested = self._anew("predict_interval")
        if not nested or method == "scaled":
            if nested and self.model_._own_scores is None:
                raise NotFittedError(
                    "method='scaled' takes the models of the fit without each row, which "
                    "evaluate(nested=False) makes: call that too."
                )
            ends = self.model_.predict_interval(self._prepared(X), confidence_level, method)
            return np.asarray(self._transform.inverse(ends))
        rank = required_rank(confidence_level, len(nested.rows))  # an error before any work
        q = order_statistic(np.concatenate([one._distances for one in nested.machines]), rank, 0)
        lower, upper = np.empty((2, _num_samples(X), *nested.held_out.y.shape))
        for out, one in zip(nested.units.tested_by, nested.machines, strict=True):
            f, away = one._outputs_on(X)[:, None], one._distances if method == "plus" else q
            lower[:, out] = one._transform.inverse(f - away)
            upper[:, out] = one._transform.inverse(f + away)
        if method == "minmax":
            return np.stack([lower.min(axis=1), upper.max(axis=1)], axis=-1)
        return intervals_of_ends(lower, upper, confidence_level)

    def _scores_of_fit(self) -> Scores:
        if self._own_scores is None:
            in_folds, y = self._in_folds, self.held_out_
            if in_folds is not None:  # of candidates: predictions in units of the target
                held_out = HeldOut(*(each[in_folds.rows] for each in y))
                in_folds = replace(in_folds, held_out=held_out)
            scores = self._scored(in_folds)
            if in_folds is not None and self.transforms_:
                kind = f"{scores.kind}; the transform was chosen on all rows: optimistic"
                scores = replace(scores, kind=kind, optimistic=True)
            self._own_scores = scores
        return self._own_scores

    def _labels_of_rows(self) -> AnyArray:
        return self.held_out_.y

    def _held_out_values(self, X: Any) -> Array:
        return self._means_of(self._outputs_on(X))

    def _keep_distances(self, X: Any, y: AnyArray) -> None:
        self._distances = np.abs(self._transform.forward(y) - self._outputs_on(X))

    @property
    def _was_tuned(self) -> bool:
        return self.model_._was_tuned or bool(self.transforms_)

    @property
    def _is_plain(self) -> bool:
        return super()._is_plain and self.transform_ == "none" and not self.transforms_

    def _of(self, machine: Regressor) -> Self:
        one = super()._of(machine)
        one._set_predictions(self._transform.inverse(machine.loo_.y))
        return one

    @property
    def _transform(self) -> TargetTransform:
        return TARGET_TRANSFORMS[self.transform_]

    def _means_of(self, outputs: Array) -> Array:
        """Means of the target from outputs of the machine."""
        return _means(self._transform, outputs, self.model_.held_out_)

    def _admitted(self, y: Array, weight: Array) -> list[str]:
        """Transforms to compare; ValueError for one that does not admit all targets."""
        own = y[weight > 0]
        admitted = [name for name, g in TARGET_TRANSFORMS.items() if g.takes(own)]
        names = one_or_many(self.target)
        if names == ["auto"]:
            if y.ndim > 1:
                return ["none"]
            return [name for name in admitted if name != "log1p" or "log" not in admitted]
        for name in names:
            check_known(name, "transform of the target", TARGET_TRANSFORMS)
            if name not in admitted or (y.ndim > 1 and name != "none"):
                why = f"does not admit all targets, the smallest of which is {own.min():.3g}"
                why = "is for one target" if y.ndim > 1 else why
                raise ValueError(f"target={name!r} {why}: leave it out, or use target='auto'.")
        return names

    def _error(self, name: str, machine: Any, X: Any, y: Array, options: dict[str, Any]) -> float:
        """Root mean square error of held-out predictions with a transform, in units of ``y``."""
        weight = checked_sample_weight(options["sample_weight"], len(y))
        fitted = clone(machine).fit(X, _transformed(name, y, weight), **options)
        train, transform = np.flatnonzero(weight), TARGET_TRANSFORMS[name]
        held_out = HeldOut(*(each[train] for each in fitted.held_out_))
        outputs = fitted._by_repetition()
        predicted = np.array([_means_without_own(transform, each, held_out) for each in outputs])
        return number_scores(y[train], predicted, weight[train])["rmse"][0]

    def _set_predictions(self, y: Array) -> None:
        """Set the predictions, in units of the target, from held-out outputs of the machine."""
        machine, transform = self.model_, self._transform
        train = np.flatnonzero(machine.fit_weight_)
        for name in ("loo_", "held_out_"):
            _, outputs, weight = getattr(machine, name)
            values = _means_without_own(transform, outputs, machine.held_out_)
            setattr(self, name, HeldOut(y, values, weight))
        own = HeldOut(*(each[train] for each in machine.held_out_))
        outputs = machine._by_repetition()
        self._repeated = np.array([_means_without_own(transform, each, own) for each in outputs])

    def _by_repetition(self) -> Array:
        return self._repeated


def _numbers(y: Any) -> Array:
    """Targets as floats; ValueError for text and gaps."""
    for first in np.asarray(y).ravel()[:1]:
        if isinstance(first, str):
            raise ValueError(
                f"y must be numbers for regression, but it contains {str(first)!r}; use "
                "TabularClassifier for classes."
            )
    return np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))


def _warn_of_constant(y: Array) -> None:
    """UserWarning for targets that are all the same, as they may be without some fold."""
    if len(y) > 1 and (y == y[0]).all():
        warn(
            f"y has only one value, {', '.join(f'{value:g}' for value in np.ravel(y[0]))}: there "
            "is nothing to learn. Add rows with other values, or take another column.",
            UserWarning,
        )


def _transformed(name: str, y: Array, weight: Array) -> Array:
    """Targets on the scale of a transform; those of weight zero within the range of the others."""
    own = y[weight > 0]
    return np.asarray(TARGET_TRANSFORMS[name].forward(np.clip(y, own.min(axis=0), own.max(axis=0))))


def _means(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    """Means of the target from outputs; the outputs themselves if nothing is transformed."""
    if transform is TARGET_TRANSFORMS["none"]:
        return outputs
    return smeared_means(transform, outputs, held_out)


def _means_without_own(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    """`_means` of the rows of the fit, each with the residuals of the other rows."""
    if transform is TARGET_TRANSFORMS["none"]:
        return outputs
    return means_without_own(transform, outputs, held_out)
