"""Error rates of held-out outputs, to compare tuned candidates and for reports."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._classes import class_indices
from looms._typing import AnyArray, Array


def error_rate(
    y: npt.ArrayLike,
    outputs: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    threshold: float | Array = 0.0,
) -> float:
    """Weighted error rate of held-out outputs for ±1 targets.

    Parameters
    ----------
    y : ±1 targets; (n,) or (n, 1) for two classes, (n, k) for k classes, one against the rest.
    outputs : held-out outputs, shaped like the targets; with k classes the largest output minus
        threshold wins.
    sample_weight : (n,) nonnegative; ones by default.
    threshold : outputs above it are positive; for k classes, a number or (k,).

    Returns
    -------
    rate : in [0, 1].

    Examples
    --------
    >>> error_rate([1, -1, 1], [0.3, -0.2, -0.9], sample_weight=[1, 1, 2])
    0.5
    """
    wrong = class_indices(np.asarray(y)) != class_indices(np.asarray(outputs), threshold)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    return float(np.average(wrong, weights=weight))


def balanced_error_rate(
    y: npt.ArrayLike,
    outputs: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    threshold: float | Array = 0.0,
) -> float:
    """Balanced error rate (BER), the mean over classes of their weighted error rates [C06 I-A].

    Arguments are as for `error_rate`. Classes without weight are left out.

    Examples
    --------
    >>> y, outputs = [1, 1, 1, -1], [0.3, -0.2, 0.9, -0.5]
    >>> error_rate(y, outputs), round(balanced_error_rate(y, outputs), 4)
    (0.25, 0.1667)
    """
    labels = class_indices(np.asarray(y))
    return mean_class_error(
        labels, labels != class_indices(np.asarray(outputs), threshold), sample_weight
    )


def mean_class_error(
    labels: npt.NDArray[np.intp], wrong: AnyArray, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Mean over classes of the weighted share of wrong decisions in the class.

    Parameters
    ----------
    labels : (n,) class indices. Classes without weight are left out.
    wrong : (n,) bool.
    sample_weight : (n,) nonnegative; ones by default.
    """
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
    mass = np.bincount(labels, weights=weight)
    present = mass > 0
    rates = np.bincount(labels, weights=weight * wrong)[present] / mass[present]
    return float(rates.mean())
