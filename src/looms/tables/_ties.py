"""Whole numbers that may be names of groups: rows that share one resemble one another."""

from __future__ import annotations

import numpy as np
from scipy.stats import f

from looms._typing import AnyArray, Array

#: With so many different values or fewer, a curve looks like ties.
_FEW_VALUES = 15
#: One value of a larger share of the rows is no group among others, such as zero among counts.
_LARGEST = 0.25
#: Rows are alike if the values of a feature vary so many times as much between numbers as within,
#: with such a probability by chance, and if this is so large a share of what they would vary by if
#: the order of the numbers told nothing.
_TIMES, _CHANCE, _SHARE = 3.0, 1e-6, 0.3
#: Mean and median of squared normal deviates have this ratio.
_MEDIAN = 0.4549
#: Degrees of freedom of second differences, of which neighbors are correlated, for each of them.
_FREE = 0.52


def may_name_groups(values: Array) -> bool:
    """True for whole numbers with many values, most of them in several rows, none in very many.

    Parameters
    ----------
    values : (n,) numbers, NaN for gaps.
    """
    present = values[np.isfinite(values)]
    if not len(present) or (present % 1 != 0).any():
        return False
    sizes = np.unique(present, return_counts=True)[1]
    shared = sizes[sizes > 1].sum() > len(values) / 2
    return bool(shared and len(sizes) > _FEW_VALUES and sizes.max() <= _LARGEST * len(values))


def tied(values: Array, ranks: Array) -> AnyArray:
    """True for features in which rows that share a value are alike, (n_features,).

    The mean rank of the rows with a value is compared with that between its two neighbors, as what
    is smooth in the values has no more than noise there: the squared difference, relative to its
    variance by the ranks within values, has the mean 1 and an F distribution.

    Parameters
    ----------
    values : (n,) numbers of which `may_name_groups` is true, NaN for gaps.
    ranks : (n, n_features) ranks of the rows by each feature.
    """
    present = np.isfinite(values)
    distinct, code, sizes = np.unique(values[present], return_inverse=True, return_counts=True)
    ranks = ranks[present] - ranks[present].mean(axis=0)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sums = np.add.reduceat(ranks[np.argsort(code, kind="stable")], starts, axis=0)
    means, of_mean = sums / sizes[:, None], 1.0 / sizes[:, None]
    n, m = len(code), len(distinct)
    total = (ranks**2).sum(axis=0)
    between = (sums * means).sum(axis=0)
    # Of values that fix the feature nothing varies within, but rounding.
    least = 1e-9 * np.maximum(total, 1.0)
    within = np.maximum(total - between, least) / (n - m)
    low = ((distinct[2:] - distinct[1:-1]) / (distinct[2:] - distinct[:-2]))[:, None]
    squared = (means[1:-1] - low * means[:-2] - (1 - low) * means[2:]) ** 2
    noise = of_mean[1:-1] + low**2 * of_mean[:-2] + (1 - low) ** 2 * of_mean[2:]
    unordered = (1 + low**2 + (1 - low) ** 2) * np.maximum(between, least) / n
    ratio = (squared / noise).mean(axis=0) / within
    # By the median, a step at one value is no tie.
    times = np.median(squared / noise, axis=0) / (_MEDIAN * within)
    share = np.median(squared / unordered, axis=0) / _MEDIAN
    chance = f.sf(ratio, _FREE * (m - 2), n - m)
    return np.asarray((times > _TIMES) & (share > _SHARE) & (chance < _CHANCE))
