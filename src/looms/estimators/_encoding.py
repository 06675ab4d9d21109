"""Classes as ±1 targets and weights, and the threshold that decides between two of them."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from looms._classes import class_indices, class_targets
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._calibrators import Calibrator, output_at_half
from looms.criteria import balanced_error_rate
from looms.estimators._base import KernelMachine
from looms.held_out import HeldOut
from looms.threshold import as_rule, find_threshold


class ThresholdedClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Base of the machines that decide between classes, two of them by a threshold."""

    classes_: AnyArray
    threshold_: float

    @abstractmethod
    def _decision(self, X: Matrix) -> Array:
        """(n,) or (n, n_classes) decision values before the threshold, for validated samples."""

    def decision_function(self, X: Any) -> Array:
        """Outputs of the machine less the threshold, so that 0 is the boundary.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for ``classes_[1]``; for more, one column a class, of which
            the largest wins: those of `SVCCV` are logarithms of the coupled probabilities.
        """
        return self._decision(self._checked_new_data(X)) - self.threshold_

    def predict(self, X: Any) -> AnyArray:
        """Class of each sample, that of the decision values.

        With ``threshold=None`` it is the class of the largest `predict_proba`. A threshold that
        was given, or set for another end, is the only thing by which they differ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        decision = self.decision_function(X)
        return np.asarray(self.classes_[class_indices(decision)])


def encoded(y: AnyArray, weight: Array) -> tuple[AnyArray, AnyArray, Array]:
    """Classes, index of each sample's class, and targets ±1.

    Targets are (n,) for two classes, +1 for the second, and (n, k) for k classes, one
    against the rest. ValueError unless two classes have samples of positive weight.
    """
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    present = classes[np.unique(labels[weight > 0])]
    if len(present) < 2:
        only = f"; the only one is {present.tolist()[0]!r}" if len(present) else ""
        raise ValueError(
            "Classifier can't train when only one class is present: the number of classes has to "
            f"be greater than one, got {len(present)} class{only}. Samples of weight zero do not "
            "count."
        )
    if len(present) < len(classes):
        missing = sorted(set(classes.tolist()) - set(present.tolist()))
        raise ValueError(
            f"All samples of class {missing} have weight zero; leave these samples out instead."
        )
    return classes, labels, class_targets(labels, len(classes))


def classes_of_one(classes: AnyArray, labels: AnyArray) -> list[Any]:
    """Classes that one sample alone belongs to; ValueError if all are."""
    counts = np.bincount(labels)
    if (counts == 1).all():
        raise ValueError(
            f"Each of the {len(classes)} classes has one sample only: leaving it out leaves "
            "nothing to learn the class from. Give each class some samples."
        )
    return list(classes[counts == 1].tolist())


def class_weights(
    class_weight: Any,
    labels: AnyArray,
    classes: AnyArray,
    sample_weight: Array,
    name: str = "class_weight",
) -> Array:
    """(n,) weight of each sample's class.

    Parameters
    ----------
    class_weight : None for ones; "balanced" to give every class the same total,
        counting samples by their weight; or a dict from class to weight, one for
        classes it does not name.
    labels : (n,) indices into ``classes``.
    classes : the classes.
    sample_weight : (n,) weights of the samples.
    name : what the parameter is called in errors.
    """
    if class_weight is None:
        return np.ones(len(labels))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"{name} must be None, 'balanced' or a dict, got {class_weight!r}.")
        mass = np.bincount(labels, weights=sample_weight, minlength=len(classes))
        return np.asarray((mass.sum() / (len(classes) * mass))[labels])
    if not isinstance(class_weight, dict):
        raise ValueError(f"{name} must be None, 'balanced' or a dict, got {class_weight!r}.")
    unknown = [label for label in class_weight if label not in list(classes)]
    if unknown:
        raise ValueError(
            f"{name} names {unknown}, which are no classes of y: {np.asarray(classes).tolist()}."
        )
    try:
        weights = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"{name} must be positive numbers, got {class_weight!r}.")
    return np.asarray(weights[labels])


def check_threshold(threshold: Any, targets: Array) -> None:
    """ValueError unless ``threshold`` is None, a number or a rule; of several classes None or 0."""
    if threshold is None:
        return
    if not _is_number(threshold):
        as_rule(threshold)
    if targets.ndim == 2 and not (_is_number(threshold) and threshold == 0):
        raise ValueError(
            f"threshold={threshold!r} needs two classes, y has {targets.shape[1]}: with more the "
            "largest output decides; use threshold=None, and class_weight='balanced' against "
            "unequal classes."
        )


def number_or_rule(threshold: Any, calibrator: Calibrator | None, loo: HeldOut) -> Any:
    """The threshold as given; for None the number at which the most probable class changes.

    Without a calibrator, and for several classes, of which the largest output wins, that is 0.
    """
    if threshold is not None:
        return threshold
    if calibrator is None or loo.y.ndim == 2:
        return 0.0
    return output_at_half(calibrator, loo.outputs)


def threshold_and_loss(threshold: Any, loo: HeldOut) -> tuple[float, float]:
    """The threshold, and the loss of its rule there; the balanced error rate for a number."""
    if _is_number(threshold):
        return float(threshold), balanced_error_rate(*loo, threshold=float(threshold))
    return find_threshold(loo, threshold)


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
    )
