"""Classifier of tables."""

from __future__ import annotations

from typing import Any, Self

from looms.estimators._classifier import Classifier
from looms.estimators._kernel_classifier import KernelClassifier
from looms.estimators._tabular import Tabular
from looms.estimators._trees import BoostedTreesClassifier


class TabularClassifier(Classifier, Tabular):
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
        "auto" may stand among them, for all that it stands for.
        "auto" stands for "linear", "rbf", "ranked_laplacian" (not for sparse rows) and
        "weighted_matern12". From 400 rows on boosted trees, those of scikit-learn's
        `HistGradientBoostingClassifier`, stand beside them, unless rows are sparse or in blocks,
        and from 1000 rows on in the place of "rbf". Beyond 7000 rows kernels have landmarks,
        and beyond 100,000 rows the last one is left out. A page of the documentation, "What changes
        with the number of rows", has the rest.
    combine : {"stack", "best"}, default="stack"
        Candidates of up to 2000 rows are tuned anew without each of five folds, and combined on the
        rows of these folds: from 200 rows or groups on two searches, each on two fifths of the
        rows, serve all folds that they have no rows of. Those of more rows are combined on the
        held-out predictions of the fit, which have half a say in the weights of fewer rows, too, if
        there are 50 for each tuned value of a kernel. "stack" weights the outputs of all, with the
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
        each group; `looms.folds.ForwardSplit` or `GapKFold` for rows in order of time.
    preprocess : "auto", transformer or None, default="auto"
        Preparation of the columns: `looms.tables.TablePreprocessor`, another transformer, or None
        for numbers as they are.
    columns : {"prepared", "raw"}, default="prepared"
        Columns that estimators among the candidates get: prepared ones, as an array of numbers
        without names; or a data frame of those of the table as
        `looms.tables.TablePreprocessor.inverse_transform` tells them: gaps are NaN, dates days, and
        beyond 40 values of a category the rarest are one. Kernels and boosted trees of looms always
        get prepared ones, and all candidates if ``preprocess`` is None.
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
    kernel_, mu_, dual_coef_, intercept_, coef_, landmarks_
        As for `KernelClassifier`, of the member with a kernel that has the largest weight; missing
        if no member has a kernel. ``coef_`` is of the prepared columns,
        and missing in a stack of several members.
    preprocessor_ : transformer or None
        The fitted preparation: its ``kinds_`` and ``remarks_`` say how the columns were read.
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
    selection_, n_iter_
        Search of the candidate at ``best_index_``, as for `KernelClassifier`.
    choice_units_ : looms.units.Units or None
        Folds without which the candidates were tuned anew, to be compared; None if they were not.
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features), or None
        The prepared rows; None for rows in blocks.
    threshold_, calibrator_, units_, fit_weight_, selection_weight_, fit_intercept_, certificate_
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

    _model, _trees = KernelClassifier, BoostedTreesClassifier

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
        columns: str = "prepared",
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
        self.columns = columns
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
            Class of each row. Three classes or more of an ordered type of pandas,
            ``CategoricalDtype(ordered=True)``, are fitted by their ranks, and candidates are
            stacked by squared errors of these; ``y.astype(str)`` has no order.
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
        self._fit(X, y, sample_weight, groups)
        return self
