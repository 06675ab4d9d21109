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
from looms.criteria import Criterion, PointwiseCriterion
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._fold_pairs import fold_of_rows, pair_residuals
from looms.lssvm._system import Fit, targets_as_columns
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
    values, errors = np.full((2, len(candidates)), np.inf)
    least = np.full(len(folds), np.inf)
    chosen = np.full(len(folds), -1)
    inner, pairs = np.empty((2, n, len(folds), Y.shape[1]))
    fit, best = None, -1
    with blas_threads(n):
        for k, (objective, theta) in enumerate(candidates):
            try:
                solution = objective.solve(theta)
                P, alpha = solution.projection.matrix(), targets_as_columns(solution.fit.alpha)
                blocks = list(pair_residuals(P, alpha, folds, solution.mu))
            except NotPositiveDefiniteError:
                continue
            evaluation = objective.judge(solution.fit.held_out)
            values[k], errors[k] = evaluation.value, evaluation.standard_error
            if best < 0 or values[k] < values[best]:
                best, fit = k, solution.fit
            outputs = Y[:, None] - np.concatenate([block for _, block in blocks], axis=1)
            inner_values = values_without(
                objective.criterion, Y, outputs, objective.selection_weight, number
            )
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
    )


def values_without(
    criterion: Criterion, Y: Array, outputs: Array, weight: Array, number: AnyArray
) -> Array:
    """Criterion, (n_folds,), of the rows outside each fold; infinite where it is not finite.

    Parameters
    ----------
    Y : (n, t) targets.
    outputs : (n, n_folds, t) outputs of the rows in the round of each fold.
    weight : (n,) of the criterion.
    number : (n,) fold of each row.
    """
    n_folds = outputs.shape[1]
    if isinstance(criterion, PointwiseCriterion):
        losses = criterion.loss(Y[:, None], outputs)[0].mean(axis=2)
        outside = weight[:, None] * (number[:, None] != np.arange(n_folds))
        values = np.einsum("nf,nf->f", outside, losses) / outside.sum(axis=0)
    else:
        values = np.array(
            [
                criterion.evaluate(Y[rest], outputs[rest, g], weight[rest]).value
                for g in range(n_folds)
                for rest in [number != g]
            ]
        )
    return np.where(np.isfinite(values), values, np.inf)
