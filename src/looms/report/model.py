"""A fitted model as its reports read it: names, held-out predictions, its training problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looms._classes import written_labels
from looms._scores import SCORES
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.diagnostics._case_deletion import loo_margins
from looms.diagnostics._problem import by_kernels
from looms.estimators._evaluation import evaluation_folds
from looms.estimators._in_pipelines import last_model, parts_of
from looms.estimators._model import scores_of
from looms.estimators._one_kernel import candidate_of, has_kernel
from looms.fitted._fitted import Fitted
from looms.fitted._ordered import OrderedClasses
from looms.fitted._outcome import Classes, Numbers
from looms.fitted._rows import LEAST_OUTER_FOLDS, units_of_classes
from looms.fitted._scores import held_out_scores
from looms.held_out import HeldOut
from looms.kernels import Kernel, Weighted
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._samples import training_rows, variances
from looms.report._feature_names import Features, features_of
from looms.report.text import clean, unit_words
from looms.scores import Scores
from looms.selection._nested import Nested
from looms.selection._objective import Objective
from looms.selection._tuning import BoundMet, Tuning
from looms.threshold import BalancedError, Metric, ThresholdRule, threshold_rule
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
    fitted : the fitted model as a value.
    whole : the estimator that holds it.
    target : name of the target, if it has one.
    features : names of its features, and of the columns that they were made from.
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

    def __init__(
        self, fitted: Fitted, whole: Any, features: Features, evaluated: Scores | None = None
    ) -> None:
        self.fitted, self.whole, self._evaluated = fitted, whole, evaluated
        self.target = None if whole._target is None else clean(whole._target)
        self.features = features
        outcome, leading, selection = fitted.outcome, fitted.leading, fitted.selection
        self.classification: bool = outcome.decides
        self.classes = [str(label) for label in written_labels(outcome.classes)]
        self.threshold: float | Array = fitted.rule.threshold
        self.held_out: HeldOut = fitted.held_out_predicted
        nested = None if evaluated is None else evaluated._nested
        self.nested: Nested | None = nested or fitted.in_folds
        self.units: Units = fitted.units
        X = fitted.rows.X
        self.rows: Matrix | None = None if isinstance(X, RowBlocks) else X
        landmarks = None if leading is None else leading.landmarks
        self.n_landmarks: int | None = None if landmarks is None else landmarks.shape[0]
        self.members = tuple(member for member in fitted.members if member.closed)
        self.n_members = len(fitted.members)
        self.stacked = self.n_members > 1
        self.candidates: list[Any] = fitted.candidates
        self.shares: Array | None = fitted.candidate_weights if self.candidates else None
        tuning = None if selection is None else selection.tuning
        self.tuning: Tuning | None = tuning if tuning and tuning.history else None
        self.best: int = 0 if selection is None else selection.index
        self._tried: Sequence[Any] = (fitted.recipe or whole)._candidates
        chosen = None
        if self.best < len(self._tried):  # "auto" with used-up folds may have tried others
            chosen = self._tried[self.best]
        searched = chosen is not None and has_kernel(chosen)
        self.prior: bool | None = candidate_of(chosen).search.prior if searched else None
        self.transform: str | None = outcome.transform if isinstance(outcome, Numbers) else None
        self.transforms: dict[str, float] = fitted.transforms

        self.has_weight: AnyArray = np.asarray(self.held_out.sample_weight > 0)
        self.n_with_weight = int(np.count_nonzero(self.has_weight))
        self.unit = (self.nested or self).units.unit
        self.method, self.chosen_by = METHODS[self.unit], METHODS[self.units.unit]
        self.n_choice_folds = fitted.in_folds.units.n_units if fitted.in_folds else 0
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
        model = Model(self.fitted.on_scale, self.whole, self.features)
        model.scale = self.transform
        return model

    @cached_property
    def closed(self) -> Model | None:
        """The kernels alone of a stack that has other members, too, for effects of single samples.

        The best kernel if none has weight, None if there is none; otherwise the model itself.
        """
        alone = self.fitted.closed
        if alone is self.fitted or alone is None:
            return self if alone else None
        model = Model(alone.on_scale, self.whole, self.features)
        model.scale = self.scale
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
        return self._evaluated or held_out_scores(self.fitted)

    @property
    def predictions(self) -> HeldOut:
        """Held-out outputs that can be compared with one another, like the scores.

        For classes, the outputs that decide: means over the pairs in which a sample is left out;
        if the tuning was repeated without the sample, those of the models so tuned.
        Of rows in blocks, without folds of ``cv``, those of the models without one of ten folds.
        """
        return self.scores.predictions

    @property
    def kernel(self) -> Kernel:
        """Kernel of the largest member that has one."""
        assert self.fitted.leading is not None
        return self.fitted.leading.kernel

    @property
    def landmarks(self) -> Matrix | None:
        """Landmarks of the largest member that has a kernel."""
        return None if self.fitted.leading is None else self.fitted.leading.landmarks

    @property
    def columns_anew(self) -> bool:
        """True if the columns were prepared anew without the rows that were scored."""
        models = () if self.nested is None else self.nested.models
        return any(isinstance(model, Fitted) for model in models)

    @property
    def variances(self) -> Array:
        """(n_features,) variances over the samples, or the landmarks if samples are not kept."""
        return variances(self.landmarks if self.rows is None else self.rows)

    @property
    def follows_paths(self) -> bool:
        """True if the leading member is a support vector machine, searched without gradient."""
        return hasattr(self.fitted.leading, "support")

    @property
    def repeated(self) -> str | None:
        """What was repeated without the sample; None for nothing."""
        return self.repeated_without(unit_words(self.unit)) if self.nested else None

    def repeated_without(self, each: str) -> str:
        """What was repeated without each fold, group or sample, called ``each``."""
        each += " of whole groups" * (self.unit == "fold" and self.units.grouped)
        if self.nested and self.nested.whole:
            return f"model selection was repeated without each {each}"
        verb = "chosen" if self.shares is None else "weighted"
        return f"candidates were tuned anew without each {each}, and {verb} on the other folds"

    @cached_property
    def codes(self) -> AnyArray:
        """(n_samples,) index of the class of each sample; zeros of numbers."""
        return self.fitted.outcome.codes(self.held_out.y)

    @property
    def unbiased_by(self) -> str:
        """What gives scores that are not optimistic: subject and verb; empty if nothing does."""
        sizes = units_of_classes(self.codes, self.units.clusters, self.has_weight)
        if min(sizes) < LEAST_OUTER_FOLDS:
            return ""
        again = self.rows is not None and not self.fitted.tuned_before and self._has_outer_folds
        return "evaluate() and looms.assess give" if again else "looms.assess gives"

    @property
    def _has_outer_folds(self) -> bool:
        """True if model selection can be repeated without each of some folds."""
        try:
            evaluation_folds(self.whole.cv, self.fitted, self.fitted.rows)
        except ValueError:
            return False
        return True

    @property
    def criterion(self) -> Any:
        """Criterion of the chosen candidate; "press" for given hyper-parameters."""
        return self.fitted.criterion

    @property
    def rule(self) -> ThresholdRule | Metric:
        """Rule for the threshold of two classes; without one, that of the balanced error."""
        given = self.classes_of_fit.threshold
        return threshold_rule("balanced" if isinstance(given, Real) else given)

    @property
    def classes_of_fit(self) -> Classes | OrderedClasses:
        """The outcome, of a classifier."""
        assert isinstance(self.fitted.outcome, Classes | OrderedClasses)
        return self.fitted.outcome

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
        on_grid = (has_kernel(one) and candidate_of(one).on_grid for one in self._tried)
        points = self.tuning is None or all(on_grid)
        if self.candidates and points and not self.n_choice_folds:
            return CandidateLoss(str(self.criterion))
        if not self.fitted.outcome.labeled:
            key = self.fitted.outcome.headline
            return CandidateLoss(SCORES[key].name, key)
        given, rule = self.classes_of_fit.threshold, self.rule
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
    model, parts = last_model(estimator), parts_of(estimator)
    check_is_fitted(model)
    features = features_of(Pipeline(parts.steps), model)
    return Model(model.fitted_, model, features, scores_of(model))


def searched_model(estimator: Any, purpose: str) -> tuple[Model, Tuning]:
    """`model_of` and its search; TypeError if there is none on record."""
    model = model_of(estimator)
    if model.tuning is None:
        raise TypeError(
            f"{purpose} shows a search, but {type(model.whole).__name__} has no record of one: "
            "fit KernelClassifier or KernelRegressor."
        )
    return model, model.tuning


def parameter_name(model: Model, tuned: Hyperparameter | BoundMet) -> str:
    """A hyper-parameter's name, with that of the feature that it belongs to.

    A name that several parts of a kernel have comes with the part, as in "left__gamma".
    """
    if tuned.feature is not None:
        return f"{tuned.word} of {model.features.names[tuned.feature]}"
    ends = [h.name.rpartition("__")[2] for h in model.kernel.hyperparameters]
    end = tuned.name.rpartition("__")[2]
    return end if ends.count(end) < 2 else tuned.name


def relevances(model: Model) -> Array | None:
    """Relevance of each feature, as in `looms.report.RelevanceDisplay`; None without scales.

    For a stack, those of its largest member; for rows in blocks, those over the landmarks.
    """
    if not model.kernels:
        return None
    kernel, gammas, is_ard = model.kernel, np.zeros(model.fitted.n_features), False
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

    For labels ±1 it is [1 − t f]₊, by how much the output falls short of the label: an output
    beyond on the right side does not count. NaN for a sample of weight zero, which is not left out.
    """
    loo = model.held_out
    labeled = model.fitted.outcome.labeled
    sizes = np.maximum(loo.y * loo.residuals, 0) if labeled else np.abs(loo.residuals)
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
    labels = model.codes[weighted]
    chosen = []
    for label in np.unique(labels):
        members = weighted[labels == label]
        quota = max(round(size * len(members) / len(weighted)), min(_FEW, len(members)))
        chosen.append(rng.choice(members, quota, replace=False))
    return np.sort(np.concatenate(chosen))


def training_objective(model: Model, rows: AnyArray) -> Objective:
    """The criterion by which the model was chosen, on some rows of its samples."""
    fitted, of_fit = model.fitted, model.fitted.rows
    return Objective(
        training_rows(of_fit.X, rows, model.pairwise),
        of_fit.targets[rows],
        kernel=model.kernel,
        criterion=model.criterion,
        sample_weight=of_fit.fit_weight[rows],
        selection_weight=of_fit.selection_weight[rows],
        units=model.units.among(rows),
        fit_intercept=fitted.fit_intercept,
    )
