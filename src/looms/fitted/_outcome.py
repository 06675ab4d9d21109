"""Outcomes: what the target of a model is, classes or numbers, and how outputs become predictions.

An outcome codes targets, decodes outputs, and has the loss that candidates are compared by, the
rule of the decisions and the scores. What is above it does not ask which of them it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from looms._classes import class_factors, class_indices, merge_ties
from looms._typing import AnyArray, Array
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import Calibrator, class_probabilities, output_at
from looms.calibration._softmax import Softmax
from looms.criteria import PRESS
from looms.criteria._error_rates import balanced_error_rate
from looms.held_out import HeldOut
from looms.selection._candidates import HeldOutLoss
from looms.selection._decisions import Rule
from looms.selection._target_transforms import (
    NONNEGATIVE,
    TARGET_TRANSFORMS,
    TargetTransform,
    means_without_own,
    smeared_means,
)
from looms.threshold import find_threshold


class Outcome(ABC):
    """Base class of outcomes."""

    #: True if folds are stratified, by the values of the target.
    stratified: ClassVar[bool]
    #: True if a rule makes decisions of outputs.
    decides: ClassVar[bool]
    #: Kind of the calibrator of probabilities; None without.
    calibration: Any = None

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

    @abstractmethod
    def values(self, targets: Array) -> AnyArray:
        """Values of the target, as they were given, of the coded ``targets``."""

    @abstractmethod
    def loss(self, held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
        """Loss of held-out outputs by which candidates are compared, with its threshold and
        calibrator; ``fit_weight`` are the weights of the rows in the fit."""

    def tied(self, outputs: Array, tie: float) -> Array:
        """Outputs, of which those that differ by rounding are equal where that counts."""
        return outputs

    def factors(self, targets: Array, weight: Array, rest: AnyArray) -> Array:
        """Factors for the weights of the rows ``rest`` that keep proportions of all rows."""
        return np.ones(len(rest))

    def predicted(self, held_out: HeldOut, outputs: Array) -> Array:
        """Predictions in units of the target, of outputs; ``held_out`` are those of the fit."""
        return outputs

    def predicted_of_fit(self, held_out: HeldOut, outputs: Array) -> Array:
        """The same for outputs of each row of the fit, by the other rows."""
        return outputs

    def residuals(self, values: AnyArray, outputs: Array) -> Array | None:
        """Targets less outputs, of values as they were given; None if they are as of the coded."""
        return None

    def codes(self, targets: Array) -> AnyArray:
        """(n,) integers from 0, equal for rows that class weights weigh alike."""
        return np.zeros(len(targets), dtype=int)

    def missing(self, targets: Array) -> list[Any]:
        """Values without which no model can be fitted, and that none of these targets has."""
        return []


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

    stratified = decides = True
    labels: AnyArray
    threshold: Any = 0.5
    calibration: Any = "sigmoid"
    weighted: bool = False
    positive_first: bool = False

    @property
    def classes(self) -> AnyArray:
        return self.labels

    def values(self, targets: Array) -> AnyArray:
        return np.asarray(self.labels[class_indices(targets)])

    def loss(self, held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
        """Loss of the threshold rule on held-out outputs, the threshold and the calibrator.

        Probabilities are those of the classes as they are, whatever their weights. The threshold
        of a probability is that of a calibrator with the weights of the fit: otherwise it would
        undo them.
        """
        calibrator = weighted = None
        if self.calibration is not None:
            calibrator = weighted = fit_calibrator(held_out, self.calibration)
            if isinstance(self.threshold, Real) and self.weighted:
                own = HeldOut(held_out.y, held_out.outputs, fit_weight)
                weighted = fit_calibrator(own, self.calibration)
        cut, loss = self._threshold_and_loss(weighted, held_out)
        return HeldOutLoss(loss, cut, calibrator)

    def _threshold_and_loss(
        self, calibrator: Calibrator | None, held_out: HeldOut
    ) -> tuple[float | Array, float]:
        """Threshold of the outputs, and the loss of its rule; of probabilities the balanced error.

        Without a calibrator 0 is where classes change. For several classes with a softmax the
        threshold is (n_classes,) numbers; with another one the largest output wins, and it is 0.
        """
        if not isinstance(self.threshold, Real):
            if not self.positive_first:
                return find_threshold(held_out, self.threshold)
            y, outputs, weight = held_out
            of_first, loss = find_threshold(HeldOut(-y, -outputs, weight), self.threshold)
            return -of_first, loss
        cut: float | Array = 0.0
        if isinstance(calibrator, Softmax):
            cut = calibrator.thresholds(held_out.outputs[held_out.sample_weight > 0])
        elif calibrator is not None and held_out.y.ndim == 1:
            probability = float(self.threshold)
            probability = 1.0 - probability if self.positive_first else probability
            cut = output_at(calibrator, held_out.outputs, probability)
        return cut, balanced_error_rate(*held_out, threshold=cut)

    def tied(self, outputs: Array, tie: float) -> Array:
        return merge_ties(outputs, tie)

    def factors(self, targets: Array, weight: Array, rest: AnyArray) -> Array:
        return class_factors(class_indices(targets), weight, rest)

    def codes(self, targets: Array) -> AnyArray:
        return class_indices(targets)

    def missing(self, targets: Array) -> list[Any]:
        counts = np.bincount(class_indices(targets), minlength=len(self.labels))
        return list(self.labels[counts == 0].tolist())

    def decided(self, outputs: Array, rule: Rule) -> AnyArray:
        """Class of each output."""
        return np.asarray(self.labels[class_indices(outputs - rule.threshold)])

    def probabilities(self, outputs: Array, rule: Rule) -> Array:
        """Probability of each class, (n, k)."""
        assert rule.calibrator is not None
        return class_probabilities(rule.calibrator, outputs)


@dataclass(frozen=True, eq=False)
class Numbers(Outcome):
    """Numbers, of which a transform is fitted.

    Attributes
    ----------
    transform : name of the transform.
    errors : root mean square error by each transform that was compared, by name; empty if there was
        one. Of "none" that was compared with others, what is below zero counts as zero.
    """

    stratified = decides = False
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

    def residuals(self, values: AnyArray, outputs: Array) -> Array:
        return np.asarray(self.function.forward(values) - outputs)
