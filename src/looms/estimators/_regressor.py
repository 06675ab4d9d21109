"""The least-squares SVM regressors, with hyper-parameters given and chosen."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from looms._checks import check_known
from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.blocks import as_blocks
from looms.conformal import LocalScale, jackknife_minmax, jackknife_plus
from looms.conformal._jackknife import required_rank
from looms.criteria import PRESS
from looms.dask._blocks import in_blocks
from looms.dask._predict import lazy_for_dask
from looms.estimators._callbacks import CallbackWatcher, with_callbacks
from looms.estimators._folds import RowsOfFit, unfitted
from looms.estimators._least_squares import GivenMachine
from looms.estimators._scored import ScoredRegressor
from looms.estimators._search import SelectingMachine
from looms.estimators._updates import UpdatableMachine
from looms.estimators._warnings import warn_of_search
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.lssvm.fit import cross_of
from looms.selection._candidates import Score

METHODS = ("plus", "minmax", "scaled")


class Regressor(ScoredRegressor, UpdatableMachine):
    """Base class of both regressors: predictions and intervals."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @lazy_for_dask
    def predict(self, X: Any) -> Array:
        """Prediction for each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values. For a dask collection the predictions are a dask array.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In units of the training targets.
        """
        return self._outputs(self._checked_new_data(X))

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "plus") -> Array:
        """Prediction interval for each sample, from models that leave out training samples.

        The models are those of `evaluate`, which has to be called first: if it was nested, those
        that were chosen without each fold, or sample; otherwise the n leave-one-out models, whose
        predictions equal those of n refits and take one matrix product.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.
        coverage : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax", "scaled"}, default="plus"
            The jackknife+; the jackknife-minmax, whose intervals are wider; or the jackknife+
            with residuals scaled by those of the nearest samples, whose intervals are wide where
            the noise is large.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the training targets. Each target has its own
            interval; the share of samples with all targets inside is smaller.

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or needs more samples of non-zero weight
            than there are, 1 / (1 − coverage) − 1; or if the method is unknown.

        Notes
        -----
        If training and new samples are exchangeable, and everything but the coefficients
        (kernel and its values, regularization, weights) was fixed beforehand, a new target is
        inside with a probability of at least 2 coverage − 1 for "plus" and "scaled", mostly
        about `coverage`, and of at least `coverage` for "minmax" [B21]. This is an average over
        training sets and new samples, not a promise for each x.

        After nested scores each model of "plus" and "minmax" was chosen without the samples that it
        leaves out. The promise then holds for the tuned machine, except for steps that used all
        samples: the place of a grid, which depends on the features alone, and any scaling before
        the machine. "scaled" uses leave-one-out models with the chosen hyper-parameters, of
        ``evaluate(nested=False)``. With these, single samples, or groups, are left out, but the
        choice is not repeated: leave-one-out residuals are too small, the more so the more
        hyper-parameters there are for few samples. With folds the promise is weaker by a term that
        depends on their number [B21], and with groups it is for a sample of a new group, if groups
        are of one size.

        Samples of weight zero take no part. Closed forms are n² numbers with the machine, but not
        in its copies and files ("scaled" keeps another n² per target); m samples cost 2 m n² flops,
        in blocks of rows that need some ten arrays of 8 MB at most. The closed forms of a linear
        machine of p features, up to half of n, are n p numbers, and m samples cost 2 m n p flops,
        except for "scaled".

        References
        ----------
        Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the
        jackknife+, Annals of Statistics 49.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import LSSVMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(300, 1))
        >>> y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=300)
        >>> model = LSSVMRegressor(mu=1e-3).fit(X[:200], y[:200])
        >>> model.evaluate().kind
        'leave-one-out'
        >>> lower, upper = model.predict_interval(X[200:], coverage=0.9).T
        >>> float(np.mean((lower <= y[200:]) & (y[200:] <= upper)))
        0.89
        """
        X = self._checked_new_data(X)
        check_known(method, "method", METHODS)
        n = int(np.count_nonzero(self.fit_weight_))
        required_rank(coverage, n)  # an error before any work
        n_units = self._units.draws.n_units
        if method == "scaled" and not self._kernel_members:
            raise ValueError("method='scaled' needs a kernel, which tells the rows that are near.")
        if method == "scaled" and n_units < 3:
            word = "groups" if self._units.grouped else "samples"
            raise ValueError(
                f"method='scaled' needs three {word} of non-zero weight, got {n_units}."
            )
        asking = "predict_interval"
        r, blocks = self._models_without_rows(X, asking, chosen=method != "scaled")
        ends = np.empty((X.shape[0], *r.shape[1:], 2))
        if method == "scaled":
            for rows, F in blocks:
                some = as_blocks(X).rows(np.arange(rows.start, rows.stop))
                scales = self._scales(some, F.shape)
                ends[rows] = jackknife_plus(r, F, coverage, **scales)
            return ends
        interval = jackknife_plus if method == "plus" else jackknife_minmax
        for rows, F in blocks:
            ends[rows] = interval(r, F, coverage)
        return ends

    def _by_repetition(self) -> Array:
        train, units = np.flatnonzero(self.fit_weight_), self._units
        if units.shape[0] == 1:
            return self.held_out_.outputs[None, train]
        with blas_threads(len(train)):
            outputs = self.left_out().outputs(units)
        return outputs.reshape(len(outputs), *self.loo_.y[train].shape)

    def _scales(self, X: Matrix, shape: tuple[int, ...]) -> dict[str, Array]:
        """Scale of the noise under each leave-one-out model, at the rows of the fit and new ones.

        Near are rows in the space of the kernel, of a stack that of its largest member.
        """
        train, units = np.flatnonzero(self.fit_weight_), self._units.draws
        (number,) = units.number
        X_fit = training_rows(self._kept_rows(), train, self._pairwise)
        cross = cross_of(self.kernel_, X_fit)
        cached: list[LocalScale] | None = vars(self).get("_local_scales")
        if cached is None:
            left_out = self._kept(None)
            R = np.empty((units.n_units, *left_out.y.shape))
            with blas_threads(len(train)):
                for ids, F in left_out.everywhere(units, inner=units):
                    R[ids] = left_out.y - F
                K = cross(X_fit)
            each = (np.ascontiguousarray(residuals.T) for residuals in np.moveaxis(R, 2, 0))
            cached = self._local_scales = [LocalScale(r, K, number) for r in each]
        K = cross(X[:, train] if self._pairwise else X)
        loo = np.stack([scale.loo for scale in cached], axis=-1)
        new = np.stack([scale.at(K)[:, number] for scale in cached], axis=-1)
        return {"loo_scales": loo.reshape(shape[1:]), "scales": new.reshape(shape)}

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, Array, Array]:
        X, y, sample_weight = in_blocks(X, y, sample_weight)
        for first in np.asarray(y).ravel()[:1]:
            if isinstance(first, str):
                raise ValueError(
                    f"y must be numbers for regression, but it contains {str(first)!r}; use "
                    "LSSVMClassifierCV for classes."
                )
        options = {"multi_output": True, "y_numeric": True, **options}
        X, y, weight = super()._validated(X, y, sample_weight, **options)
        return X, np.asarray(y, dtype=np.float64), weight

    def _as_targets(self, y: Array) -> Array:
        if y.shape[1:] != self.loo_.y.shape[1:]:
            raise ValueError(
                f"y must have rows like the targets of the fit, of shape {self.loo_.y.shape}, but "
                f"has shape {y.shape}."
            )
        return y

    def _given(self, mu: float, factors: Array) -> LSSVMRegressor:
        return LSSVMRegressor(self.kernel_, mu=mu, fit_intercept=self.fit_intercept_)


