"""The self-tuning least-squares SVM regressor."""

from __future__ import annotations

from typing import Any, Self

from looms.criteria import PRESS, as_criterion
from looms.estimators._callbacks import CallbackWatcher, finish, with_callbacks
from looms.estimators._regressor import Regressor
from looms.estimators._selected import SelectingMachine
from looms.leave_one_out import LeaveOneOut


class LSSVMRegressorCV(Regressor, SelectingMachine):
    """Least-squares SVM regressor that chooses its hyper-parameters by exact leave-one-out.

    Kernel parameters and regularisation minimise PRESS, the mean squared leave-one-out
    residual, by its gradient in all of them at once. Of several kernels the one with the
    smallest PRESS is taken.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable or list of these, default="rbf"
        As for `LSSVMRegressor`; several are candidates. Values given in a kernel object
        are where the search starts; ``eta_bounds="fixed"`` and the like hold them.
    criterion : {"press"} or looms.criteria.PRESS, default="press"
        Other criteria judge classes.
    optimizer : {"lbfgs", "scg", "nelder-mead"}, default="lbfgs"
        L-BFGS-B, scaled conjugate gradients, or the Nelder-Mead simplex.
    fit_intercept : bool, default=True
        Whether there is an (unregularised) intercept.
    prior : bool, default=False
        Bayesian regularisation of the kernel's hyper-parameters (Cawley & Talbot 2007),
        for kernels with many, such as "ard" on few samples.
    max_iter : int, default=100
        Iterations of each search.
    n_restarts : int, default=0
        Starts beside the first. All starts are the best points of a scan of the
        hyper-parameters on a subsample, one for each of five kernels between a narrow and a
        wide one: more than four restarts add nothing.
    tol : float, default=0.1
        A search ends when an iteration gains less than this fraction of the standard
        error of the criterion; on subsamples of a fraction of it, for there iterations
        cost little. A heuristic: the difference of the criterion between two settings of the
        hyper-parameters is less noisy than the criterion itself.
    copies : {"apart", "together"}, default="apart"
        Whether rows that are equal in every feature are held out one at a time or together, as
        for `LSSVMClassifierCV`.
    random_state : int, RandomState instance or None, default=0
        Draws the subsamples of up to a quarter of the samples on which searches begin.

    Attributes
    ----------
    kernel_, mu_ : the kernel with its hyper-parameters, and the regularisation, chosen.
    loo_ : LeaveOneOut
        Exact leave-one-out outputs of the machine chosen.
    selection_, candidates_, cv_results_, best_index_, n_iter_, groups_
        As for `LSSVMClassifierCV`.
    dual_coef_, intercept_, X_fit_, fit_weight_, fit_intercept_, \
n_features_in_, feature_names_in_
        As for `LSSVMRegressor`.

    Warns
    -----
    CopiesWarning
        If a twentieth of the rows or more repeat others where that is no accident.
    BoundWarning
        If a hyper-parameter chosen is at the edge of what was searched.
    ConvergenceWarning
        If the search stopped at ``max_iter`` or found no way down.

    Nothing is warned of where the figures are no better than a guess, as those of noise are:
    `looms.report.cautions` says so.

    Notes
    -----
    Several targets share one kernel and one regularisation. PRESS is the plain mean over
    them, so targets in different units should be scaled first: otherwise the one with the
    largest variance decides.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from looms import LSSVMRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LSSVMRegressorCV(kernel="rbf").fit(X, y)
    >>> r2 = 1 - (model.loo_.residuals**2).sum() / ((y - y.mean()) ** 2).sum()
    >>> bool(0.45 < r2 < 0.55)                                  # leave-one-out R²
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        criterion: Any = "press",
        *,
        optimizer: str = "lbfgs",
        fit_intercept: bool = True,
        prior: bool = False,
        max_iter: int = 100,
        n_restarts: int = 0,
        tol: float = 0.1,
        copies: str = "apart",
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.criterion = criterion
        self.optimizer = optimizer
        self.fit_intercept = fit_intercept
        self.prior = prior
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.tol = tol
        self.copies = copies
        self.random_state = random_state

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the hyper-parameters and fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fit and in the criterion; only their ratios count.
            A sample of weight zero takes no part in either and still gets an output in
            ``loo_``.

        Returns
        -------
        self : LSSVMRegressorCV
            The fitted machine.
        """
        given = sample_weight is not None
        X, targets, weight = self._checked_targets(X, y, sample_weight)
        for criterion in self._criteria():
            if as_criterion(criterion).needs_labels:
                raise ValueError(
                    f"Criterion {criterion!r} judges classes; for regression use 'press'."
                )
        seen = weight > 0

        def judge(loo: LeaveOneOut) -> tuple[float, float]:
            return PRESS().evaluate(loo.y, loo.outputs, weight[seen]).value, 0.0

        groups = self._held_out_groups(X, weight)
        watcher = CallbackWatcher(self, X, targets, weight if given else None)
        choice = self._choose(X, targets, weight, weight, weight, judge, groups, watcher)
        self._keep(choice, X, weight, targets, groups_=groups)
        finish(watcher, choice.best, targets)
        return self
