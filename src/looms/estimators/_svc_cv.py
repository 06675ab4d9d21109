"""The support vector classifier that chooses its hyper-parameters by held-out outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from looms._checks import check_flag, one_or_many
from looms._classes import class_indices
from looms._memory import SEARCH, check_memory
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._sigmoid import Sigmoid
from looms.criteria._error_rates import balanced_error_rate, error_rate
from looms.duplicates import duplicate_groups
from looms.estimators._callbacks import CallbackSupportMixin, CallbackWatcher, with_callbacks
from looms.estimators._encoding import (
    check_threshold,
    class_weights,
    classes_of_one,
    encoded,
    selection_weights,
    threshold_and_loss,
)
from looms.estimators._folds import RowsOfFit, outer_units_of, unfitted
from looms.estimators._selection import results_table
from looms.estimators._svc import SupportVectorClassifier, nested_machines
from looms.estimators._svm_grid import positive_values
from looms.estimators._updates import checked_rows
from looms.estimators._warnings import (
    warn_of_bounds,
    warn_of_duplicates,
    warn_of_failures,
    warn_of_lone_samples,
    warn_of_missed_precision,
    warn_of_one_class,
    warn_of_scales,
    warn_of_time,
)
from looms.folds import group_numbers
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.selection import _svm_search as svm_search
from looms.selection._candidates import candidate_name
from looms.selection._nested import Nested
from looms.svm._problem import Loss, check_loss

#: Of the draws of folds.
_SEED = 0


def _rate(
    rate: Callable[..., float],
    threshold: Any,
    calibrated: bool,
    loo: HeldOut,
    sigmoids: tuple[Sigmoid, ...],
) -> float:
    """Error rate at the threshold, which a rule or a sigmoid sets anew at each point."""
    cut, _ = threshold_and_loss(threshold, sigmoids[0] if calibrated else None, loo)
    return rate(*loo, threshold=cut)


class SVCCV(CallbackSupportMixin, SupportVectorClassifier):  # type: ignore[misc]
    r"""Support vector classifier with C and the kernel tuned by exact leave-one-out.

    This is the model of ``sklearn.svm.SVC``, or its 2-norm variant, solved to machine precision.
    Each setting of the hyper-parameters is scored on exact leave-one-out outputs, without refits,
    or on outputs without the group or fold of each sample. The setting with the smallest score is
    kept. Several classes are handled one against one.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable or list of these, default="rbf"
        As for `KernelClassifier`; from a list, the kernel with the smallest score is kept.
        Hyper-parameters that an object fixes with ``gamma_bounds="fixed"`` and the like are
        not searched; at most two can be searched.
    criterion : str or looms.criteria.Criterion, default="log_likelihood"
        What is minimized. "log_likelihood" is the held-out deviance
        :math:`-2 \sum_i w_i \log {\hat p}_{(i)}`, for which model and sigmoid are both
        fitted without sample i, or its fold [1]_: it measures how sure a model is, even where
        the error rate is the same over wide regions of C and kernel. Its sigmoids are those of
        ``probability``, so it scores the probabilities that the model will give. Sigmoids of
        "single" may be decreasing, as in [1]_. "error" and "ber" are the rates of ``held_out_``
        at the threshold. "press", "hinge", "squared_hinge", "smoothed_error", "wmw" and
        "cross_entropy", or an object, score the outputs; for several classes, by the mean over the
        pairs, weighted by their samples.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        "squared_hinge" squares the losses, C Σ max(0, 1 − y f)²: the 2-norm model, whose
        outputs are smoother in C and the kernel, and in which most samples are support vectors.
    param_grid : dict or None, default=None
        Values to search, by name: "C", and the hyper-parameters of the kernel, such as "gamma" for
        RBF and "c" for polynomial kernels. A single value is held fixed. Unnamed ones are searched
        over powers of two: 2⁻⁵, 2⁻³ .. 2¹⁵ for C, in units of one over the spread of the kernel,
        and 2⁻⁶, 2⁻⁴ .. 2⁶ times the starting value of the kernel.
    search : {"pattern", "grid"}, default="pattern"
        "grid" tries all combinations of the values. "pattern" tries every second value of each,
        then moves from the best of these to better neighbors within their range, in steps that are
        halved down to ``resolution``: some fifty points.
    resolution : float, default=0.5
        Step in log₂ of the hyper-parameters at which the pattern search stops.
    probability : {"loo", "single", None}, default="loo"
        What the sigmoids of `predict_proba` are fitted to. "loo" takes the held-out outputs, which
        are like those of new samples. "single" takes the outputs for the training samples, as in
        [1]_; these lie at the margin and beyond, so the sigmoid is too steep. With None there is no
        `predict_proba`; with several classes the sigmoids are fitted anyway, because the coupled
        probabilities decide between classes.
    threshold : float, str or looms.threshold rule, default=0.5
        As for `KernelClassifier`; with ``probability=None`` the sign of the output decides.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the samples of each class; "balanced" ones, computed from all samples,
        stay the same while a sample is held out. They also weight the sigmoids, which decide;
        probabilities are those of the classes as they are in the samples.
    selection_weight : "class_weight", dict, "balanced" or None, default="class_weight"
        Weights of the classes in the criterion, by default those of `class_weight`; they multiply
        ``sample_weight``. With None the criterion ignores class weights.
    cv : int, str, splitter, iterable, ndarray or None, default=None
        Which samples are held out together: None for each by itself, or each group; otherwise as
        for `KernelClassifier`. The criterion is the mean over repetitions.
    n_jobs : int or None, default=None
        Number of kernel parameters computed at once, and of folds tuned at once in `evaluate`,
        as for joblib.

    Attributes
    ----------
    C_ : float
        The selected regularization.
    kernel_ : Kernel
        The selected kernel, with its values.
    loo_score_ : float
        The smallest criterion of the search. It is optimistic, because it was selected.
    loo_ : HeldOut
        Leave-one-out values of `decision_function` before the threshold; targets ±1, one
        column per class for more than two. They are exact, except for ``probability="loo"`` with
        several classes, whose sigmoids are fitted to outputs of models trained with the sample.
        A sample of weight zero has its ordinary value.
    held_out_ : HeldOut
        The same without the fold of each sample, or its group: the criterion scored them, and
        sigmoids and threshold are fitted to them. Without `cv` and groups it is ``loo_``.
    units_ : looms.units.Units
        Samples that were held out together: each by itself, its group, or its fold of `cv`. Its
        ``clusters`` are numbers of the groups. Samples of weight zero stay.
    cv_results_ : dict of lists and arrays
        A row for each point searched: "kernel", "params", "param_C" and so on, "loo_score",
        "rank_loo_score", "n_support", "seconds", and "failure", the solver's message if there
        is no score, otherwise None. ``pandas.DataFrame`` makes a table of it.
    best_index_ : int
        The selected row. Among equal scores it is the one with the smallest C.
    calibrators_ : tuple of looms.calibration.Sigmoid or None
        One for each pair of classes.
    support_, support_vectors_ : ndarray of shape (n_support,), matrix (n_support, n_features)
        Indices of the samples that are support vectors of some pair, and these samples.
    dual_coef_ : ndarray of shape (n_support,) or (n_support, n_pairs)
        y α of each support vector, positive for the second class of a pair. Pairs are in
        lexicographic order: (0, 1), (0, 2), ..., (1, 2), ...
    intercept_ : float or ndarray of shape (n_pairs,)
        The intercept.
    fit_weight_, selection_weight_ : ndarray of shape (n_samples,)
        Weights of the samples, with those of their classes, in the model and its sigmoids, and
        in the criterion.
    classes_, threshold_, X_fit_, n_features_in_, feature_names_in_
        As for `KernelClassifier`.

    Warns
    -----
    DuplicatesWarning
        If at least a twentieth of the rows repeat others, and not by coincidence.
    ScalesWarning
        As for `KernelClassifier`.
    BoundWarning
        If a selected hyper-parameter is at the edge of the range that was searched.
    OneClassWarning
        If the model predicts the same class for every held-out sample.
    ConvergenceWarning
        If the solver failed at some points, which are skipped.
    UserWarning
        If a class has only one sample.

    As for `KernelClassifier`, no warning is given if the scores are no better than chance.

    Notes
    -----
    One point costs a solution and its leave-one-out paths, about as much as a few fits of an SVC;
    "log_likelihood" adds n sigmoids, O(n²). Each group or fold is removed along one path, in no
    more time. Memory, for each job: some n×n arrays of the largest pair, and one of all samples.

    References
    ----------
    .. [1] Tsujitani and Tanaka (2011), Cross-validation, bootstrap, and support vector
       machines, Advances in Artificial Neural Systems.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from looms import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVCCV().fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.95
    True
    >>> model.predict_proba(scale(X)[:1]).shape
    (1, 3)
    """

    selection_weight_: Array
    loo_score_: float
    cv_results_: dict[str, Any]
    best_index_: int

    def __init__(
        self,
        kernel: Any = "rbf",
        criterion: Any = "log_likelihood",
        *,
        loss: Loss = "hinge",
        param_grid: Any = None,
        search: str = "pattern",
        resolution: float = 0.5,
        probability: str | None = "loo",
        threshold: Any = 0.5,
        class_weight: Any = None,
        selection_weight: Any = "class_weight",
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.criterion = criterion
        self.loss = loss
        self.param_grid = param_grid
        self.search = search
        self.resolution = resolution
        self.probability = probability
        self.threshold = threshold
        self.class_weight = class_weight
        self.selection_weight = selection_weight
        self.cv = cv
        self.n_jobs = n_jobs

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Tune C and the kernel, and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative factors of C, as in ``SVC``, and weights in the criterion and the sigmoids.
            A sample of weight zero takes no part but still gets an output in ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : SVCCV
            The fitted model.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.
        """
        began = time.perf_counter()
        score, grid = self._checked_search()
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = encoded(y, weight)
        check_threshold(self.threshold, targets, self.probability is not None, "probability")
        cost = weight * class_weights(self.class_weight, labels, classes, weight)
        selection_weight = weight * selection_weights(self, labels, classes, weight)
        watcher = CallbackWatcher(self, X, y, None if sample_weight is None else weight)
        train = np.flatnonzero(weight)
        numbers = group_numbers(groups, len(y), self.cv)
        weights = weight, cost, selection_weight
        rows = RowsOfFit(X, y, targets, *weights, numbers, True, seed=_SEED)
        units = rows.units(self.cv)
        check_memory(len(train), SEARCH, "KernelClassifier(), a model on landmarks")
        X_train = training_rows(X, train, self._kernels()[0].pairwise)
        warn_of_scales(X_train, self._kernels(), getattr(self, "feature_names_in_", None))
        if not units.grouped:
            warn_of_duplicates(
                X_train, duplicate_groups(X_train), "Drop them, or give their groups."
            )
        alone = classes_of_one(classes, labels[train])
        # The sigmoids decide: without the weights of classes they would undo them.
        of_sample = labels[train], cost[train], selection_weight[train]
        sample = svm_search.Sample(X_train, *of_sample, units, self.loss)
        chosen, table = self._search(sample, score, grid, watcher)
        kernel, C = chosen.space.kernel_at(chosen.point), chosen.space.params(chosen.point)["C"]
        fitted = self._machine(X, targets, weight, cost, sample, kernel, C)
        held_out, calibrators = fitted["held_out_"], fitted["calibrators_"]
        sigmoid = calibrators and calibrators[0]
        threshold, loss = threshold_and_loss(self.threshold, sigmoid, held_out)
        self._set_fitted(
            classes_=classes,
            loo_score_=chosen.score,
            cv_results_=table,
            best_index_=int(np.argmin(table["rank_loo_score"])),
            selection_weight_=selection_weight,
            units_=units.spread(train, numbers),
            _unfitted=unfitted(self),
            _fit_seconds=time.perf_counter() - began,
            threshold_=threshold,
            **fitted,
        )
        watcher.ends()
        warn_of_missed_precision(self.threshold, loss)
        warn_of_lone_samples(alone)
        warn_of_failures(table["failure"])
        warn_of_bounds(chosen.space.edges(chosen.point))
        warn_of_one_class(self, classes, held_out, threshold)
        return self

    @property
    def _was_tuned(self) -> bool:
        return True

    def _chosen_anew(self) -> Nested:
        """By machines that are chosen anew without each fold."""
        targets, _, weight = self.loo_
        weights = weight, self.fit_weight_, self.selection_weight_
        data = self.X_fit_, self._labels, targets, *weights, self.units_.clusters
        rows, machine = RowsOfFit(*data, True, seed=_SEED), self._unfitted
        outer = outer_units_of(rows, machine.cv)
        warn_of_time(outer.n_units * self._fit_seconds, machine.n_jobs)
        return nested_machines(self, machine, rows, outer)

    def with_given_values(self) -> SVCCV:
        """Unfitted model with the values of this one, which searches nothing.

        Each row is held out by itself; class weights are the factors that this model had.
        """
        check_is_fitted(self)
        factors, (codes, _, weight) = None, self.loo_
        if not np.array_equal(self.fit_weight_, weight):
            train = np.flatnonzero(weight)
            first = train[np.unique(class_indices(codes[train]), return_index=True)[1]]
            each = self.fit_weight_[first] / weight[first]
            factors = dict(zip(self.classes_.tolist(), each.tolist(), strict=True))
        values = {"C": self.C_} | {h.name: h.value for h in self.kernel_.hyperparameters}
        machine: SVCCV = clone(self).set_params(
            kernel=self.kernel_, param_grid=values, class_weight=factors, cv=None
        )
        return machine

    def without(self, rows: Any, certify: bool = True) -> SVCCV:
        """The model without some rows, with the same kernel and C.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Indices of the rows to remove, from 0, or a mask of them.
        certify : bool, default=True
            Whether to compare three of its held-out outputs with refits.

        Returns
        -------
        machine : SVCCV
            A fit to the other rows, of given values; this one does not change. Rows of a group are
            held out together; folds of `cv` are dropped.

        Raises
        ------
        ValueError
            If rows are out of range or repeated, or leave fewer than two classes.

        Notes
        -----
        It costs a solution and its paths, as a fit with one value of C and the kernel does.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import SVCCV
        >>> X, y = load_iris(return_X_y=True)
        >>> machine = SVCCV("linear", param_grid={"C": [1.0]}).fit(X[:100], y[:100])
        >>> others = machine.without([0, 99])
        >>> len(others.X_fit_), others.C_, others.certificate_.holds
        (98, 1.0, True)
        """
        check_is_fitted(self)
        check_flag("certify", certify)
        rest = np.delete(
            np.arange(len(self.fit_weight_)), checked_rows(rows, len(self.fit_weight_))
        )
        X = training_rows(self.X_fit_, rest, self._pairwise)
        groups = self.units_.clusters[rest]
        return self._refitted(X, self._labels[rest], self.loo_.sample_weight[rest], groups, certify)

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> SVCCV:
        """The model with rows added after its own, with the same kernel and C.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Samples to add.
        y : array-like of shape (n_rows,)
            Classes that the model knows.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        machine : SVCCV
            As for `without`.

        Raises
        ------
        ValueError
            If there is a class that the model does not know, if its kernel is precomputed, or if
            it holds out groups, since it does not keep their labels.
        """
        check_is_fitted(self)
        check_flag("certify", certify)
        if self._pairwise or self.units_.grouped:
            what = "this kernel is precomputed" if self._pairwise else "this model has groups"
            raise ValueError(
                f"with_rows adds single rows with features, but {what}: fit the model of "
                "with_given_values() to all rows."
            )
        X, y, weight = self._validated(X, y, sample_weight, reset=False, ensure_min_samples=1)
        unknown = sorted(set(y.tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"y has {unknown}, which are not classes of this model: "
                f"{self.classes_.tolist()}. Fit a model to all rows."
            )
        stack = sp.vstack if sp.issparse(self.X_fit_) else np.vstack
        both = [self.X_fit_, X.toarray() if sp.issparse(X) and stack is np.vstack else X]
        labels, weights = [self._labels, y], [self.loo_.sample_weight, weight]
        data = stack(both), np.concatenate(labels), np.concatenate(weights)
        return self._refitted(*data, None, certify)

    @property
    def _labels(self) -> AnyArray:
        """Class of each row of the fit."""
        return np.asarray(self.classes_[class_indices(self.loo_.y)])

    def _refitted(
        self, X: Matrix, y: AnyArray, weight: Array, groups: AnyArray | None, certify: bool
    ) -> SVCCV:
        """A fit of given values to other rows."""
        if len(np.unique(y[weight > 0])) < len(self.classes_):
            raise ValueError("rows leaves no sample of non-zero weight in some class: keep some.")
        machine: SVCCV = self.with_given_values().fit(X, y, weight, groups)
        if hasattr(self, "feature_names_in_") and not self._pairwise:
            machine.feature_names_in_ = self.feature_names_in_
        machine._tuned_before = True
        if certify:
            machine.certify()
        return machine

    def _search(
        self,
        sample: svm_search.Sample,
        score: svm_search.Scorer,
        grid: dict[str, Array],
        watcher: CallbackWatcher,
    ) -> tuple[svm_search.SpaceSearched, dict[str, Any]]:
        """The search of the best kernel, and ``cv_results_`` of all."""
        run = Parallel(n_jobs=self.n_jobs, return_as="generator")
        evaluated = partial(watcher.evaluated, len(sample.labels))
        kernels = one_or_many(self.kernel)
        spaces = svm_search.spaces_of(self._kernels(), grid, sample.X)
        searched: list[svm_search.SpaceSearched] = []
        watcher.begins(len(spaces))
        for kernel, space in zip(kernels, spaces, strict=True):
            watcher.candidate_begins(candidate_name(kernel, self.criterion))
            how = self.search, self.resolution
            searched.append(svm_search.search_space(space, sample, score, *how, run, evaluated))
            if watcher.candidate_ends():
                break
        table = _searches_table(searched, kernels[: len(searched)])
        return min(searched, key=lambda one: one.score), table

    def _check_parameters(self) -> None:
        self._checked_search()

    def _checked_search(self) -> tuple[svm_search.Scorer, dict[str, Array]]:
        """Score, and values to search by name; ValueError for invalid parameters."""
        if not self._kernels():
            raise ValueError("kernel must name at least one candidate.")
        if self.search not in ("pattern", "grid"):
            raise ValueError(f"search must be 'pattern' or 'grid', got {self.search!r}.")
        if not (isinstance(self.resolution, Real) and 0 < float(self.resolution) < np.inf):
            raise ValueError(f"resolution must be a positive number, got {self.resolution!r}.")
        if self.probability not in ("loo", "single", None):
            raise ValueError(
                f"probability must be 'loo', 'single' or None, got {self.probability!r}."
            )
        check_loss(self.loss)
        if not isinstance(self.param_grid, Mapping | None):
            raise ValueError(
                f"param_grid must be None or a dict from names to values, got {self.param_grid!r}."
            )
        grid = {
            str(name): positive_values(f"param_grid[{name!r}]", values)
            for name, values in (self.param_grid or {}).items()
        }
        rule = self.threshold, self.probability is not None
        rates = {
            "error": partial(_rate, error_rate, *rule),
            "ber": partial(_rate, balanced_error_rate, *rule),
        }
        return svm_search.score_of(self.criterion, rates, self._fitted_to), grid


def _searches_table(searched: list[Any], kernels: list[Any]) -> dict[str, Any]:
    """``cv_results_`` of the searches of several kernels."""
    scored = [point for one in searched for point in one.scored]
    names = [kernel if isinstance(kernel, str) else repr(kernel) for kernel in kernels]
    params = [one.space.params(point) for one in searched for point in one.points]
    return results_table(
        params,
        np.array([one.score for one in scored]),
        svm_search.ranks(searched),
        [name for row in params for name in row],
        kernel=[name for name, one in zip(names, searched, strict=True) for _ in one.points],
    ) | {
        "n_support": np.array([one.n_support for one in scored]),
        "seconds": np.array([one.seconds for one in scored]),
        "failure": [one.failure for one in scored],
    }