class LSSVMRegressor(Regressor, GivenMachine):
    """Least-squares support vector machine for regression, with given hyper-parameters.

    This is kernel ridge regression with an unregularized intercept and weights: it minimizes
    ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)² for weights ζ of mean one. Fitting also gives
    all exact leave-one-out outputs. `LSSVMRegressorCV` uses them to choose the hyper-parameters.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel or callable, default="rbf"
        As for `LSSVMClassifier`.
    mu : float, default=1e-3
        Regularization, positive; the ridge added to the kernel matrix is
        ``n_samples * mu / weight``.
    fit_intercept : bool, default=True
        Whether to fit an (unregularized) intercept.

    Attributes
    ----------
    loo_ : HeldOut
        Exact leave-one-out outputs. A sample of weight zero has its ordinary output.
    kernel_, mu_, dual_coef_, intercept_, X_fit_, fit_weight_, fit_intercept_, units_, \
certificate_, n_features_in_, feature_names_in_
        As for `LSSVMClassifier`, with one column per target if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import LSSVMRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = LSSVMRegressor(mu=1e-6).fit(X, y)
    >>> bool(np.abs(model.loo_.residuals).max() < 0.01)
    True
    """

    def __init__(
        self, kernel: Any = "rbf", *, mu: float = 1e-3, fit_intercept: bool = True
    ) -> None:
        self.kernel = kernel
        self.mu = mu
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the machine and compute its leave-one-out outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A sample of weight zero takes no
            part in the fit but still gets an output in ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : LSSVMRegressor
            The fitted machine.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.
        """
        X, targets, weight = self._validated(X, y, sample_weight)
        self._set_given(self._fitted(X, targets, targets, weight, weight, groups))
        return self


class LSSVMRegressorCV(Regressor, SelectingMachine):
    """Least-squares SVM regressor that chooses its hyper-parameters by exact leave-one-out.

    A gradient search over all kernel parameters and the regularization at once minimizes PRESS,
    the mean squared leave-one-out residual. If several kernels are given, the one with the
    smallest squared error on rows that it was tuned without is taken, or all are stacked.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel, callable, regressor or list of these, default="rbf"
        As for `LSSVMRegressor`; several are candidates, also any regressor of scikit-learn, and
        "auto" stands for a stack of some, as for `LSSVMClassifierCV`. The search starts at the
        values given in a kernel object; ``gamma_bounds="fixed"`` and the like hold them fixed.
    criterion : {"press"} or looms.criteria.PRESS, default="press"
        Other criteria are for classes.
    fit_intercept : bool, default=True
        Whether to fit an (unregularized) intercept.
    optimizer, prior, max_iter, n_restarts, tol_se, copies, cv, rank, search, combine, \
