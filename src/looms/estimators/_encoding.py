"""Indices of classes, class weights, and checks of the threshold between two classes."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from looms._advice import setting
from looms._typing import AnyArray, Array
from looms.calibration._softmax import OUT_OF_REACH
from looms.estimators._targets import check_labels
from looms.threshold import threshold_rule


def encoded(y: AnyArray, weight: Array) -> tuple[AnyArray, AnyArray]:
    """Classes, and index of each sample's class.

    ValueError unless two classes or more, and all, have samples of positive weight.
    """
    check_labels(y)
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
    return classes, labels


def class_weights(
    class_weight: Any,
    labels: AnyArray,
    classes: AnyArray,
    sample_weight: Array,
    name: str = "class_weight",
    same: str = "",
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
    same : value for the weights of the fit, which errors name too; "" if there is none.
    """
    if class_weight is None:
        return np.ones(len(labels))
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(labels, weights=sample_weight, minlength=len(classes))
        return np.asarray((mass.sum() / (len(classes) * mass))[labels])
    if not isinstance(class_weight, dict):
        known = f"{same!r}, None" if same else "None"
        raise ValueError(f"{name} must be {known}, 'balanced' or a dict, got {class_weight!r}.")
    unknown = [label for label in class_weight if label not in list(classes)]
    if unknown:
        raise ValueError(
            f"{name} names {unknown}, which are not classes of y: {np.asarray(classes).tolist()}."
        )
    try:
        weights = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"{name} must be positive numbers, got {class_weight!r}.")
    return np.asarray(weights[labels])


def check_threshold(threshold: Any, calibrated: bool) -> None:
    """ValueError unless ``threshold`` is a probability or a rule.

    Without a calibrator there are no probabilities but 0.5, which is then the sign of the output.
    """
    if not isinstance(threshold, Real) or isinstance(threshold, bool):
        threshold_rule(threshold)
    elif not 0 < float(threshold) < 1:
        cuts = " To cut outputs elsewhere, compare decision_function with a number."
        raise ValueError(
            f"{setting('threshold', threshold)} is not a probability between 0 and 1."
            f"{setting('cuts', text=cuts)}"
        )
    elif threshold != 0.5 and not calibrated:
        raise ValueError(
            f"{setting('threshold', threshold)} is a probability, but "
            f"{setting('calibration', None)} gives none: use "
            "another calibration, or a rule such as 'balanced'."
        )


def decides_one_class(threshold: float | Array, outputs: Array) -> bool:
    """True if a threshold is out of reach of the outputs of a model, as `output_at` sets it."""
    return bool(np.abs(threshold).max() > OUT_OF_REACH / 2 * np.abs(outputs).max())


def is_positive_first(pos_label: Any, classes: AnyArray) -> bool:
    """True if the first of two classes is the positive one; ValueError for a label of no two."""
    if pos_label is None:
        return False
    labels = classes.tolist()
    if pos_label not in labels:
        raise ValueError(f"{setting('pos_label', pos_label)} is not one of the classes, {labels}.")
    if len(labels) != 2:
        raise ValueError(
            f"{setting('pos_label', pos_label)} is for two classes, and there are {len(labels)}: "
            "leave it out, or make one class of the others."
        )
    return bool(labels.index(pos_label) == 0)
