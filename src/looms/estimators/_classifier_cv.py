"""The self-tuning least-squares SVM classifier."""

from __future__ import annotations

from typing import Any, Self

from looms.estimators._callbacks import CallbackWatcher, with_callbacks
from looms.estimators._classifier import Classifier
from looms.estimators._encoding import class_weights, selection_weights
from looms.estimators._search import SelectingMachine
from looms.estimators._warnings import warn_of_missed_precision, warn_of_one_class, warn_of_search


class LSSVMClassifierCV(Classifier, SelectingMachine):
    """Least-squares SVM classifier that chooses its hyper-parameters by exact leave-one-out.

    Kernel parameters and regularization minimize a criterion on the leave-one-out
    outputs, by its gradient in all of them at once. Several kernels and criteria are
    tuned each, and compared by rows that they were tuned without: the one with the smallest
    balanced error rate is taken, or the smallest loss of the rule of the threshold if it has
    another, or all are stacked.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable or list of these, default="rbf"
        As for `LSSVMClassifier`; several are candidates. "auto" stands for a stack of "linear",
        "rbf", "ranked_laplacian", of dense samples, and "weighted_matern12": the least error on
        most tables, at some twenty times the cost of "rbf". Values given in a kernel object
        are where the search starts; ``gamma_bounds="fixed"`` and the like hold them.
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
        Weights of the classes in the criterion, those of the fit unless given; they multiply
        ``sample_weight``. With None the criterion counts classes as they come, whatever their
        weights in the fit, and prefers machines that give up a rare one.
    threshold : None, float, str, looms.threshold.ThresholdRule or callable, default=None
        As for `LSSVMClassifier`, set for every candidate by its own leave-one-out outputs and
        calibrator.
    calibration : {"sigmoid", "isotonic", "beta"} or None, default="sigmoid"
        As for `LSSVMClassifier`.
    prior : bool, default=False
        Bayesian regularization of the kernel's hyper-parameters (Cawley & Talbot 2007),
        for kernels with many, such as "ard" on few samples.
    max_iter : int, default=100
        Iterations of each search.
    n_restarts : int, default=0
        Starts beside the first. All starts are the best points of a scan of the
        hyper-parameters on a subsample, one for each of five kernels between a narrow and a
        wide one: more than four restarts add nothing.
    tol_se : float, default=0.1
        A search ends when an iteration gains less than this fraction of the standard
        error of the criterion; on subsamples of a fraction of it, for there iterations
        cost little. From 1600 samples on the last search is on landmarks, and the kernel matrix
        of all samples is factorized once, where landmarks give the criterion to within ten times
        this; with 0 never. A heuristic: the difference of the criterion between two settings of the
        hyper-parameters is less noisy than the criterion itself.
    copies : {"apart", "together"}, default="apart"
        Whether rows that are equal in every feature are held out one at a time or together.
        Leaving one out leaves its copies in: where rows were entered repeatedly, "apart"
        flatters and selects a nearest neighbor. In tables of few discrete columns equal rows
        are ordinary samples, and "apart" is right.
    cv : int, str, splitter, iterable, ndarray or None, default=None
        Samples that are held out together: None for each by itself, or each group; a number of
        folds, stratified for classes; "5x2" for five repetitions of two folds; a splitter of
        scikit-learn, or its splits, that tests every sample; `looms.folds.GapKFold` for samples in
        order of time; or the number of the fold of each sample, (n_samples,) or (n_repetitions,
        n_samples). A number of folds is of the samples of non-zero weight; all else is of all.
        The criterion is the mean over repetitions. Holding out more resists over-fitting of
        kernels with many hyper-parameters. A model file holds numbers, splits and `GapKFold`, but
        no other splitter.
    rank : int, "auto" or None, default=None
        Number of landmarks. The machine is then f(x) = Σ_j c_j k(x, z_j) + b for so many samples z,
        drawn from a subsample by randomly pivoted Cholesky with the kernel tuned there; held-out
        outputs and gradients stay exact, in memory that does not grow with n² and time that grows
        with n rank². None: every sample is one, and the kernel matrix of n × n numbers is
        factorized. "auto" takes the whole matrix of up to 5000 samples, and beyond as many
        landmarks as pay: from 64 on twice as many, up to 2048, while that gains half a standard
        error of the criterion. Precomputed kernels, stacks as ``kernel="auto"``, repeated folds,
        ``search="grid"`` and ``nested="folds"`` take the whole matrix: with a rank they are
        refused. Candidates are compared by the outputs that they were tuned by.
    search : {"gradient", "grid"}, default="gradient"
        Search by gradients, or a fixed grid of 63 points around the start. Parameters of one kernel
        move together there.
    nested : {"auto", "folds"} or None, default="auto"
        How the whole choice is repeated without the samples that it is scored on, for ``nested_``
        and all that is made of it: ``scores_``, intervals and sets. With "folds" a search along
        gradients is tuned anew without each of ten folds, of several candidates five, or of as many
        as the rarest class has samples, or groups: as many fits at the first access, which
        `joblib.parallel_config` runs in parallel. "auto" is "folds" for up to 1000 samples, of
        several candidates 200, with `cv` of none or a number where three folds or more can be had.
        Beyond, the machines of several candidates are those of the folds that compare them, chosen
        or weighted by the rows of the other folds: outputs of machines that saw the fold, so that
        a trace of it is left. Of one candidate there are none. On the grid the choice is repeated
        without every sample, group or fold, for four times the time of the grid and 3 n² numbers in
        memory for each class of several.
    combine : {"auto", "best", "stack"}, default="auto"
        Of several candidates each is tuned anew without each of five folds. By the rows of these
        folds "best" takes the one of the least loss, of equal ones that with the fewest
        hyper-parameters; "stack" weights the outputs of all, by nonnegative weights of the least
        log loss, or squared error. "auto" stacks what ``kernel="auto"`` stands for, and else takes
        the best. Where three folds cannot be had, as with a splitter for `cv`, and with
        search="grid", the best is taken by the outputs that candidates were tuned by.
    random_state : int, RandomState instance or None, default=0
        Draws the subsamples of up to a quarter of the samples on which searches begin.

    Attributes
    ----------
    kernel_, mu_ : the kernel with its hyper-parameters, and the regularization, chosen; of a
        stack, as ``dual_coef_`` and ``intercept_``, those of the member of the largest weight.
    members_ : tuple of members
        Of a stack: ``weight``, ``kernel``, ``mu``, ``dual_coef`` and ``intercept`` of each; empty
        for a single machine. What is made of one machine, such as `without`, is not to be had of a
        stack.
    landmarks_ : ndarray or sparse matrix of shape (rank, n_features), or None
        Landmarks, of which ``dual_coef_`` are then the coefficients, fewer where these span all
        samples; None without `rank`.
    loo_ : HeldOut
        Exact leave-one-out outputs of the machine chosen, or of the stack with its weights, before
        the threshold; targets ±1, one column a class for more than two. The hyper-parameters were
        chosen on them: errors counted on them are optimistic.
    selection_ : looms.selection.Tuning
        How the hyper-parameters of the chosen candidate were found: criterion with
        standard error, history, reason for stopping.
    candidates_ : list of looms.selection.Candidate
        All candidates in the order they were tried; ``pandas.DataFrame(candidates_)``
        is a table of them.
    cv_results_ : dict of lists and arrays
        A row for each candidate: "kernel", "criterion", "params", "param_mu" and so on,
        "loo_score", what they compete by, "rank_loo_score", "seconds".
        ``pandas.DataFrame`` makes a table of it.
    best_index_ : int
        Index of the chosen candidate in ``candidates_``.
    held_out_ : HeldOut
        Exact outputs of machines without the sample's fold or group, on which the criterion was
        evaluated; means over repetitions. They are ``loo_`` without `cv` and groups. Of several
        candidates they are of the machines without each of five folds, combined by the rows of the
        other folds. Threshold and calibration are set by them.
    groups_ : ndarray of shape (n_samples,) or None
        Numbers of the groups; None if each sample was by itself.
    folds_ : ndarray of shape (n_repetitions, n_samples) or None
        Numbers of the folds of `cv`, -1 for a sample that is not held out, -2 - k for one in the
        gap of fold k.
    candidate_weights_ : ndarray of shape (n_candidates,) or None
        Weights of the candidates in a stack; None of one machine.
    choice_folds_ : ndarray of shape (n_samples,) or None
        Numbers of the folds without which the candidates were tuned anew, to be compared or
        stacked; -1 for a sample of weight zero. None where they compete by ``held_out_``.
    nested_ : looms.selection.Nested or None
        Predictions of each sample by machines that were chosen without it; see `nested`.
    scores_, scores_se_ : dict of float
        Figures to quote, and their standard errors; computed at the first access.
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
        If a twentieth of the rows or more repeat others where that is no accident.
    BoundWarning
        If a hyper-parameter chosen is at the edge of what was searched.
    OneClassWarning
        If the machine takes all of its samples, left out, for one class.
    ConvergenceWarning
        If the search stopped at ``max_iter`` or found no way down.

    Nothing is warned of where the figures are no better than a guess, as those of noise are:
    `looms.report.cautions` says so.

    Notes
    -----
    One evaluation of criterion and gradient costs about 2n³ flops, whatever the number
    of hyper-parameters; two or three are at full n. Memory: three n×n arrays, four for
    sums of linear and RBF kernels. On m landmarks: about 9 n m² flops, or 5 n m² with folds, and
    (m + 1)² matrices, one more for each fold.

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
        nested: str | None = "auto",
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
        self.nested = nested
        self.combine = combine
        self.random_state = random_state

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the hyper-parameters and fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix. With
            `rank` also a dask array or dataframe, beside which y, weights and groups may be dask
            collections too, a memory map, or `looms.blocks.RowBlocks`: nothing but the landmarks is
            kept. So of a torch.Tensor: sums over its blocks are made where it lives, of float32 if
            it is (`looms.tensors.TensorBlocks`). Without landmarks a tensor comes to the host.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fit and in the criterion; only their ratios count.
            A sample of weight zero takes no part in either and still gets an output in
            ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, as of the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : LSSVMClassifierCV
            The fitted machine.
        """
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = self._encoded(y, weight)
        fit_weight = weight * class_weights(self.class_weight, labels, classes, weight)
        selection_weight = weight * selection_weights(self, labels, classes, weight)
        watcher = CallbackWatcher(self, X, y, None if sample_weight is None else weight)
        choice, fitted = self._selected(
            X, targets, weight, fit_weight, selection_weight, groups, y, self._score, watcher
        )
        _, threshold, calibrator = choice.score
        self._set_fitted(classes_=classes, threshold_=threshold, calibrator_=calibrator, **fitted)
        watcher.ends()
        warn_of_search(choice.best, targets)
        warn_of_missed_precision(self.threshold, choice.best.score)
        warn_of_one_class(self, classes, self.held_out_, self.threshold_)
        return self
