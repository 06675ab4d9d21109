"""Outcomes: what the target of a model is, classes or numbers, and how outputs become predictions.

An outcome codes targets, decodes outputs, and has the loss that candidates are compared by, the
rule of the decisions and the scores. What is above it does not ask which of them it is.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from looms._classes import (
    class_factors,
    class_indices,
    class_shares,
    class_targets,
    merge_ties,
    written_labels,
)
from looms._scores import (
    ValuesAndErrors,
    class_baselines,
    class_scores,
    class_shares_of,
    means_and_medians,
    number_baselines,
    number_scores,
)
from looms._typing import AnyArray, Array
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import class_probabilities, output_at
from looms.calibration._softmax import Softmax
from looms.conformal._sets import class_margins
from looms.criteria import PRESS
from looms.criteria._error_rates import balanced_error_rate
from looms.held_out import HeldOut
from looms.selection._candidates import HeldOutLoss
from looms.selection._decisions import Area, Decided, Decisions, Made, Rule
from looms.selection._fold_pairs import fold_pairs, pair_auc
from looms.selection._stack import stacking_weights
from looms.selection._target_transforms import (
    NONNEGATIVE,
    TARGET_TRANSFORMS,
    TargetTransform,
    means_without_own,
    smeared_means,
)
from looms.threshold import find_threshold

#: Separator of the labels of a set in text.
SEPARATOR = "|"


class Outcome(ABC):
    """Base class of outcomes."""

    #: True if folds are stratified, by the values of the target.
    stratified: ClassVar[bool]
    #: True if a rule makes decisions of outputs.
    decides: ClassVar[bool]
    #: True if targets are ±1, which some criteria and losses need.
    labeled: ClassVar[bool]
    #: Key of the score that stands for the others.
    headline: ClassVar[str]
    #: True if the first of two classes is the positive one.
    positive_first: bool = False
    #: Name of the transform of the target that is fitted; None of classes.
    transform: str | None = None
    #: Errors by the transforms that were compared.
    errors: Mapping[str, float] = MappingProxyType({})
    #: Kind of the calibrator of probabilities; None without.
    calibration: Any = None
    #: Probability above which the positive class is predicted, or a rule.
    threshold: Any = 0.5

    @property
    def plain(self) -> bool:
        """True if outputs are on the scale of the target."""
        return True

    @property
    def on_scale(self) -> Outcome:
        """The outcome of the targets as they are fitted."""
        return self

    @property
    def classes(self) -> AnyArray:
        """The classes; none of numbers."""
        return np.empty(0)

    @property
    def in_order(self) -> AnyArray:
        """(k,) indices of the classes in the order in which they are shown."""
        return np.arange(len(self.classes))

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of an estimator with this outcome."""
        return {}

    # Targets ----------------------------------------------------------------------------

    def codes_targets(self, targets: Array) -> bool:
        """True if the coded ``targets`` can be of this outcome."""
        return True

    @abstractmethod
    def values(self, targets: Array) -> AnyArray:
        """Values of the target, as they were given, of the coded ``targets``."""

    def passed(self, values: AnyArray) -> Any:
        """Values as `fit` takes them, with what they alone do not tell."""
        return values

    def coded(self, codes: AnyArray) -> Array:
        """Targets of indices of the classes."""
        raise NotImplementedError("These targets have no classes.")

    def codes(self, targets: Array) -> AnyArray:
        """(n,) indices of the classes, which weigh alike; zeros of numbers."""
        return np.zeros(len(targets), dtype=int)

    def missing(self, targets: Array) -> list[Any]:
        """Values without which no model can be fitted, and that none of these targets has."""
        counts = np.bincount(self.codes(targets), minlength=len(self.classes))
        return list(self.classes[counts[: len(self.classes)] == 0].tolist())

    def factors(self, targets: Array, weight: Array, rest: AnyArray) -> Array:
        """Factors for the weights of the rows ``rest`` that keep proportions of all rows."""
        return np.ones(len(rest))

    # Outputs ----------------------------------------------------------------------------

    def tied(self, outputs: Array, tie: float) -> Array:
        """Outputs, of which those that differ by rounding are equal where that counts."""
        return outputs

    def predicted(self, held_out: HeldOut, outputs: Array) -> Array:
        """Predictions in units of the target, of outputs; ``held_out`` are those of the fit."""
        return outputs

    def predicted_of_fit(self, held_out: HeldOut, outputs: Array) -> Array:
        """The same for outputs of each row of the fit, by the other rows."""
        return outputs

    def outputs_of_estimator(self, values: Array, classes: AnyArray, likely: bool) -> Array:
        """Outputs, in columns, that an estimator gives for some of the ``classes``.

        ``values`` are its decision values, or probabilities if ``likely``.
        """
        raise NotImplementedError("These targets have no classes.")

    # Choice, rule and decisions ------------------------------------------------------------

    def makes_rule(self, rule: Rule) -> bool:
        """True if the ``rule`` can be of this outcome."""
        return rule.calibrator is None and np.ndim(rule.threshold) == 0

    @abstractmethod
    def loss(self, held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
        """Loss of held-out outputs by which candidates are compared, with its threshold and
        calibrator; ``fit_weight`` are the weights of the rows in the fit."""

    def stacking_weights(self, y: Array, outputs: Array, weight: Array) -> Array:
        """(n_models,) weights of a stack, as of `looms.selection._stack.stacking_weights`."""
        return stacking_weights(y, outputs, weight, labeled=False)

    def thresholds(self, rule: Rule) -> dict[str, float]:
        """Thresholds of the outputs by name; none of numbers."""
        return {}

    def margins(self, outputs: Array) -> Array:
        """(..., k) how typical outputs in columns, (..., t), are of each class."""
        raise NotImplementedError("These targets have no classes.")

    def decision_margins(self, outputs: Array, rule: Rule) -> Array:
        """(n, k) how far each output is inside of each class by the rule; below zero outside."""
        raise NotImplementedError("These targets have no classes.")

    def indices(self, outputs: Array, rule: Rule) -> AnyArray:
        """Index of the class of each output."""
        raise NotImplementedError("These targets have no classes.")

    def decision(self, outputs: Array, rule: Rule) -> Array:
        """Outputs less the threshold: positive for the second of two classes, else the largest in
        the column of the class."""
        raise NotImplementedError("These targets have no classes.")

    def probabilities(self, outputs: Array, rule: Rule) -> Array:
        """Probability of each class, (n, k)."""
        raise NotImplementedError("These targets have no classes.")

    def of_classes(self, outputs: Array, rule: Rule) -> Array:
        """Probability of each class, (n, k), or without a calibrator its decision value."""
        if rule.calibrator is not None:
            return self.probabilities(outputs, rule)
        values = self.decision(outputs, rule)
        return values if values.ndim == 2 else np.column_stack([-values, values])

    def decided(self, rows: AnyArray, outputs: Array, rule: Rule) -> Decided:
        """Classes and probabilities of the outputs of rows that were held out."""
        raise NotImplementedError("These targets have no classes.")

    def decisions(self, decided: Sequence[Decided], targets: Array) -> Decisions:
        """Decisions on every row, each of which is decided at least once."""
        return Decisions.of(decided, self.codes(targets))

    def pairs(self, Y: Array, number: AnyArray) -> list[tuple[int, int]]:
        """Pairs of folds that are held out together; none if no area compares them."""
        return []

    def area(self, *compared: Any) -> Area | None:
        """Area under the ROC curve of `looms.selection._fold_pairs.pair_auc`; None for none."""
        return None

    # Scores -----------------------------------------------------------------------------

    @abstractmethod
    def scores(
        self, y: Array, outputs: Array, weight: Array, groups: AnyArray | None, made: Made | None
    ) -> ValuesAndErrors:
        """Values and errors of scores of held-out rows.

        Parameters
        ----------
        y : (n,) or (n, t) targets; numbers in the units of ``outputs``.
        outputs : (n_repetitions, n) or (n_repetitions, n, t), NaN if a row is not held out.
        weight, groups : as of `looms._scores.class_scores`.
        made : decisions on classes, and the area under their ROC curve.
        """

    @abstractmethod
    def without_columns(self, y: Array, weight: Array) -> Array:
        """What the targets alone tell: shares of classes, (k,), or means and medians, (2, t)."""

    @abstractmethod
    def baselines(self, y: Array, weight: Array, known: Array | None = None) -> dict[str, float]:
        """The same scores without any columns.

        ``known``, (n, ...), is what `without_columns` told of other rows for each row; by default
        it is of all these rows.
        """

    # New rows ---------------------------------------------------------------------------

    def prediction_columns(self, outputs: Array, rule: Rule) -> dict[str, AnyArray]:
        """Predictions, and the decision values and probabilities of classes, by names of columns.

        Parameters
        ----------
        outputs : (m,) or (m, t), of new rows; numbers in units of the target.
        rule : of the fit.
        """
        decision, indices = self.decision(outputs, rule), self.indices(outputs, rule)
        p = None if rule.calibrator is None else self.probabilities(outputs, rule)
        order = self.in_order
        return columns_of_classes(self.classes, indices, decision, p, self.positive_first, order)

    @abstractmethod
    def scores_of_new(
        self, values: AnyArray, outputs: Array, rule: Rule, weight: Array, groups: AnyArray | None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        """Scores of new rows, and baselines.

        Parameters
        ----------
        values : (m,) or (m, t) of the target.
        outputs, rule : as of `prediction_columns`.
        weight, groups : as of `scores`.
        """


def of_targets(name: str, values: AnyArray) -> dict[str, AnyArray]:
    """Columns of values of one target, (m,), or of several, (m, t), whose numbers are in names."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{k}": column for k, column in enumerate(values.T)}


def columns_of_classes(
    classes: AnyArray,
    indices: AnyArray,
    decision: Array,
    probabilities: Array | None,
    positive_first: bool,
    in_order: AnyArray,
) -> dict[str, AnyArray]:
    """Columns of predicted classes, decision values and probabilities.

    Of two classes there is one column of decision values, that of the positive class.

    Parameters
    ----------
    classes : (k,)
    indices : (m,) of the predicted classes.
    decision : (m,), positive for the second of two classes, or (m, k).
    probabilities : (m, k), or None.
    positive_first : whether the first of two classes is the positive one.
    in_order : (k,) indices of the classes in the order of the columns.
    """
    labels = written_labels(classes)
    columns = {"prediction": labels[indices]}
    if decision.ndim == 2:
        columns |= {f"decision_{labels[k]}": decision[:, k] for k in in_order}
    elif positive_first:
        columns[f"decision_{labels[0]}"] = -decision
    else:
        columns[f"decision_{labels[1]}"] = decision
    if probabilities is not None:
        columns |= {f"probability_{labels[k]}": probabilities[:, k] for k in in_order}
    return columns


def column_of_sets(classes: AnyArray, members: AnyArray) -> dict[str, AnyArray]:
    """Column of the labels of each row of (m, k) memberships, with bars between them.

    UserWarning if labels hold a bar.
    """
    labels = [str(label) for label in written_labels(classes)]
    if any(SEPARATOR in label for label in labels):
        message = f"labels hold {SEPARATOR!r}, which also separates the labels of a set"
        warnings.warn(message, UserWarning, stacklevel=2)
    sets = [SEPARATOR.join(compress(labels, row)) for row in members]
    return {"set": np.array(sets, dtype=object)}


@dataclass(frozen=True, eq=False)
class Classes(Outcome):
    """Classes, whose targets are ±1: (n,) of two, +1 for the second, and (n, k) of k.

    Attributes
    ----------
    labels : (k,) the classes, sorted.
    threshold : probability of the positive class above which it is predicted, or a rule.
    calibration : kind of the calibrator, or None.
    weighted : whether the fit has class weights, which probabilities are without.
    positive_first : whether the first of two classes is the positive one.
    """

    stratified = decides = labeled = True
    headline = "balanced_accuracy"
    labels: AnyArray
    threshold: Any = 0.5
    calibration: Any = "sigmoid"
    weighted: bool = False
    positive_first: bool = False

    @property
    def classes(self) -> AnyArray:
        return self.labels

    @property
    def parameters(self) -> dict[str, Any]:
        positive = self.labels.tolist()[0] if self.positive_first else None
        calibration = self.calibration
        return {"threshold": self.threshold, "calibration": calibration, "pos_label": positive}

    def codes_targets(self, targets: Array) -> bool:
        k = len(self.labels)
        return targets.shape[1:] == (k,) * (k > 2)

    def makes_rule(self, rule: Rule) -> bool:
        k, shape = len(self.labels), np.shape(rule.threshold)
        if isinstance(rule.calibrator, Softmax):
            return k > 2 and rule.calibrator.constants.shape == (k,) and shape in ((), (k,))
        return shape == () and not hasattr(rule.calibrator, "constants")

    def coded(self, codes: AnyArray) -> Array:
        return class_targets(codes, len(self.labels))

    def values(self, targets: Array) -> AnyArray:
        return np.asarray(self.labels[class_indices(targets)])

    def loss(self, held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
        """Loss of the threshold rule on held-out outputs, the threshold and the calibrator.

        Probabilities are those of the classes as they are, whatever their weights. The threshold
        of a probability is that of a calibrator with the weights of the fit: otherwise it would
        undo them. Its loss is the balanced error. Without a calibrator 0 is where classes change.
        For several classes with a softmax the threshold is (n_classes,) numbers; with another one
        the largest output wins, and it is 0.
        """
        calibrator = weighted = None
        if self.calibration is not None:
            calibrator = weighted = fit_calibrator(held_out, self.calibration)
            if isinstance(self.threshold, Real) and self.weighted:
                own = HeldOut(held_out.y, held_out.outputs, fit_weight)
                weighted = fit_calibrator(own, self.calibration)
        if not isinstance(self.threshold, Real):
            y, outputs, weight = held_out
            sign = -1.0 if self.positive_first else 1.0
            found, loss = find_threshold(HeldOut(sign * y, sign * outputs, weight), self.threshold)
            return HeldOutLoss(loss, sign * found, calibrator)
        cut: float | Array = 0.0
        if isinstance(weighted, Softmax):
            cut = weighted.thresholds(held_out.outputs[held_out.sample_weight > 0])
        elif weighted is not None and held_out.y.ndim == 1:
            probability = float(self.threshold)
            probability = 1.0 - probability if self.positive_first else probability
            cut = output_at(weighted, held_out.outputs, probability)
        return HeldOutLoss(balanced_error_rate(*held_out, threshold=cut), cut, calibrator)

    def tied(self, outputs: Array, tie: float) -> Array:
        return merge_ties(outputs, tie)

    def factors(self, targets: Array, weight: Array, rest: AnyArray) -> Array:
        return class_factors(class_indices(targets), weight, rest)

    def codes(self, targets: Array) -> AnyArray:
        return class_indices(targets)

    def outputs_of_estimator(self, values: Array, classes: AnyArray, likely: bool) -> Array:
        """2 p − 1 with the probability p of each class, or the decision values."""
        if likely:
            values = 2.0 * values - 1.0
        known = np.searchsorted(self.labels, classes)
        if len(known) == 2 and values.shape[1] == 1:
            values = np.hstack([-values, values])
        least = np.minimum(values.min(axis=1, keepdims=True), -1.0)
        every = np.tile(least, len(self.labels))
        every[:, known] = values
        return every[:, 1:] if len(self.labels) == 2 else every

    def stacking_weights(self, y: Array, outputs: Array, weight: Array) -> Array:
        return stacking_weights(y, outputs, weight, labeled=self.calibration is not None)

    def thresholds(self, rule: Rule) -> dict[str, float]:
        if np.ndim(rule.threshold) == 0:
            return {"threshold": float(rule.threshold)}
        of_classes = zip(self.labels.tolist(), np.asarray(rule.threshold).tolist(), strict=True)
        return {f"threshold[{label}]": value for label, value in of_classes}

    def margins(self, outputs: Array) -> Array:
        return class_margins(outputs)

    def decision_margins(self, outputs: Array, rule: Rule) -> Array:
        return class_margins(self.decision(outputs, rule).reshape(len(outputs), -1))

    def indices(self, outputs: Array, rule: Rule) -> AnyArray:
        return class_indices(outputs, rule.threshold)

    def decision(self, outputs: Array, rule: Rule) -> Array:
        return np.asarray(outputs - rule.threshold)

    def probabilities(self, outputs: Array, rule: Rule) -> Array:
        assert rule.calibrator is not None
        return class_probabilities(rule.calibrator, outputs)

    def scores_of_new(
        self, values: AnyArray, outputs: Array, rule: Rule, weight: Array, groups: AnyArray | None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        """Labels that are no class count as errors, and have no probability: the log loss is NaN.
        ValueError if all are.

        The area is that of the second of two classes, or a mean over classes against the rest; it
        is NaN without rows of both kinds.
        """
        place = {label: k for k, label in enumerate(self.labels.tolist())}
        codes = np.array([place.setdefault(label, len(place)) for label in values.tolist()])
        k, n, losses = len(self.labels), len(codes), None
        known, rows = codes < k, np.arange(n)
        if not known.any():
            classes = ", ".join(map(repr, written_labels(self.labels).tolist()))
            raise ValueError(
                f"the model knows {classes}, and none of the labels of the target, such as "
                f"{values.tolist()[0]!r}"
            )
        if not known.all():
            unknown = ", ".join(sorted(map(repr, [*place][k:])))
            message = f"labels that the model does not know count as errors: {unknown}"
            warnings.warn(message, UserWarning, stacklevel=2)
        own = codes[:, None] == np.arange(k)
        targets = np.where(own[:, 1:] if k == 2 else own, 1.0, -1.0)
        decision = self.decision(outputs, rule).reshape(n, -1)
        area = pair_auc(targets, decision, [rows], [], [], weight, groups=groups)
        if rule.calibrator is not None:
            p = self.probabilities(outputs, rule)[rows, np.where(known, codes, 0)]
            losses = -np.log(np.maximum(np.where(known, p, np.nan), np.finfo(np.float64).eps))
        wrong = (codes != self.indices(outputs, rule)).astype(np.float64)
        codes = np.unique(codes, return_inverse=True)[1]
        scores = class_scores(codes, wrong, area, weight, groups, losses)
        baselines = class_baselines(codes, weight)
        return scores, {name: baselines[name] for name in scores}

    def decided(self, rows: AnyArray, outputs: Array, rule: Rule) -> Decided:
        """Ties are those of `looms._classes.class_shares`."""
        p = None if rule.calibrator is None else self.probabilities(outputs, rule)
        return Decided(rows, outputs, class_shares(outputs, rule.threshold, rule.tie), p)

    def pairs(self, Y: Array, number: AnyArray) -> list[tuple[int, int]]:
        return fold_pairs(Y, number)

    def area(self, *compared: Any) -> Area:
        return pair_auc(*compared)

    def scores(
        self, y: Array, outputs: Array, weight: Array, groups: AnyArray | None, made: Made | None
    ) -> ValuesAndErrors:
        assert made is not None
        decisions, area = made
        assert area is not None
        codes = self.codes(y)
        return class_scores(codes, decisions.wrong, area, weight, groups, decisions.losses)

    def without_columns(self, y: Array, weight: Array) -> Array:
        return class_shares_of(self.codes(y), weight, len(self.labels))

    def baselines(self, y: Array, weight: Array, known: Array | None = None) -> dict[str, float]:
        return class_baselines(self.codes(y), weight, known)


@dataclass(frozen=True, eq=False)
class Numbers(Outcome):
    """Numbers, of which a transform is fitted.

    Attributes
    ----------
    transform : name of the transform.
    errors : root mean square error by each transform that was compared, by name; empty if there was
        one. Of "none" that was compared with others, what is below zero counts as zero.
    """

    stratified = decides = labeled = False
    headline = "rmse"
    transform: str = "none"
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def function(self) -> TargetTransform:
        """The transform with its inverse."""
        if self.transform == "none" and self.errors:
            return NONNEGATIVE
        return TARGET_TRANSFORMS[self.transform]

    @property
    def plain(self) -> bool:
        return self.transform == "none" and not self.errors

    @property
    def on_scale(self) -> Numbers:
        return Numbers()

    def values(self, targets: Array) -> Array:
        return targets if self.plain else self.function.inverse(targets)

    def loss(self, held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
        """Mean squared error."""
        with np.errstate(over="ignore", invalid="ignore"):  # squares of enormous targets
            return HeldOutLoss(PRESS().evaluate(*held_out).value)

    def predicted(self, held_out: HeldOut, outputs: Array) -> Array:
        return outputs if self.plain else smeared_means(self.function, outputs, held_out)

    def predicted_of_fit(self, held_out: HeldOut, outputs: Array) -> Array:
        return outputs if self.plain else means_without_own(self.function, outputs, held_out)

    def prediction_columns(self, outputs: Array, rule: Rule) -> dict[str, AnyArray]:
        return of_targets("prediction", outputs)

    def scores_of_new(
        self, values: AnyArray, outputs: Array, rule: Rule, weight: Array, groups: AnyArray | None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        scores = number_scores(values, outputs[None], weight, groups)
        return scores, self.baselines(values, weight)

    def scores(
        self, y: Array, outputs: Array, weight: Array, groups: AnyArray | None, made: Made | None
    ) -> ValuesAndErrors:
        return number_scores(y, outputs, weight, groups)

    def without_columns(self, y: Array, weight: Array) -> Array:
        return means_and_medians(y, weight)

    def baselines(self, y: Array, weight: Array, known: Array | None = None) -> dict[str, float]:
        return number_baselines(y, weight, known)
