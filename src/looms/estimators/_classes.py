"""Classes as ±1 targets, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from looms._classes import class_targets
from looms._typing import Array


def encoded(y: Any, weight: Array) -> tuple[Any, Any, Array]:
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
