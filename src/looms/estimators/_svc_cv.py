"""The support vector classifier that chooses its hyper-parameters by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from looms._classes import class_indices
from looms._threads import one_blas_thread
from looms._typing import Array, Matrix
from looms.calibration import class_probabilities
from looms.calibration._sigmoid import Sigmoid
from looms.copies import copy_groups
from looms.estimators._callbacks import warn_of_copies
from looms.estimators._classes import encoded
from looms.estimators._classifier import (
    check_threshold,
    number_or_rule,
    threshold_and_loss,
    warn_of_missed_precision,
)
from looms.estimators._machine import KernelMachine, check_kernel_matrix, one_or_many, outputs
from looms.estimators._one_class import warn_of_one_class
from looms.estimators._svc_fitted import (
    chosen_point,
    fitted_machines,
    results_table,
    rows_alone,
    score_of,
    sigmoids_of,
    warn_of,
    whole_leave_one_out,
)
from looms.estimators._svc_search import check_search, kernel_matrix, search_space, spaces_of
from looms.estimators._weights import class_weights
from looms.kernels import Kernel
from looms.kernels._samples import training_rows
from looms.leave_one_out import LeaveOneOut
from looms.svm._one_against_one import class_leave_one_out, class_log_probabilities
from looms.svm._scores import Sample, Score


def _has_probabilities(model: SVCCV) -> bool:
    return model.probability is not None


def _pair_outputs(machine: Mapping[str, Any], X: Matrix) -> Array:
    """(n, n_pairs) outputs of fitted attributes for validated samples."""
    kernel, support = machine["kernel_"], machine["support_"]
    values = outputs(
        kernel,
        X[:, support] if kernel.pairwise else X,
        machine["support_vectors_"],
        machine["dual_coef_"],
        machine["intercept_"],
    )
    return values.reshape(len(values), -1)


def _log_probabilities(machine: Mapping[str, Any], X: Matrix) -> Array:
    """(n, n_classes) logarithms of class probabilities."""
    values, sigmoids = _pair_outputs(machine, X), machine["calibrators_"]
    slopes = np.array([sigmoid.slope for sigmoid in sigmoids])
    intercepts = np.array([sigmoid.intercept for sigmoid in sigmoids])
    return class_log_probabilities(-(slopes * values + intercepts))


def _decision(machine: Mapping[str, Any], X: Matrix) -> Array:
    """Decision values before the threshold, (n,) or (n, n_classes)."""
    if machine["dual_coef_"].ndim == 1:
        return _pair_outputs(machine, X)[:, 0]
    return _log_probabilities(machine, X)


class SVCCV(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    r"""Support vector classifier that chooses C and kernel by exact leave-one-out.

    The machine of ``sklearn.svm.SVC``, solved to machine precision. Each setting of the
    hyper-parameters is judged by the leave-one-out outputs, which take no refit; the one
    with the smallest score is kept. Several classes are taken one against one.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable or list of these, default="rbf"
        As for `LSSVMClassifier`; of several the one of the smallest score is taken.
        Hyper-parameters that an object holds with ``eta_bounds="fixed"`` and the like are
        not searched; at most two can be.
    criterion : str or looms.criteria.Criterion, default="log_likelihood"
        What is minimised. "log_likelihood" is the leave-one-out deviance
        :math:`-2 \sum_i w_i \log \hat p_{(i)}`, for which machine and sigmoid are both
        fitted without sample i [1]_: it judges the probabilities and so sees how sure a
        machine is, where the error rate counts only on which side a sample lies and is the
        same over wide regions of C and kernel. Its sigmoids are those of [1]_, fitted to the
        outputs of the machine for the samples it was trained on and free to decrease,
        whatever ``probability``. "error" and "ber" are the rates of ``loo_`` at the
        threshold; "press", "hinge", "squared_hinge", "smoothed_error", "wmw" and
        "cross_entropy", or an object, judge the outputs, for several classes by the mean
        over the pairs, weighted by their samples.
    param_grid : dict or None, default=None
        From names to the values to search: "C", "gamma" for the RBF kernel (the ``eta`` of
        `looms.kernels.RBF`), else the name that the kernel has for it: "c" for polynomial,
        "eta" for Boolean kernels. A single value is held. What is not named takes powers of
        two: 2⁻⁵, 2⁻³ .. 2¹⁵ for C, in units of one over the spread of the kernel, and 2⁻⁶,
        2⁻⁴ .. 2⁶ times where the kernel starts.
    search : {"pattern", "grid"}, default="pattern"
        "grid" takes all combinations of the values. "pattern" takes every second value of
        each, then goes from the best of these to better neighbours, at steps that are
        halved down to ``resolution``: it stays in the range of the values, and needs some
        fifty points.
    resolution : float, default=0.5
        Steps of log₂ of the hyper-parameters at which the pattern search stops.
    probability : {"loo", "single", None}, default="loo"
        What the sigmoids of `predict_proba` are fitted to: the leave-one-out outputs, or
        the outputs of the machine for the samples it was trained on, as in [1]_. A machine
        pushes the outputs of its training samples to the margin and beyond, so that a
        sigmoid fitted to them is too steep: leave-one-out outputs are like those of new
        samples. None: no `predict_proba`. Several classes, which the coupled probabilities
        decide between, have sigmoids all the same.
    threshold : None, float, str or looms.threshold rule, default=None
        Outputs above it belong to the second class. None: where the sigmoid is ½, so that
        decisions agree with probabilities; 0 with ``probability=None``. A number, or a rule, "ber"
        and the like, as for `LSSVMClassifier`, which sets it by the leave-one-out outputs, is for
        two classes only.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the samples of each class; "balanced" ones, of the numbers of all
        samples, stay while a sample is left out. Also weights in the sigmoids, which decide:
        probabilities are those of a population with such classes.
    selection_weight : dict, "balanced" or None, default=None
        Weights of the classes in the criterion; they multiply ``sample_weight``.
    n_jobs : int or None, default=None
        Kernel parameters judged at once, as for joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    C_ : float
        The regularisation chosen.
    kernel_ : Kernel
        The kernel chosen, with its values; ``kernel_.eta`` is the gamma of RBF.
    loo_score_ : float
        The criterion there: the smallest, and so optimistic.
    loo_ : LeaveOneOut
        Leave-one-out values of `decision_function` before the threshold; targets ±1, one
        column a class for more than two. Exact, but for ``probability="loo"`` with several
        classes, whose sigmoids are fitted to the leave-one-out outputs of the other samples:
        the machines of these did see the sample. A sample of weight zero has its ordinary value.
    cv_results_ : dict of lists and arrays
        A row for each point searched: "kernel", "params", "param_C" and so on, "loo_score",
        "rank_loo_score", "n_support", "seconds", and "failure", what the solver said where
        there is no score, else None. ``pandas.DataFrame`` makes a table of it.
    best_index_ : int
        The row chosen. Of equal scores it is that of the smallest C.
    threshold_ : float
        The threshold, folded into `decision_function`; as for `LSSVMClassifier`.
    calibrators_ : tuple of Sigmoid or None
        One for each pair of classes.
    support_ : ndarray of shape (n_support,)
        Indices of the samples that a machine needs.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        These samples.
    dual_coef_ : ndarray of shape (n_support,) or (n_support, n_pairs)
        y α of each, positive for the second class of a pair. Pairs are in lexicographic
        order: (0, 1), (0, 2), ..., (1, 2), ...
    intercept_ : float or ndarray of shape (n_pairs,)
        The intercept.
    n_features_in_, feature_names_in_
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

    Nothing is warned of where the figures are no better than a guess, as those of noise are:
    `looms.report.cautions` says so.

    Notes
    -----
    One point costs a solution and its leave-one-out paths, O(n²) for each sample on the
    margin and each change of a path, about as much as a few fits of an SVC; "log_likelihood"
    adds n sigmoids, O(n²). Memory: some n×n arrays of the largest pair, and one of all
    samples, for each job.

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

    classes_: Any
    C_: float
    kernel_: Kernel
    threshold_: float
    calibrators_: tuple[Sigmoid, ...] | None
    support_: Any
    support_vectors_: Matrix
    intercept_: Any
    loo_: LeaveOneOut
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
        kernels, score = self._checked_parameters()
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = encoded(y, weight)
        check_threshold(self.threshold, targets)
        if kernels[0].pairwise:
            check_kernel_matrix(X)
        seen = np.flatnonzero(weight > 0)
        warn_of_copies(X[seen], copy_groups(X[seen]), "Drop them.")
        alone = rows_alone(classes, labels[seen])
        sample = self._sample(classes, labels, weight, seen)
        X_seen = training_rows(X, seen, kernels[0].pairwise) if len(seen) < len(weight) else X
        found = [
            search_space(space, X_seen, sample, score, self.search, self.resolution, self.n_jobs)
            for space in spaces_of(kernels, self.param_grid, X_seen)
        ]
        table = results_table(one_or_many(self.kernel), found)
        best = int(np.argmin(table["rank_loo_score"]))
        kernel, C, edges = chosen_point(found, best)
        with one_blas_thread():
            machines = sample.machines(kernel_matrix(kernel, X_seen), C)
            machine = fitted_machines(machines, seen, X, kernel, self.probability)
            loo = class_leave_one_out(machines, sample.labels, sigmoids_of(self.probability))
        loo = whole_leave_one_out(
            loo, seen, targets, weight, lambda rows: _decision(machine, X[rows])
        )
        calibrators = machine["calibrators_"]
        calibrator = None if calibrators is None else calibrators[0]
        threshold, loss = threshold_and_loss(number_or_rule(self.threshold, calibrator, loo), loo)
        self._set_fitted(
            classes_=classes,
            C_=C,
            threshold_=threshold,
            loo_=loo,
            loo_score_=float(table["loo_score"][best]),
            cv_results_=table,
            best_index_=best,
            **machine,
        )
        warn_of_missed_precision(self.threshold, loss)
        warn_of(alone, table, edges)
        warn_of_one_class(self, classes, loo, threshold)
        return self

    def decision_function(self, X: Any) -> Array:
        """Outputs of the machine less the threshold, so that 0 is the boundary.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for ``classes_[1]``; for more the logarithms of the
            coupled probabilities, of which the largest wins.
        """
        return _decision(vars(self), self._checked_new_data(X)) - self.threshold_

    def predict(self, X: Any) -> Any:
        """Class of each sample, that of the decision values.

        For several classes, and with ``threshold=None``, it is the most probable one. A
        threshold that was given, or set for another end, is the only thing by which `predict`
        and `predict_proba` differ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        decision = self.decision_function(X)
        return self.classes_[class_indices(decision)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return _log_probabilities(vars(self), self._checked_new_data(X))

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
        X, machine = self._checked_new_data(X), vars(self)
        if len(self.classes_) == 2:
            return class_probabilities(machine["calibrators_"][0], _pair_outputs(machine, X))
        return np.asarray(np.exp(_log_probabilities(machine, X)))

    def _checked_parameters(self) -> tuple[list[Kernel], Score]:
        """Kernels and the score; ValueError for what cannot be, before any work."""
        check_search(self.search, self.resolution)
        if self.probability not in ("loo", "single", None):
            raise ValueError(
                f"probability must be 'loo', 'single' or None, got {self.probability!r}."
            )
        kernels = self._kernels()
        if not kernels:
            raise ValueError("kernel must name at least one candidate.")
        if len({kernel.pairwise for kernel in kernels}) > 1:
            raise ValueError(
                "Precomputed kernels and kernels of features cannot be candidates for the same X."
            )
        return kernels, score_of(self.criterion, self.threshold, self.probability)

    def _sample(self, classes: Any, labels: Any, weight: Array, seen: Any) -> Sample:
        """The samples of positive weight, with what they weigh where."""
        cost = weight * class_weights(self.class_weight, labels, classes, weight)
        selection = weight * class_weights(
            self.selection_weight, labels, classes, weight, "selection_weight"
        )
        # The sigmoids decide: without the weights of classes they would undo them.
        return Sample(labels[seen], cost[seen], cost[seen], selection[seen])
