"""Regressor of tables, with a transform of the target."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_array, check_random_state, gen_batches, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._checks import as_table, check_known, one_or_many, without_index
from looms._typing import AnyArray, Array
from looms.conformal._jackknife import (
    intervals_of_ends,
    order_statistic,
    outwards,
    required_rank,
)
from looms.estimators._base import checked_sample_weight
from looms.estimators._candidates import CandidatesRegressor
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._one_kernel import model_of_folds
from looms.estimators._regressor import Regressor
from looms.estimators._scored import ScoredRegressor, name_of
from looms.estimators._tabular import Tabular
from looms.estimators._targets import check_numbers
from looms.estimators._warnings import kept_warnings, told_of_time, warn, warn_of_order
from looms.folds import group_numbers, is_number_of_folds, number_of_folds
from looms.held_out import HeldOut
from looms.kernels import Linear
from looms.kernels._names import as_kernel
from looms.kernels._samples import training_rows
from looms.lssvm.conditioning import largest_of
from looms.scores import Scores
from looms.selection._subsamples import rows_of_groups
from looms.selection._target_transforms import (
    NONNEGATIVE,
    TARGET_TRANSFORMS,
    TargetTransform,
    best_transform,
    means_without_own,
    smeared_means,
)

#: Rows that transforms of the target are compared on, at most.
ROWS_OF_TRANSFORMS = 2000
_NUMBERS = 1 << 20  # in an array of a block


class TabularRegressor(ScoredRegressor, Tabular):
    """Regressor of tables with exact held-out predictions: kernels, stacked or compared.

    It takes data frames with numbers, text, categories, booleans, dates and gaps, tunes each
    candidate by the exact held-out predictions of its training rows, and stacks them. `evaluate`
    gives nested scores: the whole fit, with the preparation of the columns and the selection of a
    transform, is repeated without the rows that are scored.

    Parameters
    ----------
    candidates : "auto", str or list, default="auto"
        Names of kernels, or one name, as of `KernelRegressor`; `KernelRegressor` with options of
        their own (of which the kernel, its values, the loss, landmarks and search count); any
        regressor of scikit-learn, also a pipeline, a search or a stack, with weights and groups as
        for `TabularClassifier`; and "auto", too.
    combine : {"stack", "best"}, default="stack"
        As for `TabularClassifier`, by squared errors.
    target : str or list of str, default="auto"
        Transform of the target that is fitted, for numbers that are skewed or counts: "none",
        "sqrt", "log" (positive targets), "log1p" (log(1 + y)). A list selects the transform
        whose held-out predictions with the first kernel of the candidates that is not linear have
        the smallest squared error on the scale of the target; where "none" has predictions below
        zero, another is taken if its error is within one standard error of the paired difference.
        "auto" compares those that the range of the targets admits: none; for positive targets also
        sqrt and log, for other nonnegative ones sqrt and log1p. Of more than 2000 rows, 2000 are
        drawn for the comparison, unless `cv` is made for all rows. Predictions are means, by Duan's
        smearing estimate [D83] with held-out residuals. Predictions and intervals are never
        negative if several transforms were compared, or one other than "none" was given: with
        "none", values below zero count as zero, also in scores. For one target that may be
        negative, though none of the fit is, give "none".
    cv, preprocess, n_jobs, verbose, random_state
        As for `TabularClassifier`.

    Attributes
    ----------
    transform_ : str
        Name of the transform.
    transforms_ : dict of str to float
        Root mean square error of the held-out predictions by each transform that was compared, on
        at most 2000 rows; empty if there was one.
    model_ : estimator
        The model of the prepared columns and the transformed target; its attributes are on that
        scale.
    loo_, held_out_ : HeldOut
        Targets and held-out predictions in units of the target; ``loo_`` of a stack with estimators
        of scikit-learn as for `TabularClassifier`.
    members_, preprocessor_, candidates_, cv_results_, best_index_, candidate_weights_, units_, \
