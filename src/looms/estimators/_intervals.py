"""Prediction intervals of any regressor, from models that are trained without some rows."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, is_regressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from looms._advice import setting
from looms._checks import check_known, take_rows
from looms._classes import rounding
from looms._threads import openmp_threads
from looms._typing import AnyArray, Array
from looms._words import one_line
from looms.conformal._jackknife import required_rank
from looms.estimators._base import checked_sample_weight
from looms.estimators._estimator_member import checked, fitted, predicted
from looms.estimators._fit_routing import check_fit
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._known_targets import KnownTargets
from looms.estimators._targets import check_numbers, plain_targets
from looms.estimators._warnings import warn_of_order
from looms.fitted._outcome import Numbers
from looms.fitted._rows import OUTER_FOLDS, outer_folds, rows_at
from looms.fitted._without_units import FoldModels, intervals, ratio_of_rows
from looms.folds import group_numbers
from looms.held_out import HeldOut
from looms.kernels import Function
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import largest_of
from looms.scores import WithoutUnits
from looms.units import Units

#: Kernels of scikit-learn whose matrices are positive semi-definite, if coef0 is not negative.
_POSITIVE = ("linear", "rbf", "laplacian", "cosine", "poly", "polynomial")
#: Difference of predictions, in ranges of the targets, up to which a regressor is solved exactly.
_EXACT = 1e-5


class Intervals(KnownTargets, MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction intervals of any regressor of scikit-learn, by the jackknife+ or CV+.

    With 1 − α = ``confidence_level``, r_i the residual of row i under the model trained without it,
    and f⁽⁻ⁱ⁾(x) the prediction of that model for a new row x, the interval goes from the
    ⌊α (n + 1)⌋-th smallest of f⁽⁻ⁱ⁾(x) − |r_i| to the ⌈(1 − α) (n + 1)⌉-th smallest of
    f⁽⁻ⁱ⁾(x) + |r_i| [B21 eq. 6]. Rows of one fold share a model: CV+.

    Parameters
    ----------
    estimator : regressor
        With the interface of scikit-learn: also a pipeline, or a search such as `GridSearchCV`,
        which is repeated in every fold. It takes features, not kernel values.
    cv : int, str, splitter, iterable or None, default=None
        Rows that are left out together. By default each row, or group, by itself if that takes
        no refits: for ``Ridge`` and ``KernelRidge`` with one ``alpha``, solved exactly. For all
        others ten shuffled folds. An int is a number of consecutive folds; any splitter of
        scikit-learn that tests every row once is admitted, such as ``LeaveOneOut()`` for the
        jackknife+.
    n_jobs : int or None, default=None
        Number of fits at a time, by joblib.
    random_state : int, RandomState instance or None, default=0
        Seed of the shuffled folds.

    Attributes
    ----------
    estimator_ : regressor
        Fitted to all rows; `predict` is its prediction.
    estimators_ : list of regressors or None
        The regressor fitted without each unit of ``units_``; None if there is a closed form.
    held_out_ : looms.HeldOut
        Targets, and predictions of the rows by the models trained without them.
    units_ : looms.units.Units
        Rows that were left out together.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, if it has them.

    See Also
    --------
    looms.TabularRegressor : Intervals of a model that also prepares the columns and is tuned.
    looms.conformal.jackknife_plus : The same formula for held-out predictions of your own.

    Notes
    -----
    If training and new rows are exchangeable, a new target is inside with a probability of at
    least 2 c − 1 for a confidence level of c with each row left out by itself [B21 theorem 1], of
    at least 2 c − 1 − √(2 / n) in folds [B21], mostly about c. The estimator must not depend on
    the order of the rows, and tuning must be inside of it.

    Ends are rounded outwards, by what rounding can move outputs, so that a target at an end in
    exact arithmetic is inside. Solvers with a tolerance move them by more.

    Closed forms are those of `KernelRegressor` with given hyper-parameters. They are taken if they
    predict the training rows as the regressor itself does, to 1e-5 of the range of the targets. A
    solver that stops before (such as "saga" after a few iterations), a ridge of positive
    coefficients, and a `KernelRidge` of another kernel than "linear", "rbf", "laplacian", "cosine"
    or "poly" of an integer degree are refitted. With groups the guarantee is for a row of a
    new group, if there are many groups, of one size; with few it is lower.

    Model files of looms hold no models of other libraries: pickle it, or keep the data.

    References
    ----------
    Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the jackknife+, Annals of
    Statistics 49.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from looms import Intervals
    >>> X, y = load_diabetes(return_X_y=True)
    >>> trees = HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=10)
    >>> model = Intervals(trees).fit(X[:300], y[:300])
    >>> lower, upper = model.predict_interval(X[300:], confidence_level=0.9).T
    >>> float(((lower <= y[300:]) & (y[300:] <= upper)).mean().round(2))
    0.92
    """

    _closed: KernelRegressor | None
    #: Rows of positive weight, and number of all.
    _train: AnyArray
    _n_rows: int

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the regressor to all rows, and without each row, group or fold.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame
            Rows, as the regressor takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. One column is one target, so that predictions have one dimension.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fits. Rows of weight zero take no part.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each row, such as the patient that was measured; rows of a group
            are left out together. A regressor whose `fit` takes groups, or a search over folds of
            groups, gets them, too.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the estimator is no regressor, takes no weights though there are some, or is tuned by
            groups though there are none; or if `cv` does not test every row once.
        """
        self._check_parameters()
        if y is None:
            raise ValueError("Intervals requires y to be passed, but the target y is None.")
        y = plain_targets(y, classes=False)
        warn_of_order(self.cv, X=X, y=y, sample_weight=sample_weight, groups=groups)
        check_numbers(y, "an estimator with sets of classes, such as TabularClassifier,")
        options = {"ensure_2d": False, "ensure_min_samples": 2, "input_name": "y"}
        y = check_array(y, dtype=np.float64, estimator=self, **options)
        X, y = indexable(X, y)
        weight = checked_sample_weight(sample_weight, len(y))
        train = np.flatnonzero(weight)
        numbers = group_numbers(groups, len(y), self.cv)
        targets, X, y, weight = y, rows_at(X, train), y[train], weight[train]
        given = (
            None if sample_weight is None else weight,
            None if groups is None else numbers[train],
        )
        check_fit(self.estimator, *given)
        closed = closed_form(self.estimator, weight)
        if closed is not None:
            whole = fitted(self.estimator, deepcopy(X), y, *given)  # for it may change X
            closed = closed.fit(X, y, weight)
            closed = closed if _agree(predicted(whole, X), closed, X, y) else None
        units = self._units_of(targets, numbers, train, closed is None)
        if closed is not None:
            without = None
            outputs = np.nanmean(closed.left_out().outputs(units), axis=0)
        else:
            stay = map(np.flatnonzero, units.stays(np.arange(units.n_units)))
            tested_by = units.tested_by
            fits = Parallel(n_jobs=self.n_jobs)(
                delayed(checked)(
                    *(self.estimator, f"without fold {k + 1} of {units.n_units}"),
                    partial(
                        fitted,
                        *(self.estimator, rows_at(X, rest), y[rest]),
                        *(take_rows(values, rest) for values in given),
                    ),
                    partial(predicted, X=rows_at(X, tested_by[k])),
                )
                for k, rest in enumerate(stay)
            )
            without, outputs = [one for one, _ in fits], np.empty_like(targets_as_columns(y))
            for tested, (_, values) in zip(tested_by, fits, strict=True):
                outputs[tested] = values
            whole, _ = checked(  # last, for it may change X
                *(self.estimator, "on all rows"),
                partial(fitted, self.estimator, X, y, *given),
                partial(predicted, X=rows_at(X, np.arange(1))),
            )

        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(whole, name):
                setattr(self, name, getattr(whole, name))
        self.estimator_, self.estimators_, self._closed = whole, without, closed
        self._train, self._n_rows = train, len(targets)
        self.units_, self.held_out_ = units, HeldOut(y, outputs.reshape(y.shape), weight)
        return self

    def predict(self, X: Any) -> Array:
        """Prediction of the regressor that was fitted to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame
            New rows, as the regressor takes them.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        with openmp_threads(_num_samples(X)):
            return np.asarray(self.estimator_.predict(X))

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9, method: str = "plus", density_ratio: Any = None
    ) -> Array:
        """Prediction interval for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame
            New rows, as the regressor takes them.
        confidence_level : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax"}, default="plus"
            The jackknife+, in folds CV+; or the jackknife-minmax, whose intervals are wider and are
            guaranteed to hold a share of ``confidence_level``.
        density_ratio : pair of array-like of shapes (n_training_samples,) and (n_samples,)
            For new rows that are distributed otherwise, what `looms.density_ratio` returns, or a
            pair of your own. Not for "minmax".

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the targets.

        Raises
        ------
        ValueError
            If the confidence level is not between 0 and 1, or needs more rows than there are, or
            the method is unknown, or density ratios are not one for each row.
        """
        check_is_fitted(self)
        check_known(method, "method", ("plus", "minmax"))
        n, residuals = len(self.held_out_.y), self.held_out_.residuals
        required_rank(confidence_level, n)  # an error before any work
        rows = self._train, self._n_rows, _num_samples(X), method
        ratio = ratio_of_rows(density_ratio, *rows)
        if not _num_samples(X):
            return np.empty((0, *residuals.shape[1:], 2))
        self.predict(rows_at(X, np.arange(1)))  # it says what is wrong with X
        if self._closed is None:
            columns = targets_as_columns(self.held_out_.y)
            outputs = [partial(predicted, one) for one in self.estimators_ or ()]
            left_out: Any = FoldModels(outputs, columns)
            tie = rounding(n)
        else:
            X = self._closed._matrix(X)
            left_out, tie = self._closed.left_out(), self._closed.fitted_.tie
        models = WithoutUnits(left_out, self.units_, residuals, tie)
        return intervals(models, X, confidence_level, method, Numbers(), ratio=ratio)

    def _check_parameters(self) -> None:
        if not (hasattr(self.estimator, "fit") and is_regressor(self.estimator)):
            raise ValueError(
                f"{one_line(self.estimator)} is no regressor: give one. For classes, "
                "TabularClassifier([estimator]) has sets of classes, by predict_set."
            )
        if get_tags(self.estimator).input_tags.pairwise:
            raise ValueError(
                f"{one_line(self.estimator)} takes kernel values: give one that takes "
                "features, or use KernelRegressor(kernel='precomputed')."
            )

    def _units_of(self, y: Array, groups: AnyArray, train: AnyArray, refitted: bool) -> Units:
        """Units of the rows that take part."""
        if self.cv is None and refitted:
            own = groups[train]
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            return outer_folds(None, y[train], own, False, seed, OUTER_FOLDS)
        units = Units.of(self.cv, y, groups, rows=train)
        if len(units.passes) > 1:
            raise ValueError(
                f"{setting('cv', self.cv)} tests rows more than once: give folds of the rows."
            )
        return units

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags


