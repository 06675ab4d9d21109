"""Base class of the kernel regressors: fit, predictions and intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._checks import check_flag, check_known
from looms._typing import AnyArray, Array, Matrix
from looms.dask._blocks import blocks_and_arrays
from looms.dask._predict import lazy_for_dask
from looms.estimators._known_targets import KnownTargets
from looms.estimators._model import Model
from looms.estimators._targets import check_numbers, plain_targets
from looms.fitted._deviations import standard_deviations
from looms.fitted._outcome import Numbers, of_targets
from looms.fitted._rows import Rows
from looms.fitted._without_units import (
    INTERVALS,
    check_intervals,
    intervals,
    ratio_of_rows,
)
from looms.scores import WithoutUnits


class Regressor(KnownTargets, RegressorMixin, Model):  # type: ignore[misc]
    """Base class of the regressors."""

    #: Name of the classifier of the same rows.
    _of_classes = "KernelClassifier"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Tune the hyper-parameters that are not given, and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix. On
            landmarks it may also be a dask array or dataframe (then y, weights and groups may be
            dask collections too), a memory map or `looms.blocks.RowBlocks`: only the landmarks are
            kept.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. One column is one target, so that predictions have one dimension.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fit and in the criterion; only their ratios count.
            A sample of weight zero takes no part in either but still gets an output in
            ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.

        Warns
        -----
        DataConversionWarning
            If `y` has one column in two dimensions.
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _rows(
        self, X: Any, y: Array, weight: Array, groups: Any, order: AnyArray | None = None
    ) -> Rows:
        return Rows.of(X, y, weight, groups, Numbers())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Prediction for each sample, and its standard deviation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values. For a dask collection the predictions are a dask array.
        return_std : bool, default=False
            Whether to return standard deviations, too.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In units of the training targets.
        y_std : ndarray shaped like ``y``
            Standard deviation of a new target of mean weight around its prediction, noise included,
            as of scikit-learn's ``BayesianRidge``, and ``GaussianProcessRegressor`` with a
            ``WhiteKernel``; not that of the mean alone. Only if ``return_std`` is True.

        Raises
        ------
        ValueError
            For standard deviations of a stack with estimators of scikit-learn, of a precomputed
            kernel, or of a target of which a transform was fitted: use `predict_interval`.

        Notes
        -----
        The model is the mean of a Gaussian process with the covariance s² k and noise of variance
        s² n μ / ζ. With the inverse C⁻¹ of the bordered kernel matrix,

            y_std² = s² (v(x) + n μ),   v(x) = k(x, x) − [k_x; 1]ᵀ C⁻¹ [k_x; 1],

        where s² is the mean of r_i² p_i [B13]: the leave-one-out residuals r_i have variances
        s² / p_i [SK01]. With groups the residuals are those without the own group, and y_std is for
        a sample of a new group. Landmarks add what they lack of k(x, x) [RW06 sec. 8.3.4]. A stack
        has the weighted mean of the standard deviations of its members, times one factor, by which
        its own residuals have the mean square 1 in these units.

        The noise is taken to be the same everywhere but for the weights, and hyper-parameters to be
        known: s is a little too small if they were tuned. Nothing is guaranteed for the share of
        targets within a multiple of y_std; for that there is `predict_interval`.

        The first call solves the system of the fit again and keeps n² numbers (n m for m landmarks,
        or features), though not in pickles and files; a sample then costs n² flops.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import KernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(200, 1))
        >>> y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=200)
        >>> model = KernelRegressor().fit(X, y)
        >>> mean, std = model.predict([[0.5], [1.2]], return_std=True)
        >>> std.round(1)  # that of the noise; far from all samples it is larger
        array([0.3, 0.6])
        """
        check_flag("return_std", return_std)
        return tuple(np.moveaxis(self._mean_and_std(X), -1, 0)) if return_std else self._mean(X)

    @lazy_for_dask
    def _mean(self, X: Any) -> Array:
        outputs = self._outputs(X)
        return self.fitted_.predicted(outputs)

    @lazy_for_dask
    def _mean_and_std(self, X: Any) -> Array:
        fitted, matrix = self.fitted_, self._matrix(X)
        mean = fitted.predicted(fitted.outputs(matrix))
        return np.stack([mean, standard_deviations(fitted, matrix)], axis=-1)

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9, method: str = "plus", density_ratio: Any = None
    ) -> Array:
        """Prediction interval for each sample, from models trained without some samples.

        The models are those of `evaluate`; call it first. If it was nested, they are the models
        that were selected without each fold, or sample. Otherwise they are the n leave-one-out
        models, whose predictions equal those of n refits and take one matrix product.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.
        confidence_level : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax", "scaled"}, default="plus"
            The jackknife+; the jackknife-minmax, whose intervals are wider; or the jackknife+
            with residuals scaled by those of the nearest samples, whose intervals are wide where
            the noise is large. In a stack with estimators of scikit-learn the samples that are
            held out are the folds of these, and the residuals that scale are of the kernels alone.
        density_ratio : pair of array-like of shapes (n_training_samples,) and (n_samples,)
            For new samples that are distributed otherwise, what `looms.density_ratio` returns, or a
            pair of your own: density of new samples over that of the training samples, at each
            training sample and each new one. Not for "minmax".

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the training targets. Each target has its own
            interval; the share of samples with all targets inside is smaller. With a density ratio
            ends are infinite where too few training samples resemble the new one.

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or needs more samples of non-zero weight
            than there are, 1 / (1 − confidence_level) − 1; if the method is unknown; or if density
            ratios are negative, not finite, or not one for each sample.

        Notes
        -----
        If training and new samples are exchangeable, and everything but the coefficients
        (kernel and its values, regularization, weights) was fixed beforehand, a new target is
        inside with a probability of at least 2 c − 1 for a confidence level of c with "plus" and
        "scaled", mostly about c, and of at least c with "minmax" [B21]. This is an average over
        training sets and new samples, not a guarantee for each x.

        After nested scores each model of "plus" and "minmax" was selected without the samples that
        it holds out. The guarantee then holds for the tuned model, except for steps that used all
        samples: the place of a grid, which depends on the features alone, and any scaling before
        the model. Where folds of a table chose different transforms of the target, "minmax" takes
        residuals relative to the spread of the transformed targets. "scaled" uses the leave-one-out
        models of ``evaluate(nested=False)``, with the selected hyper-parameters. These models hold
        out single samples, or groups, but tuning is not repeated. Their residuals are too small,
        above all with many hyper-parameters and few samples. With folds the guarantee is weaker by
        a term that depends on their number [B21]. With groups it is for a sample of a new group, if
        groups are of one size.

        With a density ratio that is the weighted jackknife+ [PLS22]. If it is the true one, and
        targets depend on the columns as before, the guarantee of "plus" and "scaled" is the same
        for new samples that are distributed otherwise. With an estimated one nothing is guaranteed.

        Ends are rounded outwards, by what rounding can move outputs: no target that is inside in
        exact arithmetic is outside, whatever the order of the samples. Of models so ill-conditioned
        that more than half of the digits are lost that is not certain.

        Samples of weight zero take no part. Closed forms are n² numbers with the model and its
        shallow copies, but not in pickles and files ("scaled" keeps another n² per target); m
        samples cost 2 m n² flops, in blocks of rows that need some ten arrays of 8 MB at most. The
        closed forms of a linear model of p features, up to half of n, are n p numbers, and m
        samples cost 2 m n p flops, except for "scaled".

        References
        ----------
        Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the
        jackknife+, Annals of Statistics 49.

        Prinster, Liu & Saria (2022), JAWS: auditing predictive uncertainty under covariate shift,
        Advances in Neural Information Processing Systems 35.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import KernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(300, 1))
        >>> y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=300)
        >>> model = KernelRegressor(mu=1e-3).fit(X[:200], y[:200])
        >>> model.evaluate().kind
        'leave-one-out'
        >>> lower, upper = model.predict_interval(X[200:], confidence_level=0.9).T
        >>> float(np.mean((lower <= y[200:]) & (y[200:] <= upper)))
        0.89
        """
        models = self._models_of_intervals(confidence_level, method)
        X = self._matrix(X, prepare=not models.tables)
        return self._intervals(models, X, confidence_level, method, density_ratio)

    def predictions(
        self,
        X: Any,
        confidence_level: float | None = None,
        method: str = "plus",
        density_ratio: Any = None,
    ) -> Any:
        """Predictions for new rows as a data frame, with the columns of ``looms predict``.

        Parameters
        ----------
        X : as for `predict`
            New rows.
        confidence_level : float, default=None
            Nominal share of new targets inside of intervals, between 0 and 1; None for none.
        method, density_ratio : as for `predict_interval`
            Of the intervals.

        Returns
        -------
        predictions : pandas.DataFrame
            With the index of ``X``: ``prediction`` and, with a confidence level, the ends ``lower``
            and ``upper``. Several targets have numbers: ``prediction_0``.

        Raises
        ------
        ValueError, sklearn.exceptions.NotFittedError
            As `predict_interval`.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import KernelRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = KernelRegressor(mu=1e-3).fit(X, np.sin(6 * X[:, 0]))
        >>> scores = model.evaluate()
        >>> model.predictions(X[:2], confidence_level=0.9).columns.tolist()
        ['prediction', 'lower', 'upper']
        """
        check_known(method, "method", INTERVALS)
        return self._frame(X, confidence_level, method=method, density_ratio=density_ratio)

    def _models_of_intervals(self, confidence_level: float, method: str) -> WithoutUnits:
        """Models without each unit; errors for intervals that cannot be."""
        check_is_fitted(self)
        check_known(method, "method", INTERVALS)
        check_intervals(self.fitted_, confidence_level, method)
        return self._models_without(of_fit=method == "scaled")

    def _intervals(
        self,
        models: WithoutUnits,
        X: Any,
        confidence_level: float,
        method: str,
        density_ratio: Any,
    ) -> Array:
        fitted, outcome, rows = self.fitted_, self.fitted_.outcome, self.fitted_.rows
        assert isinstance(outcome, Numbers)
        ratio = ratio_of_rows(density_ratio, rows.train, len(rows.weight), _num_samples(X), method)
        return intervals(models, X, confidence_level, method, outcome, fitted, ratio)

    def _covered(
        self, matrix: Any, table: Any, confidence_level: float, **coverage: Any
    ) -> dict[str, AnyArray]:
        how = confidence_level, coverage["method"]
        models, ratio = self._models_of_intervals(*how), coverage.get("density_ratio")
        ends = self._intervals(models, table if models.tables else matrix, *how, ratio)
        return of_targets("lower", ends[..., 0]) | of_targets("upper", ends[..., 1])

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, Array, Array]:
        X, y, sample_weight = blocks_and_arrays(X, y, sample_weight)
        y = plain_targets(y, classes=False)
        check_numbers(y, self._of_classes)
        options = {"multi_output": True, "y_numeric": True, **options}
        X, y, weight = super()._validated(X, y, sample_weight, **options)
        return X, np.asarray(y, dtype=np.float64), weight

    def _coded_targets(self, y: Array) -> Array:
        expected = self.fitted_.rows.targets.shape
        if y.shape[1:] != expected[1:]:
            raise ValueError(
                f"y must have rows like the targets of the fit, of shape {expected}, but "
                f"has shape {y.shape}."
            )
        return y
