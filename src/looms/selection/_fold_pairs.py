"""Pairs of folds, for areas under the ROC curve without bias.

A held-out row is rarer by one among those that its model has seen, so that its output leans away
from its class. With a row of another class left out as well, the two cannot be told apart by what
is left: of pure noise half of the pairs are in order, and half of the decisions wrong, whatever
the ridge (Airola et al. 2010; Austin, Pe'er & Korem 2025).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from looms._classes import rounding, tie_width
from looms._scores import share_under
from looms._typing import AnyArray, Array

#: Partners that each fold draws for each of its classes.
_PARTNERS = 2
_COMPARISONS = 1 << 20  # in an array


def fold_pairs(Y: Array, number: AnyArray, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs of folds in which rows of different classes meet.

    For every class each fold that has it draws partners among those that have others, each of
    which is drawn about as often; pairs without which a class would be missing are left out. There
    are none if as many rows meet within the folds, or there are too few folds to choose a model
    without two.

    Parameters
    ----------
    Y : (n, t) targets ±1.
    number : (n,) fold of each row.
    seed : of the draws.
    """
    n_folds = int(number.max()) + 1
    by_fold = np.stack([np.bincount(number, weights=y > 0) for y in Y.T])
    sizes = np.bincount(number)
    within = by_fold * (sizes - by_fold)
    if n_folds < 4 or (within.sum(axis=1) >= _PARTNERS * len(Y)).all():
        return []
    rng = np.random.default_rng(seed)
    drawn = []
    for y in np.vstack([Y.T, -Y.T]) if Y.shape[1] == 1 else Y.T:
        own, others = (np.unique(number[of]) for of in (y > 0, y <= 0))
        for _ in range(_PARTNERS):
            partners = np.resize(rng.permutation(others), len(own))
            drawn.append(np.sort(np.stack([rng.permutation(own), partners]), axis=0).T)
    pairs = np.unique(np.concatenate(drawn), axis=0)
    g, h = pairs[pairs[:, 0] != pairs[:, 1]].T
    rest = by_fold.sum(axis=1)[:, None] - by_fold[:, g] - by_fold[:, h]
    enough = ((rest > 0) & (rest < len(number) - sizes[g] - sizes[h])).all(axis=0)
    return list(zip(g[enough].tolist(), h[enough].tolist(), strict=True))


def pair_auc(
    Y: Array,
    outputs: Array,
    folds: Sequence[AnyArray],
    pairs: Sequence[tuple[int, int]],
    pair_outputs: Sequence[Array],
    weight: Array,
    tie: float | None = None,
    groups: AnyArray | None = None,
) -> tuple[float, Array]:
    """Leave-pair-out area under the ROC curve, mean over classes, and what each row adds to it.

    Parameters
    ----------
    Y : (n, t) targets ±1.
    outputs : (n, t) outputs of the models without the fold of each row; they compare rows of
        one fold. Ties count half.
    folds : rows of each fold.
    pairs, pair_outputs : numbers of two folds, and (m, t) outputs of their rows by the model
        that has seen neither, those of the first fold first.
    weight : (n,) nonnegative.
    tie : as for `looms._classes.tie_width`; by default `looms._classes.rounding`.
    groups : (n,) integers, equal for rows that count as one draw; by default each is its own.

    Returns
    -------
    area : NaN if no rows of different classes are compared.
    deviations : (n,) first-order contributions of the rows, for `looms.criteria.standard_error`.
    """
    areas, deviations = [], []
    tie = rounding(len(Y)) if tie is None else tie
    several = [rows for rows in folds if len(rows) > 1]
    alike = [] if groups is None else [part for rows in several for part in _alike(rows, groups)]
    between = list(_of_equal_sizes(folds, pairs, pair_outputs))
    for c, y in enumerate(Y.T > 0):
        # Weighted sums of comparisons by row, within folds and between.
        right, mass = np.zeros((2, 2, len(y)))
        of_groups = np.zeros((2, len(y)))
        within = 0.0
        for rows in several:
            _compare_within(y, outputs[rows, c], rows, weight, tie, right[0], mass[0])
            within += weight[rows][y[rows]].sum() * weight[rows][~y[rows]].sum()
        for rows in alike:
            _compare_within(y, outputs[rows, c], rows, weight, tie, *of_groups)
        for G, H, F in between:
            _compare_between(y, F[:, :, c], G, H, weight, tie, right[1], mass[1])
        total = weight[y].sum() * weight[~y].sum()
        drawn = np.array([part[y].sum() for part in mass])
        if not (drawn.any() and total > 0):
            continue
        scale = np.array([within, total - within]) / total
        scale = np.where(drawn > 0, scale / np.where(drawn > 0, drawn, 1.0), 0.0)
        scale = scale / (scale @ drawn) if scale.any() else (drawn > 0) / drawn.sum()
        areas.append(float(scale @ [part[y].sum() for part in right]))
        # Each comparison counts for both of its draws, as in a U statistic of two samples.
        once = scale[0] / 2 * (of_groups[0] - areas[-1] * of_groups[1])
        deviations.append(scale @ (right - areas[-1] * mass) - once)
    if not areas:
        return float("nan"), np.full(len(Y), np.nan)
    return float(np.mean(areas)), np.mean(deviations, axis=0)


