"""Scores of held-out predictions, with standard errors.

Held-out outputs are biased away from the class of their own row, and more so the larger the ridge.
So on pure noise their error rate and the area under their ROC curve are not those of a guess. These
scores compare pairs of rows of different classes, each pair under a machine that has seen neither
row [docs/references.md, Pairs].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from looms._classes import class_indices, rounding
from looms._scores import Scores, class_scores, number_scores
from looms._typing import AnyArray, Array
from looms.calibration._calibrators import Calibrator
from looms.held_out import HeldOut
from looms.lssvm._folds import HeldOutBlocks, Repetition, repetitions, whole_repetitions
from looms.lssvm._system import targets_as_columns
from looms.lssvm._without_folds import fold_of_rows
from looms.selection._decisions import Decided, Decisions
from looms.selection._fold_pairs import fold_pairs, pair_auc

__all__ = ["class_scores", "number_scores"]


class Scored(NamedTuple):
    """Scores, and the decisions that they are computed from.

    Attributes
    ----------
    scores : value and standard error by name.
    rows : (m,) the rows with positive weight.
    decisions : decisions on these rows; None for regression.
    """

    scores: Scores
    rows: AnyArray
    decisions: Decisions | None


def held_out_decisions(
    P: Array,
    alpha: Array,
    y: Array,
    parts: Sequence[Repetition],
    weight: Array,
    threshold: float | Array,
    calibrator: Calibrator | None,
    mu: float,
    tie: float | None = None,
) -> tuple[Decisions, tuple[float, Array]]:
    """Decisions of a machine on rows that it has not seen, and the area under its ROC curve.

    Parameters
    ----------
    P : (n, n) M⁻¹ − η ηᵀ / Ση, both triangles valid.
    alpha : (n,) or (n, t) dual coefficients.
    y : targets ±1, shaped like ``alpha``.
    parts : rows that are held out. With one repetition, pairs of folds with different classes are
        held out, unless folds are so large that as many pairs of rows meet within them.
    weight : (n,) weights for the area.
    threshold, calibrator : those of the machine.
    mu : regularization, for messages.
    tie : as for `looms._classes.tie_width`; by default `looms._classes.rounding`.

    Returns
    -------
    decisions, auc : as for `class_scores`; the area is a mean over repetitions.
    """
    Y, A = targets_as_columns(y), targets_as_columns(alpha)
    n = len(Y)
    tie = rounding(n) if tie is None else tie
    outputs = fold_outputs(P, A, Y, parts, mu)
    folds = parts[0].folds
    pairs = fold_pairs(Y, fold_of_rows(folds, n)) if len(parts) == 1 else []
    rows_of_pairs = [np.concatenate([folds[g], folds[h]]) for g, h in pairs]
    pair_outputs = [Y[S] - np.linalg.solve(P[np.ix_(S, S)], A[S]) for S in rows_of_pairs]
    in_pairs = np.zeros(n, dtype=bool)
    for S in rows_of_pairs:
        in_pairs[S] = True
    rounds = list(zip(rows_of_pairs, pair_outputs, strict=True))
    for f in outputs:
        alone = np.flatnonzero(np.isfinite(f[:, 0]) & ~in_pairs)
        rounds.append((alone, f[alone]))
    rows = np.concatenate([S for S, _ in rounds])
    f = np.concatenate([values for _, values in rounds]).reshape(len(rows), *y.shape[1:])
    decisions = Decisions.of([Decided.of(rows, f, threshold, calibrator, tie)], class_indices(y))
    areas = []
    for r, tested in whole_repetitions(parts):
        values = np.full(Y.shape, np.nan)
        values[tested] = outputs[r, tested]
        own = [G for k in np.unique(r) for G in parts[k].folds]
        areas.append(pair_auc(Y, values, own, pairs, pair_outputs, weight, tie))
    known = [each for each in areas if np.isfinite(each[0])]
    if not known:
        return decisions, areas[0]
    area = float(np.mean([value for value, _ in known]))
    return decisions, (area, np.mean([deviations for _, deviations in known], axis=0))


def fold_outputs(P: Array, alpha: Array, y: Array, parts: Sequence[Repetition], mu: float) -> Array:
    """Held-out outputs of every repetition, (n_repetitions, n, t); NaN where a row is not tested.

    Arguments are as for `held_out_decisions`, with targets in columns.
    """
    blocks = HeldOutBlocks(P.diagonal(), parts, lambda G: P[np.ix_(G, G)], mu)
    return blocks.outputs(y, blocks.solve(alpha))


def area_within(
    held_out: HeldOut, folds: AnyArray | None, tie: float | None = None
) -> tuple[float, Array]:
    """Area under the ROC curve, comparing rows of one fold; NaN if no classes meet in a fold.

    ``folds``, (n,) or (n_repetitions, n), test each row once; None means no folds.
    """
    y, f, weight = (targets_as_columns(each) for each in held_out)
    sets = [] if folds is None else [G for part in repetitions(folds, len(y)) for G in part.folds]
    return pair_auc(y, f, sets, [], [], weight[:, 0], tie)
