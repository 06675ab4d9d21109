"""Nested cross-validation of a choice among fixed candidates, without refits.

The residuals of rows with two folds left out are the inner held-out residuals of the outer round
that leaves one of them out. So candidates that were fixed beforehand can be chosen anew in every
round, from one factorization each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from looms._classes import class_indices
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.calibration import class_probabilities
from looms.criteria import Criterion, PointwiseCriterion
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._names import KernelLike, as_kernel, kernel_name
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._fold_pairs import balanced_residuals, fold_of_rows, residuals_without
from looms.lssvm._system import Fit, targets_as_columns
from looms.optimize import Outcome, Point
from looms.optimize._search import Search
from looms.selection._candidates import Candidate, Choice, Score, Watcher, candidate_name
from looms.selection._fold_pairs import fold_pairs, pair_auc
from looms.selection._objective import Objective
from looms.selection._tune import Tuning, grid_points


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


def choose_nested(
    candidates: Iterable[tuple[Objective, Array]],
    evaluated: Callable[[Objective, Point], None] | None = None,
) -> NestedChoice:
    """Candidate of the least criterion, and the same choice without each fold.

    Parameters
    ----------
    candidates : objective and (p + 1,) point of each; the objectives differ in their kernels only,
        and hold out each row once.
    evaluated : called with the objective and the point after every evaluation, before
        ``candidates`` give the next.

    Raises
    ------
    ValueError
        If rows are held out in several repetitions, there are fewer than three folds, or no
        candidate can be evaluated.

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
    rest = iter(candidates)
    first, start = next(rest)
    n, Y = first.n_samples, targets_as_columns(first.y)
    if len(first.parts) > 1:
        raise ValueError("Nested cross-validation holds out each row once: give cv as one number.")
    folds = first.parts[0].folds
    if len(folds) < 3:
        raise ValueError(
            f"Nested cross-validation leaves out two folds, or groups, at once and needs three or "
            f"more, got {len(folds)}: give more, or search by gradients."
        )
    number = fold_of_rows(folds, n)
    labeled = bool(np.isin(Y, (-1.0, 1.0)).all())
    single = [(g,) for g in range(len(folds))]
    double = fold_pairs(Y, number) if labeled else []
    points: list[Point] = []
    least, least_of_pair = np.full(len(folds), np.inf), np.full(len(double), np.inf)
    chosen = np.full(len(folds), -1)
    inner, pairs = np.empty((2, n, len(folds), Y.shape[1]))
    pair_outputs: list[Array] = [np.empty(0)] * len(double)
    fit, best = None, -1
    for k, (objective, theta) in enumerate(chain([(first, start)], rest)):
        of_folds, of_pairs = np.full(len(folds), np.inf), np.full(len(double), np.inf)
        better_outputs: dict[int, Array] = {}
        points.append(Point(theta, np.inf, np.inf))
        try:
            with blas_threads(n):
                solution = objective.solve(theta)
                P, alpha = solution.projection.matrix(), targets_as_columns(solution.fit.alpha)
                e = [part for _, part in residuals_without(P, alpha, folds, single, solution.mu)]
                outputs = Y[:, None] - np.concatenate(e, axis=1)
                value, error, _ = objective.criterion_of(solution.fit.held_out)
                if np.isfinite(value):
                    of_folds = _values_without(objective, Y, outputs, number, single)
                    for part, residuals in residuals_without(P, alpha, folds, double, solution.mu):
                        f = Y[:, None] - residuals
                        of_pairs[part] = _values_without(objective, Y, f, number, double[part])
                        for m in np.flatnonzero(of_pairs[part] < least_of_pair[part]):
                            rows = np.concatenate([folds[g] for g in double[part.start + m]])
                            better_outputs[part.start + m] = f[rows, m]
                    points[k] = Point(theta, value, error)
        except NotPositiveDefiniteError:
            pass
        if evaluated is not None:
            evaluated(objective, points[k])
        if points[k].value == np.inf:
            continue
        if best < 0 or points[k].value < points[best].value:
            best, fit = k, solution.fit
        better = of_folds < least
        least[better], chosen[better] = of_folds[better], k
        inner[:, better] = outputs[:, better]
        pairs[better[number]] = outputs[better[number]]
        least_of_pair = np.minimum(least_of_pair, of_pairs)
        for pair, of_rows in better_outputs.items():
            pair_outputs[pair] = of_rows
    if fit is None or (chosen < 0).any():
        raise ValueError("No candidate could be evaluated: scale the features, or use larger mu.")
    shape = (n, len(folds), *first.y.shape[1:])
    return NestedChoice(
        best,
        np.array([point.value for point in points]),
        np.array([point.standard_error for point in points]),
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


@dataclass(frozen=True, eq=False)
class Nested:
    """Held-out predictions by machines that were chosen without the rows they predict.

    Attributes
    ----------
    rows : (m,) the rows of positive weight, in the order of what follows.
    folds : (m,) number of the fold of each, with which it was left out.
    held_out : outputs of each row by the candidate that was chosen without its fold.
    predicted : (m,) class index by the threshold that was set without the fold; None for numbers.
    probabilities : (m, n_classes) by the calibrator of the rows outside the fold; None without.
    balanced : outputs to pool, as in a curve, shaped like the targets: with a row of another class
        left out as well, a mean over those; None for numbers.
    auc : leave-pair-out area under the ROC curve and its standard error; the candidate is chosen
        without the pair. None for numbers.
    kernels, mus : of the candidates that were chosen without some fold.
    chosen : (m,) which of these belongs to a row.

    Notes
    -----
    Inside: kernel, its width, regularization, threshold, calibration. Not inside is what was done
    to the features before, such as a scaling; where that does not look at the targets it is
    mostly harmless.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> nested = LSSVMClassifierCV(search="grid").fit(X[::2], y[::2]).nested_
    >>> int((nested.predicted != y[::2]).sum())              # of 75
    4
    """

    rows: AnyArray
    folds: AnyArray
    held_out: HeldOut
    predicted: AnyArray | None
    probabilities: Array | None
    balanced: Array | None
    auc: tuple[float, float] | None
    kernels: tuple[Kernel, ...]
    mus: Array
    chosen: AnyArray


def choose_on_grid(
    kernels: Sequence[KernelLike],
    criterion: str | Criterion,
    *,
    objective_of: Callable[..., Objective],
    scorer: Callable[[HeldOut], Score],
    watcher: Watcher,
) -> tuple[Choice, NestedChoice, list[tuple[Kernel, float]]]:
    """Point of the least criterion on the grids of some kernels, and the choice in every fold.

    Parameters
    ----------
    kernels, objective_of, scorer, watcher : as for `looms.selection._candidates.choose`; the
        score sets the threshold only.
    criterion : that the points compete by.

    Returns
    -------
    choice : a candidate for each kernel, its best point, and the machine of the best.
    nested : `choose_nested` on all points.
    machines : kernel and μ of each point.
    """
    candidates: list[Candidate] = []
    tunings: list[Tuning] = []
    machines: list[tuple[Kernel, float]] = []
    record: list[Point] = []

    def evaluated(objective: Objective, point: Point) -> None:
        record.append(point)
        watcher.evaluation_done(objective, point)

    def points() -> Iterator[tuple[Objective, Array]]:
        for kernel in kernels:
            watcher.candidate_begins(candidate_name(kernel, criterion))
            began = time.perf_counter()
            objective = objective_of(kernel=as_kernel(kernel), criterion=criterion)
            record.clear()
            for theta in grid_points(objective):
                machines.append((objective.kernel_at(theta), objective.mu_at(theta)))
                yield objective, theta
            least = min(record, key=lambda point: point.value)
            search = Search(least, Outcome.GRID, tuple(record), len(record))
            stages = ((objective.n_samples, search),)
            tunings.append(
                Tuning(least.theta, least.value, least.standard_error, Outcome.GRID, stages, 0, ())
            )
            candidates.append(
                Candidate(
                    kernel_name=kernel_name(kernel),
                    kernel=objective.kernel_at(least.theta),
                    mu=objective.mu_at(least.theta),
                    criterion=criterion,
                    value=least.value,
                    standard_error=least.standard_error,
                    score=least.value,
                    threshold=0.0,
                    n_evaluations=len(record),
                    n_failures=search.n_failures,
                    seconds=time.perf_counter() - began,
                    outcome=Outcome.GRID,
                    at_bounds=(),
                )
            )
            stopped = watcher.candidate_ends(candidates[-1])
            if stopped and any(np.isfinite(candidate.value) for candidate in candidates):
                break

    nested = choose_nested(points(), evaluated)
    score = scorer(nested.fit.mean_held_out)
    k = int(np.argmin([candidate.value for candidate in candidates]))
    candidates[k] = replace(candidates[k], threshold=score.threshold)
    return Choice(candidates, candidates[k], score, tunings[k], nested.fit), nested, machines


def nested_predictions(
    nested: NestedChoice,
    machines: Sequence[tuple[Kernel, float]],
    rows: AnyArray,
    weight: Array,
    scorer: Callable[[HeldOut, AnyArray, Array], Score],
) -> Nested:
    """Predictions of every row, threshold and calibration set without its fold.

    Parameters
    ----------
    nested, machines : from `choose_on_grid`.
    rows : (m,) numbers of the rows.
    weight : (m,) for balanced outputs and the area under the curve.
    scorer : threshold and calibrator of held-out outputs of some of the m rows, and factors of
        their weights.
    """
    y = nested.fit.y
    number = fold_of_rows(nested.folds, len(y))
    used, machine = np.unique(nested.chosen, return_inverse=True)
    predicted = probabilities = balanced = auc = None
    if np.isin(y, (-1.0, 1.0)).all():
        Y, pairs = targets_as_columns(y), nested.pairs.reshape(*nested.pairs.shape[:2], -1)
        folds, whole = nested.folds, slice(0, len(nested.folds))
        residuals = balanced_residuals([(whole, Y[:, None] - pairs)], Y, folds, weight)
        balanced = (Y - residuals).reshape(y.shape)
        predicted = np.empty(len(y), dtype=np.intp)
        labels = class_indices(y)
        mass = np.bincount(labels, weights=weight)
        for g, fold in enumerate(folds):
            rest = np.flatnonzero(number != g)
            # Classes in the proportions of all rows: without a row its own is rarer by one, and
            # threshold and calibration would lean away from it.
            outside = np.bincount(labels[rest], weights=weight[rest], minlength=len(mass))
            factor = (mass / np.where(outside > 0, outside, 1.0))[labels[rest]]
            score = scorer(HeldOut(y[rest], nested.inner[rest, g]), rest, factor)
            # Not the balanced ones: the outputs that set the threshold lean as these do.
            predicted[fold] = class_indices(nested.outputs[fold], score.threshold)
            if score.calibrator is not None:
                p = class_probabilities(score.calibrator, nested.outputs[fold])
                if probabilities is None:
                    probabilities = np.empty((len(y), p.shape[1]))
                probabilities[fold] = p
        outputs = targets_as_columns(nested.outputs)
        auc = pair_auc(Y, outputs, folds, nested.fold_pairs, nested.pair_outputs, weight)
    return Nested(
        rows,
        number,
        HeldOut(y, nested.outputs, weight),
        predicted,
        probabilities,
        balanced,
        auc,
        tuple(machines[k][0] for k in used),
        np.array([machines[k][1] for k in used]),
        machine[number],
    )