n_features_in_, feature_names_in_
        As for `TabularClassifier`.

    References
    ----------
    Duan (1983), Smearing estimate: a nonparametric retransformation method, JASA 78.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import TabularRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 1))
    >>> y = np.exp(3 * X[:, 0] + 0.4 * rng.normal(size=100))
    >>> model = TabularRegressor(["linear"]).fit(X, y)
    >>> model.transform_
    'log'
    >>> bool((model.predict(X) > 0).all())
    True
    """

    model_: CandidatesRegressor
    _of_columns = CandidatesRegressor
    transform_: str
    transforms_: dict[str, float]
    loo_: HeldOut
    held_out_: HeldOut
    _repeated: Array  # predictions in every repetition of the folds, of rows of positive weight

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "stack",
        target: Any = "auto",
        cv: Any = None,
        preprocess: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.target = target
        self.cv = cv
        self.preprocess = preprocess
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Prepare the columns, select a transform of the target, tune and combine the candidates.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The rows: numbers, text, categories, booleans, dates; None and NaN are gaps. A
            pyarrow.Table is taken as a data frame. With ``preprocess=None`` also what
            `KernelRegressor` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. Several are not transformed. One column is one target, so that predictions have
            one dimension.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A row of weight zero takes no part.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each row; rows of a group are held out together.

        Returns
        -------
        self : TabularRegressor
            The fitted model.

        Raises
        ------
        ValueError
            If a column cannot be understood, y has gaps, or a transform does not admit all targets.
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.

        Warns
        -----
        ColumnsWarning
            If a column has a few words among numbers, dates of unclear order, or identifiers, or
            alone predicts the target, or moves with the windows of time that `cv` holds out.
        """
        began, X = time.perf_counter(), as_table(X)
        preprocessor, matrix, y, options = self._fit_columns(X, y, sample_weight, groups)
        model, targets = self._model(), _numbers(y)
        weight = checked_sample_weight(sample_weight, len(targets))
        _warn_of_constant(targets[weight > 0])
        names, errors = self._admitted(targets, weight), dict[str, float]()
        name = names[0]
        with ExitStack() as stack:
            if len(names) > 1:
                drawn = self._drawn_rows(matrix, targets, weight, options)
                trained = training_rows(matrix, np.flatnonzero(weight), pairwise=False)
                first = _first_curved(model._candidates_for(trained))
                if drawn[1] is not targets:  # so few that the whole kernel is quicker
                    first.set_params(n_landmarks=None)
                one = clone(model).set_params(candidates=[first])
                vars(one).pop("_skl_callbacks", None)  # which are told of the candidates
                (operations, n_arrays), (each, _) = model._cost_on(trained), one._cost_on(drawn[0])
                operations += len(names) * each
                cost = operations, trained.shape[0], n_arrays, model._remedies_of_time
                stack.enter_context(told_of_time(*cost))
                with kept_warnings():
                    name, errors = _compared(names, one, *drawn)
            z = _transformed(name, targets, weight)
            model.fit(matrix, z, **options)
        self._set_fitted(
            preprocessor_=preprocessor,
            model_=model,
            transform_=name,
            transforms_=errors,
            _unfitted=self._for_evaluation(model, target=names),
            _target=name_of(y),
            _fit_seconds=time.perf_counter() - began,
        )
        self._table = X
        self._set_predictions(targets)
        self._warn_of_features(matrix)
        return self

    def predict(self, X: Any) -> Array:
        """Mean of the target of each row.

        Parameters
        ----------
        X : table as in `fit`
            New rows; columns are found by name, in any order. Values that no training row has, of
            which a `ColumnsWarning` tells, count as rare, or as none. Gaps where there were none
            count as the median, or as no value.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In units of the targets.
        """
        return self._means_of(self._fitted.predict(self._prepared(X)))

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> Self:
        """The model with rows added after its own, exactly, with the same hyper-parameters.

        Parameters
        ----------
        X : table as in `fit`
            Rows to add, whose columns are prepared as those of the fit were.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        model : TabularRegressor
            A new model; this one does not change.

        Raises
        ------
        ValueError
            If the transform does not admit the targets, or they are below the range of the fit.
        """
        X = as_table(X)
        if _num_samples(X) == 0:
            return self.without([], certify)
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y = self._prepared(X), _numbers(self._as_known(y))
        if not self._transform.takes(y):
            raise ValueError(
                f"The transform {self.transform_!r} of nonnegative targets does not admit all, the "
                f"smallest of which is {y.min():.3g}: fit anew to all rows."
            )
        z = self._transform.forward(y)
        return self._of(self.model_.with_rows(X, z, without_index(sample_weight), certify))

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9, method: str = "plus"
    ) -> Array:
        """Prediction interval for each row, from models that were trained without some rows.

        The models are those of `evaluate`; call it first. The ends are those of
        intervals on the transformed scale, transformed back.

        Parameters
        ----------
        X : table as in `fit`
            New rows.
        confidence_level : float, default=0.9
            Nominal share of new targets inside, between 0 and 1.
        method : {"plus", "minmax", "scaled"}, default="plus"
            As for `KernelRegressor.predict_interval`, on the transformed scale. "scaled" needs
            ``evaluate(nested=False)``; the others take the models that were fitted anew without
            each fold, too.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of the targets.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `evaluate`.
        ValueError
            As of `KernelRegressor.predict_interval`.

        Notes
        -----
        The guarantee of `KernelRegressor.predict_interval` holds here too, since an increasing
        transform moves no target into or out of an interval. Nor does an end below zero that
        becomes zero, if no target is below zero; that all n of the fit are not, but the next one
        is, has a probability of at most 1/(n + 1). After nested scores, residuals of different
        transforms are each compared under their own model, as in [RSC20]. All models choose among
        the transforms that the targets of all rows admit: like the kinds of the columns, these are
        properties of the table. A model without all rows below zero could take logarithms, on
        whose scale these have no distance.
        """
        check_is_fitted(self)
        self.model_._check_intervals(confidence_level, method)
        nested = self._anew("predict_interval")
        if not nested or method == "scaled":
            if nested and self.model_._own_scores is None:
                raise NotFittedError(
                    "method='scaled' takes the models of the fit without each row, which "
                    "evaluate(nested=False) makes: call that too."
                )
            ends = self.model_.predict_interval(self._prepared(X), confidence_level, method)
            if self._transform.keeps_scale:
                return self._transform.inverse(ends)
            ends, n = self._transform.inverse(ends), np.count_nonzero(self.model_.fit_weight_)
            return outwards(ends[..., 0], ends[..., 1], 0.0, int(n))
        shape = n, *_ = nested.held_out.y.shape
        distances: list[Array] = [one._distances for one in nested.models]
        if method == "minmax":
            rank = required_rank(confidence_level, n)
            q = order_statistic(np.concatenate(distances), rank, 0)
            distances = [q] * len(distances)
        tie = self.model_._tie_without_rows(nested)
        self._warn_of_values(X)
        F = np.stack(list(self._outputs_anew(nested, X)), axis=1)
        ends = np.empty((len(F), *shape[1:], 2))
        for rows in gen_batches(len(F), max(1, _NUMBERS // nested.held_out.y.size)):
            lower, upper = np.empty((2, rows.stop - rows.start, *shape))
            each = zip(nested.units.tested_by, nested.models, distances, strict=True)
            for k, (out, one, away) in enumerate(each):
                f = F[rows, k, None]
                away = away + tie * largest_of(one.model_.loo_.y)
                lower[:, out] = one._transform.inverse(f - away)
                upper[:, out] = one._transform.inverse(f + away)
            if method == "minmax":
                ends[rows] = outwards(lower.min(axis=1), upper.max(axis=1), 0.0, n)
            else:
                ends[rows] = intervals_of_ends(lower, upper, confidence_level)
        return ends

    def _scores_of_fit(self) -> Scores:
        if self._own_scores is None:
            in_folds, y = self._in_folds, self.held_out_
            if in_folds is not None:  # of candidates: predictions in units of the target
                held_out = HeldOut(*(each[in_folds.rows] for each in y))
                in_folds = replace(in_folds, held_out=held_out)
            scores = self._scored(in_folds)
            if in_folds is not None and self.transforms_:
                kind = f"{scores.kind}; the transform was chosen on all rows: optimistic"
                scores = replace(scores, kind=kind, optimistic=True)
            self._own_scores = scores
        return self._own_scores

    def _held_out_values(self, X: Any) -> Array:
        return self._means_of(self._outputs_on(X))

    def _keep_distances(self, X: Any, y: AnyArray) -> None:
        self._distances = np.abs(self._transform.forward(y) - self._outputs_on(X))

    @property
    def _was_tuned(self) -> bool:
        return self.model_._was_tuned or bool(self.transforms_)

    @property
    def _is_plain(self) -> bool:
        return super()._is_plain and self.transform_ == "none" and not self.transforms_

    def _of(self, model: Regressor) -> Self:
        one = super()._of(model)
        one._set_predictions(self._transform.inverse(model.loo_.y))
        return one

    @property
    def _transform(self) -> TargetTransform:
        if self.transform_ == "none" and self.transforms_:  # of targets that others admit, too
            return NONNEGATIVE
        return TARGET_TRANSFORMS[self.transform_]

    def _means_of(self, outputs: Array) -> Array:
        """Means of the target from outputs of the model."""
        return smeared_means(self._transform, outputs, self.model_.held_out_)

    def _admitted(self, y: Array, weight: Array) -> list[str]:
        """Transforms to compare; ValueError for one that does not admit all targets."""
        own = y[weight > 0]
        admitted = [name for name, g in TARGET_TRANSFORMS.items() if g.takes(own)]
        names = list(dict.fromkeys(one_or_many(self.target)))
        if names == ["auto"]:
            if y.ndim > 1:
                return ["none"]
            return [name for name in admitted if name != "log1p" or "log" not in admitted]
        for name in names:
            check_known(name, "transform of the target", TARGET_TRANSFORMS)
            if name not in admitted or (y.ndim > 1 and name != "none"):
                why = f"does not admit all targets, the smallest of which is {own.min():.3g}"
                why = "is for one target" if y.ndim > 1 else why
                raise ValueError(f"target={name!r} {why}: leave it out, or use target='auto'.")
        return names

    def _drawn_rows(
        self, X: Any, y: Array, weight: Array, options: dict[str, Any]
    ) -> tuple[Any, Array, dict[str, Any]]:
        """Rows that transforms are compared on: of many some, of every group in proportion."""
        rows, pairwise = np.flatnonzero(weight), get_tags(self).input_tags.pairwise
        if len(rows) <= ROWS_OF_TRANSFORMS or not is_number_of_folds(self.cv):
            return X, y, options
        numbers = group_numbers(options["groups"], len(y))
        rng = check_random_state(self.random_state)
        some = rows[rows_of_groups(numbers[rows], ROWS_OF_TRANSFORMS, rng)]
        if len(np.unique(numbers[some])) < max(3, number_of_folds(self.cv)):
            return X, y, options
        groups = None if options["groups"] is None else numbers[some]
        drawn = training_rows(X, some, pairwise)
        return drawn, y[some], {"sample_weight": weight[some], "groups": groups}

    def _set_predictions(self, y: Array) -> None:
        """Set the predictions, in units of the target, from held-out outputs of the model."""
        model, transform = self.model_, self._transform
        train = np.flatnonzero(model.fit_weight_)
        for name in ("loo_", "held_out_"):
            _, outputs, weight = getattr(model, name)
            values = means_without_own(transform, outputs, model.held_out_)
            setattr(self, name, HeldOut(y, values, weight))
        own = HeldOut(*(each[train] for each in model.held_out_))
        outputs = model._by_repetition()
        self._repeated = np.array([means_without_own(transform, each, own) for each in outputs])

    def _by_repetition(self) -> Array:
        return self._repeated


def _first_curved(candidates: list[Any]) -> Any:
    """The first candidate with a kernel that is not linear, as in folds; else any, or "rbf"."""
    kernels = [one for one in candidates if isinstance(one, KernelRegressor)]
    curved = [one for one in kernels if not isinstance(as_kernel(one.kernel), Linear)]
    first = next(iter([*curved, *kernels]), None)
    return KernelRegressor() if first is None else clone(model_of_folds(first))


def _compared(
    names: list[str], model: Any, X: Any, y: Array, options: dict[str, Any]
) -> tuple[str, dict[str, float]]:
    """The transform to fit, and the held-out error of a model with each, in units of ``y``."""
    weight, predicted = checked_sample_weight(options["sample_weight"], len(y)), {}
    train = np.flatnonzero(weight)
    for name in names:
        fitted = clone(model).fit(X, _transformed(name, y, weight), **options)
        held_out = HeldOut(*(each[train] for each in fitted.held_out_))
        predicted[name] = np.array(
            [
                means_without_own(TARGET_TRANSFORMS[name], each, held_out)
                for each in fitted._by_repetition()
            ]
        )
    return best_transform(y[train], predicted, weight[train], fitted._units.scored_together)


def _numbers(y: Any) -> Array:
    """Targets as floats; ValueError for text, dates and gaps."""
    check_numbers(y, "TabularClassifier")
    return np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))


def _warn_of_constant(y: Array) -> None:
    """UserWarning for targets that are all the same, as they may be without some fold."""
    if len(y) > 1 and (y == y[0]).all():
        warn(
            f"y has only one value, {', '.join(f'{value:g}' for value in np.ravel(y[0]))}: there "
            "is nothing to learn. Add rows with other values, or take another column.",
            UserWarning,
        )


def _transformed(name: str, y: Array, weight: Array) -> Array:
    """Targets on the scale of a transform; those of weight zero within the range of the others."""
    own = y[weight > 0]
    return np.asarray(TARGET_TRANSFORMS[name].forward(np.clip(y, own.min(axis=0), own.max(axis=0))))
