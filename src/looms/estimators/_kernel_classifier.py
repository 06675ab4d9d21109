"""The kernel classifier."""

from __future__ import annotations

from typing import Any

from looms.estimators._classifier import Classifier


class KernelClassifier(Classifier):
    """Kernel classifier that is tuned on its exact leave-one-out predictions.

    This is the least-squares support vector machine. It minimizes
    ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (t_i − w·φ(x_i) − b)² for targets t = ±1 and weights ζ of mean one.
    One factorization also gives the exact prediction of each sample by the model without it, and
    the gradient of a loss of these predictions in all hyper-parameters at once. The search
    minimizes that loss. With ``loss="hinge"`` it is the support vector machine proper.

    Put ``StandardScaler`` before it if features differ in scale, or use `TabularClassifier`,
    which also takes data frames and compares several kernels.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel or callable, default="rbf"
        "linear", "quadratic", "cubic", "boolean", "tanimoto", "rbf", "laplacian", "ard",
        "matern12", "matern32", "matern52", "powexp", "powexp_ard", "polynomial4" (or another
        degree), any prefixed with "normalized_" or "ranked_", or "precomputed"; a kernel object,
        whose unset values are taken from the data; or a function of two matrices of samples that
        returns their kernel matrix. "weighted_rbf", "weighted_powexp", "weighted_matern52" and so
        on weight the features by the gradients of the model without weights, and are tuned twice:
        `looms.kernels.Weighted`. A search starts at the values given in a kernel object;
        ``gamma_bounds="fixed"`` and the like hold them fixed.
    loss : {"squared", "hinge", "squared_hinge"}, default="squared"
        Loss of a sample. "hinge" is the model of ``sklearn.svm.SVC``, solved to machine precision:
        it minimizes ½‖w‖² + C Σ_i ζ_i max(0, 1 − t_i f(x_i)) with C = 1 / (mu n), and
        "squared_hinge" squares the losses. Models without a sample, group or fold follow exactly
        by a path that drives its coefficients to zero. Several classes are handled one against
        one: sigmoids of the outputs of the pairs, fitted to held-out ones, are coupled by the
        second method of Wu, Lin & Weng (2004), and outputs are logarithms of the coupled
        probabilities. There are no gradients: at most two hyper-parameters of the kernel are
        searched, as ``Search(method="pattern")`` says, and there are no landmarks.
    mu : float or None, default=None
        Regularization, positive. The ridge added to the kernel matrix is
        ``n_samples * mu / weight``, so the ``alpha`` of scikit-learn's ``KernelRidge`` is
        ``n_samples * mu``. None tunes it together with the kernel. With a number nothing is
        tuned: the kernel has the values it was given, and others from the data.
    n_landmarks : int, "auto" or None, default="auto"
        Number of landmarks. The model is then f(x) = Σ_j c_j k(x, z_j) + b for that many samples
        z, drawn from a subsample by randomly pivoted Cholesky with the kernel tuned there. Held-out
        predictions and gradients stay exact; memory does not grow with n², and time grows with
        n · n_landmarks². With None every sample is a landmark, and the n × n kernel matrix is
        factorized. "auto" takes the whole matrix for up to 7000 samples, or for a linear kernel of
        few features; beyond that it adds landmarks while they help: from 64 on the number is
        doubled, up to 2048 or a quarter of the samples, while one doubling or two lower the tuned
        criterion by 1 % and by the standard error of the gain (1024 if `mu` is given). Rows in
        blocks are not saved with the model; what needs them all reads them into memory.
    fit_intercept : bool, default=True
        Whether to fit an (unregularized) intercept.
    threshold : float, str, looms.threshold.ThresholdRule or callable, default=0.5
        Probability of the positive class above which it is predicted. For two classes it may also
        be a rule that sets the threshold on the held-out predictions: "balanced" for the smallest
        balanced error rate, "f1", "recall=0.9" or "precision=0.8" for at least as much, "cost=1:5"
        for the costs of a false positive and a false negative, an object of `looms.threshold`, or a
        metric of ``(y_true, y_pred[, sample_weight])``, coded ±1, where larger is better. With more
        than two classes only 0.5 is admitted, and the most probable class is predicted. With
        ``calibration=None`` only 0.5 or a rule is admitted, and 0.5 means the sign of the output.
    calibration : {"sigmoid", "isotonic", "beta"} or None, default="sigmoid"
        Calibration of probabilities, fitted to the held-out outputs: Platt's sigmoid (with more
        than two classes a softmax with one slope and a constant per class), isotonic regression
        (for thousands of samples) or beta calibration. With None there is no `predict_proba`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the fit and in the threshold; they multiply
        ``sample_weight``. Probabilities are for the classes as they are, without these weights.
        With several classes, isotonic regression and beta calibration cannot correct for the
        weights.
    pos_label : label or None, default=None
        The positive class of two, which `threshold` refers to; None for the later one in order.
        ``classes_`` stay in order, and scores refer to ``classes_[1]``.
    cv : int, str, splitter, iterable, ndarray or None, default=None
        Which samples are held out together: None for each by itself, or each group; a number of
        folds, stratified by class; "5x2" for five repetitions of two folds; a scikit-learn
        splitter, or its splits, that tests every sample; `looms.folds.ForwardSplit`,
        ``TimeSeriesSplit`` or `looms.folds.GapKFold` for samples in order of time; or the number of
        the fold of each sample, (n_samples,) or (n_repetitions, n_samples). A number of folds
        divides the samples of non-zero weight; all other forms refer to all samples. The criterion
        is the mean over repetitions. Holding out more rows reduces overfitting with kernels of many
        hyper-parameters. A model file holds all of these; the ``random_state`` of a splitter must
        be a number.
    search : looms.Search or None, default=None
        Options of the search: its criterion, a grid instead of gradients, iterations, restarts.
    n_jobs : int or None, default=None
        Number of fits at once in `evaluate`, and with a hinge loss of kernel matrices in `fit`, as
        for joblib.
    verbose : int, default=0
        With 1, progress of long fits goes to stderr.
    random_state : int, RandomState instance or None, default=0
        Draws the subsamples, of up to a quarter of the samples, on which searches begin; landmarks;
        and folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    kernel_, mu_ : the kernel with its values, and the regularization.
    members_ : tuple of one member
        The fitted model: its ``kernel``, ``mu``, ``dual_coef``, ``intercept``; with a hinge loss
        also ``support``, the samples that are support vectors.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Coefficients of the kernel expansion; on landmarks one for each of these. With a hinge loss
        they are y α, a column for each pair of several classes, (0, 1), (0, 2), ..., (1, 2), ...
    intercept_ : float or ndarray of shape (n_classes,) or (n_pairs,)
        The intercept; with a hinge loss one for each pair of several classes.
    coef_ : ndarray of shape (n_features,), (n_features, n_classes) or (n_features, n_pairs)
        Feature weights of a linear model; with a hinge loss for each pair of several classes.
    landmarks_ : ndarray or sparse matrix of shape (n_landmarks, n_features), or None
        Landmarks; fewer than `n_landmarks` if these span all samples. None without.
    loo_ : HeldOut
        Exact leave-one-out outputs, before the threshold; targets ±1, one column per class
        for more than two. A sample of weight zero has its ordinary output. If the
        hyper-parameters were tuned on them, scores of these outputs are optimistic: see `evaluate`.
    held_out_ : HeldOut
        Exact outputs of models without the sample's fold or group, on which the criterion was
        evaluated; means over repetitions. Without `cv` and groups they are ``loo_``. Threshold and
        calibration are fitted to them.
    units_ : looms.units.Units
        Samples that were held out together: each by itself, its group, or its fold of `cv`. Its
        ``clusters`` are numbers of the groups. Samples of weight zero stay.
    threshold_ : float or ndarray of shape (n_classes,)
        Threshold of the outputs, which `decision_function` subtracts; for several classes with a
        softmax one per class, −constant / slope. With a flat sigmoid or softmax no
        output has a probability on the other side of it: the threshold is then beyond all outputs,
        and every sample gets the same class. Of ordered classes the (n_classes - 1,) cuts between
        ranks, of which `decision_function` has the distances.
    calibrator_ : looms.calibration.Calibrator or None
        Map from outputs to probabilities.
    selection_ : Tuning
        How the hyper-parameters were found: the criterion with its standard error, the history, the
        reason for stopping.
    candidates_ : list of Candidate
        The tuned kernel, as a list of one.
    cv_results_ : dict of lists and arrays
        The same as a table: "kernel", "criterion", "params", "param_mu" and so on,
        "held_out_loss", "rank_held_out_loss", "seconds".
    best_index_ : int
        0.
    n_iter_ : int
        Iterations of the last search, at least 1.
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features)
        The training samples.
    fit_weight_, selection_weight_ : ndarray of shape (n_samples,)
        Weights of the samples in the fit, and in the criterion.
    fit_intercept_ : bool
        Whether it was fitted with an intercept.
    certificate_ : Certificate
        Result of the last `certify`, `without` or `with_rows`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names.

    Warns
    -----
    DuplicatesWarning
        If at least a twentieth of the rows repeat others, and not by coincidence.
    ScalesWarning
        If columns differ more than a hundredfold in scale, and the kernel is of plain distances.
    BoundWarning
        If a tuned hyper-parameter is at the edge of the range that was searched.
    OneClassWarning
        If a tuned model predicts the same class for every held-out sample.
    ConvergenceWarning
        If the search stopped at ``max_iter``, or before it reached a minimum.

    Notes
    -----
    With given values a fit costs 2n³/3 flops beside the kernel matrix, and one n×n array. One
    evaluation of the criterion and its gradient costs about 2n³ flops, whatever the number
    of hyper-parameters; two or three evaluations are on all n samples. Memory: three n×n arrays,
    four for sums of linear and RBF kernels. On m landmarks: about 9 n m² flops, or 5 n m² with
    folds, and (m + 1)² matrices, one more for each fold. With ``kernel="precomputed"`` the given
    matrix is also kept, in ``X_fit_``, and checked to be positive semi-definite, for another n³/3
    flops. With a hinge loss one point of the search costs a solution and its leave-one-out paths,
    about as much as a few fits of an ``SVC``.

    References
    ----------
    Cawley (2006), Leave-one-out cross-validation based model selection criteria for
    weighted LS-SVMs, IJCNN.
    Tsujitani & Tanaka (2011), Cross-validation, bootstrap, and support vector machines, Advances in
    Artificial Neural Systems [T11].

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from looms import KernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), KernelClassifier(mu=1e-3)).fit(X, y)
    >>> loo = model[-1].loo_
    >>> float(((loo.outputs > 0) == (y == 1)).mean().round(3))   # accuracy, leave-one-out
    0.979
    >>> tuned = make_pipeline(StandardScaler(), KernelClassifier()).fit(X, y)
    >>> tuned[-1].mu_ < 1e-3
    True
    """

    #: Tells it from estimators of scikit-learn among candidates.
    _has_kernel = True

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        loss: str = "squared",
        mu: float | None = None,
        n_landmarks: int | str | None = "auto",
        fit_intercept: bool = True,
        threshold: Any = 0.5,
        calibration: str | None = "sigmoid",
        class_weight: Any = None,
        pos_label: Any = None,
        cv: Any = None,
        search: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.mu = mu
        self.n_landmarks = n_landmarks
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.calibration = calibration
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.cv = cv
        self.search = search
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