def closed_form(estimator: Any, weight: Array) -> KernelRegressor | None:
    """Kernel model with the same predictions, not yet fitted; None if the regressor has none.

    Parameters
    ----------
    estimator : regressor; subclasses may differ, and have none.
    weight : (n,) weights of the rows in its fit.
    """
    if type(estimator) not in (Ridge, KernelRidge) or not isinstance(estimator.alpha, Real):
        return None
    mu = float(estimator.alpha) / float(weight.sum())
    if not mu > 0:
        return None
    if isinstance(estimator, Ridge):
        if estimator.positive:
            return None
        return KernelRegressor("linear", mu=mu, fit_intercept=estimator.fit_intercept)
    if estimator.kernel not in _POSITIVE or not estimator.coef0 >= 0:
        return None
    if estimator.kernel.startswith("poly") and not float(estimator.degree).is_integer():
        return None
    options = {name: getattr(estimator, name) for name in ("gamma", "degree", "coef0")}
    kernel = partial(pairwise_kernels, metric=estimator.kernel, filter_params=True, **options)
    return KernelRegressor(Function(kernel), mu=mu, fit_intercept=False)


def _agree(predictions: Array, closed: KernelRegressor, X: Any, y: Array) -> bool:
    """True if a regressor's (n, t) predictions of the rows of its fit are the kernel model's."""
    y = targets_as_columns(y)
    width = _EXACT * np.ptp(y, axis=0) + closed.fitted_.tie * largest_of(y)
    return bool((np.abs(predictions - targets_as_columns(closed.predict(X))) <= width).all())
