"""Coding of classes as targets ±1, and classes of outputs."""

from __future__ import annotations

import numpy as np

from looms._typing import AnyArray, Array


def class_indices(values: Array, threshold: float = 0.0) -> AnyArray:
    """Class indices of outputs, or of targets ±1.

    Parameters
    ----------
    values : (n,) or (n, 1) for two classes, the second above the threshold; (n, k) with a
        column a class, of which the largest wins.
    threshold : in units of the values; for two classes only.
    """
    if values.ndim == 2 and values.shape[1] > 1:
        return np.asarray(values.argmax(axis=1))
    return (values.reshape(len(values)) > threshold).astype(int)


def class_targets(labels: AnyArray, n_classes: int) -> Array:
    """Targets ±1 of class indices: (n,), +1 for class 1 of two; (n, k), one against the rest."""
    if n_classes == 2:
        return np.where(labels == 1, 1.0, -1.0)
    return np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
