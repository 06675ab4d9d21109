"""The least-squares SVM regressor with given hyper-parameters."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from looms._typing import Array
from looms.estimators._given import fit_given
from looms.estimators._intervals import intervals
from looms.estimators._machine import LeastSquaresMachine, fitted_machine


class Regressor(RegressorMixin, LeastSquaresMachine):  # type: ignore[misc]
    """What both regressors share: targets in, predictions out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Array:
        """Prediction for each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In units of the training targets.
        """
        return self._outputs(self._checked_new_data(X))

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "plus") -> Array:
        """Prediction interval for each sample, from the leave-one-out models.

        The n leave-one-out models give what n refits would give, exactly and at the cost of
        one matrix product.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.
        coverage : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax", "scaled"}, default="plus"
            The jackknife+; the jackknife-minmax, wider; or the jackknife+ with residuals
            scaled by those of the nearest samples, whose intervals are wide where the noise
            is large.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the training targets. Each target has its own
            interval; all of them at once hold less often.

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or asks for more samples of non-zero weight
            than there are, 1 / (1 − coverage) − 1; or the method is unknown.

        Notes
        -----
        For training and new samples that are exchangeable, and everything but the
        coefficients fixed beforehand (kernel and its values, regularisation, weights), a
        new target is inside with a probability of at least 2 coverage − 1 for "plus" and
        "scaled", mostly about `coverage`, and of at least `coverage` for "minmax" [B21]. That is
        an average over training sets and new samples, not a promise for each x. Where the
        same samples chose the hyper-parameters, or a kernel took its width from them,
        nothing is guaranteed; leave-one-out residuals are then somewhat too small, the
        more so the more hyper-parameters there are for few samples.

        Samples of weight zero take no part. The first call costs n³ flops and keeps n²
        numbers with the machine, not in its copies and files ("scaled" another n² a
        target); m samples cost 2 m n² flops, in blocks of rows that need some ten arrays of
        8 MB at most.

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
        >>> lower, upper = model.predict_interval(X[200:], coverage=0.9).T
        >>> float(np.mean((lower <= y[200:]) & (y[200:] <= upper)))
        0.89
        """
        X = self._checked_new_data(X)
        return intervals(self, X, coverage, method)

    def _checked_targets(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Validated samples, float targets and sample weights."""
        for first in np.asarray(y).ravel()[:1]:
            if isinstance(first, str):
                raise ValueError(
                    f"y must be numbers for regression, and it holds {str(first)!r}; use "
                    "LSSVMClassifierCV for classes."
                )
        X, y, weight = self._checked_data(X, y, sample_weight, multi_output=True, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64), weight


class LSSVMRegressor(Regressor):
    """Least-squares support vector machine for regression, hyper-parameters given.

    Kernel ridge regression with an unregularised intercept and weights: minimises
    ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)², ζ of mean one. Fitting also gives all
    exact leave-one-out outputs. `LSSVMRegressorCV` chooses the hyper-parameters by them.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel or callable, default="rbf"
        As for `LSSVMClassifier`.
    mu : float, default=1e-3
        Regularisation, positive; the ridge added to the kernel matrix is
        ``n_samples * mu / weight``.
    fit_intercept : bool, default=True
        Whether there is an (unregularised) intercept.

    Attributes
    ----------
    loo_ : LeaveOneOut
        Exact leave-one-out outputs. A sample of weight zero has its ordinary output there.
    kernel_, mu_, dual_coef_, intercept_, X_fit_, fit_weight_, fit_intercept_, \
n_features_in_, feature_names_in_
        As for `LSSVMClassifier`, with one column a target where there are several.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine and find its leave-one-out outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A sample of weight zero takes no
            part in the fit and still gets an output in ``loo_``.

        Returns
        -------
        self : LSSVMRegressor
            The fitted machine.
        """
        X, targets, weight = self._checked_targets(X, y, sample_weight)
        kernel, fit = fit_given(self, X, targets, weight)
        self._set_fitted(**fitted_machine(X, weight, targets, kernel, float(self.mu), fit))
        return self
