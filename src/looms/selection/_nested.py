"""Nested cross-validation of a choice among fixed candidates, without refits.

The residuals of rows with two folds left out are the inner held-out residuals of the outer round
that leaves one of the folds out. So candidates that were fixed beforehand can be chosen anew in
every round, from one factorization each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TypeAlias

import numpy as np

from looms._classes import class_factors, class_indices, with_ties
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.criteria import Criterion
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._names import KernelLike, as_kernel, kernel_name
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import tie_of
from looms.lssvm.fit import Fit
from looms.lssvm.inner import InnerUnits
from looms.lssvm.left_out import Linear
from looms.optimize import Outcome, Point
from looms.optimize._search import Search
from looms.selection._candidates import Candidate, Choice, Score, Watcher, candidate_name
from looms.selection._decisions import Decided, Decisions, NestedFigures
from looms.selection._features import FeaturesObjective
from looms.selection._fold_pairs import fold_pairs, pair_auc
from looms.selection._objective import Objective
from looms.selection._starts import grid_points
from looms.selection._tuning import Tuning
from looms.units import Units, of_one_size

#: Objective of a whole kernel matrix, or of few features; with points of a grid, (p + 1,) each.
Scanned: TypeAlias = Objective | FeaturesObjective
OnGrid: TypeAlias = tuple[Scanned, Sequence[Array]]
Evaluated: TypeAlias = Callable[[Scanned, Point], None]

_NUMBERS = 1 << 17  # in the outputs of some rounds, as many as stay near the processor
_NO_CANDIDATE = "No candidate could be evaluated: scale the features, or use larger mu."


@dataclass(frozen=True, eq=False)
class NestedChoice:
    """Choice of a candidate on all rows, and without some folds: one, or two.

    Attributes
    ----------
    best : candidate of the least criterion on all rows; of equal ones the first.
    values, standard_errors : (n_candidates,) of the criterion on all rows; infinite where a
        candidate cannot be evaluated.
    fit : the machine of the best candidate.
    units : rows that leave together.
    left_out : numbers of the folds that are left out in each round: every fold, then pairs of
        folds in which classes meet.
    chosen : (n_rounds,) candidate of the least criterion on the rows outside the round.
    outputs : (n_rounds, n, t) by that candidate: of rows outside, held out as well; of the folds
        left out, by the machine that is trained without them.
    ties : (n_rounds,) difference up to which outputs for labels are equal up to rounding.
    """

    best: int
    values: Array
    standard_errors: Array
    fit: Fit
    units: Units
    left_out: list[tuple[int, ...]]
    chosen: AnyArray
    outputs: Array
    ties: Array

    @property
    def held_out(self) -> Array:
        """Output of each row by the candidate that was chosen without its fold, (n, t)."""
        (number,) = self.units.number
        return np.asarray(self.outputs[number, np.arange(len(number))])


def choose_along_mu(candidates: Iterable[OnGrid], evaluated: Evaluated | None = None) -> Fit:
    """Machine of the least criterion, from one decomposition of each kernel matrix.

    Parameters
    ----------
    candidates, evaluated : as for `choose_nested`; folds may be any.

    Raises
    ------
    ValueError
        If no candidate can be evaluated.

    Notes
    -----
    Beside the decompositions n² flops a point, of few features n p, and a factorization for the
    best of each objective.
    """
    fit: Fit | None = None
    least = np.inf
    for objective, thetas in candidates:
        points: list[Point] = []
        for values, same in groupby(thetas, key=lambda theta: tuple(theta[:-1])):
            points += objective.along_mu(np.array(values), np.array([theta[-1] for theta in same]))
        best = min(points, key=_value)
        while best.model is None and np.isfinite(best.value):  # what eigenvectors do not refuse
            solved = objective.evaluate(best.theta, gradient=False)
            points = [solved if point is best else point for point in points]
            best = min(points, key=_value)
        if best.value < least:
            fit, least = best.model, best.value
        for point in points:
            if evaluated is not None:
                evaluated(objective, replace(point, model=None))
    if fit is None:
        raise ValueError(_NO_CANDIDATE)
    return fit


def choose_nested(candidates: Iterable[OnGrid], evaluated: Evaluated | None = None) -> NestedChoice:
    """Candidate of the least criterion, and the same choice without one fold, and without two.

    Parameters
    ----------
    candidates : objectives, each with its points, (p + 1,); the objectives differ in their kernels
        only, and hold out each row once, in three folds or more.
    evaluated : called with the objective and the point after every evaluation, before
        ``candidates`` give the next objective.

    Raises
    ------
    ValueError
        If rows are held out in several repetitions, in two folds, or no candidate can be evaluated.

    Notes
    -----
    n³ flops for a candidate, of few features n² p, and O(n² (s + t)) for folds of s rows; n t
    numbers are kept for each round, of which single rows have three each.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 3)), rng.normal(size=40)      # nothing to be learned
    >>> objective = Objective(X, y)
    >>> points = [objective.theta0 + [0.0, shift] for shift in range(-6, 8)]
    >>> choice = choose_nested([(objective, points)])
    >>> bool(np.mean((y - choice.held_out[:, 0]) ** 2) > choice.values[choice.best])
    True
    """
    rest = iter(candidates)
    first, start = next(rest)
    n, Y, units = first.n_samples, targets_as_columns(first.y), first.units
    if units.shape[0] > 1:
        raise ValueError(
            "Nested cross-validation holds out each row once, without gaps: give cv as one number, "
            "or nested=None."
        )
    folds = tuple(units)
    if len(folds) < 3:
        raise ValueError(
            "Nested cross-validation leaves out two folds or groups, but there are no others: give "
            "three or more, or nested=None."
        )
    single: list[tuple[int, ...]] = [(g,) for g in range(len(folds))]
    double: list[tuple[int, ...]] = [*fold_pairs(Y, units.number[0])] if first.labeled else []
    rounds = single + double
    rows_of_rounds = [np.concatenate([folds[g] for g in numbers]) for numbers in rounds]
    outside = np.ones((len(rounds), n), dtype=bool)
    for r, rows in enumerate(rows_of_rounds):
        outside[r, rows] = False
    points: list[Point] = []
    least = np.full(len(rounds), np.inf)
    chosen = np.full(len(least), -1)
    outputs, ties = np.empty((len(least), n, Y.shape[1])), np.zeros(len(least))
    fit, best = None, -1
    of_grids = chain([(first, start)], rest)
    for objective, theta in ((one, theta) for one, thetas in of_grids for theta in thetas):
        k = len(points)
        better: list[tuple[AnyArray, Array, Array]] = []
        points.append(Point(theta, np.inf, np.inf))
        try:
            with blas_threads(n):
                projection = objective.solve(theta)
                held_out = Linear(projection).outputs(units)
                value, error, *_ = objective.criterion_of(held_out)
                if np.isfinite(value):
                    P, alpha, mu = projection.matrix(), projection.alpha, projection.mu
                    inner_units = InnerUnits(units, P, alpha, mu)
                    for part, rows in of_one_size(rows_of_rounds, _NUMBERS // n):
                        f = Y - inner_units.residuals(rows)
                        inner = _values_of(objective, Y, f.swapaxes(0, 1), outside[part].T)
                        less = np.flatnonzero(inner < least[part])
                        better.append((part[less], inner[less], f[less]))
                    points[k] = Point(theta, value, error)
        except NotPositiveDefiniteError:
            better = []
        for rounds_better, inner, f in better:
            least[rounds_better], chosen[rounds_better] = inner, k
            ties[rounds_better] = tie_of(first.y, projection.size, projection.alpha)
            outputs[rounds_better] = f
        if points[k].value < np.inf and (best < 0 or points[k].value < points[best].value):
            best, fit = k, Fit.of(projection, held_out, first.y)
        if evaluated is not None:
            evaluated(objective, points[k])
    if fit is None or (chosen < 0).any():
        raise ValueError(_NO_CANDIDATE)
    values = np.array([point.value for point in points])
    errors = np.array([point.standard_error for point in points])
    return NestedChoice(best, values, errors, fit, units, rounds, chosen, outputs, ties)


def _value(point: Point) -> float:
    return point.value


def _values_of(objective: Scanned, Y: Array, outputs: Array, rows: AnyArray) -> Array:
    """Criterion, (b,), of outputs (n, b, t) of some rows, (n, b) true; infinite if not finite."""
    weight = objective.selection_weight[:, None] * rows
    values = objective.criterion.values(Y, outputs, weight)
    return np.where(np.isfinite(values), values, np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Nested(NestedFigures):
    """Held-out predictions by machines that were chosen without the rows they predict.

    Attributes
    ----------
    rows : (m,) the rows of positive weight, in the order of the other attributes.
    folds : (m,) number of the fold with which each row was left out.
    held_out : output of each row by the candidate that was chosen without its fold.
    decisions : classes and probabilities by the threshold and the calibrator that were set without
        the row; None for numbers. Each round of a grid also leaves out a row of another class, if
        there are enough folds.
    auc : area under the ROC curve over pairs of rows that one machine, and its choice, has not
        seen, and what each row adds to it. A grid compares rows of two folds left out; machines
        tuned by gradients compare rows of one outer fold. None for numbers.
    kernels, mus : kernels and regularization of the machines that were chosen without some fold.
    chosen : (n_machines, m) true for the rows that a machine predicts; if several machines, a
        stack, predict a row, their outputs are summed.
    alphas, intercepts : (n_machines, m, t) and (n_machines, t) coefficients of machines that were
        tuned by gradients, each without one fold, times their weights in a stack; None for a grid,
        where they follow from the kernels.
    coefs : (n_features, t) feature weights of each of these machines that was solved for them,
        None for the others.

    Notes
    -----
    The choice that is repeated covers kernel, its width, regularization, threshold and calibration,
    but not earlier steps on the features, such as scaling; steps that ignore the targets do little
    harm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> nested = LSSVMClassifierCV(search="grid").fit(X[::2], y[::2]).nested_
    >>> int((nested.decisions.predicted != y[::2]).sum())              # of 75
    3
    """

    rows: AnyArray
    folds: AnyArray
    held_out: HeldOut
    decisions: Decisions | None
    auc: tuple[float, Array] | None
    kernels: tuple[Kernel, ...]
    mus: Array
    chosen: AnyArray
    alphas: Array | None = None
    intercepts: Array | None = None
    coefs: tuple[Array | None, ...] | None = None

    @property
    def _of_classes(self) -> tuple[Decisions, tuple[float, Array]] | None:
        return None if self.decisions is None or self.auc is None else (self.decisions, self.auc)


def choose_on_grid(
    kernels: Sequence[KernelLike],
    criterion: str | Criterion,
    *,
    objective_of: Callable[..., Scanned],
    scorer: Callable[[HeldOut], Score],
    watcher: Watcher,
    repeated: bool,
) -> tuple[Choice, NestedChoice | None, list[tuple[Kernel, float]]]:
    """Point of the least criterion on the grids of some kernels, and the choice in every fold.

    Parameters
    ----------
    kernels, objective_of, scorer, watcher : as for `looms.selection._candidates.choose`; the
        score sets the threshold only.
    criterion : that the points compete by.
    repeated : whether the choice is made in every fold, too.

    Returns
    -------
    choice : a candidate for each kernel, its best point, and the machine of the best.
    nested : `choose_nested` on all points, or None.
    machines : kernel and μ of each point.
    """
    candidates: list[Candidate] = []
    tunings: list[Tuning] = []
    machines: list[tuple[Kernel, float]] = []
    record: list[Point] = []

    def evaluated(objective: Scanned, point: Point) -> None:
        record.append(point)
        watcher.evaluation_done(objective, point)

    def grids() -> Iterator[OnGrid]:
        for kernel in kernels:
            watcher.candidate_begins(candidate_name(kernel, criterion))
            began = time.perf_counter()
            objective = objective_of(kernel=as_kernel(kernel), criterion=criterion)
            record.clear()
            points = grid_points(objective)
            machines.extend(
                (objective.kernel_at(point), objective.mu_at(point)) for point in points
            )
            yield objective, points
            least = min(record, key=_value)
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

    nested = choose_nested(grids(), evaluated) if repeated else None
    fit = choose_along_mu(grids(), evaluated) if nested is None else nested.fit
    score = scorer(fit.decided)
    k = int(np.argmin([candidate.value for candidate in candidates]))
    candidates[k] = replace(candidates[k], threshold=score.threshold)
    return Choice(candidates, candidates[k], score, tunings[k], fit, []), nested, machines


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
    weight : (m,) for the area under the curve.
    scorer : threshold and calibrator of held-out outputs of some of the m rows, and factors of
        their weights.
    """
    y, folds = nested.fit.y, tuple(nested.units)
    Y, n, (number,) = targets_as_columns(y), len(y), nested.units.number
    used, machine = np.unique(nested.chosen[: len(folds)], return_inverse=True)
    decisions, auc = None, None
    if np.isin(y, (-1.0, 1.0)).all():
        labels = class_indices(y)
        pairs = range(len(folds), len(nested.left_out))
        in_pairs = {g for k in pairs for g in nested.left_out[k]}
        rounds = []
        for k in [*pairs, *(g for g in range(len(folds)) if g not in in_pairs)]:
            out = np.concatenate([folds[g] for g in nested.left_out[k]])
            rest = np.delete(np.arange(n), out)
            factor = class_factors(labels, weight, rest)
            f, tie = nested.outputs[k].reshape(y.shape), nested.ties[k]
            score = scorer(HeldOut(y[rest], with_ties(f[rest], tie)), rest, factor)
            rounds.append(Decided.of(out, f[out], score.threshold, score.calibrator, tie))
        decisions = Decisions.of(rounds, labels)
        left_out = [(g, h) for g, h in nested.left_out[len(folds) :]]
        outputs = [
            nested.outputs[k][np.concatenate([folds[g], folds[h]])]
            for k, (g, h) in zip(pairs, left_out, strict=True)
        ]
        auc = pair_auc(Y, nested.held_out, folds, left_out, outputs, weight, nested.ties.max())
    return Nested(
        rows,
        number,
        HeldOut(y, nested.held_out.reshape(y.shape), weight),
        decisions,
        auc,
        tuple(machines[k][0] for k in used),
        np.array([machines[k][1] for k in used]),
        machine[number] == np.arange(len(used))[:, None],
    )