def _alike(rows: AnyArray, groups: AnyArray) -> list[AnyArray]:
    """The rows by their group, without those that are the only ones of theirs."""
    _, number, sizes = np.unique(groups[rows], return_inverse=True, return_counts=True)
    order = np.argsort(number, kind="stable")
    order = order[sizes[number[order]] > 1]
    return np.split(rows[order], np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []


def _of_equal_sizes(
    folds: Sequence[AnyArray], pairs: Sequence[tuple[int, int]], pair_outputs: Sequence[Array]
) -> Iterator[tuple[AnyArray, AnyArray, Array]]:
    """Rows of the first and of the second folds of some pairs, (k, a) and (k, b), and their
    outputs, (k, a + b, t)."""
    sizes = np.array([(len(folds[g]), len(folds[h])) for g, h in pairs]).reshape(-1, 2)
    for a, b in np.unique(sizes, axis=0).tolist():
        same = np.flatnonzero((sizes == (a, b)).all(axis=1))
        for some in np.array_split(same, -(-len(same) * a * b // _COMPARISONS)):
            G, H = (np.stack([folds[pairs[k][side]] for k in some.tolist()]) for side in (0, 1))
            yield G, H, np.stack([pair_outputs[k] for k in some.tolist()])


def _compare_within(
    y: AnyArray, f: Array, rows: AnyArray, weight: Array, tie: float, right: Array, mass: Array
) -> None:
    """Add the comparisons of positive with negative rows of a fold; O(m log m) for m rows."""
    p, q = (np.flatnonzero(of & (weight[rows] > 0)) for of in (y[rows], ~y[rows]))
    if not (len(p) and len(q)):
        return
    v, w = weight[rows[p]], weight[rows[q]]
    right[rows[p]] += v * w.sum() * share_under(f[p], f[q], w, tie)
    right[rows[q]] += w * v.sum() * (1.0 - share_under(f[q], f[p], v, tie))
    mass[rows[p]] += v * w.sum()
    mass[rows[q]] += w * v.sum()


def _compare_between(
    y: AnyArray,
    F: Array,
    G: AnyArray,
    H: AnyArray,
    weight: Array,
    tie: float,
    right: Array,
    mass: Array,
) -> None:
    """Add the comparisons of rows of one fold with rows of the other class in its partner.

    ``F``, (k, a + b), are the outputs of ``G``, (k, a), and ``H``, (k, b).
    """
    f, g = F[:, : G.shape[1], None], F[:, None, G.shape[1] :]
    above, below = y[G][:, :, None], y[H][:, None, :]
    w = weight[G][:, :, None] * weight[H][:, None, :] * (above != below)
    difference = np.where(above, f - g, g - f)  # of the positive row over the negative one
    width = np.maximum(tie_width(f, tie), tie_width(g, tie))
    won = w * ((difference > width) + 0.5 * (np.abs(difference) <= width))
    for rows, axis in ((G, 2), (H, 1)):
        for sums, values in ((right, won), (mass, w)):
            sums += np.bincount(rows.ravel(), values.sum(axis=axis).ravel(), len(sums))
