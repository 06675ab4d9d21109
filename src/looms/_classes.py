"""Coding of classes as targets ±1, and classes of outputs."""

from __future__ import annotations

import numpy as np

from looms._typing import AnyArray, Array


def class_indices(values: Array, threshold: float | Array = 0.0) -> AnyArray:
    """Class indices of outputs, or of targets ±1.

    Parameters
    ----------
    values : (n,) or (n, 1) for two classes, the second above the threshold; (n, k) with a
        column for each class, of which the largest minus its threshold wins.
    threshold : in units of the values; (k,) or a number.
    """
    if values.ndim == 2 and values.shape[1] > 1:
        return np.asarray((values - threshold).argmax(axis=1))
    return (values.reshape(len(values)) > threshold).astype(int)


def class_targets(labels: AnyArray, n_classes: int) -> Array:
    """Targets ±1 of class indices: (n,), +1 for class 1 of two; (n, k), one against the rest."""
    if n_classes == 2:
        return np.where(labels == 1, 1.0, -1.0)
    return np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)


def class_factors(labels: AnyArray, weight: Array, rest: AnyArray) -> Array:
    """Factors for the weights of the rows ``rest`` that give each class its weight in all rows.

    Parameters
    ----------
    labels : (n,) class indices.
    weight : (n,) nonnegative.
    rest : (m,) numbers of rows.

    Returns
    -------
    factors : (m,)

    Examples
    --------
    >>> class_factors(np.array([0, 0, 1, 1]), np.ones(4), np.array([0, 1, 2]))
    array([1., 1., 2.])
    """
    mass = np.bincount(labels, weights=weight)
    own = np.bincount(labels[rest], weights=weight[rest], minlength=len(mass))
    factors: Array = mass / np.where(own > 0, own, 1.0)
    return factors[labels[rest]]
