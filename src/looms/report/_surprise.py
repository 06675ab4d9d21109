"""How far every sample is from what the machine without it says."""

from __future__ import annotations

import numpy as np

from looms._typing import AnyArray, Array
from looms.report._model import Model
from looms.report._training import labels_of


def surprise(model: Model) -> Array:
    """Size of the leave-one-out residual, (n_samples,); of several targets the norm.

    For classes an output beyond ±1 on the right side is no surprise: it is [1 − t f]₊.
    """
    loo = model.loo
    sizes = np.maximum(loo.y * loo.residuals, 0) if model.classification else np.abs(loo.residuals)
    return np.asarray(sizes if sizes.ndim == 1 else np.linalg.norm(sizes, axis=1))


def predicted_labels(model: Model) -> AnyArray:
    """Index of the class that the machine without the sample gives it, (n_samples,)."""
    outputs = model.loo.outputs
    if outputs.ndim == 1:
        return np.asarray(outputs > model.threshold).astype(int)
    return np.asarray(outputs.argmax(axis=1))


def margins(model: Model) -> Array:
    """Output of the true class less that of the best other one, or less the threshold; (n,)."""
    y, outputs = model.loo.y, model.loo.outputs
    if y.ndim == 1:
        return np.asarray(y * (outputs - model.threshold))
    labels = labels_of(y)[:, None]
    others = outputs.copy()
    np.put_along_axis(others, labels, -np.inf, axis=1)
    own = np.take_along_axis(outputs, labels, axis=1)[:, 0]
    return np.asarray(own - others.max(axis=1))
