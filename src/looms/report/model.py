"""A fitted model as its reports read it: names, held-out predictions, its training problem."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looms._advice import setting
from looms._classes import written_labels
from looms._scores import SCORES
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.estimators._evaluation import evaluation_folds
from looms.estimators._in_pipelines import last_model, parts_of
from looms.estimators._model import scores_of
from looms.estimators._one_kernel import candidate_of, has_kernel
from looms.fitted._fitted import Fitted
from looms.fitted._rows import LEAST_OUTER_FOLDS, units_of_classes
from looms.fitted._scores import held_out_scores
from looms.held_out import HeldOut
from looms.kernels import Weighted
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._samples import variances
from looms.report._feature_names import features_of
from looms.report.text import clean
from looms.scores import Scores
from looms.selection._decisions import Decisions
from looms.selection._nested import Nested
from looms.selection._tuning import BoundMet, Tuning
from looms.threshold import BalancedError, Metric, ThresholdRule, threshold_rule

#: Names of the methods, by what is held out at a time.
METHODS = {
    "sample": "leave-one-out",
    "group": "leave-one-group-out",
    "fold": "cross-validation",
    "window": "cross-validation",
    "forward": "cross-validation forward in time",
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


class Reported:
    """A fitted model as reports tell of it: names of its columns, its scores, and words.

    Attributes
    ----------
    whole : the estimator.
    fitted, outcome : the fitted model as a value, and what its target is.
    steps : name and transformer of the steps before it.
    features : names of its features, and of the columns that they were made from.
    target : name of the target, if it has one.
    classes, codes : labels of the classes, none of numbers, and (n_samples,) indices among them.
    n_samples, n : number of samples, and of those of positive weight; others take no part in fit
        and scores.
    rows : samples that the model was fitted to; None for rows in blocks, which are not kept.
    table : the same if they have features; None of a kernel matrix.
    held_out : output for every sample by the model without its fold, its group or itself.
    nested : predictions by models that were chosen without the sample, if there are.
    kernel, landmarks, n_landmarks : of the largest member that has a kernel; None without.
    stacked : True for a stack of models; what is told of a search is that of the largest.
    tuning : record of the search of the model, of a stack of the largest.
    best : place of the candidate that was taken, of a stack of the largest.
    shares : weights of the candidates in a stack, also if one got all; None if none was made.
    scale : transform that the target was fitted on the scale of; None for that of the target.
    unit, method : what is held out at a time (as of `Units.unit`), and the
        method's name.
    chosen_by : name of the method by which the criterion held samples out.
    n_choice_folds : folds that compare candidates, each tuned without them; 0 if none do.
        Candidates are then compared by the held-out outputs that the criterion judged.
    candidates_by : name of the method by which the candidates' loss held samples out.
    """

    def __init__(self, whole: Any, steps: list[tuple[str, Any]]) -> None:
        fitted: Fitted = whole.fitted_
        self.whole, self.fitted, self.steps = whole, fitted, steps
        self.outcome: Any = fitted.outcome
        self.features = features_of(Pipeline(steps), whole)
        self.target = None if whole._target is None else clean(whole._target)
        self.classes = [str(label) for label in written_labels(fitted.outcome.classes)]
        X, n = fitted.rows.X, len(fitted.rows.weight)
        self.n_samples, self.n = n, len(fitted.rows.train)
        self.codes = fitted.outcome.codes(fitted.rows.targets)
        self.rows: Matrix | None = None if isinstance(X, RowBlocks) else X
        self.table = None if fitted.pairwise else self.rows
        self.held_out: HeldOut = fitted.held_out_predicted
        self._evaluated: Scores | None = scores_of(whole)
        evaluated = None if self._evaluated is None else self._evaluated._nested
        self.nested: Nested | None = evaluated or fitted.in_folds

        leading, selection = fitted.leading, fitted.selection
        self.kernel: Any = None if leading is None else leading.kernel
        self.landmarks: Matrix | None = None if leading is None else leading.landmarks
        self.n_landmarks = None if self.landmarks is None else int(self.landmarks.shape[0])
        self.stacked = len(fitted.members) > 1
        tuning = None if selection is None else selection.tuning
        self.tuning: Tuning | None = tuning if tuning and tuning.history else None
        self.best = 0 if selection is None else selection.index
        self.shares = fitted.candidate_weights if fitted.candidates else None
        transform = fitted.outcome.transform
        self.scale: str | None = None if transform == "none" else transform

        self.unit = (self.nested or fitted).units.unit
        self.method, self.chosen_by = METHODS[self.unit], METHODS[fitted.units.unit]
        self.n_choice_folds = fitted.in_folds.units.n_counted if fitted.in_folds else 0
        by_folds = f"{self.n_choice_folds}-fold {METHODS['fold']}"
        self.candidates_by = by_folds if self.n_choice_folds else self.chosen_by

    @cached_property
    def scores(self) -> Scores:
        """What ``evaluate`` returned, or the scores of the held-out predictions of the fit."""
        return self._evaluated or held_out_scores(self.fitted)

    @property
    def scores_on_scale(self) -> Scores:
        """The same on the scale of the transform, if the target was transformed."""
        return self.scores if self.scale is None else held_out_scores(self.fitted.on_scale)

    @property
    def decisions(self) -> Decisions:
        """Decisions on the rows that are scored; of classes."""
        assert self.scores.decisions is not None
        return self.scores.decisions

    def scored(self, values: AnyArray) -> AnyArray:
        """Values of the rows that are scored."""
        return values[self.scores.rows]

    @property
    def variances(self) -> Array:
        """(n_features,) variances over the samples, or the landmarks if samples are not kept."""
        return variances(self.landmarks if self.rows is None else self.rows)

    # Candidates -------------------------------------------------------------------------

    @property
    def _tried(self) -> list[Any]:
        """Candidates as they were passed."""
        return list((self.fitted.recipe or self.whole)._candidates)

    @property
    def prior(self) -> bool | None:
        """True if a prior restrained the hyper-parameters; None where there is no such option."""
        chosen = self._tried[self.best]
        return candidate_of(chosen).search.prior if has_kernel(chosen) else None

    @property
    def follows_paths(self) -> bool:
        """True if the leading member is a support vector machine, searched without gradient."""
        return hasattr(self.fitted.leading, "support")

    @property
    def candidate_losses(self) -> Array:
        """The loss by which candidates were compared, in the units of `loss`."""
        losses = np.array([one.loss for one in self.fitted.candidates])
        return losses if self.outcome.decides else np.sqrt(losses)

    @property
    def rule(self) -> ThresholdRule | Metric:
        """Rule for the threshold of two classes; without one, that of the balanced error."""
        given = self.outcome.threshold
        return threshold_rule("balanced" if isinstance(given, Real) else given)

    @property
    def loss(self) -> CandidateLoss:
        """By what candidates are compared.

        Points are compared by the criterion itself, unless folds compare them.
        """
        if not self.outcome.decides:
            of_scale = f" of {self.fitted_to}" if self.fitted_to else ""
            return CandidateLoss(f"{SCORES['rmse'].name}{of_scale}", "rmse")
        on_grid = (has_kernel(one) and candidate_of(one).on_grid for one in self._tried)
        points = self.tuning is None or all(on_grid)
        if self.fitted.candidates and points and not self.n_choice_folds:
            return CandidateLoss(str(self.fitted.criterion))
        if not self.outcome.labeled:
            key = self.outcome.headline
            return CandidateLoss(SCORES[key].name, key)
        given, rule = self.outcome.threshold, self.rule
        if isinstance(rule, BalancedError):
            return CandidateLoss("balanced error rate", "balanced_accuracy", rule)
        if isinstance(rule, ThresholdRule):
            return CandidateLoss(rule.loss_name, rule=rule)
        return CandidateLoss(f"loss of {getattr(given, '__name__', given)}", rule=rule)

    # Words ------------------------------------------------------------------------------

    @property
    def fitted_to(self) -> str:
        """What the kernel models were fitted to, such as "log(price)"; empty for the target."""
        return "" if self.scale is None else f"{self.scale}({self.target or 'target'})"

    @property
    def prepared_anew(self) -> bool:
        """True if scores are of columns that were prepared without the rows that are scored."""
        whole = self.nested is not None and self.nested.whole
        return whole and self.fitted.columns is not None and self.rows is not None

    def repeated_without(self, each: str) -> str:
        """What was repeated without each fold, group or sample, called ``each``."""
        each += " of whole groups" * (self.unit == "fold" and self.fitted.units.grouped)
        if self.nested and self.nested.whole:
            repeated = "everything" if self.prepared_anew else "model selection"
            return f"{repeated} was repeated without each {each}"
        verb = "chosen" if self.shares is None else "weighted"
        return f"candidates were tuned anew without each {each}, and {verb} on the other folds"

    @property
    def has_outer_folds(self) -> bool:
        """True if there are rows, or groups, enough for scores that are not optimistic."""
        weighted = self.fitted.rows.weight > 0
        sizes = units_of_classes(self.codes, self.fitted.units.clusters, weighted)
        return bool(min(sizes) >= LEAST_OUTER_FOLDS)

    @property
    def can_evaluate(self) -> bool:
        """True if ``evaluate()`` can repeat the selection."""
        if not self.has_outer_folds or self.rows is None or self.fitted.tuned_before:
            return False
        with suppress(ValueError):
            evaluation_folds(self.whole.cv, self.fitted, self.fitted.rows)
            return True
        return False

    @property
    def unbiased_by(self) -> str:
        """What gives scores that are not optimistic: subject and verb; empty if nothing does."""
        if not self.has_outer_folds:
            return ""
        assess = setting("assess", text="looms.assess")
        if self.can_evaluate:
            return f"{setting('evaluate', text='evaluate()')} and {assess} give"
        return f"{assess} gives"


def model_of(estimator: Any) -> Reported:
    """The model of looms in a fitted estimator; TypeError or NotFittedError without one.

    The estimator is the model, a model of tables around it, a pipeline that
    ends in one of them, or a search with such a ``best_estimator_``.
    """
    model, parts = last_model(estimator), parts_of(estimator)
    check_is_fitted(model)
    return Reported(model, parts.steps)


def searched_model(estimator: Any, purpose: str) -> tuple[Reported, Tuning]:
    """`model_of` and its search; TypeError if there is none on record."""
    model = model_of(estimator)
    if model.tuning is None:
        raise TypeError(
            f"{purpose} shows a search, but {type(model.whole).__name__} has no record of one: "
            "fit KernelClassifier or KernelRegressor."
        )
    return model, model.tuning


def parameter_name(model: Reported, tuned: Hyperparameter | BoundMet) -> str:
    """A hyper-parameter's name, with that of the feature that it belongs to.

    A name that several parts of a kernel have comes with the part, as in "left__gamma".
    """
    if tuned.feature is not None:
        return f"{tuned.word} of {model.features.names[tuned.feature]}"
    ends = [h.name.rpartition("__")[2] for h in model.kernel.hyperparameters]
    end = tuned.name.rpartition("__")[2]
    return end if ends.count(end) < 2 else tuned.name


def relevances(model: Reported) -> Array | None:
    """Relevance of each feature, as in `looms.report.RelevanceDisplay`; None without scales.

    For a stack, those of its largest member; for rows in blocks, those over the landmarks.
    """
    kernel, gammas, is_ard = model.kernel, np.zeros(model.fitted.n_features), False
    if kernel is None:
        return None
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


def residual_sizes(model: Reported) -> Array:
    """Size of the leave-one-out residual, (n_samples,); the norm for several targets.

    For labels ±1 it is [1 − t f]₊, by how much the output falls short of the label: an output
    beyond on the right side does not count. NaN for a sample of weight zero, which is not left out.
    """
    loo = model.held_out
    short = np.maximum(loo.y * loo.residuals, 0)
    sizes = short if model.outcome.labeled else np.abs(loo.residuals)
    sizes = sizes if sizes.ndim == 1 else np.linalg.norm(sizes, axis=1)
    return np.where(model.fitted.rows.weight > 0, sizes, np.nan)


def sampled_rows(model: Reported, size: int, random_state: int) -> AnyArray:
    """At most about ``size`` rows of positive weight, stratified by class.

    ValueError if the model keeps no rows.
    """
    if model.rows is None:
        raise ValueError(
            "This needs the training rows, but a model fitted to rows in blocks does not keep them."
        )
    weighted = model.fitted.rows.train
    if len(weighted) <= size:
        return weighted
    rng = np.random.RandomState(random_state)
    if not model.outcome.decides:
        return np.sort(rng.choice(weighted, size, replace=False))
    labels = model.codes[weighted]
    chosen = []
    for label in np.unique(labels):
        members = weighted[labels == label]
        quota = max(round(size * len(members) / len(weighted)), min(_FEW, len(members)))
        chosen.append(rng.choice(members, quota, replace=False))
    return np.sort(np.concatenate(chosen))
