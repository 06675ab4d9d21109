"""Base class of the kernel regressors: fit, predictions and intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from looms._checks import check_known
from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.blocks import blocks_of
from looms.conformal import jackknife_minmax, jackknife_plus
from looms.conformal._jackknife import required_rank
from looms.conformal._local_scale import LocalScale
from looms.criteria import PRESS
from looms.dask._blocks import blocks_and_arrays
from looms.dask._predict import lazy_for_dask
from looms.estimators._callbacks import CallbackWatcher, with_callbacks
from looms.estimators._folds import RowsOfFit
from looms.estimators._scored import ScoredRegressor
from looms.estimators._selecting import SelectingModel
from looms.estimators._targets import as_targets, check_numbers
from looms.estimators._warnings import warn_of_order, warn_of_search
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.lssvm.conditioning import largest_of
from looms.lssvm.fit import cross_of
from looms.selection._candidates import HeldOutLoss

#: Intervals from residuals and the outputs of the models without each row.
INTERVALS = {"plus": jackknife_plus, "minmax": jackknife_minmax}
METHODS = (*INTERVALS, "scaled")


class Regressor(ScoredRegressor, SelectingModel):
    """Base class of the kernel regressors."""

    @with_callbacks  # type: ignore[untyped-decorator]
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
        self._check_parameters()
        warn_of_order(self.cv, X=X, y=y, sample_weight=sample_weight, groups=groups)
        X, targets, weight = self._validated(X, y, sample_weight)
        watcher = CallbackWatcher(self, X, targets, None if sample_weight is None else weight)
        rows = RowsOfFit(X, targets, targets, weight, weight, weight, groups, False, _squared_error)
        with blas_threads(len(rows.train)):
            selection = self._selection_on(rows, watcher)
        self._set_fitted(_unfitted=self._for_evaluation(selection), **selection.attributes())
        watcher.ends()
        warn_of_search(selection.choice, targets)
        return self

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

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9, method: str = "plus"
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

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the training targets. Each target has its own
            interval; the share of samples with all targets inside is smaller.

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or needs more samples of non-zero weight
            than there are, 1 / (1 − confidence_level) − 1; or if the method is unknown.

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
        the model. "scaled" uses the leave-one-out models of ``evaluate(nested=False)``, with the
        selected hyper-parameters. These models hold out single samples, or groups, but tuning is
        not repeated. Their residuals are too small, above all with many hyper-parameters and few
        samples. With folds the guarantee is weaker by a term that depends on their number [B21].
        With groups it is for a sample of a new group, if groups are of one size.

        Ends are rounded outwards, by what rounding can move outputs: no target that is inside in
        exact arithmetic is outside, whatever the order of the samples. Of models so ill-conditioned
        that more than half of the digits are lost that is not certain.

        Samples of weight zero take no part. Closed forms are n² numbers with the model, but not
        in its copies and files ("scaled" keeps another n² per target); m samples cost 2 m n² flops,
        in blocks of rows that need some ten arrays of 8 MB at most. The closed forms of a linear
        model of p features, up to half of n, are n p numbers, and m samples cost 2 m n p flops,
        except for "scaled".

        References
        ----------
        Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the
        jackknife+, Annals of Statistics 49.

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
        X = self._checked_new_data(X)
        self._check_intervals(confidence_level, method)
        asking = "predict_interval"
        r, tie, blocks = self._models_without_rows(X, asking, chosen=method != "scaled")
        error = tie * largest_of(self.loo_.y[self.fit_weight_ > 0])
        ends = np.empty((X.shape[0], *r.shape[1:], 2))
        if method == "scaled":
            for rows, F in blocks:
                some = blocks_of(X).rows(np.arange(rows.start, rows.stop))
                scales = self._scales(some, F.shape)
                ends[rows] = jackknife_plus(r, F, confidence_level, rounding_error=error, **scales)
            return ends
        for rows, F in blocks:
            ends[rows] = INTERVALS[method](r, F, confidence_level, rounding_error=error)
        return ends

    def _check_intervals(self, confidence_level: float, method: str) -> None:
        """ValueError for intervals that the rows of the fit cannot give."""
        check_known(method, "method", METHODS)
        required_rank(confidence_level, int(np.count_nonzero(self.fit_weight_)))
        n_units = self._units.draws.n_units
        if method == "scaled" and self._closed is None:
            raise ValueError("method='scaled' needs a kernel, to find the nearest rows.")
        if method == "scaled" and n_units < 3:
            word = "groups" if self._units.grouped else "samples"
            raise ValueError(
                f"method='scaled' needs three {word} of non-zero weight, got {n_units}."
            )

    def _by_repetition(self) -> Array:
        train, units = np.flatnonzero(self.fit_weight_), self._units
        if units.shape[0] == 1:
            return self.held_out_.outputs[None, train]
        with blas_threads(len(train)):
            outputs = self.left_out().outputs(units)
        return outputs.reshape(len(outputs), *self.loo_.y[train].shape)

    def _scales(self, X: Matrix, shape: tuple[int, ...]) -> dict[str, Array]:
        """Scale of the noise under each leave-one-out model, at the rows of the fit and new ones.

        Near are rows in the space of the kernel, of a stack that of its largest member. Of a stack
        with members that have no kernel it is the scale of the noise about its kernels.
        """
        train, units, closed = np.flatnonzero(self.fit_weight_), self._units.draws, self._closed
        assert closed is not None
        (number,) = units.number
        X_fit = training_rows(self._kept_rows(), train, self._pairwise)
        cross = cross_of(closed.kernel_, X_fit)
        cached: list[LocalScale] | None = vars(self).get("_local_scales")
        if cached is None:
            left_out = closed.left_out()
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
        X, y, sample_weight = blocks_and_arrays(X, y, sample_weight)
        y = as_targets(y, classes=False)
        check_numbers(y, "KernelClassifier")
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


def _squared_error(held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
    """Mean squared error, by which candidates are compared."""
    with np.errstate(over="ignore", invalid="ignore"):  # squares of enormous targets
        return HeldOutLoss(PRESS().evaluate(*held_out).value)
