"""Prediction sets of classes from the outputs of leave-one-out models at new points.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._classes import rounding
from looms._typing import AnyArray, Array
from looms.conformal._jackknife import error_of, required_rank


def class_margins(outputs: npt.ArrayLike) -> Array:
    """Margin of every class, (..., k): its output minus the largest of the others.

    Parameters
    ----------
    outputs : (..., 1) output f for the second of two classes, whose margins are −f and f;
        or (..., k), one output for each of k classes.
    """
    f = np.asarray(outputs, dtype=np.float64)
    if f.shape[-1] == 1:
        return np.concatenate([-f, f], axis=-1)
    ordered = np.partition(f, (-2, -1), axis=-1)
    second, first = ordered[..., -2:-1], ordered[..., -1:]
    return np.where(f == first, f - second, f - first)


def prediction_sets(
    loo_scores: npt.ArrayLike,
    scores: npt.ArrayLike,
    confidence_level: float,
    labels: npt.ArrayLike | None = None,
    *,
    rounding_error: npt.ArrayLike | None = None,
) -> AnyArray:
    r"""Conformal prediction sets: the classes whose p-value is above 1 − confidence_level.

    The p-value of class y at point t is p_ty = (#{i : s_i ≤ S_tiy} + 1) / (n + 1), with
    s = `loo_scores` and S = `scores`, where scores that differ by rounding alone are equal. With
    `labels` only samples i of class y are counted, and n is their number.

    Parameters
    ----------
    loo_scores : (n,) score of sample i and its label under the model trained without it, for
        example a leave-one-out margin; larger is more typical of the label.
    scores : (m, n, k) score of new point t and label y under that same model.
    confidence_level : nominal 1 − α, between 0 and 1.
    labels : (n,) class index of each sample, for p-values within each class; None for
        p-values over all.
    rounding_error : number or (n,), that of a difference between s_i and S_tiy, in their units: up
        to it they are equal. By default n ε times the largest finite |s_i|, which ill-conditioned
        models may exceed. It is at least n ε |s_i|.

    Returns
    -------
    sets : (m, k) of bool. A set is empty if no label is typical of the point.

    Raises
    ------
    ValueError
        If the confidence level is not between 0 and 1, shapes do not agree, or there are fewer than
        1 / α − 1 samples, or with `labels` samples of some class, which would then be in every
        set.

    Notes
    -----
    If the n samples and the new one are exchangeable, and the models come from a rule that is
    fixed beforehand and symmetric in the samples, the p-value of the true label is at most α
    with probability at most 2α, by the argument of the jackknife+ [B21 theorem 1, RSC20
    theorem 2]; with `labels` within each class. So a set contains the true label with probability
    at least 1 − 2α, most often about 1 − α. O(m n k).

    Examples
    --------
    >>> import numpy as np
    >>> loo_scores = np.array([0.9, 0.4, -0.2])
    >>> scores = np.array([[[0.5, -0.5], [0.4, -0.4], [0.6, -0.6]]])
    >>> prediction_sets(loo_scores, scores, confidence_level=0.75)
    array([[ True, False]])
    """
    s, S, compared = checked_arrays(loo_scores, scores, labels)
    n = compared.sum(axis=0)
    places = np.empty_like(n)
    for y, n_y in enumerate(n.tolist()):
        try:
            places[y] = required_rank(confidence_level, n_y)
        except ValueError as error:
            own = "" if compared.all() else f"Class with index {y}: "
            raise ValueError(f"{own}{error}") from None
    hidden = np.maximum(error_of(s, rounding_error), rounding(len(s)) * np.abs(s))
    least = s - np.where(np.isfinite(s), hidden, 0.0)
    # p > α, in whole numbers: more than n + 1 − ⌈(1 − α)(n + 1)⌉ of n + 1.
    return np.asarray(np.round(class_p_values(least, S, compared) * (n + 1)) > n + 1 - places)


def class_p_values(s: Array, S: Array, compared: AnyArray) -> Array:
    """p-value of every class at new points, (m, k), as of `prediction_sets`.

    ``compared`` is true where a sample is compared with the points of a class, (n, k).
    """
    above = (s[:, None] <= S) & compared
    return np.asarray((above.sum(axis=1) + 1.0) / (compared.sum(axis=0) + 1.0))


def checked_arrays(
    loo_scores: npt.ArrayLike, scores: npt.ArrayLike, labels: npt.ArrayLike | None
) -> tuple[Array, Array, AnyArray]:
    """Both scores, and whether a sample is compared with the points of each class, (n, k)."""
    s, S = np.asarray(loo_scores, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if s.ndim != 1 or S.ndim != 3 or S.shape[1] != len(s):
        raise ValueError(
            "loo_scores must have shape (n_samples,) and scores (n_new, n_samples, n_classes), "
            f"but they have shapes {s.shape} and {S.shape}."
        )
    if labels is None:
        return s, S, np.ones((len(s), S.shape[2]), dtype=bool)
    labels = np.asarray(labels)
    if labels.shape != s.shape:
        raise ValueError(
            f"labels must have one class index per sample, but labels has shape {labels.shape} "
            f"and loo_scores has shape {s.shape}."
        )
    if not np.isin(labels, np.arange(S.shape[2])).all():
        raise ValueError(f"labels must be class indices from 0 to {S.shape[2] - 1}.")
    return s, S, labels[:, None] == np.arange(S.shape[2])
