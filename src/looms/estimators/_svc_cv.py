"""The support vector classifier that chooses its hyper-parameters by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import Parallel
from sklearn.utils.metaestimators import available_if

from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array, Matrix
from looms.calibration import class_probabilities
from looms.calibration._sigmoid import Sigmoid
from looms.copies import copy_groups
from looms.criteria import balanced_error_rate, error_rate
from looms.estimators._base import one_or_many, outputs
from looms.estimators._encoding import (
    ThresholdedClassifier,
    check_threshold,
    class_weights,
    classes_of_one,
    encoded,
    number_or_rule,
    threshold_and_loss,
)
from looms.estimators._search import results_table
from looms.estimators._svm_grid import positive_values
from looms.estimators._warnings import (
    warn_of_bounds,
    warn_of_copies,
    warn_of_failures,
    warn_of_lone_samples,
    warn_of_missed_precision,
    warn_of_one_class,
)
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._samples import training_rows
from looms.selection import _svm_search as svm_search
from looms.svm._one_against_one import FittedTo, class_log_probabilities, solved_pairs


def _has_probabilities(model: SVCCV) -> bool:
    return model.probability is not None


def _rate(
    rate: Callable[..., float], threshold: Any, loo: HeldOut, sigmoids: tuple[Sigmoid, ...]
) -> float:
    """Error rate at the threshold, which a rule or a sigmoid sets anew each time."""
    cut, _ = threshold_and_loss(number_or_rule(threshold, sigmoids[0], loo), loo)
    return rate(*loo, threshold=cut)


class SVCCV(ThresholdedClassifier):
    r"""Support vector classifier that chooses C and kernel by exact leave-one-out.

    The machine of ``sklearn.svm.SVC``, solved to machine precision. Each setting of the
    hyper-parameters is judged by the leave-one-out outputs, which take no refit; the one
    with the smallest score is kept. Several classes are taken one against one.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable or list of these, default="rbf"
        As for `LSSVMClassifier`; of several the one of the smallest score is taken.
        Hyper-parameters that an object holds with ``gamma_bounds="fixed"`` and the like are
        not searched; at most two can be.
    criterion : str or looms.criteria.Criterion, default="log_likelihood"
        What is minimized. "log_likelihood" is the leave-one-out deviance
        :math:`-2 \sum_i w_i \log \hat p_{(i)}`, for which machine and sigmoid are both
        fitted without sample i [1]_: it sees how sure a machine is, where the error rate is the
        same over wide regions of C and kernel. Its sigmoids are those of "single" below, but
        free to decrease, whatever ``probability``. "error" and "ber" are the rates of ``loo_`` at
        the threshold; "press", "hinge", "squared_hinge", "smoothed_error", "wmw" and
        "cross_entropy", or an object, judge the outputs, for several classes by the mean over the
        pairs, weighted by their samples.
    param_grid : dict or None, default=None
        From names to the values to search: "C", and the hyper-parameters of the kernel by their
        names, such as "gamma" for RBF and "c" for polynomial kernels. A single value is
        held. Others take powers of two: 2⁻⁵, 2⁻³ .. 2¹⁵ for C, in units of one over the spread
        of the kernel, and 2⁻⁶, 2⁻⁴ .. 2⁶ times where the kernel starts.
    search : {"pattern", "grid"}, default="pattern"
        "grid" takes all combinations of the values. "pattern" takes every second value of each,
        then goes from the best of these to better neighbors within their range, at steps that are
        halved down to ``resolution``: some fifty points.
    resolution : float, default=0.5
        Steps of log₂ of the hyper-parameters at which the pattern search stops.
    probability : {"loo", "single", None}, default="loo"
        What the sigmoids of `predict_proba` are fitted to: the leave-one-out outputs, which are
        like those of new samples, or the outputs for the training samples, as in [1]_. These lie
        at the margin and beyond, and their sigmoid is too steep. None: no `predict_proba`.
        Several classes, which the coupled probabilities decide between, have sigmoids all the same.
    threshold : None, float, str or looms.threshold rule, default=None
        As for `LSSVMClassifier`. None: where the sigmoid is ½; 0 with ``probability=None``.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the samples of each class; "balanced" ones, of the numbers of all
        samples, stay while a sample is left out. Also weights in the sigmoids, which decide:
        probabilities are those of a population with such classes.
    selection_weight : dict, "balanced" or None, default=None
        As for `LSSVMClassifierCV`.
    n_jobs : int or None, default=None
        Kernel parameters judged at once, as for joblib.

    Attributes
    ----------
    C_ : float
        The regularization chosen.
    kernel_ : Kernel
        The kernel chosen, with its values.
    loo_score_ : float
        The criterion there: the smallest, and so optimistic.
    loo_ : HeldOut
        Leave-one-out values of `decision_function` before the threshold; targets ±1, one
        column a class for more than two. Exact, but for ``probability="loo"`` with several
        classes, whose sigmoids are fitted to outputs of machines trained with the sample. A
        sample of weight zero has its ordinary value.
    cv_results_ : dict of lists and arrays
        A row for each point searched: "kernel", "params", "param_C" and so on, "loo_score",
        "rank_loo_score", "n_support", "seconds", and "failure", the solver's message where there
        is no score, else None. ``pandas.DataFrame`` makes a table of it.
    best_index_ : int
        The row chosen. Of equal scores it is that of the smallest C.
    calibrators_ : tuple of looms.calibration.Sigmoid or None
        One for each pair of classes.
    support_, support_vectors_ : ndarray of shape (n_support,), matrix (n_support, n_features)
        Indices of the samples that a machine needs, and these samples.
    dual_coef_ : ndarray of shape (n_support,) or (n_support, n_pairs)
        y α of each, positive for the second class of a pair. Pairs are in lexicographic
        order: (0, 1), (0, 2), ..., (1, 2), ...
    intercept_ : float or ndarray of shape (n_pairs,)
        The intercept.
    fit_weight_, selection_weight_ : ndarray of shape (n_samples,)
        Weights of the samples, and their classes, in machine and sigmoids, and in the criterion.
    classes_, threshold_, n_features_in_, feature_names_in_
        As for `LSSVMClassifier`.

    Warns
    -----
    CopiesWarning
        If a twentieth of the rows or more repeat others where that is no accident.
    BoundWarning
        If a hyper-parameter chosen is at the edge of what was searched.
    OneClassWarning
        If the machine takes all of its samples, left out, for one class.
    ConvergenceWarning
        If the solver failed at some points, which are passed over.
    UserWarning
        If a class has one sample only.

    As for `LSSVMClassifierCV`, nothing is warned of where the figures are no better than a guess.

    Notes
    -----
    One point costs a solution and its leave-one-out paths, about as much as a few fits of an SVC;
    "log_likelihood" adds n sigmoids, O(n²). Memory: some n×n arrays of the largest pair, and one
    of all samples, for each job.

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

    C_: float
    kernel_: Kernel
    calibrators_: tuple[Sigmoid, ...] | None
    support_: AnyArray
    support_vectors_: Matrix
    intercept_: float | Array
    loo_: HeldOut
    fit_weight_: Array
    selection_weight_: Array
    loo_score_: float
    cv_results_: dict[str, Any]
    best_index_: int

    def __init__(
        self,
        kernel: Any = "rbf",
        criterion: Any = "log_likelihood",
        *,
        param_grid: Any = None,
        search: str = "pattern",
        resolution: float = 0.5,
        probability: str | None = "loo",
        threshold: Any = None,
        class_weight: Any = None,
        selection_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.criterion = criterion
        self.param_grid = param_grid
        self.search = search
        self.resolution = resolution
        self.probability = probability
        self.threshold = threshold
        self.class_weight = class_weight
        self.selection_weight = selection_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C and kernel and fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative factors of C, as in ``SVC``, and weights in criterion and sigmoids. A
            sample of weight zero takes no part and still gets an output in ``loo_``.

        Returns
        -------
        self : SVCCV
            The fitted machine.
        """
        score, grid = self._checked_search()
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = encoded(y, weight)
        check_threshold(self.threshold, targets)
        cost = weight * class_weights(self.class_weight, labels, classes, weight)
        selection_weight = weight * class_weights(
            self.selection_weight, labels, classes, weight, "selection_weight"
        )
        train, others = np.flatnonzero(weight), np.flatnonzero(weight == 0)
        kernels = self._kernels()
        X_train = training_rows(X, train, kernels[0].pairwise)
        warn_of_copies(X_train, copy_groups(X_train), "Drop them.")
        alone = classes_of_one(classes, labels[train])
        # The sigmoids decide: without the weights of classes they would undo them.
        sample = svm_search.Sample(X_train, labels[train], cost[train], selection_weight[train])
        how, run = (self.search, self.resolution), Parallel(n_jobs=self.n_jobs)
        searched = [
            svm_search.search_space(space, sample, score, *how, run)
            for space in svm_search.spaces_of(kernels, grid, X_train)
        ]
        table = _searches_table(searched, one_or_many(self.kernel))
        chosen = min(searched, key=lambda one: one.score)
        kernel, C = chosen.space.kernel_at(chosen.point), chosen.space.params(chosen.point)["C"]
        with one_blas_thread():
            K = svm_search.kernel_matrix(kernel, X_train)
            machines = solved_pairs(K, sample.labels, C, sample.weight)
            held_out = machines.leave_one_out(self._fitted_to)
            # The coupling of several classes needs sigmoids even without probabilities.
            needed = self.probability is not None or len(classes) > 2
            calibrators = machines.sigmoids(self._fitted_to) if needed else None
        coefficients, intercepts = machines.coefficients, machines.intercepts
        support, one_pair = np.flatnonzero(coefficients.any(axis=1)), len(intercepts) == 1
        expansions = {
            "kernel_": kernel,
            "support_": train[support],
            "support_vectors_": X[train[support]],
            "dual_coef_": coefficients[support, 0] if one_pair else coefficients[support],
            "intercept_": float(intercepts[0]) if one_pair else intercepts,
            "calibrators_": calibrators,
        }
        machine = copy(self)  # this one changes when all is done
        machine._set_fitted(**expansions)
        values = np.empty(targets.shape)
        values[train] = held_out.outputs
        if len(others):  # these never were in the machine
            values[others] = machine._decision(X[others])
        loo = HeldOut(targets, values, weight)
        calibrator = None if calibrators is None else calibrators[0]
        threshold, loss = threshold_and_loss(number_or_rule(self.threshold, calibrator, loo), loo)
        self._set_fitted(
            classes_=classes,
            C_=C,
            threshold_=threshold,
            loo_=loo,
            loo_score_=chosen.score,
            cv_results_=table,
            best_index_=int(np.argmin(table["rank_loo_score"])),
            fit_weight_=cost,
            selection_weight_=selection_weight,
            **expansions,
        )
        warn_of_missed_precision(self.threshold, loss)
        warn_of_lone_samples(alone)
        warn_of_failures(table["failure"])
        warn_of_bounds(chosen.space.edges(chosen.point))
        warn_of_one_class(self, classes, loo, threshold)
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._log_probabilities(self._checked_new_data(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; of more than two classes the sigmoids of the pairs
            coupled by the second method of Wu, Lin & Weng (2004).
        """
        X = self._checked_new_data(X)
        if self.calibrators_ is not None and len(self.calibrators_) == 1:
            return class_probabilities(self.calibrators_[0], self._pair_outputs(X))
        return np.asarray(np.exp(self._log_probabilities(X)))

    def _pair_outputs(self, X: Matrix) -> Array:
        """(n, n_pairs) outputs for validated samples."""
        X = X[:, self.support_] if self.kernel_.pairwise else X
        values = outputs(self.kernel_, X, self.support_vectors_, self.dual_coef_, self.intercept_)
        return values.reshape(len(values), -1)

    def _log_probabilities(self, X: Matrix) -> Array:
        """(n, n_classes) logarithms of class probabilities for validated samples."""
        sigmoids = np.array([(one.slope, one.intercept) for one in self.calibrators_ or ()])
        return class_log_probabilities(-(sigmoids[:, 0] * self._pair_outputs(X) + sigmoids[:, 1]))

    def _decision(self, X: Matrix) -> Array:
        if self.dual_coef_.ndim == 1:
            return self._pair_outputs(X)[:, 0]
        return self._log_probabilities(X)

    @property
    def _fitted_to(self) -> FittedTo:
        """Outputs that the sigmoids of several classes are fitted to."""
        return "single" if self.probability == "single" else "loo"

    def _checked_search(self) -> tuple[svm_search.Score, dict[str, Array]]:
        """Score, and values to search by name; ValueError for a parameter that is no choice."""
        if not one_or_many(self.kernel):
            raise ValueError("kernel must name at least one candidate.")
        if self.search not in ("pattern", "grid"):
            raise ValueError(f"search must be 'pattern' or 'grid', got {self.search!r}.")
        if not (isinstance(self.resolution, Real) and 0 < float(self.resolution) < np.inf):
            raise ValueError(f"resolution must be a positive number, got {self.resolution!r}.")
        if self.probability not in ("loo", "single", None):
            raise ValueError(
                f"probability must be 'loo', 'single' or None, got {self.probability!r}."
            )
        if not isinstance(self.param_grid, Mapping | None):
            raise ValueError(
                f"param_grid must be None or a dict from names to values, got {self.param_grid!r}."
            )
        grid = {
            str(name): positive_values(f"param_grid[{name!r}]", values)
            for name, values in (self.param_grid or {}).items()
        }
        unset = self.threshold is None and self.probability is None
        threshold = 0.0 if unset else self.threshold
        rates = {
            "error": partial(_rate, error_rate, threshold),
            "ber": partial(_rate, balanced_error_rate, threshold),
        }
        return svm_search.score_of(self.criterion, rates, self._fitted_to), grid


def _searches_table(searched: list[Any], kernels: list[Any]) -> dict[str, Any]:
    """``cv_results_`` of the searches of some kernels."""
    scored = [point for one in searched for point in one.scored]
    names = [kernel if isinstance(kernel, str) else repr(kernel) for kernel in kernels]
    return results_table(
        [one.space.params(point) for one in searched for point in one.points],
        np.array([one.score for one in scored]),
        svm_search.ranks(searched),
        kernel=[name for name, one in zip(names, searched, strict=True) for _ in one.points],
    ) | {
        "n_support": np.array([one.n_support for one in scored]),
        "seconds": np.array([one.seconds for one in scored]),
        "failure": [one.failure for one in scored],
    }
