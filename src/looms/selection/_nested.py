"""Nested cross-validation of a choice among fixed candidates, without refits.

The residuals of rows with two folds left out are the inner held-out residuals of the outer round
that leaves one of them out. So candidates that were fixed beforehand can be chosen anew in every
round, from one factorization each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.criteria import PointwiseCriterion
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._fold_pairs import fold_of_rows, residuals_without
from looms.lssvm._system import Fit, targets_as_columns
from looms.selection._fold_pairs import fold_pairs
from looms.selection._objective import Objective


@dataclass(frozen=True, eq=False)
class NestedChoice:
    """Choice of a candidate on all rows, and without each fold.

    Attributes
    ----------
    best : candidate of the least criterion on all rows; of equal ones the first.
    values, standard_errors : (n_candidates,) of the criterion on all rows; infinite where a
        candidate cannot be evaluated.
    fit : the machine of the best candidate.
    folds : rows of each fold.
    chosen : (n_folds,) candidate of the least criterion on the rows outside the fold, the machines
        of which have not seen the fold.
    outputs : held-out output of each row by the candidate that was chosen without its fold, shaped
        like the targets.
    inner : (n, n_folds) or (n, n_folds, t) held-out outputs of each row by the candidate chosen
        without the fold of the second axis, on the rows without that fold.
    pairs : as ``inner``, by the candidate chosen without the fold of the row.
    fold_pairs, pair_outputs : two folds, and the outputs (m, t) of their rows by the candidate
        that was chosen without both, on the rows without both; for classes only.
    """

    best: int
    values: Array
    standard_errors: Array
    fit: Fit
    folds: tuple[AnyArray, ...]
    chosen: AnyArray
    outputs: Array
    inner: Array
    pairs: Array
    fold_pairs: list[tuple[int, int]]
    pair_outputs: list[Array]


def choose_nested(candidates: Sequence[tuple[Objective, Array]]) -> NestedChoice:
    """Candidate of the least criterion, and the same choice without each fold.

    Parameters
    ----------
    candidates : objective and (p + 1,) point of each; the objectives differ in their kernels only,
        and hold out each row once.

    Raises
    ------
    ValueError
        If rows are held out in several repetitions, or no candidate can be evaluated.

    Notes
    -----
    n³ flops for a candidate and O(n F t) numbers for F folds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 3)), rng.normal(size=40)      # nothing to be learned
    >>> objective = Objective(X, y)
    >>> points = [objective.theta0 + [0.0, shift] for shift in range(-6, 8)]
    >>> choice = choose_nested([(objective, point) for point in points])
    >>> bool(np.mean((y - choice.outputs) ** 2) > choice.values[choice.best])
    True
    """
    first = candidates[0][0]
    n, Y = first.n_samples, targets_as_columns(first.y)
    if len(first.parts) > 1:
        raise ValueError("Nested cross-validation holds out each row once: give cv as one number.")
    folds = first.parts[0].folds
    number = fold_of_rows(folds, n)
    labeled = bool(np.isin(Y, (-1.0, 1.0)).all())
    single = [(g,) for g in range(len(folds))]
    double = fold_pairs(Y, number) if labeled and len(folds) > 3 else []
    values, errors = np.full((2, len(candidates)), np.inf)
    least, least_of_pair = np.full(len(folds), np.inf), np.full(len(double), np.inf)
    chosen = np.full(len(folds), -1)
    inner, pairs = np.empty((2, n, len(folds), Y.shape[1]))
    pair_outputs: list[Array] = [np.empty(0)] * len(double)
    fit, best = None, -1
    with blas_threads(n):
        for k, (objective, theta) in enumerate(candidates):
            try:
                solution = objective.solve(theta)
                P, alpha = solution.projection.matrix(), targets_as_columns(solution.fit.alpha)
                e = np.concatenate(
                    [part for _, part in residuals_without(P, alpha, folds, single, solution.mu)],
                    axis=1,
                )
                evaluation = objective.criterion_of(solution.fit.held_out)
                if not np.isfinite(evaluation.value):
                    continue
                outputs = Y[:, None] - e
                inner_values = _values_without(objective, Y, outputs, number, single)
                for part, residuals in residuals_without(P, alpha, folds, double, solution.mu):
                    f = Y[:, None] - residuals
                    of_pairs = _values_without(objective, Y, f, number, double[part])
                    start = part.start
                    for m in np.flatnonzero(of_pairs < least_of_pair[part]):
                        g, h = double[start + m]
                        pair_outputs[start + m] = f[np.concatenate([folds[g], folds[h]]), m]
                    least_of_pair[part] = np.minimum(least_of_pair[part], of_pairs)
            except NotPositiveDefiniteError:
                continue
            values[k], errors[k] = evaluation.value, evaluation.standard_error
            if best < 0 or values[k] < values[best]:
                best, fit = k, solution.fit
            better = inner_values < least
            least[better], chosen[better] = inner_values[better], k
            inner[:, better] = outputs[:, better]
            pairs[better[number]] = outputs[better[number]]
    if fit is None or (chosen < 0).any():
        raise ValueError("No candidate could be evaluated: scale the features, or use larger mu.")
    shape = (n, len(folds), *first.y.shape[1:])
    return NestedChoice(
        best,
        values,
        errors,
        fit,
        folds,
        chosen,
        inner[np.arange(n), number].reshape(first.y.shape),
        inner.reshape(shape),
        pairs.reshape(shape),
        double,
        pair_outputs,
    )


def _values_without(
    objective: Objective,
    Y: Array,
    outputs: Array,
    number: AnyArray,
    left_out: Sequence[tuple[int, ...]],
) -> Array:
    """Criterion, (b,), of outputs (n, b, t) of the rows outside some folds; infinite if not finite.

    ``left_out`` are the numbers of the folds, ``number`` the fold of each row.
    """
    criterion, weight = objective.criterion, objective.selection_weight
    outside = np.ones(outputs.shape[:2], dtype=bool)
    for folds in np.transpose(left_out):
        outside &= number[:, None] != folds
    if isinstance(criterion, PointwiseCriterion):
        losses = criterion.loss(Y[:, None], outputs)[0].mean(axis=2)
        shares = weight[:, None] * outside
        values = np.einsum("nb,nb->b", shares, losses) / shares.sum(axis=0)
    else:
        values = np.array(
            [
                criterion.evaluate(Y[rest], outputs[rest, b], weight[rest]).value
                for b, rest in enumerate(outside.T)
            ]
        )
    return np.where(np.isfinite(values), values, np.inf)
