"""Scores of probabilities: deviance, Brier score, and the reliability curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from looms._checks import check_count
from looms._classes import class_indices
from looms._typing import Array
from looms.calibration._sigmoid import checked_sample
from looms.held_out import HeldOut, ReadOnly


def deviance_of(log_likelihood: Array, weight: Array | None = None) -> float:
    r"""Deviance from the log probabilities of the true classes.

    .. math:: -2 \sum_i w_i \log {\hat p}_{y_i}(x_i)

    Parameters
    ----------
    log_likelihood : (n,) log probabilities, finite for samples with positive weight.
    weight : (n,) nonnegative, ones by default. Samples of weight zero are ignored.

    Examples
    --------
    >>> deviance_of(np.array([-0.5, -1.0, -np.inf]), np.array([1.0, 2.0, 0.0]))
    5.0
    """
    weight = np.ones(len(log_likelihood)) if weight is None else weight
    inside = weight > 0
    return float(-2.0 * weight[inside] @ log_likelihood[inside])


def brier_score(loo: HeldOut, probabilities: npt.ArrayLike) -> float:
    """Weighted mean squared difference between probabilities and class indicators.

    Parameters
    ----------
    loo : labels ±1, (n,) for two classes or (n, k); its outputs are not read.
    probabilities : (n, 2) or (n, k), for example from `loo_probabilities`.

    Returns
    -------
    score : for two classes, that of one class, in [0, 1]; for more, the sum over classes, in
        [0, 2].

    Examples
    --------
    >>> from looms import HeldOut
    >>> loo = HeldOut([-1, 1], [-0.5, 0.5])
    >>> round(brier_score(loo, [[0.8, 0.2], [0.4, 0.6]]), 12)
    0.1
    """
    p = np.asarray(probabilities, dtype=np.float64)
    p = p - np.eye(p.shape[1])[class_indices(loo.y)]
    squared = np.einsum("ij,ij->i", p, p) / (2.0 if p.shape[1] == 2 else 1.0)
    return float(np.average(squared, weights=loo.sample_weight))


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(ReadOnly):
    """Mean probability and share of positive samples in bins, as read-only arrays.

    Parameters
    ----------
    probability : (n_bins,) weighted mean of the probabilities in each bin.
    share : (n_bins,) weighted share of positive samples.
    weight : (n_bins,) sum of the weights, scaled to mean one.
    count : (n_bins,) number of samples with positive weight, at least one.
    edges : (n_bins, 2) smallest and largest probability in the bin.
    """

    probability: Array
    share: Array
    weight: Array
    count: npt.NDArray[np.intp]
    edges: Array

    @property
    def calibration_error(self) -> float:
        """Expected calibration error (ECE): mean over samples of |share − probability| of bins."""
        return float(np.average(np.abs(self.share - self.probability), weights=self.weight))


def reliability_curve(
    labels: npt.ArrayLike,
    probability: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    n_bins: int = 10,
) -> ReliabilityCurve:
    """Reliability curve of the probabilities of one class.

    Parameters
    ----------
    labels : (n,) -1 and +1: a column of ``loo.y``.
    probability : (n,) probabilities of the label +1: that column of `loo_probabilities`, so that
        each comes from a calibrator fitted without its sample.
    sample_weight : (n,) nonnegative, ones by default; samples of weight zero are ignored.
    n_bins : largest number of bins, each of about the same weight; equal probabilities fall in
        one bin, so that there may be fewer.

    Returns
    -------
    curve : ReliabilityCurve

    Raises
    ------
    ValueError
        If labels are not ±1, probabilities are not finite, weights are negative, not finite or all
        zero, something is not one value for each sample, or ``n_bins`` is not a positive integer.

    Examples
    --------
    >>> curve = reliability_curve([-1, 1, -1, 1], [0.1, 0.2, 0.6, 0.8], n_bins=2)
    >>> curve.probability.round(3), curve.share, curve.count
    (array([0.15, 0.7 ]), array([0.5, 0.5]), array([2, 2]))
    """
    p, positive, weight = checked_sample(probability, labels, sample_weight, "probability")
    check_count(n_bins, "n_bins")
    weight = weight * (len(weight) / weight.sum())
    order = np.argsort(p, kind="stable")
    p, positive, weight = p[order], positive[order], weight[order]
    # Equal probabilities go together, to where the middle of their weight is.
    _, group = np.unique(p, return_inverse=True)
    mass_of_group = np.bincount(group, weights=weight)
    middle = np.cumsum(mass_of_group) - 0.5 * mass_of_group
    place = (middle / mass_of_group.sum() * n_bins)[group]
    _, index = np.unique(np.minimum(place.astype(int), n_bins - 1), return_inverse=True)
    mass: Array = np.bincount(index, weights=weight).astype(np.float64)
    starts = np.flatnonzero(np.r_[True, index[1:] != index[:-1]])
    return ReliabilityCurve(
        probability=np.bincount(index, weights=weight * p) / mass,
        share=np.bincount(index, weights=weight * positive) / mass,
        weight=mass,
        count=np.bincount(index),
        edges=np.column_stack([p[starts], p[np.append(starts[1:], len(p)) - 1]]),
    )
