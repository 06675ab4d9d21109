"""Isotonic regression from outputs to probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from looms._typing import Array
from looms.calibration._sigmoid import checked_sample, half_but_for_rounding, platt_targets
from looms.held_out import ReadOnly


@dataclass(frozen=True, eq=False)
class Isotonic(ReadOnly):
    """Probability of the positive class, nondecreasing and piecewise linear in the output.

    It is constant on the blocks that the pool-adjacent-violators algorithm finds, linear between
    the end of one and the start of the next, and constant beyond the first and last.

    Parameters
    ----------
    outputs : (n_knots,) first and last output of every block, increasing.
    probabilities : (n_knots,) probabilities of the positive class there, nondecreasing.
    """

    outputs: Array
    probabilities: Array

    def probability(self, outputs: npt.ArrayLike) -> Array:
        """Probability of the positive class for outputs of any shape."""
        f = np.asarray(outputs, dtype=np.float64)
        p = np.interp(f, self.outputs, self.probabilities)
        # By rounding a line ends above the block that it leads to.
        end = np.searchsorted(self.outputs, f).clip(max=len(self.outputs) - 1)
        return np.asarray(np.minimum(p, self.probabilities[end]))


def fit_isotonic(
    outputs: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> Isotonic:
    """Nondecreasing function of the outputs that fits the labels by least squares.

    Its values are shares of positive samples, often 0 and 1 at the ends. They are clipped to
    Platt's targets, 1/(n₋ + 2) and (n₊ + 1)/(n₊ + 2), which keeps the log loss of new samples
    finite.

    Parameters
    ----------
    outputs, labels, sample_weight : as for `fit_sigmoid`. Equal outputs count as one, with the
        mean of their labels.

    Returns
    -------
    isotonic : Isotonic

    Raises
    ------
    ValueError
        As `fit_sigmoid`.

    Notes
    -----
    O(n log n). It needs more samples than the sigmoid, about a thousand.

    Examples
    --------
    >>> isotonic = fit_isotonic([0.0, 1.0, 2.0, 3.0], [-1, 1, -1, 1])
    >>> isotonic.probability([0.5, 1.0, 1.7, 9.0])
    array([0.375, 0.5  , 0.5  , 0.75 ])
    """
    f, positive, weight = checked_sample(outputs, labels, sample_weight)
    targets, weight = platt_targets(positive, weight)
    lowest, highest = targets[~positive], targets[positive]
    knots, group = np.unique(f, return_inverse=True)
    mass = np.bincount(group, weights=weight)
    share = np.bincount(group, weights=weight * positive) / mass
    p = half_but_for_rounding(isotonic_regression(share, weights=mass).x)
    # Platt's targets of a class that is absent bound nothing.
    p = np.clip(p, lowest[0] if len(lowest) else 0.0, highest[0] if len(highest) else 1.0)
    changes = p[1:] != p[:-1]
    ends = np.r_[True, changes] | np.r_[changes, True]
    return Isotonic(knots[ends], p[ends])
