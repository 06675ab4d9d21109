"""The kernel regressor."""

from __future__ import annotations

from typing import Any

from looms.estimators._regressor import Regressor


class KernelRegressor(Regressor):
    """Kernel regressor that is tuned on its exact leave-one-out predictions.

    This is kernel ridge regression with an unregularized intercept and weights: it minimizes
    ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)² for weights ζ of mean one. One factorization
    also gives the exact prediction of each sample by the model without it, and the gradient of
    their mean squared error, PRESS, in all hyper-parameters at once. The search minimizes PRESS.

    Put ``StandardScaler`` before it if features differ in scale, or use `TabularRegressor`,
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
    mu : float or None, default=None
        Regularization, positive; the ridge added to the kernel matrix is
        ``n_samples * mu / weight``, so that the ``alpha`` of scikit-learn's ``KernelRidge`` is
        ``n_samples * mu``. None tunes it together with the kernel. With a number nothing is
        tuned: the kernel has the values it was given, and others from the data.
    n_landmarks : int, "auto" or None, default="auto"
        Number of landmarks, the samples whose kernel functions the model sums; None takes all
        samples. "auto" takes
        the whole kernel matrix for up to 7000 samples, or for a linear kernel of few features;
        beyond that as many landmarks as lower the criterion by 1 %, up to 2048 (1024 if `mu` is
        given). Held-out predictions and gradients stay exact. Time grows with n · n_landmarks².
    fit_intercept : bool, default=True
        Whether to fit an (unregularized) intercept.
    cv : int, str, splitter, iterable, ndarray or None, default=None
        Which samples are held out together: None for each by itself, or each group; a number of
        folds; "5x2" for five repetitions of two folds; a scikit-learn splitter, or its splits, that
        tests every sample; `looms.folds.ForwardSplit`, ``TimeSeriesSplit`` or
        `looms.folds.GapKFold` for samples in order of time; or the number of the fold of each
        sample, (n_samples,) or (n_repetitions, n_samples).
    search : looms.Search or None, default=None
        Options of the search: its criterion, a grid instead of gradients, iterations, restarts.
    n_jobs : int or None, default=None
        Number of fits at once in `evaluate`, as for joblib.
    verbose : int, default=0
        With 1, progress of long fits goes to stderr.
    random_state : int, RandomState instance or None, default=0
        Draws the subsamples, of up to a quarter of the samples, on which searches begin; landmarks;
        and folds.

    Attributes
    ----------
    kernel_, mu_ : the kernel with its values, and the regularization.
    members_ : tuple of one member
        The fitted model: its ``kernel``, ``mu``, ``dual_coef``, ``intercept``.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Coefficients of the kernel expansion; on landmarks one for each of these.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept.
    coef_ : ndarray of shape (n_features,) or (n_features, n_targets)
        Feature weights of a linear model.
    landmarks_ : ndarray or sparse matrix of shape (n_landmarks, n_features), or None
        Landmarks; fewer than `n_landmarks` if these span all samples. None without.
    loo_ : HeldOut
        Exact leave-one-out predictions. A sample of weight zero has its ordinary prediction. If the
        hyper-parameters were tuned on them, scores of these predictions are optimistic: see
        `evaluate`.
    held_out_, units_, selection_, candidates_, cv_results_, best_index_, n_iter_, X_fit_, \
fit_weight_, selection_weight_, fit_intercept_, certificate_, n_features_in_, feature_names_in_
        As for `KernelClassifier`.

    Warns
    -----
    DuplicatesWarning, ScalesWarning, BoundWarning, ConvergenceWarning
        As for `KernelClassifier`.

    Notes
    -----
    Several targets share one kernel and one regularization. PRESS is the plain mean over
    targets, so scale targets in different units first: otherwise the one with the largest
    variance decides. Cost and memory are those of `KernelClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from looms import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRegressor().fit(X, y)
    >>> r2 = 1 - (model.loo_.residuals**2).sum() / ((y - y.mean()) ** 2).sum()
    >>> bool(0.45 < r2 < 0.55)                                  # leave-one-out R²
    True
    """

    #: Tells it from estimators of scikit-learn among candidates.
    _has_kernel = True

    #: Of a row; there is no other for numbers.
    loss = "squared"

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        mu: float | None = None,
        n_landmarks: int | str | None = "auto",
        fit_intercept: bool = True,
        cv: Any = None,
        search: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.mu = mu
        self.n_landmarks = n_landmarks
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.search = search
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
