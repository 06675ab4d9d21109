"""A regressor of a transformed target, whose transform is chosen by held-out predictions."""

from __future__ import annotations

import time
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._checks import check_known, one_or_many
from looms._scores import number_scores
from looms._typing import Array
from looms.conformal._jackknife import intervals_of_ends, required_rank
from looms.dask._predict import lazy_for_dask
from looms.estimators._base import checked_sample_weight
from looms.estimators._certificate import Certificate
from looms.estimators._folds import (
    RowsOfFit,
    as_rest_of,
    outer_units_of,
    predicted_without,
    tuned_without,
    unfitted,
)
from looms.estimators._regressor import LSSVMRegressorCV, Regressor
from looms.estimators._scored import ScoredRegressor, check_parameters
from looms.estimators._warnings import kept_warnings, warn, warn_of_time
from looms.held_out import HeldOut
from looms.scores import Scores
from looms.selection._nested import Nested
from looms.selection._target_transforms import (
    TARGET_TRANSFORMS,
    TargetTransform,
    TransformCandidate,
    TransformCandidates,
    log_likelihood,
    means_without_own,
    smeared_means,
)
from looms.units import Units

CRITERIA = ("error", "likelihood")
STATISTICS = ("mean", "median")


class TransformedTargetRegressorCV(ScoredRegressor):
    """Regressor of a transformed target that chooses the transform by held-out predictions.

    Use it for targets that are skewed, or whose noise grows with their size: prices, durations,
    counts. A machine is tuned for each transform, and the one with the best held-out predictions,
    on the scale of the targets, is taken.

    Parameters
    ----------
    regressor : LSSVMRegressorCV, LSSVMRegressor or None, default=None
        Machine for the transformed target, a single one; None for ``LSSVMRegressorCV()``.
    transforms : str or list of str, default="auto"
        "none", "sqrt", "log" (positive targets), "log1p" (log(1 + y)); several are candidates.
        "auto" takes those that the range of the targets admits: none; for positive targets also
        sqrt and log, for other nonnegative ones sqrt and log1p. Predictions by all but "none" are
        never negative, as suits counts: ``["sqrt", "log1p"]``.
    criterion : {"error", "likelihood"}, default="error"
        What decides between transforms: the squared error of means, or the absolute error of
        medians; or the likelihood of normal noise on the transformed scale, with the Jacobian
        [BC64], which does not exist for targets of zero under a square root.
    statistic : {"mean", "median"}, default="mean"
        What is predicted. Means, which minimize the squared error, are Duan's smearing estimate
        [D83] with held-out residuals. Medians are the outputs of the machine, transformed back.

    Attributes
    ----------
    transform_ : str
        Name of the chosen transform.
    candidates_ : list of TransformCandidate
        Held-out figures of every transform; ``pandas.DataFrame(candidates_)`` makes a table.
    machine_ : LSSVMRegressorCV or LSSVMRegressor
        The machine for the transformed target: its attributes are on that scale.
    loo_, held_out_ : HeldOut
        Targets, and predictions from the outputs of ``machine_.loo_`` and ``machine_.held_out_``,
        with the residuals of the other rows. The transform was chosen by ``held_out_``; with
        repeated folds, whose mean ``held_out_`` is, by the errors of each repetition.
    n_features_in_, feature_names_in_
        As for `LSSVMRegressor`.

    Notes
    -----
    It takes as many fits as there are transforms. To minimize squared errors, choose by held-out
    squared errors rather than by the likelihood, which prefers the transform whose noise is even
    and normal.

    References
    ----------
    Box & Cox (1964), An analysis of transformations, JRSS B 26.
    Duan (1983), Smearing estimate: a nonparametric retransformation method, JASA 78.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import TransformedTargetRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 1))
    >>> y = np.exp(3 * X[:, 0] + 0.4 * rng.normal(size=100))
    >>> model = TransformedTargetRegressorCV(criterion="likelihood").fit(X, y)
    >>> model.transform_
    'log'
    >>> bool((model.predict(X) > 0).all())
    True
    """

    machine_: Regressor
    transform_: str
    candidates_: list[TransformCandidate]
    loo_: HeldOut
    held_out_: HeldOut
    _repeated: Array  # predictions in every repetition of the folds, of rows of positive weight
    _outer_seed: int

    def __init__(
        self,
        regressor: Any = None,
        transforms: Any = "auto",
        *,
        criterion: str = "error",
        statistic: str = "mean",
    ) -> None:
        self.regressor = regressor
        self.transforms = transforms
        self.criterion = criterion
        self.statistic = statistic

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._regressor()).input_tags
        return tags

    def _regressor(self) -> Any:
        return LSSVMRegressorCV() if self.regressor is None else self.regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the transform, and fit the machine of the transformed target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; a sample of weight zero takes no part.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample; samples of a group are held out together.

        Returns
        -------
        self : TransformedTargetRegressorCV
            The fitted machine.
        """
        began = time.perf_counter()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        y = np.asarray(y, dtype=np.float64)
        weight = checked_sample_weight(sample_weight, len(y))
        train = np.flatnonzero(weight)
        self._check_parameters()
        names = self._admitted(y[train])
        regressor = clone(self._regressor())
        admitted = np.clip(y, y[train].min(), y[train].max())  # others are of weight zero
        options = {"sample_weight": weight, "groups": groups}
        fits, candidates = [], TransformCandidates()
        for name in names:
            transform = TARGET_TRANSFORMS[name]
            with kept_warnings() as warned:
                machine = clone(regressor).fit(X, transform.forward(admitted), **options)
            outputs = machine._by_repetition()
            repeated = self._predicted_by_repetition(transform, outputs, machine)
            scores = number_scores(y[train], repeated, weight[train])
            error, _ = scores["rmse" if self.statistic == "mean" else "mae"]
            likelihood = _likelihood_of_all(transform, y[train], outputs, weight[train])
            fits.append((machine, repeated, warned))
            candidates.append(TransformCandidate(name, error, likelihood))
        by_error = self.criterion == "error"
        losses = [each.error if by_error else -each.log_likelihood for each in candidates]
        best = int(np.argmin(losses))
        machine, repeated, warned = fits[best]
        seed = check_random_state(getattr(machine, "random_state", 0)).randint(2**31 - 1)
        self._set_fitted(
            machine_=machine,
            transform_=names[best],
            candidates_=candidates,
            _repeated=repeated,
            _unfitted=unfitted(self, transforms=names),
            _fit_seconds=time.perf_counter() - began,
            _outer_seed=seed,
        )
        self.held_out_ = self._predictions(machine.held_out_, y)
        self.loo_ = self._predictions(machine.loo_, y)
        for message, category in warned:
            warn(message, category)
        return self

    @lazy_for_dask
    def predict(self, X: Any) -> Array:
        """Mean, or median, of the target of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples, also as `looms.blocks.RowBlocks`. For a dask collection the predictions
            are a dask array.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            In units of the training targets.
        """
        X = self._checked_new_data(X)
        outputs = self.machine_.predict(X)
        if self.statistic == "median":
            return self._transform.inverse(outputs)
        return smeared_means(self._transform, outputs, self.machine_.held_out_)

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "plus") -> Array:
        """Prediction interval for each sample, from models that leave out training samples.

        The ends are those of intervals on the transformed scale, transformed back, by the models of
        `evaluate`, which has to be called first. If it was nested, "plus" uses for each fold the
        machine and the transform that were chosen without it; other methods take the models of
        ``evaluate(nested=False)``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.
        coverage : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax", "scaled"}, default="plus"
            As for `LSSVMRegressor.predict_interval`, on the transformed scale.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends, in units of the training targets.

        Notes
        -----
        The promise of `LSSVMRegressor.predict_interval` holds here too, since an increasing
        transform moves no target into or out of an interval. After nested scores, residuals of
        different transforms are each compared under their own machine, as in [RSC20].
        """
        X = self._checked_new_data(X)
        nested = self._evaluation("predict_interval")._nested
        if nested is None or method != "plus":
            ends = self.machine_.predict_interval(X, coverage, method)
            return self._transform.inverse(ends)
        required_rank(coverage, len(nested.rows))  # an error before any work
        lower, upper = np.empty((2, X.shape[0], len(nested.rows)))
        parts = zip(nested.units, nested.units.tested_by, nested.machines, strict=True)
        for left, out, model in parts:
            rest, transform = np.delete(nested.rows, left), model._transform
            own = as_rest_of(self, self.machine_.X_fit_[nested.rows[out]], rest)
            z = transform.forward(nested.held_out.y[out])
            half = np.abs(z - model.machine_.predict(own))
            f = model.machine_.predict(as_rest_of(self, X, rest))[:, None]
            lower[:, out], upper[:, out] = transform.inverse(f - half), transform.inverse(f + half)
        return intervals_of_ends(lower, upper, coverage)

    def certify(self, n_rows: int = 10, X: Any = None) -> Certificate:
        """Comparison of the machine of the transformed target with refits.

        Parameters
        ----------
        n_rows, X : as for `LSSVMRegressor.certify`.

        Returns
        -------
        certificate : Certificate
            On the transformed scale; also stored in ``machine_``.
        """
        check_is_fitted(self)
        return self.machine_.certify(n_rows, X)

    def without(self, rows: Any, certify: bool = True) -> TransformedTargetRegressorCV:
        """The machine without some rows, with the same transform and hyper-parameters.

        Parameters
        ----------
        rows, certify : as for `LSSVMRegressor.without`.

        Returns
        -------
        machine : TransformedTargetRegressorCV
            A new machine; this one does not change.
        """
        check_is_fitted(self)
        return self._of(self.machine_.without(rows, certify))

    def with_rows(
        self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True
    ) -> TransformedTargetRegressorCV:
        """The machine with rows added after its own, with the same transform.

        Parameters
        ----------
        X, sample_weight, certify : as for `LSSVMRegressor.with_rows`.
        y : array-like of shape (n_rows,)
            Targets, on the scale of the fit.

        Returns
        -------
        machine : TransformedTargetRegressorCV
            As for `without`.

        Raises
        ------
        ValueError
            If the transform does not admit the targets.
        """
        X, y = self._checked_new_data(X), np.asarray(y, dtype=np.float64)
        if not self._transform.takes(y):
            raise ValueError(
                f"The transform {self.transform_!r} does not admit all targets, the smallest of "
                f"which is {y.min():.3g}: fit anew to all rows."
            )
        z = self._transform.forward(y)
        return self._of(self.machine_.with_rows(X, z, sample_weight, certify))

    def _of(self, machine: Regressor) -> TransformedTargetRegressorCV:
        """The same transform of another machine."""
        one, transform = copy(self), self._transform
        one.machine_, one.n_features_in_ = machine, machine.n_features_in_
        y = transform.inverse(machine.loo_.y)
        one.loo_ = one._predictions(machine.loo_, y)
        one.held_out_ = one._predictions(machine.held_out_, y)
        outputs = machine._by_repetition()
        one._repeated = one._predicted_by_repetition(transform, outputs, machine)
        one._set_fitted()
        return one

    def _kernel_machine(self) -> Regressor:
        check_is_fitted(self)
        return self.machine_

    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in vars(self)

    @property
    def _was_tuned(self) -> bool:
        return self.machine_._was_tuned or len(self.candidates_) > 1

    @property
    def _tuned_before(self) -> bool:
        return self.machine_._tuned_before

    def _keep_models(self, scores: Scores) -> None:
        if scores._nested is None:
            self.machine_.evaluate(nested=False)

    @property
    def _transform(self) -> TargetTransform:
        return TARGET_TRANSFORMS[self.transform_]

    def _check_parameters(self) -> None:
        check_known(self.criterion, "criterion", CRITERIA)
        check_known(self.statistic, "statistic", STATISTICS)
        if not isinstance(self._regressor(), Regressor):
            raise TypeError(
                "regressor must be an LSSVMRegressorCV or LSSVMRegressor, which have the held-out "
                f"predictions that choose the transform, got {self.regressor!r}."
            )
        check_parameters(self._regressor())
        names = one_or_many(self.transforms)
        if not names:
            raise ValueError("transforms must name at least one candidate.")
        for name in () if names == ["auto"] else names:
            check_known(name, "transform", TARGET_TRANSFORMS)

    def _admitted(self, y: Array) -> list[str]:
        """Transforms to try; ValueError for one that does not admit all targets."""
        density = self.criterion == "likelihood"
        admitted = [name for name, g in TARGET_TRANSFORMS.items() if g.takes(y, density)]
        names = one_or_many(self.transforms)
        if names == ["auto"]:
            return [name for name in admitted if name != "log1p" or "log" not in admitted]
        for name in names:
            if name not in admitted:
                raise ValueError(
                    f"transforms={name!r} with criterion={self.criterion!r} does not admit all "
                    f"targets, the smallest of which is {y.min():.3g}: leave it out, or use "
                    "transforms='auto'."
                )
        return names

    def _predictions(self, outputs: HeldOut, y: Array) -> HeldOut:
        """Targets, and predictions from outputs for rows that the machine has not seen."""
        values = self._predicted(self._transform, outputs.outputs, self.machine_.held_out_)
        return HeldOut(y, values, outputs.sample_weight)

    def _predicted_by_repetition(
        self, transform: TargetTransform, outputs: Array, machine: Regressor
    ) -> Array:
        """Predictions of the rows of positive weight, (n_repetitions, m), from their outputs."""
        train = np.flatnonzero(machine.fit_weight_)
        held_out = HeldOut(*(each[train] for each in machine.held_out_))
        return np.array([self._predicted(transform, each, held_out) for each in outputs])

    def _predicted(self, transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
        """Prediction of each row from its output; NaN for NaN."""
        if self.statistic == "median":
            return transform.inverse(outputs)
        return means_without_own(transform, outputs, held_out)

    def _chosen_anew(self) -> Nested:
        """By machines that are chosen anew without each fold.

        The candidates are those that the range of all targets admits.
        """
        rows = rows_of(self.machine_, self.loo_.y, self._outer_seed)
        cv = getattr(self.machine_, "cv", None)
        outer = outer_units_of(rows, cv)
        warn_of_time(outer.n_units * self._fit_seconds)
        (machines,) = tuned_without(self, [self._unfitted], outer, rows, cv)
        outputs = predicted_without(machines, outer, rows, lambda one, X: one.predict(X))
        held_out = HeldOut(rows.own(rows.y), outputs, rows.own(rows.weight))
        return Nested.of_folds(rows.train, outer, held_out, None, machines)

    def _holding_out(self, units: Units) -> Self:
        regressor = clone(self._regressor()).set_params(cv=units.codes)
        machine: Self = clone(self).set_params(regressor=regressor)
        return machine

    def _by_repetition(self) -> Array:
        return self._repeated


def rows_of(machine: Regressor, y: Array, seed: int) -> RowsOfFit:
    """Rows of a fitted machine with other targets."""
    weights = 3 * (machine.loo_.sample_weight,)
    groups = machine.units_.clusters
    return RowsOfFit(machine._rows_of_fit(), y, y, *weights, groups, classes=False, seed=seed)


def _likelihood_of_all(
    transform: TargetTransform, y: Array, outputs: Array, weight: Array
) -> float:
    """`log_likelihood` of outputs in all repetitions, (n_repetitions, n), NaN where not tested.

    Repetitions share the weight of a row.
    """
    tested = np.isfinite(outputs)
    targets = np.broadcast_to(y, outputs.shape)[tested]
    share = np.broadcast_to(weight / tested.sum(axis=0), outputs.shape)[tested]
    held_out = HeldOut(transform.forward(targets), outputs[tested], share)
    return log_likelihood(transform, targets, held_out)
