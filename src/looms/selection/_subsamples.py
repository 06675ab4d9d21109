"""Growing subsamples of a search, and the shift of the best μ between them."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from looms._typing import AnyArray, Array

if TYPE_CHECKING:
    from looms.selection._objective import HeldOutCriterion

_SCAN_SAMPLES = 200
_GROWTH = 4  # of the number of samples from stage to stage
#: Groups of which a subsample has as many or more are drawn as a whole, larger ones in part.
_FEW_GROUPS = 10
# From n to m samples the best μ goes as (n / m)^_DECAY: 1 keeps the ridge n μ, as for
# targets that the kernel fits but for noise, 0 keeps μ, as for classes that overlap.
_DECAY = 0.5


def nested_subsets(
    objective: HeldOutCriterion, rng: np.random.RandomState, most: int | None = None
) -> list[AnyArray]:
    """Indices of growing subsamples, each contained in the next, stratified by class.

    If the last may have ``most`` samples, fewer than there are, it has as many.
    """
    n, unit = objective.n_samples, objective.units.clusters
    sizes = stage_sizes(n) if most in (None, n) else [*stage_sizes(most), most]
    sizes = [size for size in sizes if size >= objective.least_rows]
    if sizes and _FEW_GROUPS * np.bincount(unit).max() > sizes[0]:
        unit = np.arange(n)
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    place = (
        _stratified_place(objective.y[first], rng)
        if objective.labeled
        else np.argsort(rng.permutation(len(first)))
    )
    order = np.argsort(place[unit], kind="stable")  # rows of a group one after the other
    subsets = [np.sort(order[:size]) for size in sizes]
    return [s for s in subsets if all(np.ptp(row[s]) > 0 for row in objective.units.number)]


def samples_of_search(given: float | None, n_samples: int, usual: int | None = None) -> int:
    """Number of samples that a search ends on.

    Parameters
    ----------
    given : ``max_samples``: a number of samples, or a share of the ``usual``, enough to scan.
    n_samples : number of all samples.
    usual : number of samples of the search if none is given; default all.

    Examples
    --------
    >>> samples_of_search(None, 9000, 2000), samples_of_search(9000, 9000, 2000)
    (2000, 9000)
    >>> samples_of_search(0.25, 9000, 2000), samples_of_search(0.25, 2000)
    (500, 500)
    """
    usual = n_samples if usual is None else min(usual, n_samples)
    if given is None:
        return usual
    if isinstance(given, Integral):
        return min(int(given), n_samples)
    return min(max(int(given * usual), _SCAN_SAMPLES), n_samples)


def sampled_rows(y: Array, size: int, rng: np.random.RandomState) -> AnyArray:
    """Indices of a random sample of rows, increasing; stratified by labels ±1."""
    labeled = bool(np.isin(y, (-1.0, 1.0)).all())
    place = _stratified_place(y, rng) if labeled else rng.permutation(len(y))
    return np.sort(np.argsort(place, kind="stable")[:size])


def rows_of_groups(groups: AnyArray, size: int, rng: np.random.RandomState) -> AnyArray:
    """Indices of a random sample of rows, increasing, with a share of every group.

    Examples
    --------
    >>> groups = np.repeat([0, 1, 2], [10, 40, 50])
    >>> np.bincount(groups[rows_of_groups(groups, 20, np.random.RandomState(0))]).tolist()
    [2, 8, 10]
    """
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    _, first, group, sizes = np.unique(
        groups[order], return_index=True, return_inverse=True, return_counts=True
    )
    offset = rng.random_sample(len(sizes)) - first
    place = (np.arange(len(order)) + offset[group]) / sizes[group]
    return np.sort(order[np.argsort(place, kind="stable")[:size]])


def stage_sizes(n_samples: int) -> list[int]:
    """Sizes of the subsamples before all samples: the scan's first, then growing by `_GROWTH`.

    Examples
    --------
    >>> stage_sizes(150), stage_sizes(400), stage_sizes(15000)
    ([], [200], [234, 937, 3750])
    """
    sizes: list[int] = []
    size = n_samples // _GROWTH
    while size >= _SCAN_SAMPLES:
        sizes.insert(0, size)
        size //= _GROWTH
    smallest = sizes[0] if sizes else n_samples
    if smallest > (2 if sizes else 1) * _SCAN_SAMPLES:
        sizes.insert(0, _SCAN_SAMPLES)
    return sizes


def _stratified_place(y: Array, rng: np.random.RandomState) -> AnyArray:
    """Random order of samples, in which the first m have the classes in proportion."""
    labels = np.unique(y.reshape(len(y), -1), axis=0, return_inverse=True)[1].ravel()
    rank = np.empty(len(y))
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        rank[rng.permutation(members)] = np.arange(len(members)) / len(members)
    return rank


def log2_mu_shift(n_source: int, n_target: int) -> float:
    """Expected shift of the best log₂ μ from ``n_source`` to ``n_target`` samples."""
    return float(_DECAY * np.log2(n_source / n_target))
