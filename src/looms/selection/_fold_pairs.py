"""Pairs of folds for the leave-pair-out area under the ROC curve.

Two held-out outputs are compared under one machine that has seen neither row: so the classes of
the two cannot be told from the machine, and of pure noise half of the pairs are in order, on
average, whatever the ridge (Airola et al. 2010).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from looms._typing import AnyArray, Array
from looms.criteria import standard_error

#: Pairs that each fold of the larger class is in.
_MATCHINGS = 4


def fold_pairs(Y: Array, number: AnyArray, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs of folds in which rows of different classes meet.

    Random matchings of the folds that have a class with those that have others, so that each is
    in about as many pairs as the others; all pairs of folds if there are few; and none
    if as many rows meet within the folds, or there are too few folds to choose without two.

    Parameters
    ----------
    Y : (n, t) targets ±1.
    number : (n,) fold of each row.
    """
    n_folds = int(number.max()) + 1
    by_fold = np.stack([np.bincount(number, weights=y > 0) for y in Y.T])
    within = by_fold * (np.bincount(number) - by_fold)
    if n_folds < 4 or (within.sum(axis=1) >= _MATCHINGS * len(Y)).all():
        return []
    if n_folds * (n_folds - 1) // 2 <= 2 * _MATCHINGS * n_folds:
        return [(g, h) for g in range(n_folds) for h in range(g + 1, n_folds)]
    rng = np.random.default_rng(seed)
    pairs: set[tuple[int, int]] = set()
    for column in Y.T:
        positive, negative = (np.unique(number[of]) for of in (column > 0, column <= 0))
        size = max(len(positive), len(negative))
        for _ in range(_MATCHINGS):
            met = [np.resize(rng.permutation(of), size) for of in (positive, negative)]
            pairs.update((int(g), int(h)) for g, h in np.sort(met, axis=0).T if g != h)
    return sorted(pairs)


def pair_auc(
    Y: Array,
    outputs: Array,
    folds: Sequence[AnyArray],
    pairs: Sequence[tuple[int, int]],
    pair_outputs: Sequence[Array],
    weight: Array,
) -> tuple[float, float]:
    """Leave-pair-out area under the ROC curve, mean over classes, and its standard error.

    Parameters
    ----------
    Y : (n, t) targets ±1.
    outputs : (n, t) outputs of the machines without the fold of each row; they compare rows of
        one fold.
    folds : rows of each fold.
    pairs, pair_outputs : numbers of two folds, and (m, t) outputs of their rows by the machine
        that has seen neither, those of the first fold first.
    weight : (n,) nonnegative.
    """
    areas, errors = [], []
    for c, y in enumerate(Y.T > 0):
        # Weighted sums of comparisons by row, within folds and between.
        right, mass = np.zeros((2, 2, len(y)))
        for rows in folds:
            if len(rows) > 1:
                _compare(y, outputs[rows, c], rows, weight, right[0], mass[0])
        for (g, h), f in zip(pairs, pair_outputs, strict=True):
            rows = np.concatenate([folds[g], folds[h]])
            between = np.repeat([0, 1], [len(folds[g]), len(folds[h])])
            _compare(y, f[:, c], rows, weight, right[1], mass[1], between)
        within = 0.0
        for rows in folds:
            within += weight[rows][y[rows]].sum() * weight[rows][~y[rows]].sum()
        total = weight[y].sum() * weight[~y].sum()
        share = np.array([within, total - within]) / total
        drawn = np.array([part[y].sum() for part in mass])
        scale = np.where(drawn > 0, share / np.where(drawn > 0, drawn, 1.0), 0.0)
        scale /= (scale @ drawn) or np.nan
        area = float(scale @ [part[y].sum() for part in right])
        # Each comparison counts for both of its rows, as in a U statistic of two samples.
        deviations = scale @ (right - area * mass)
        number = np.zeros(len(y), dtype=np.intp)
        for k, rows in enumerate(folds):
            number[rows] = k
        areas.append(area)
        errors.append(standard_error(deviations, number))
    return float(np.mean(areas)), float(np.mean(errors))


def _compare(
    y: AnyArray,
    f: Array,
    rows: AnyArray,
    weight: Array,
    right: Array,
    mass: Array,
    side: AnyArray | None = None,
) -> None:
    """Add the comparisons of positive with negative rows, of different sides if there are any."""
    p, q = np.flatnonzero(y[rows]), np.flatnonzero(~y[rows])
    w = np.outer(weight[rows[p]], weight[rows[q]])
    if side is not None:
        w *= side[p][:, None] != side[q]
    above = w * ((f[p][:, None] > f[q]) + 0.5 * (f[p][:, None] == f[q]))
    right[rows[p]] += above.sum(axis=1)
    right[rows[q]] += above.sum(axis=0)
    mass[rows[p]] += w.sum(axis=1)
    mass[rows[q]] += w.sum(axis=0)
