"""Models without each sample, or group: from one factorization, from paths, or by refits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.svm import SVC

from looms._advice import setting
from looms._checks import label_array
from looms._classes import class_indices
from looms._optional import require
from looms._typing import AnyArray, Array
from looms.calibration._sigmoid import fit_sigmoids
from looms.diagnostics._problem import GivenMembers, Problem, pose
from looms.diagnostics._refits import (
    LARGEST,
    Likelihood,
    Progress,
    by_refits,
    check_likelihood,
    own_class,
    sigmoid_log_probabilities,
    with_kernel_matrix,
)
from looms.estimators._warnings import level_of_user, warn_of_order
from looms.folds import check_rest, fold_numbers, group_numbers
from looms.svm import IndefiniteKernelError, NotConvergedError
from looms.svm._svc import dual_problem
from looms.svm.dual import DualSolution
from looms.units import Units

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class FitOptions(TypedDict, total=False):
    """Options of `left_out_fits` that the statistics based on it also take."""

    cv: Any
    groups: Any
    preprocessing: str
    n_jobs: int | None
    progress: Progress | None


@dataclass(frozen=True, eq=False, repr=False)
class LeftOutFits:
    """Predictions by the model of all samples, and by those without each sample or its group.

    The result of `left_out_fits`. `deviance`, `excess_error` and `influence` take it instead of an
    estimator.

    Attributes
    ----------
    predicted, predicted_without : ndarray of shape (n_samples,)
        Class of each sample by the model of all samples, and by the one without it or its group.
    y, names : ndarray of shape (n_samples,)
        True classes and names of the samples.
    preprocessing : str
        "none", "held" or "refitted".
    method : str
        Name of the way in which samples are held out, such as "leave-one-group-out" or "10-fold".
    unit : str
        What is held out at a time: "sample", or "group", which may be a fold.
    labels : ndarray of shape (n_units,)
        Names of the samples, labels of the groups or numbers of the folds that are held out.
    group : ndarray of shape (n_samples,)
        Place of each sample's unit in ``labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> fits = left_out_fits(SVC(), *load_iris(return_X_y=True))
    >>> np.flatnonzero(fits.predicted != fits.predicted_without).tolist()
    [126]
    """

    predicted: AnyArray
    predicted_without: AnyArray
    y: AnyArray
    names: AnyArray
    preprocessing: str
    method: str
    unit: str
    labels: AnyArray
    group: AnyArray
    _likelihood: Likelihood | None

    @property
    def likelihood(self) -> Likelihood:
        """Log likelihoods; ValueError for fits made with ``likelihood=False``."""
        if self._likelihood is None:
            raise ValueError("These fits have no likelihood: make them with likelihood=True.")
        return self._likelihood

    @property
    def about(self) -> tuple[str, AnyArray]:
        """Column that describes the units: class of a sample, or number of samples of a group."""
        if self.unit == "sample":
            return "class", self.y
        return "n_samples", np.bincount(self.group)

    def named(self, names: AnyArray) -> LeftOutFits:
        """The same fits, with other names of the samples."""
        return replace(self, names=names, labels=names if self.unit == "sample" else self.labels)

    def table(self, **columns: AnyArray) -> pd.DataFrame:
        """Table of the class and the given columns, with a row per sample, by name."""
        pandas = require("pandas", "A table of samples")
        index = pandas.Index(self.names, name="sample")
        return pandas.DataFrame({"class": self.y, **columns}, index=index)

    def __repr__(self) -> str:
        sizes = {"n_samples": len(self.y), f"n_{self.unit}s": len(self.labels)}
        counts = ", ".join(f"{name}={size}" for name, size in sizes.items())
        return f"LeftOutFits({counts}, preprocessing={self.preprocessing!r})"


def left_out_fits(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    likelihood: bool = True,
    cv: Any = None,
    groups: Any = None,
    preprocessing: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LeftOutFits:
    """Fits without each sample, or each group, at fixed hyper-parameters.

    It computes once all that `deviance`, `excess_error` and `influence` need.

    Parameters
    ----------
    estimator : classifier
        Fitted or unfitted; it is not changed. An estimator with predict_proba gives the
        probabilities itself. For a `sklearn.svm.SVC`, a least-squares model of looms on two
        classes, and any other estimator with only decision values, Platt's sigmoid is fitted to
        the decision values of the one model on its training samples; for several classes, one
        sigmoid for each pair of an SVC, and these are coupled.
        Hyper-parameters are held fixed: ``gamma="scale"``, the "balanced" weights of an SVC, and
        the values tuned by a search, a `KernelClassifier` (which is replaced by the
        SVC that it selected) are taken from the fitted estimator or from a fit to all samples, also
        at the end of a pipeline; a stack keeps its weights, and a model on landmarks the landmarks.
        Other estimators that tune while they are fitted, such as `LogisticRegressionCV`, tune again
        in every refit. Of a stack of looms with estimators of scikit-learn, such as the boosted
        trees of the default, the kernels alone are taken. Every sample counts once, because an
        estimator does not keep the sample weights that it was fitted with.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Samples, named by the index of a data frame, else by position from 0.
    y : array-like of shape (n_samples,)
        Classes, each with two members or more.
    likelihood : bool, default=True
        False skips the likelihood, which `excess_error` does not need: any classifier is then
        allowed, and it is faster if prediction is slow.
    cv : int, splitter, iterable or ndarray, default=None
        Folds that are held out instead of single samples or groups, with one refit per fold, if n
        refits would take too long. Each fold then counts as a group; groups stay within one fold.
    groups : array-like of shape (n_samples,), default=None
        Labels; samples with the same label, such as those of one patient, are held out together.
    preprocessing : {"auto", "held", "refitted"}, default="auto"
        For a pipeline: "held" fits the steps before the model once to all samples, "refitted"
        fits them again without each sample. "auto" refits them if they learn from `y`.
    n_jobs : int, default=None
        Number of refits to run in parallel, as in joblib.
    progress : callable, default=None
        Called with the number of refits done and their total.

    Returns
    -------
    fits : LeftOutFits
        Classes and log likelihoods by the model of all samples and by those without each.

    Raises
    ------
    ValueError
        For a single class, a class with one member or with all members in one group, values that
        are not finite, or repeated folds. With `likelihood` also for an estimator without decision
        values and probabilities, or one that gives a training sample's class probability zero.

    Warns
    -----
    RuntimeWarning
        If an SVC of two classes cannot be solved exactly, and LIBSVM refits it.

    Notes
    -----
    The cost is one factorization for least-squares models of looms (n refits for the likelihood
    of several classes), one decremental path per support vector for a `sklearn.svm.SVC` of two
    classes, and n refits for other estimators. The first two keep an n×n array of outputs. With
    groups, an SVC and other estimators take one refit per group.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from looms.diagnostics import excess_error, influence, left_out_fits
    >>> X, y = load_iris(return_X_y=True)
    >>> fits = left_out_fits(SVC(C=100), X[50:], y[50:])
    >>> round(excess_error(fits).excess, 2)
    0.02
    >>> influence(fits).flagged.tolist()
    [33]
    """
    warn_of_order(cv, X=X, y=y, groups=groups)
    problem = pose(estimator, X, y, preprocessing)
    if likelihood:
        check_likelihood(problem)
    n = problem.n_samples
    unit, labels, group, method = "sample", problem.names, np.arange(n), "leave-one-out"
    numbers = group_numbers(groups, n)
    if cv is not None:
        folds = np.asarray(fold_numbers(cv, problem.labels, numbers, classes=True))
        if len(folds) > 1:
            raise ValueError(
                f"Each sample must be held out once, but {setting('cv', cv)} repeats it."
            )
        labels, group = np.unique(folds[0], return_inverse=True)
        unit, method = "group", f"{len(labels)}-fold"
    elif groups is not None:
        _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
        unit, labels, method = "group", label_array(groups)[first], "leave-one-group-out"
        check_rest(group[None], problem.y, True, "group")
    predicted, predicted_without, terms = models_without(
        problem, group, likelihood, n_jobs, progress
    )
    return LeftOutFits(
        predicted,
        predicted_without,
        problem.y,
        problem.names,
        problem.preprocessing,
        method + problem.by_kernels,
        unit,
        labels,
        group,
        terms,
    )


def models_without(
    problem: Problem,
    group: AnyArray,
    likelihood: bool,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[AnyArray, AnyArray, Likelihood | None]:
    """Classes by the model of all samples and by those without each group; their likelihood."""
    classes, terms, cut = problem.classes, None, np.zeros(())
    rows: Array | None = None  # outputs of the model without group k for sample j, (m, n)
    if isinstance(problem.estimator, GivenMembers):
        estimator = clone(problem.estimator).fit(problem.X, problem.y)
        left_out, units = estimator.fitted_.left_out, Units.partition(group, group)
        cut = np.asarray(estimator.fitted_.rule.threshold)
        outputs = estimator.decision_function(problem.X)
        own = left_out.outputs(units)[0].reshape(outputs.shape)
        if likelihood and len(classes) == 2:
            rows = np.empty((units.n_units, len(group)))
            for ids, F in left_out.everywhere(units):
                rows[ids] = F[:, :, 0]
        elif likelihood:
            terms = by_refits(problem, True, group, n_jobs, progress)[2]
    else:
        single = np.array_equal(group, np.arange(problem.n_samples))
        solution = exact_solution(problem) if single else None
        if solution is not None:
            try:
                rows = solution.leave_one_out()[0]
                outputs, own = solution.outputs, rows.diagonal()
            except NotConvergedError as error:
                _warn_of_refits(error)
        if rows is None:
            return by_refits(with_kernel_matrix(problem), likelihood, group, n_jobs, progress)
    if likelihood and rows is not None:
        terms = likelihood_of_outputs(outputs, rows, problem.labels, group)
    of_all, without = (class_indices(f, cut) for f in (outputs, own))
    return classes[of_all], classes[without], terms


def fits_of(estimator: Any, X: Any, y: Any, likelihood: bool, options: FitOptions) -> LeftOutFits:
    """The left-out fits given in place of an estimator, or those of the estimator."""
    if not isinstance(estimator, LeftOutFits):
        if X is None or y is None:
            raise TypeError("X or y is missing: give both; only left-out fits have their own.")
        return left_out_fits(estimator, X, y, likelihood=likelihood, **options)
    if X is not None or y is not None or options:
        raise TypeError("Left-out fits have their own samples and options: give nothing else.")
    if likelihood:
        _ = estimator.likelihood  # ValueError for fits without
    return estimator


def exact_solution(problem: Problem) -> DualSolution | None:
    """The solution of an SVC of two classes to machine precision; None for other models.

    Also None, with a warning, if there is no solution to that precision, and for kernels that
    are not positive semi-definite.
    """
    estimator, several = problem.estimator, len(problem.classes) > 2
    if type(estimator) is not SVC or several or problem.n_samples > LARGEST:
        return None
    try:
        return dual_problem(estimator, problem.X, problem.y).solve()
    except (IndefiniteKernelError, NotConvergedError) as error:
        _warn_of_refits(error)
        return None


def likelihood_of_outputs(
    outputs: Array, rows: Array, labels: AnyArray, group: AnyArray
) -> Likelihood:
    """Likelihood from outputs of the model of all samples, (n,), and without groups, (m, n).

    Row k is from the model without group k, whose sigmoid is fitted to the others.
    """
    n = len(labels)
    y = np.where(labels == 1, 1.0, -1.0)
    taking = (group != np.arange(len(rows))[:, None]).astype(np.float64)
    slopes, intercepts = fit_sigmoids(rows, y, taking)
    log_p = np.multiply(rows, slopes[:, None])  # in place from here: n² numbers
    log_p += intercepts[:, None]
    held_out = log_p[group, np.arange(n)]  # log odds of the first class
    held_out = log_expit(np.column_stack([held_out, -held_out]))
    left_out = held_out[np.arange(n), labels]
    log_p *= -y
    log_expit(log_p, out=log_p)
    whole = sigmoid_log_probabilities(outputs[:, None], labels, np.ones(n))
    rest = log_p.sum(axis=1) - np.bincount(group, left_out)
    return Likelihood(own_class(whole, labels, np.ones(n)), held_out, left_out, rest)


def _warn_of_refits(error: Exception) -> None:
    warnings.warn(
        f"{error} Refits by LIBSVM take its place.", RuntimeWarning, stacklevel=level_of_user()
    )


def axes_or_new(ax: Axes | None, result: object) -> Axes:
    """``ax`` itself, or the axes of a new figure of pyplot."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", f"{type(result).__name__}.plot", extra="plot")
    new: Axes = pyplot.subplots()[1]
    return new


def positions(names: AnyArray) -> AnyArray:
    """Places of samples on an axis, (n,): their names if these count up, else 0 to n − 1."""
    counted = names.dtype.kind in "iu" and bool((np.diff(names) == 1).all())
    return names if counted else np.arange(len(names))
