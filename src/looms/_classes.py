"""Coding of classes as targets ±1, classes of outputs, and ties of outputs."""

from __future__ import annotations

import numpy as np

from looms._typing import AnyArray, Array


def written_labels(labels: AnyArray) -> AnyArray:
    """Labels for output: whole numbers that are floats only because of gaps become integers.

    Examples
    --------
    >>> written_labels(np.array([1.0, 10000001.0])).tolist()
    [1, 10000001]
    >>> written_labels(np.array([1e19, 2e19])).tolist()  # beyond integers
    [1e+19, 2e+19]
    """
    if labels.dtype.kind != "f":
        return labels
    return labels.astype(np.int64 if np.abs(labels).max(initial=0) < 2**63 else object)


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


def rounding(n: int) -> float:
    """Tie of outputs that are targets ±1 minus the residuals of n rows, by rounding alone.

    If a model has learned nothing, only rounding remains, which would reveal the targets. As the
    targets are larger, rounding errors are below 0.15 n ε.
    """
    return float(n * np.finfo(np.float64).eps)


def tie_width(values: Array, tie: float) -> Array:
    """Difference up to which outputs for targets ±1 are equal to some, up to rounding.

    ``tie`` is the difference for outputs up to 1, as `looms.lssvm.conditioning.tie_of` gives it;
    beyond, it is relative.
    """
    return np.asarray(tie * np.maximum(1.0, np.abs(values)))


def class_shares(values: Array, threshold: float | Array = 0.0, tie: float = 0.0) -> Array:
    """Share of each class in the decision on outputs for targets ±1: equal for classes that tie.

    Parameters
    ----------
    values, threshold : as for `class_indices`; two classes tie at the threshold.
    tie : as for `tie_width`.

    Returns
    -------
    shares : (n, n_classes), rows sum to one.

    Examples
    --------
    >>> class_shares(np.array([0.3, -1e-17, -0.2]), tie=1e-15)
    array([[0. , 1. ],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    width = tie_width(values.reshape(len(values), -1), tie).max(axis=1, keepdims=True)
    over = values.reshape(len(values), -1) - threshold
    if over.shape[1] == 1:
        over = np.hstack([np.zeros(over.shape), over])
    first = over >= over.max(axis=1, keepdims=True) - width
    return np.asarray(first / first.sum(axis=1, keepdims=True))


def merge_ties(values: Array, tie: float) -> Array:
    """Outputs in which those that tie are equal, to the smallest of them.

    The order of the outputs does not matter; ``tie`` is as for `tie_width`.

    Examples
    --------
    >>> merge_ties(np.array([0.1 + 0.2, 0.5, 0.3]), tie=1e-15).tolist()
    [0.3, 0.5, 0.3]
    """
    order = np.argsort(values, axis=None, kind="stable")
    ordered = values.ravel()[order]
    ends = np.searchsorted(ordered, ordered + tie_width(ordered, tie), side="right").tolist()
    firsts, k = np.zeros(len(ordered), dtype=bool), 0
    while k < len(ordered):
        firsts[k], k = True, ends[k]
    equal = np.empty(len(ordered))
    equal[order] = ordered[firsts][np.cumsum(firsts) - 1]
    return equal.reshape(values.shape)


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
    rest_mass = np.bincount(labels[rest], weights=weight[rest], minlength=len(mass))
    factors: Array = mass / np.where(rest_mass > 0, rest_mass, 1.0)
    return factors[labels[rest]]
