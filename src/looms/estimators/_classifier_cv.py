"""The self-tuning least-squares SVM classifier."""

from __future__ import annotations

from typing import Any, Self

from looms.estimators._callbacks import CallbackWatcher, with_callbacks
from looms.estimators._classifier import Classifier
from looms.estimators._encoding import class_weights, selection_weights
from looms.estimators._folds import RowsOfFit, unfitted
from looms.estimators._search import SelectingMachine
from looms.estimators._warnings import warn_of_missed_precision, warn_of_one_class, warn_of_search


class LSSVMClassifierCV(Classifier, SelectingMachine):
    """Least-squares SVM classifier that chooses its hyper-parameters by exact leave-one-out.

    A gradient search over all kernel parameters and the regularization at once minimizes a
    criterion on the leave-one-out outputs. If several kernels or criteria are given, each is
    tuned, and they are compared on rows that they were tuned without. The candidate with the
    smallest balanced error rate, or the smallest loss of another threshold rule, is taken; or
    all are stacked.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable, classifier or list of these, default="rbf"
        As for `LSSVMClassifier`; several are candidates. Any classifier of scikit-learn may be
        among them, to be chosen or stacked; it is refitted in folds where kernels have
        closed forms. "auto" stands for a stack of "linear", "rbf", "ranked_laplacian" (dense
        samples only) and "weighted_matern12": the smallest error on most tables, at some twenty
        times the cost of "rbf". The search starts at the values given in a kernel object;
        ``gamma_bounds="fixed"`` and the like hold them fixed.
        "weighted_rbf", "weighted_powexp", "weighted_matern52" and so on weight the features by the
        gradients of the machine without weights, and are tuned twice: `looms.kernels.Weighted`.
    criterion : str, looms.criteria.Criterion or list of these, default="press"
        "press", "hinge", "squared_hinge", "smoothed_error", "wmw" (smoothed 1 − AUC) or
        "cross_entropy"; several are candidates.
    optimizer : {"lbfgs", "scg", "nelder-mead"}, default="lbfgs"
        L-BFGS-B, scaled conjugate gradients, or the Nelder-Mead simplex.
    fit_intercept, class_weight
        As for `LSSVMClassifier`.
    selection_weight : "class_weight", dict, "balanced" or None, default="class_weight"
        Weights of the classes in the criterion, by default those of the fit; they multiply
        ``sample_weight``. With None the criterion ignores class weights, even if the fit has
        some, and prefers machines that give up a rare class.
    threshold : None, float, str, looms.threshold.ThresholdRule or callable, default=None
        As for `LSSVMClassifier`; each candidate sets it by its own leave-one-out outputs and
        calibrator.
    calibration : {"sigmoid", "isotonic", "beta"} or None, default="sigmoid"
        As for `LSSVMClassifier`.
    prior : bool, default=False
        Bayesian regularization of the kernel's hyper-parameters (Cawley & Talbot 2007), for
        kernels that have many, such as "ard" on few samples.
    max_iter : int, default=100
        Maximum number of iterations of each search.
    n_restarts : int, default=0
        Number of starts beside the first. All starts are the best points of a scan of the
        hyper-parameters on a subsample, one for each of five kernels between a narrow and a
        wide one: more than four restarts add nothing.
    tol_se : float, default=0.1
        A search ends when an iteration gains less than this fraction of the standard error of
        the criterion, and less than the standard error of the gain itself, from the differences
        of the samples' losses; on subsamples, where iterations are cheap, less than a fraction of
        that. From 1600 samples on, the last search is on landmarks if these give the criterion to
        within ten times this tolerance, and the kernel matrix of all samples is factorized only
        once; with 0 never.
    copies : {"apart", "together"}, default="apart"
        Whether rows that are equal in every feature are held out one at a time or together.
        Leaving one out leaves its copies in: if rows were entered repeatedly, "apart" flatters
        and selects a nearest neighbor. In tables of few discrete columns equal rows are ordinary
        samples, and "apart" is right.
    cv : int, str, splitter, iterable, ndarray or None, default=None
        Which samples are held out together: None for each by itself, or each group; a number of
        folds, stratified by class; "5x2" for five repetitions of two folds; a scikit-learn
        splitter, or its splits, that tests every sample; `looms.folds.GapKFold` for samples in
        order of time; or the number of the fold of each sample, (n_samples,) or (n_repetitions,
        n_samples). A number of folds divides the samples of non-zero weight; all other forms
        refer to all samples. The criterion is the mean over repetitions. Holding out more helps
        against over-fitting with kernels of many hyper-parameters. A model file holds numbers,
        splits and `GapKFold`, but no other splitter.
    rank : int, "auto" or None, default=None
        Number of landmarks. The machine is then f(x) = Σ_j c_j k(x, z_j) + b for that many samples
        z, drawn from a subsample by randomly pivoted Cholesky with the kernel tuned there. Held-out
        outputs and gradients stay exact; memory does not grow with n², and time grows with n rank².
        With None every sample is a landmark, and the n × n kernel matrix is factorized. "auto"
        takes the whole matrix for up to 5000 samples, and beyond that as many landmarks as pay:
        starting at 64, the number is doubled, up to 2048 or a quarter of the samples, while one
        doubling or two lower the criterion, tuned anew, by 1 % and by the standard error of the
        gain. In outer folds, of `evaluate` or of a stack, landmarks are drawn anew. Rows in blocks
        are not saved with the machine; what needs them all reads them into memory.
    search : {"gradient", "grid"}, default="gradient"
        Search by gradients, or on a fixed grid of 63 points around the start, where the
        parameters of one kernel move together. On landmarks the start is the best point of the
        same grid for a sample of the rows.
    combine : {"auto", "best", "stack"}, default="auto"
        How several candidates, each tuned anew without each of five folds, are combined by the
        rows of these folds. "best" takes the one with the smallest loss, and among equal ones the
        one with the fewest hyper-parameters; "stack" weights the outputs of all, with the
        nonnegative weights of the smallest log loss or squared error. "auto" stacks the kernels
        of ``kernel="auto"``, and otherwise takes the best. A splitter, splits or
        fold numbers for `cv` of three to ten folds are these themselves. If three cannot be made,
        and for the best with search="grid" or a rank, the best is taken by the outputs that the
        candidates were tuned on.
    random_state : int, RandomState instance or None, default=0
        Draws the subsamples, of up to a quarter of the samples, on which searches begin.

    Attributes
    ----------
    kernel_, mu_ : the chosen kernel with its hyper-parameters, and the chosen regularization; for
        a stack these, ``dual_coef_`` and ``intercept_`` are those of the member with the largest
        weight.
    members_ : tuple of members
        Machines of a stack, or the only one: ``weight``, ``kernel``, ``mu``, ``dual_coef`` and
        ``intercept`` of a kernel machine; ``weight`` and the fitted ``estimator`` of another. A
        machine without kernels has no ``kernel_``, ``mu_``, ``dual_coef_`` and ``intercept_``.
    landmarks_ : ndarray or sparse matrix of shape (rank, n_features), or None
        Landmarks, whose coefficients are then ``dual_coef_``; fewer than `rank` if these span all
        samples. None without `rank`.
    loo_ : HeldOut
        Exact leave-one-out outputs of the chosen machine, or of the stack with its weights, before
        the threshold (of an estimator of scikit-learn those without each of five folds); targets
        ±1, one column per class for more than two. The hyper-parameters were chosen on them, so
        errors counted on them are optimistic.
    selection_ : looms.selection.Tuning
        How the hyper-parameters of the chosen candidate were found: the criterion with its
        standard error, the history, the reason for stopping.
    candidates_ : list of looms.selection.Candidate
        All candidates in the order in which they were tried; ``pandas.DataFrame(candidates_)``
        makes a table of them.
    cv_results_ : dict of lists and arrays
        A row for each candidate: "kernel", "criterion", "params", "param_mu" and so on,
        "loo_score", by which they are compared, "rank_loo_score", "seconds".
        ``pandas.DataFrame`` makes a table of it.
    best_index_ : int
        Index of the chosen candidate in ``candidates_``.
    held_out_ : HeldOut
        Exact outputs of machines without the sample's fold or group, on which the criterion was
        evaluated; means over repetitions. Without `cv` and groups they are ``loo_``. With several
        candidates they come from the machines without each of five folds, combined by the rows of
        the other folds. Threshold and calibration are fitted to them.
    units_ : looms.units.Units
        Samples that were held out together: each by itself, its group, or its fold of `cv`. Its
        ``clusters`` are numbers of the groups. Samples of weight zero stay.
    candidate_weights_ : ndarray of shape (n_candidates,) or None
        Weights of the candidates in a stack; None for a single machine.
    choice_units_ : looms.units.Units or None
        Folds without which the candidates were tuned anew, to be compared or stacked. None if they
        were compared by ``held_out_``.
    n_iter_ : int
        Iterations of the chosen candidate's last search, at least 1.
    selection_weight_ : ndarray of shape (n_samples,)
        Weights of the samples in the criterion.
    classes_, threshold_, calibrator_, dual_coef_, intercept_, X_fit_, fit_weight_, \
fit_intercept_, n_features_in_, feature_names_in_
        As for `LSSVMClassifier`.

    Warns
    -----
    CopiesWarning
        If at least a twentieth of the rows repeat others, and not by coincidence.
    ScalesWarning
        If columns differ more than a hundredfold in scale, and every kernel is of plain distances.
    BoundWarning
        If a chosen hyper-parameter is at the edge of the range that was searched.
    OneClassWarning
        If the machine predicts one class for all of its samples when they are left out.
    ConvergenceWarning
        If the search stopped at ``max_iter`` or found no way down.

    No warning is given if the figures are no better than a guess, as on pure noise:
    `looms.report.cautions` tells.

    Notes
    -----
    One evaluation of the criterion and its gradient costs about 2n³ flops, whatever the number
    of hyper-parameters; two or three evaluations are on all n samples. Memory: three n×n arrays,
    four for sums of linear and RBF kernels. On m landmarks: about 9 n m² flops, or 5 n m² with
    folds, and (m + 1)² matrices, one more for each fold.

    References
    ----------
    Cawley (2006), Leave-one-out cross-validation based model selection criteria for
    weighted LS-SVMs, IJCNN.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from looms import LSSVMClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LSSVMClassifierCV(kernel=["linear", "rbf"], threshold="ber").fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97
    True
    >>> [(type(c.kernel).__name__, c.score < 0.05) for c in model.candidates_]
    [('Linear', True), ('RBF', True)]
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        criterion: Any = "press",
        *,
        optimizer: str = "lbfgs",
        fit_intercept: bool = True,
        class_weight: Any = None,
        selection_weight: Any = "class_weight",
        threshold: Any = None,
        calibration: str | None = "sigmoid",
        prior: bool = False,
        max_iter: int = 100,
        n_restarts: int = 0,
        tol_se: float = 0.1,
        copies: str = "apart",
        cv: Any = None,
        rank: int | str | None = None,
        search: str = "gradient",
        combine: str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.criterion = criterion
        self.optimizer = optimizer
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.selection_weight = selection_weight
        self.threshold = threshold
        self.calibration = calibration
        self.prior = prior
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.tol_se = tol_se
        self.copies = copies
        self.cv = cv
        self.rank = rank
        self.search = search
        self.combine = combine
        self.random_state = random_state

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the hyper-parameters and fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix. With
            `rank` it may also be a dask array or dataframe (then y, weights and groups may be dask
            collections too), a memory map or `looms.blocks.RowBlocks`: only the landmarks are kept.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fit and in the criterion; only their ratios count.
            A sample of weight zero takes no part in either but still gets an output in
            ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : LSSVMClassifierCV
            The fitted machine.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.
        """
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = self._encoded(y, weight)
        fit_weight = weight * class_weights(self.class_weight, labels, classes, weight)
        selection_weight = weight * selection_weights(self, labels, classes, weight)
        watcher = CallbackWatcher(self, X, y, None if sample_weight is None else weight)
        weights = weight, fit_weight, selection_weight
        rows = RowsOfFit(X, y, targets, *weights, groups, True, self._score)
        selection = self._selection_on(rows, watcher)
        _, threshold, calibrator = selection.choice.score
        rule = {"threshold_": threshold, "calibrator_": calibrator}
        fitted = {"classes_": classes, **rule, **selection.attributes()}
        self._set_fitted(_unfitted=unfitted(self), **fitted)
        watcher.ends()
        warn_of_search(selection.choice.best, targets)
        warn_of_missed_precision(self.threshold, selection.choice.best.score)
        warn_of_one_class(self, classes, self.held_out_, self.threshold_)
        return self