random_state
        As for `LSSVMClassifierCV`.

    Attributes
    ----------
    kernel_, mu_ : the chosen kernel with its hyper-parameters, and the chosen regularization.
    loo_ : HeldOut
        Exact leave-one-out outputs of the chosen machine, or of the stack.
    members_, landmarks_, held_out_, units_, candidate_weights_, choice_units_, \
selection_, candidates_, cv_results_, best_index_, n_iter_, selection_weight_
        As for `LSSVMClassifierCV`.
    dual_coef_, intercept_, X_fit_, fit_weight_, fit_intercept_, \
n_features_in_, feature_names_in_
        As for `LSSVMRegressor`.

    Warns
    -----
    CopiesWarning, ScalesWarning, BoundWarning, ConvergenceWarning
        As for `LSSVMClassifierCV`.

    Notes
    -----
    Several targets share one kernel and one regularization. PRESS is the plain mean over
    targets, so scale targets in different units first: otherwise the one with the largest
    variance decides.

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
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix. With
            `rank` it may also be a dask array or dataframe (then y, weights and groups may be dask
            collections too), a memory map or `looms.blocks.RowBlocks`: only the landmarks are kept.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fit and in the criterion; only their ratios count.
            A sample of weight zero takes no part in either but still gets an output in
            ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : LSSVMRegressorCV
            The fitted machine.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.
        """
        X, targets, weight = self._validated(X, y, sample_weight)

        def scorer(held_out: HeldOut, fit_weight: Array) -> Score:
            return Score(PRESS().evaluate(*held_out).value)

        watcher = CallbackWatcher(self, X, targets, None if sample_weight is None else weight)
        rows = RowsOfFit(X, targets, targets, weight, weight, weight, groups, False, scorer)
        selection = self._selection_on(rows, watcher)
        self._set_fitted(_unfitted=unfitted(self), **selection.attributes())
        watcher.ends()
        warn_of_search(selection.choice.best, targets)
        return self
