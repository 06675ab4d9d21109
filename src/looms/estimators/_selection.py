"""The selection among candidates on the rows of a fit: the best one, or a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from looms._advice import setting
from looms._memory import check_memory
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, rows_in_memory
from looms.dask._blocks import gathered
from looms.estimators._callbacks import CallbackWatcher
from looms.estimators._choice_folds import ChoiceFolds, WithoutFold
from looms.estimators._estimator_member import check_estimators, estimator_problem
from looms.estimators._fit_routing import model_takes_weights
from looms.estimators._folds import nearly_noiseless
from looms.estimators._one_kernel import (
    candidate_of,
    criterion_weight,
    has_kernel,
    model_of_folds,
    problem_of,
)
from looms.estimators._warnings import (
    warn_of_duplicates,
    warn_of_long_fit,
    warn_of_no_stack,
    warn_of_scales,
)
from looms.fitted._fitted import Fitted, Selected, sum_of
from looms.fitted._rows import OUTER_FOLDS, Rows, outer_folds
from looms.folds import group_numbers, is_grouped
from looms.held_out import HeldOut
from looms.kernels._names import is_estimator
from looms.kernels._samples import training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.selection._candidates import Candidates, Choice, HeldOutLoss, choose
from looms.selection._low_rank import LARGEST_RANK
from looms.selection._nested import Nested
from looms.selection._stack import weight_of_best
from looms.units import Units

#: Rows up to which candidates are compared, or weighted, in folds that each was tuned without.
MOST_IN_FOLDS = 2000
#: Rows for each tuned value of a kernel from which held-out outputs of the fit weigh in a stack. By
#: those of "ard" of 30 columns beside "linear" on 120 rows it had 1.016 × the error.
_ROWS_OF_VALUE = 50
#: Rows up to which kernels of a stack have so many landmarks at most. Twice as many take the fit to
#: 12,000 or 20,000 rows two to four times as long, and the stack has 0.995 × the error.
_ROWS_OF_SMALL_RANK, _SMALL_RANK = 50_000, 1024


def selected(model: Any, rows: Rows, watcher: CallbackWatcher, columns: Any) -> Fitted:
    """The fitted model of rows: the candidate with the smallest loss, or a stack of several.

    ``columns`` has prepared the rows, unless it is None.
    """
    every = _checked(model, rows)
    pairwise = any(kernel.pairwise for kernel in model._kernels())
    X = training_rows(every.X, every.train, pairwise)
    candidates, units = model._candidates_for(X), every.units(model.cv)
    rows = every.counting_in(units)
    kernels = [one for one in candidates if has_kernel(one)]
    for one in kernels:
        candidate_of(one).check(rows.outcome.labeled)
    others = [one for one in candidates if one not in kernels]
    check_estimators(others, rows.outcome.decides, model._kernels())
    cost = _, n_rows, n_arrays, _ = cost_on(model, X)
    if n_arrays:
        check_memory(n_rows, n_arrays)
    warn_of_long_fit(*cost)
    if model._tunes:
        names = None if model._prepares else getattr(model, "feature_names_in_", None)
        warn_of_scales(X, model._kernels(), names)
    compares = len(candidates) > 1 and _compares(model, X, kernels)
    outer, folds = choice_folds(model, rows, units) if compares else None, None
    if outer is not None:
        all_count = replace(every, weighs=rows.weighs)
        folds = ChoiceFolds.of(model, all_count, outer, units, pairwise)
    rank = largest_rank(model._stacks and len(candidates) > 1, X.shape[0])
    problems = [
        problem_of(
            *(one, rows, X, units, model.fit_intercept, folds.problems(one) if folds else ()),
            largest_rank=rank,
        )
        if one in kernels
        else estimator_problem(one, rows, X, units, outer, model._columns_before(one, columns))
        for one in candidates
    ]
    watcher.begins(len(problems))
    by_value = compares_grids(kernels)
    choice = choose(problems, loss_of=rows.loss, watcher=watcher, by_value=by_value)
    for_folds, in_folds = [model_of_folds(one) for one in candidates], None
    if folds is not None:
        choice, in_folds = _combined_in_folds(model, choice, rows, candidates, folds)
        for_folds = candidates if nearly_noiseless(in_folds, rows.outcome) else for_folds
    elif compares and model._stacks:
        choice = _stacked_by_fit(model, choice, rows)
    by_pairs = in_folds is not None or not isinstance(rows.X, RowBlocks)
    return Fitted.of(
        rows,
        units,
        choice.summed,
        model.fit_intercept,
        choice.loss.rule(0.0),
        selection=_record(choice, rows) if model._tunes else None,
        candidate_weights=choice.weights,
        in_folds=in_folds,
        loss=choice.loss.value,
        blocks_scored_in=None if by_pairs else _scored_in(choice, rows, units, model.fit_intercept),
        recipe=model._recipe(choice, for_folds),
    )


def largest_rank(stacked: bool, n: int) -> int:
    """Number of landmarks that "auto" tries at most, for a stack or one kernel on n rows."""
    return _SMALL_RANK if stacked and n <= _ROWS_OF_SMALL_RANK else LARGEST_RANK


def _checked(model: Any, rows: Rows) -> Rows:
    """The rows, with numbers of their groups and a seed."""
    X, n, least = rows.X, len(rows.train), 3 if model._tunes else 2
    if isinstance(X, RowBlocks):
        X.check_finite()
        if any(candidate_of(one).landmarks_for(X) is None for one in model._kernel_candidates):
            X = rows_in_memory(X)
    numbers = group_numbers(gathered(rows.groups), X.shape[0], model.cv)
    grouped = rows.groups is not None
    if model._tunes and not (is_grouped(numbers) or isinstance(X, RowBlocks)):
        warn_of_duplicates(X[rows.train])
    if n < least:
        words = {2: "Leave-one-out needs two", 3: "Tuning with leave-one-out needs three"}
        raise ValueError(
            f"{words[least]} samples of non-zero weight or more, got {n} sample"
            f"{'s' * (n != 1)}: give more."
        )
    seed = check_random_state(model.random_state).randint(2**31 - 1)
    options = {"grouped": grouped, "seed": seed, "weighs": model_takes_weights(model)}
    checked = replace(rows, X=X, groups=numbers, **options)
    if not has_kernel(model):
        return checked
    weight = criterion_weight(candidate_of(model).search, checked)
    return replace(checked, selection_weight=weight)


def _compares(model: Any, X: Matrix | RowBlocks, kernels: Sequence[Any]) -> bool:
    """True if candidates are compared other than by the values that tuned them."""
    whole = all(candidate_of(one).landmarks_for(X) is None for one in kernels)
    return bool(model._stacks or (whole and not compares_grids(kernels)))


def compares_grids(kernels: Sequence[Any]) -> bool:
    """True if the candidates with a kernel are compared on grids."""
    return bool(kernels) and all(candidate_of(one).on_grid for one in kernels)


def cost_on(model: Any, X: Matrix | RowBlocks) -> tuple[float, int, float, list[str]]:
    """Floating-point operations of a fit to rows, very roughly.

    Where candidates are compared in folds, the searches on parts of the rows, and the models
    without each fold, save about as much of the search on all rows as they take.

    And the number of rows, the arrays of the size of the kernel matrix that it has in memory at
    once, and settings that make it faster.
    """
    candidates = model._candidates_for(X)
    kernels = [one for one in candidates if has_kernel(one)]
    operations = float(sum(candidate_of(one).operations_for(X) for one in kernels))
    n_arrays = max((candidate_of(one).arrays_for(X) for one in kernels), default=0.0)
    ways, given = ["fewer candidates"] * (len(model._candidates) > 1), model._kernel_candidates
    if any(candidate_of(one).may_have_landmarks for one in given):
        of = "" if model in given else " of the candidates"
        ways.append(f"fewer landmarks{of} ({setting('n_landmarks', ...)})")
    return operations, X.shape[0], n_arrays, ways


def _record(choice: Choice, rows: Rows) -> Selected:
    """Record of a choice, with the best candidate in closed form if no member of the model is."""
    closed, fits = None, choice.fits
    if not any(fit.member.closed for _, fit in choice.summed):
        known = [k for k, fit in fits.items() if fit.member.closed]
        best = min(known, key=lambda k: choice.candidates[k].loss, default=None)
        closed = None if best is None else fits[best].member.among(rows.train, len(rows.weight))
    tuning = choice.tunings[choice.index]
    return Selected(Candidates(choice.candidates), choice.index, tuning, closed)


def _scored_in(
    choice: Choice, rows: Rows, units: Units, fit_intercept: bool
) -> tuple[Units, Array] | None:
    """Units, and outputs without them, that decisions on rows in blocks are scored by.

    They are scored while they are at hand, by the folds of the criterion. If it held out rows
    or groups, which cannot be compared under one model, these are ten folds, unless a class has
    too few rows for that, or the model without some fold cannot be fitted.
    """
    summed = choice.summed
    if not rows.outcome.stratified or not all(fit.member.closed for _, fit in summed):
        return None
    known = units, np.sum([w * fit.mean_held_out.outputs for w, fit in summed], axis=0)
    if units.in_folds:
        return known
    y, _, zeta = summed[0][1].loo
    try:
        tens = outer_folds(None, rows.outcome.codes(y), units.clusters, True, 0, OUTER_FOLDS)
    except ValueError:
        return known
    data = training_rows(rows.X, rows.train, pairwise=False), y, zeta, fit_intercept
    left_out = sum_of([w for w, _ in summed], [fit.member.left_out(*data) for _, fit in summed])
    try:
        return tens, left_out.outputs(tens)[0].reshape(y.shape)
    except NotPositiveDefiniteError:
        return known


def choice_folds(model: Any, rows: Rows, units: Units) -> Units | None:
    """Folds that several candidates are compared in; None of many rows, or if they cannot be made.

    On many rows tuning hardly leaves a trace.
    """
    if len(rows.train) > MOST_IN_FOLDS:
        return None
    try:
        return rows.choice_units(model.cv, units)
    except ValueError as error:
        if model._stacks:
            warn_of_no_stack(str(error).rstrip("."))
        return None


def _combined_in_folds(
    model: Any, choice: Choice, rows: Rows, candidates: Sequence[Any], folds: ChoiceFolds
) -> tuple[Choice, Nested | None]:
    """The best candidate, or a stack, by rows of folds that each candidate was tuned without.

    A stack has the mean of its weights there and of those by the held-out outputs of the fit: the
    former are of models of fewer rows, the latter of kernels that were tuned on them, and so they
    count only if these have few values. On tables of 250, 500, 1000 and 2000 rows it then has
    0.997, 0.998, 0.999 and 0.998 × the error of the former, on six smooth functions 0.987 ×.

    Models without a fold are combined in the same way, by the rows of the other folds. A
    choice stays as it is if there is one candidate.
    """
    fits, outer = choice.fits, folds.units
    if len(fits) < 2:
        return choice, None
    in_folds = [
        folds.models(candidates[k], choice.parts[k])
        if fit.member.closed
        else WithoutFold.of_estimator(fit, outer)
        for k, fit in fits.items()
    ]
    every = np.arange(len(rows.train))
    outputs = np.array([WithoutFold.outputs_of(models, outer) for models in in_folds])
    by_fit = np.array([fit.decided.outputs for fit in fits.values()])
    n_values = max(len(choice.candidates[k].params) for k in fits)
    n_of = 2 if len(every) >= _ROWS_OF_VALUE * n_values else 1
    weights, losses = _compared(model, choice, rows, [outputs, by_fit][:n_of], every)
    stays = [np.flatnonzero(stay) for stay in outer.stays(np.arange(outer.n_units))]
    stack = []
    for models, stay in zip(zip(*in_folds, strict=True), stays, strict=True):
        both = outputs[:, stay], np.array([one.others for one in models])
        without, _ = _compared(model, choice, rows, both[:n_of], stay)
        stack.append(WithoutFold.stacked(models, without[[*fits]]))
    stacked = WithoutFold.outputs_of(stack, outer)
    of_fit = sum(weights[k] * fit.decided.outputs for k, fit in fits.items())
    loss = _loss_in_folds(of_fit, stacked, rows)
    rules = None
    if rows.outcome.decides:
        pairs = zip(stack, stays, strict=True)
        rules = [rows.loss(one.others, stay).rule(one.tie) for one, stay in pairs]
    held_out = HeldOut(rows.own(rows.targets), stacked, rows.own(rows.score_weight))
    nested = Nested.of_folds(
        *(outer, held_out, rows.outcome, rules),
        *([one.members for one in stack], max(one.tie for one in stack)),
        whole=False,
    )
    return choice.combined(weights, losses, loss, stacked=model._stacks), nested


def _stacked_by_fit(model: Any, choice: Choice, rows: Rows) -> Choice:
    """A stack by the held-out outputs of the fit, of many rows on which tuning leaves no trace.

    The candidates stay as they are if there is one, or few rows.
    """
    fits, every = choice.fits, np.arange(len(rows.train))
    if len(fits) < 2 or len(every) <= MOST_IN_FOLDS:
        return choice
    outputs = np.array([fit.decided.outputs for fit in fits.values()])
    weights, losses = _compared(model, choice, rows, [outputs], every)
    summed = np.tensordot(weights[[*fits]], outputs, axes=1)
    return choice.combined(weights, losses, rows.loss(summed), stacked=True)


def _compared(
    model: Any, choice: Choice, rows: Rows, outputs: Sequence[Array], some: AnyArray
) -> tuple[Array, Array]:
    """Weights of all candidates by some rows, and their losses on these.

    ``outputs``, each (k, n) or (k, n, t), are of these rows by the candidates that could be
    evaluated; others have the weight 0 and an infinite loss. Losses, and the best of them,
    are by the first; weights of a stack are the mean of those by each.
    """
    evaluated = [*choice.fits]
    of_some = np.array([rows.loss(f, some).value for f in outputs[0]])
    weights, losses = np.zeros(len(choice.tunings)), np.full(len(choice.tunings), np.inf)
    losses[evaluated] = of_some
    if model._stacks:
        own = rows.train[some]
        factor, y = rows.factors(some) * rows.counting(own), rows.targets[own]
        weight = factor * rows.fit_weight[own]
        each = [rows.outcome.stacking_weights(y, one, weight) for one in outputs]
        weights[evaluated] = np.mean(each, axis=0)
    else:
        tried = [choice.candidates[k] for k in evaluated]
        sizes = [np.inf if is_estimator(one.kernel) else len(one.params) for one in tried]
        weights[evaluated] = weight_of_best(of_some, np.array(sizes))
    return weights, losses


def _loss_in_folds(of_fit: Array, in_folds: Array, rows: Rows) -> HeldOutLoss:
    """Loss of outputs in folds, with their threshold and calibrator if these suit the fit.

    Models without a fold may be tuned to hardly any output, above all of noise: a calibrator of
    such outputs is steep, and the model of all rows would be too sure. If its probabilities have
    a larger log loss than class shares, it is one of the held-out outputs of the fit.
    """
    loss, outcome, weight = rows.loss(in_folds), rows.outcome, rows.own(rows.score_weight)
    if loss.calibrator is None:
        return loss
    y = rows.own(rows.targets)
    labels = outcome.codes(y)
    p = outcome.probabilities(of_fit, loss.rule(0.0))[np.arange(len(labels)), labels]
    with np.errstate(divide="ignore"):
        of_labels = -np.average(np.log(p), weights=weight)
    if of_labels > outcome.baselines(y, weight)["log_loss"]:
        return rows.loss(of_fit)._replace(value=loss.value)
    return loss
