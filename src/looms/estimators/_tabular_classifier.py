"""Classifier of tables."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._checks import drop_index, readable_table
from looms._classes import merge_ties
from looms._typing import AnyArray, Array
from looms.calibration._calibrators import Calibrator
from looms.estimators._candidates import CandidatesClassifier
from looms.estimators._prevalence import ScoredClassifier
from looms.estimators._scored import name_of
from looms.estimators._tabular import Tabular, of_model
from looms.estimators._warnings import warn_of_order
from looms.held_out import HeldOut
from looms.scores import Scores
from looms.selection._nested import Nested

_NUMBERS = 1 << 20  # in the outputs of a block of rows


def _calibrated(model: TabularClassifier) -> bool:
    if "model_" in vars(model):
        return hasattr(model.model_, "predict_proba")
    if model.calibration is None:
        raise AttributeError(
            "There are no probabilities with calibration=None; fit with calibration='sigmoid'."
        )
    return True


class TabularClassifier(ScoredClassifier, Tabular):
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
        classifier of scikit-learn, also a pipeline, a search or a stack, which is refitted in folds
        where kernels have closed forms. It gets weights by the name that its `fit` has for them,
        also inside; one that takes none is refused if there are weights, and otherwise no candidate
        has the shares of classes kept within folds. What is tuned by groups gets those of its rows.
        Prepared columns have no names: choose columns by name in ``preprocess``.
        "auto" stands for "linear", "rbf", "ranked_laplacian" (not for sparse rows) and
        "weighted_matern12". From 400 rows on boosted trees, those of scikit-learn's
        `HistGradientBoostingClassifier`, stand beside them, unless rows are sparse or in blocks,
        and from 1000 rows on in the place of "rbf". Beyond 5000 rows kernels have landmarks,
        and beyond 100,000 rows the last one is left out. A page of the documentation, "What changes
        with the number of rows", has the rest.
    combine : {"stack", "best"}, default="stack"
        Candidates of up to 2000 rows are tuned anew without each of five folds, on a quarter of the
        other rows (at least 200), and combined on the rows of these folds; those of more rows on
        the held-out predictions of the fit. "stack" weights the outputs of all, with the
        nonnegative weights of the smallest log loss, which serve the error rate as well as weights
        chosen for it; "best" takes the one with the smallest loss of the threshold.
    threshold : float, str, looms.threshold.ThresholdRule or callable, default=0.5
        Probability of the positive class above which it is predicted; or a rule, as for
        `KernelClassifier`: "balanced", "f1", "recall=0.9", "cost=1:5". More than two classes admit
        only 0.5.
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
        Leave-one-out outputs, and those without each unit of `cv`, or the folds that compared the
        candidates. They are exact for kernels; an estimator of scikit-learn, such as the boosted
        trees of "auto", adds its outputs without the folds in ``units`` of its member to the first,
        which are then exact for no row by itself. Hyper-parameters were tuned on them, so errors
        counted on them are optimistic: use `evaluate`.
    candidates_ : list
        All candidates in the order in which they were tried; ``pandas.DataFrame(candidates_)``
        makes a table of them.
    cv_results_ : dict of lists and arrays
        A row for each candidate.
    best_index_ : int
        Candidate that was selected, or has the largest weight.
    candidate_weights_ : ndarray of shape (n_candidates,) or None
        Weights of the candidates in a stack, which may all be one's. None with
        ``combine="best"``, for a single candidate, and if no stack could be made.
    threshold_, calibrator_, units_
        As for `KernelClassifier`.
    n_features_in_, feature_names_in_
        Number and names of the columns of the table, as text.

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
    classes_: AnyArray = of_model("classes_", "The classes, sorted.")
    threshold_: float | Array = of_model("threshold_", "Threshold of the outputs.")
    calibrator_: Calibrator | None = of_model("calibrator_", "Turns outputs into probabilities.")
    loo_: HeldOut = of_model("loo_", "Exact leave-one-out outputs.")
    held_out_: HeldOut = of_model("held_out_", "Outputs of models without each unit.")

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
            The rows: numbers, text, categories, booleans, dates; None and NaN are gaps. A
            pyarrow.Table is taken as a data frame. With ``preprocess=None`` also what
            `KernelClassifier` takes.
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
            If a column has a few words among numbers, dates of unclear order, or identifiers, or
            alone predicts the target, or moves with the windows of time that `cv` holds out.
        """
        began, X = time.perf_counter(), readable_table(X)
        preprocessor, matrix, y, options = self._fit_columns(X, y, sample_weight, groups)
        model = self._model().fit(matrix, np.asarray(y), **options)
        self._set_fitted(
            preprocessor_=preprocessor,
            model_=model,
            _unfitted=self._for_evaluation(model),
            _target=name_of(y),
            _fit_seconds=time.perf_counter() - began,
        )
        self._table = X
        self._warn_of_features(matrix)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Class of each row, by the threshold.

        Parameters
        ----------
        X : table as in `fit`
            New rows; columns are found by name, in any order. Values that no training row has, of
            which a `ColumnsWarning` tells, count as rare, or as none. Gaps where there were none
            count as the median, or as no value.

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
        X = readable_table(X)
        if _num_samples(X) == 0:
            return self.without([], certify)
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        weight = drop_index(sample_weight)
        model = self._fitted.with_rows(self._prepared(X), self._as_known(y), weight, certify)
        return self._of(model)

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
        self._warn_of_values(X)
        F = np.stack(list(self._outputs_anew(nested, X)), axis=1)
        step = max(1, _NUMBERS // (F[0].size // F.shape[1] * len(nested.rows)))
        parts = [slice(start, start + step) for start in range(0, len(F), step)]
        blocks = ((rows, F[rows][:, nested.units.own]) for rows in parts)
        models = nested.held_out.residuals, self.model_._tie_without_rows(nested), blocks
        return self.model_._sets(len(F), *models, confidence_level, class_conditional)

    def _scores_of_fit(self) -> Scores:
        if self._own_scores is None:
            self._own_scores = self.model_._scores_of_fit()
        return self._own_scores

    def _scored(self, nested: Nested | None) -> Scores:
        return self.model_._scored(nested)

    def _held_out_values(self, X: Any) -> Array:
        return merge_ties(self._outputs_on(X), self.model_._tie)
