"""What the machine without each sample says of it."""

from __future__ import annotations

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.diagnostics import loo_margins
from looms.report._model import Model


def residual_sizes(model: Model) -> Array:
    """Size of the leave-one-out residual, (n_samples,); of several targets the norm.

    For classes an output beyond ±1 on the right side does not count: it is [1 − t f]₊, by how
    much the output falls short of the label. NaN for a sample of weight zero, which is not left
    out.
    """
    loo = model.loo
    sizes = np.maximum(loo.y * loo.residuals, 0) if model.classification else np.abs(loo.residuals)
    sizes = sizes if sizes.ndim == 1 else np.linalg.norm(sizes, axis=1)
    return np.where(model.seen, sizes, np.nan)


def predicted_labels(model: Model) -> AnyArray:
    """Index of the class that the machine without the sample gives it, (n_samples,)."""
    return np.asarray(loo_margins(model.machine).argmax(axis=1))


def margins(model: Model) -> Array:
    """Margin of the true class, (n_samples,): negative where another is predicted."""
    labels = class_indices(model.loo.y)
    return np.asarray(loo_margins(model.machine)[np.arange(len(labels)), labels])
