"""Weights of samples and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._typing import Array, Matrix

# Beside weights larger than this by its inverse, too few digits of a sample's ridge are left
# for the machine without one of the heavy samples.
_NEGLIGIBLE = 1e-10


def checked_sample_weight(sample_weight: Any, X: Matrix) -> Array:
    """(n,) weights, ones unless given; ValueError for negative, non-finite or only zero ones."""
    n = X.shape[0]
    if sample_weight is None:
        return np.ones(n)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be numbers, got {sample_weight!r}.") from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity; give every sample a number.")
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight must not be negative; {int((weight < 0).sum())} of {n} are. "
            "A weight of zero leaves a sample out of the fit."
        )
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
        representable = np.isfinite([total, n / total]).all()
    if not representable:
        raise ValueError(
            f"sample_weight is out of range, its largest value is {weight.max():.3g}: multiply all "
            "weights by a constant, only their ratios count."
        )
    least, largest = weight[weight > 0].min(), weight.max()
    if least < _NEGLIGIBLE * largest:
        raise ValueError(
            f"sample_weight ranges from {least:.3g} to {largest:.3g}, beyond double precision: "
            f"give negligible weights, those below {_NEGLIGIBLE:g} of the largest, as zero."
        )
    return weight


def class_weights(
    class_weight: Any, labels: Any, classes: Any, sample_weight: Array, name: str = "class_weight"
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
