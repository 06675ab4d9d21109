"""A fitted model as its reports read it: names, held-out predictions, its training problem."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looms._classes import as_written, class_indices
from looms._scores import SCORES
from looms._typing import AnyArray, Array, Matrix
from looms.diagnostics._case_deletion import loo_margins
from looms.diagnostics._problem import by_kernels
from looms.estimators._folds import (
    LEAST_OUTER_FOLDS,
    RowsOfFit,
    evaluation_folds,
    units_of_classes,
)
from looms.estimators._in_pipelines import kernel_model, parts_of
from looms.estimators._one_kernel import OneKernel, candidate_of
from looms.estimators._scored import scores_of
from looms.held_out import HeldOut
from looms.kernels import Kernel, Weighted
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._samples import training_rows, variances
from looms.report._feature_names import Features, features_of
from looms.report.text import clean, in_words
from looms.scores import Scores
from looms.selection._nested import Nested
from looms.selection._objective import Objective
from looms.selection._tuning import BoundMet, Tuning
from looms.threshold import BalancedError, Metric, ThresholdRule, as_rule
from looms.units import Units

#: Names of the methods, by what is held out at a time.
METHODS = {
    "sample": "leave-one-out",
    "group": "leave-one-group-out",
    "fold": "cross-validation",
    "window": "cross-validation",
}
#: So many samples of every class are kept, if there are as many.
_FEW = 5


class CandidateLoss(NamedTuple):
    """By what candidates are compared.

    Attributes
    ----------
    name : in words.
    key : score that has its units and standard error; empty if none has.
    rule : rule of the threshold whose loss it is; None for a criterion, and for regressors.
    """

    name: str
    key: str = ""
    rule: ThresholdRule | Metric | None = None


class Model:
    """A fitted model as plain values; what it does not have is None or empty.

    Attributes
    ----------
    fitted : the kernel model; with a transformed target, on the scale of the transform.
    whole : what predicts: the model, or the regressor around it that transforms the target.
    target : name of the target, if it has one.
    features, sources, named, gaps : names of its features, as `Features` has them.
    classes, threshold : labels of the classes, and the threshold of two.
    held_out : output for every sample by the model without its fold, its group or itself.
    nested : predictions by models that were chosen without the sample, if there are.
    units : samples that the criterion held out together; those of weight zero stay.
    rows : samples that the model was fitted to; None for rows in blocks, which are not kept.
    pairwise : True if the samples are rows of a kernel matrix, without features.
    table : the samples if they have features; None otherwise, and for rows in blocks.
    n_landmarks : number of landmarks; None if the coefficients belong to all samples.
    members : kernel models of a stack, or the model as the only one, with kernel, mu and weight.
    n_members : number of models that are summed, of any kind.
    stacked : True for a stack of models; ``kernel_`` is then that of the largest.
    candidates : candidates that were each tuned; empty if all values were given.
    shares : weights of the candidates in a stack, also if one got all; None if none was made.
    tuning : record of the search of the model, of a stack of the largest.
    prior : True if a prior restrained the hyper-parameters; None where there is no such option.
    transform, transforms : the transform of the target, and those that were compared.
    has_weight, n_with_weight : samples of positive weight; others take no part in fit and scores.
    unit, method : what is held out at a time ("sample", "group", "fold" or "window"), and the
        method's name.
    chosen_by : name of the method by which the criterion held samples out.
    n_choice_folds : folds that compare candidates, each tuned without them; 0 if none do.
        Candidates are then compared by the held-out outputs that the criterion judged.
    candidates_by : name of the method by which the candidates' loss held samples out.
    kernels : kernels with their values: those of a stack, or the only one.
    n_tuned : number of hyper-parameters that were chosen, of all models of a stack.
    ranked : places of the candidates, the best first.
    """

    #: Transform of the target that its scores are on the scale of; None for that of the target.
    scale: str | None = None

    def __init__(self, fitted: Any, whole: Any, features: Features) -> None:
        def own(name: str, default: Any = None) -> Any:
            return getattr(fitted, name, default)

        self.fitted, self.whole = fitted, whole
        self.target = None if whole._target is None else clean(whole._target)
        self._features = features
        self.features, self.sources, self.named, self.gaps = features
        self.classification: bool = is_classifier(fitted)
        self.classes = [str(label) for label in as_written(own("classes_", np.empty(0)))]
        self.threshold: float | Array = own("threshold_", 0.0)
        self.held_out: HeldOut = whole.held_out_
        evaluated: Scores | None = whole._nested_scores
        self.nested: Nested | None = evaluated._nested if evaluated else whole._in_folds
        self.units: Units = fitted.units_
        self.rows: Matrix | None = fitted.X_fit_
        landmarks, summed, tuning = own("landmarks_"), own("members_", ()), own("selection_")
        self.n_landmarks: int | None = None if landmarks is None else landmarks.shape[0]
        self.members = tuple(one for one in summed if one.closed)
        self.n_members = len(summed)
        self.stacked = self.n_members > 1
        self.candidates: list[Any] = own("candidates_", [])
        self.shares: Array | None = own("candidate_weights_") if self.candidates else None
        self.tuning: Tuning | None = tuning if tuning and tuning.history else None
        self._tried: Sequence[Any] = getattr(own("_unfitted") or fitted, "_candidates", ())
        chosen, place = None, own("best_index_", 0)
        if place < len(self._tried):  # "auto" with used-up folds may have tried others
            chosen = self._tried[place]
        of_kernel = isinstance(chosen, OneKernel)
        self.prior: bool | None = candidate_of(chosen).search.prior if of_kernel else None
        self.transform: str | None = getattr(whole, "transform_", None)
        self.transforms: dict[str, float] = getattr(whole, "transforms_", {})

        self.has_weight: AnyArray = np.asarray(self.held_out.sample_weight > 0)
        self.n_with_weight = int(np.count_nonzero(self.has_weight))
        self.unit = (self.nested or self).units.unit
        self.method, self.chosen_by = METHODS[self.unit], METHODS[self.units.unit]
        choice_units: Units | None = own("choice_units_")
        self.n_choice_folds = choice_units.n_units if choice_units else 0
        by_folds = f"{self.n_choice_folds}-fold {METHODS['fold']}"
        self.candidates_by = by_folds if self.n_choice_folds else self.chosen_by
        supports = [one.support for one in self.members if hasattr(one, "support")]
        self.n_support = len(np.unique(np.concatenate(supports))) if supports else None
        self.kernels: list[Kernel] = [one.kernel for one in self.members]
        self.pairwise = any(one.pairwise for one in self.kernels)
        self.table = None if self.pairwise else self.rows
        self.n_tuned = sum(len(one.theta) + 1 for one in self.kernels) if self.candidates else 0
        losses = [one.loss for one in self.candidates]
        self.ranked: list[int] = np.argsort(losses, kind="stable").tolist()

    @property
    def on_scale(self) -> Model:
        """The model by itself if the target is transformed, with outputs on that scale."""
        if self.transform in (None, "none"):
            return self
        model = Model(self.fitted, self.fitted, self._features)
        model.scale, model.target = self.transform, self.target
        return model

    @cached_property
    def closed(self) -> Model | None:
        """The kernels alone of a stack that has other members, too, for effects of single samples.

        The best kernel if none has weight, None if there is none; otherwise the model itself.
        """
        alone = self.fitted._closed
        if alone is self.fitted or alone is None:
            return self if alone else None
        model = Model(alone, alone, self._features)
        model.scale, model.target = self.scale, self.target
        return model

    @property
    def by_kernels(self) -> str:
        """Words for what is told of `closed`, if that is not the model itself."""
        return by_kernels(self.fitted)

    @property
    def fitted_to(self) -> str:
        """What the kernel models were fitted to, such as "log(price)"; empty for the target."""
        transform = self.scale or self.transform
        return "" if transform in (None, "none") else f"{transform}({self.target or 'target'})"

    @cached_property
    def scores(self) -> Scores:
        """What ``evaluate`` returned, or the scores of the held-out predictions of the fit."""
        return scores_of(self.whole)

    @property
    def predictions(self) -> HeldOut:
        """Held-out outputs that can be compared with one another, like the scores.

        For classes, the outputs that decide: means over the pairs in which a sample is left out;
        if the tuning was repeated without the sample, those of the models so tuned.
        Of rows in blocks, without folds of ``cv``, those of the models without one of ten folds.
        """
        return self.scores.predictions

    @property
    def variances(self) -> Array:
        """(n_features,) variances over the samples, or the landmarks if samples are not kept."""
        return variances(self.fitted.landmarks_ if self.rows is None else self.rows)

    @property
    def columns(self) -> dict[str, list[int]]:
        """Features by the column of the table that they were made from."""
        columns: dict[str, list[int]] = {}
        for k, source in enumerate(self.sources):
            columns.setdefault(source, []).append(k)
        return columns

    @property
    def follows_paths(self) -> bool:
        """True if the leading member is a support vector machine, searched without gradient."""
        return hasattr(getattr(self.fitted, "_leading", None), "support")

    @property
    def repeated(self) -> str | None:
        """What was repeated without the sample; None for nothing."""
        return self.repeated_without(in_words(self.unit)) if self.nested else None

    def repeated_without(self, each: str) -> str:
        """What was repeated without each fold, group or sample, called ``each``."""
        each += " of whole groups" * (self.unit == "fold" and self.units.grouped)
        if self.nested and self.nested.whole:
            return f"model selection was repeated without each {each}"
        verb = "chosen" if self.shares is None else "weighted"
        return f"candidates were tuned anew without each {each}, and {verb} on the other folds"

    @property
    def unbiased_by(self) -> str:
        """What gives scores that are not optimistic: subject and verb; empty if nothing does."""
        codes = (
            class_indices(self.held_out.y)
            if self.classification
            else np.zeros(len(self.has_weight), dtype=int)
        )
        sizes = units_of_classes(codes, self.units.clusters, self.has_weight)
        if min(sizes) < LEAST_OUTER_FOLDS:
            return ""
        again = self.rows is not None and not self.whole._tuned_before and self._has_outer_folds
        return "evaluate() and looms.assess give" if again else "looms.assess gives"

    @property
    def _has_outer_folds(self) -> bool:
        """True if model selection can be repeated without each of some folds."""
        try:
            rows = RowsOfFit.of(self.fitted, self.rows, self.whole._y_of_fit)
            evaluation_folds(self.whole.cv, self.fitted, rows)
        except ValueError:
            return False
        return True

    @property
    def criterion(self) -> Any:
        """Criterion of the chosen candidate; "press" for given hyper-parameters."""
        return self.candidates[self.fitted.best_index_].criterion if self.candidates else "press"

    @property
    def rule(self) -> ThresholdRule | Metric:
        """Rule for the threshold of two classes; without one, that of the balanced error."""
        given = self.fitted.threshold
        return as_rule("balanced" if isinstance(given, Real) else given)

    @property
    def candidate_losses(self) -> Array:
        """The loss by which candidates were compared, in the units of `loss`."""
        losses = np.array([one.loss for one in self.candidates])
        return losses if self.classification else np.sqrt(losses)

    @property
    def loss(self) -> CandidateLoss:
        """By what candidates are compared.

        Points are compared by the criterion itself, unless folds compare them.
        """
        if not self.classification:
            of_scale = f" of {self.fitted_to}" if self.fitted_to else ""
            return CandidateLoss(f"{SCORES['rmse'].name}{of_scale}", "rmse")
        on_grid = (isinstance(one, OneKernel) and candidate_of(one).on_grid for one in self._tried)
        points = self.tuning is None or all(on_grid)
        if self.candidates and points and not self.n_choice_folds:
            return CandidateLoss(str(self.criterion))
        given, rule = self.fitted.threshold, self.rule
        if isinstance(rule, BalancedError):
            return CandidateLoss("balanced error rate", "balanced_accuracy", rule)
        if isinstance(rule, ThresholdRule):
            return CandidateLoss(rule.loss_name, rule=rule)
        return CandidateLoss(f"loss of {getattr(given, '__name__', given)}", rule=rule)


def model_of(estimator: Any) -> Model:
    """The model of looms in a fitted estimator; TypeError or NotFittedError without one.

    The estimator is the model, a model of tables around it, a pipeline that
    ends in one of them, or a search with such a ``best_estimator_``.
    """
    fitted, parts = kernel_model(estimator), parts_of(estimator)
    check_is_fitted(fitted, "fit_weight_")
    own = whole = _copied(fitted)
    if parts.last is not fitted:
        whole = _copied(parts.last)
        whole.model_ = own
    return Model(own, whole, features_of(Pipeline(parts.steps), whole))


def _copied(fitted: Any) -> Any:
    """A copy that keeps to itself what is computed of it, such as an n×n matrix."""
    known, fitted = vars(fitted), copy(fitted)
    vars(fitted).update(known)
    return fitted


def searched_model(estimator: Any, purpose: str) -> tuple[Model, Tuning]:
    """`model_of` and its search; TypeError if there is none on record."""
    model = model_of(estimator)
    if model.tuning is None:
        raise TypeError(
            f"{purpose} shows a search, but {type(model.fitted).__name__} has no record of one: "
            "fit KernelClassifier or KernelRegressor."
        )
    return model, model.tuning


def parameter_name(model: Model, tuned: Hyperparameter | BoundMet) -> str:
    """A hyper-parameter's name, with that of the feature that it belongs to.

    A name that several parts of a kernel have comes with the part, as in "left__gamma".
    """
    if tuned.feature is not None:
        return f"{tuned.word} of {model.features[tuned.feature]}"
    ends = [h.name.rpartition("__")[2] for h in model.fitted.kernel_.hyperparameters]
    end = tuned.name.rpartition("__")[2]
    return end if ends.count(end) < 2 else tuned.name


def relevances(model: Model) -> Array | None:
    """Relevance of each feature, as in `looms.report.RelevanceDisplay`; None without scales.

    For a stack, those of its largest member; for rows in blocks, those over the landmarks.
    """
    if not model.kernels:
        return None
    kernel, gammas, is_ard = model.fitted.kernel_, np.zeros(model.fitted.n_features_in_), False
    for h in kernel.hyperparameters:
        if h.word == "gamma" and h.feature is not None and h.value is not None:
            gammas[h.feature] += h.value
            is_ard = True
    if isinstance(kernel, Weighted):
        gammas, is_ard = np.asarray(kernel.weights) * (gammas if is_ard else 1.0), True
    if not is_ard:
        return None
    part = gammas * model.variances
    return np.asarray(part / part.sum()) if part.sum() > 0 else part


def residual_sizes(model: Model) -> Array:
    """Size of the leave-one-out residual, (n_samples,); the norm for several targets.

    For classes it is [1 − t f]₊, by how much the output falls short of the label: an output beyond
    ±1 on the right side does not count. NaN for a sample of weight zero, which is not left out.
    """
    loo = model.held_out
    sizes = np.maximum(loo.y * loo.residuals, 0) if model.classification else np.abs(loo.residuals)
    sizes = sizes if sizes.ndim == 1 else np.linalg.norm(sizes, axis=1)
    return np.where(model.has_weight, sizes, np.nan)


def predicted_labels(model: Model) -> AnyArray:
    """Index of the class that most models without a sample give it, (n_samples,)."""
    labels = np.asarray(loo_margins(model.fitted).argmax(axis=1))
    decisions = model.scores.decisions
    if decisions is not None:
        labels[model.scores.rows] = decisions.predicted
    return labels


def sampled_rows(model: Model, size: int, random_state: int) -> AnyArray:
    """At most about ``size`` rows of positive weight, stratified by class.

    ValueError if the model keeps no rows.
    """
    if model.rows is None:
        raise ValueError(
            "This needs the training rows, but a model fitted to rows in blocks does not keep them."
        )
    weighted = np.flatnonzero(model.has_weight)
    if len(weighted) <= size:
        return weighted
    rng = np.random.RandomState(random_state)
    if not model.classification:
        return np.sort(rng.choice(weighted, size, replace=False))
    labels = class_indices(model.held_out.y)[weighted]
    chosen = []
    for label in np.unique(labels):
        members = weighted[labels == label]
        quota = max(round(size * len(members) / len(weighted)), min(_FEW, len(members)))
        chosen.append(rng.choice(members, quota, replace=False))
    return np.sort(np.concatenate(chosen))


def training_objective(model: Model, rows: AnyArray) -> Objective:
    """The criterion by which the model was chosen, on some rows of its samples."""
    fitted: Any = model.fitted
    loo = fitted.loo_
    selection_weight = getattr(fitted, "selection_weight_", loo.sample_weight)
    return Objective(
        training_rows(fitted.X_fit_, rows, model.pairwise),
        loo.y[rows],
        kernel=fitted.kernel_,
        criterion=model.criterion,
        sample_weight=fitted.fit_weight_[rows],
        selection_weight=selection_weight[rows],
        units=model.units.among(rows),
        # As it was fitted: the parameter may have been set anew since.
        fit_intercept=fitted.fit_intercept_,
    )
