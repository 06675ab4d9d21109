"""The selection among candidates on the rows of a fit, from its checks to the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from looms._memory import GRID, check_memory
from looms._typing import Matrix
from looms.blocks import RowBlocks, rows_in_memory
from looms.dask._blocks import gathered
from looms.estimators._callbacks import CallbackWatcher
from looms.estimators._estimator_member import EstimatorMember, check_estimators, unequal
from looms.estimators._fit_routing import check_fit, model_takes_weights
from looms.estimators._folds import SHARE_IN_FOLDS, nearly_noiseless
from looms.estimators._selection import (
    MOST_IN_FOLDS,
    Selection,
    choice_folds,
    combined_in_folds,
    stacked_by_fit,
)
from looms.estimators._warnings import (
    warn_of_duplicates,
    warn_of_long_fit,
    warn_of_scales,
    warn_of_time,
)
from looms.fitted._fitted import Fitted
from looms.fitted._rows import CHOICE_FOLDS, Rows
from looms.folds import group_numbers, is_grouped
from looms.kernels._names import as_kernel
from looms.kernels._samples import training_rows
from looms.selection._candidates import Tried, choose
from looms.selection._given import GivenCriterion
from looms.selection._nested import Nested, Rounds
from looms.selection._scan import scan
from looms.units import Units

#: Times of a grid that its choices without every row take.
_ROUNDS = 4.0


def selected(model: Any, rows: Rows, watcher: CallbackWatcher) -> tuple[Selection, list[Any]]:
    """The candidate with the smallest loss, or a stack of several.

    And the candidates as they are fitted without a fold of an evaluation.
    """
    rows = _checked(model, rows)
    X = training_rows(rows.X, rows.train, any(kernel.pairwise for kernel in model._kernels()))
    candidates, units = model._candidates_for(X), rows.units(model.cv)
    kernels = _with_kernels(candidates)
    estimators = [one for one in candidates if one not in kernels]
    check_estimators(estimators, rows.outcome.decides, model._kernels())
    operations, n_arrays = cost_on(model, X)
    if n_arrays:
        check_memory(len(rows.train), n_arrays)
    warn_of_long_fit(operations, len(rows.train), n_arrays, remedies_of_time(model))
    if model._tunes:
        warn_of_scales(X, model._kernels(), model._names_of_features)
    options = _options(model, rows, units)
    compares = len(candidates) > 1 and _compares(model, X, kernels)
    outer = choice_folds(model, rows, units) if compares else None
    tried = [
        _estimator_on(rows, X, one, outer, **options)
        if one in estimators
        else one._tried_on(rows, X, **options)
        for one in candidates
    ]
    watcher.begins(len(tried))
    choice = choose(
        tried,
        loss_of=rows.loss,
        watcher=watcher,
        random_state=rows.seed,
        by_value=_all_on_grid(kernels),
    )
    selection = Selection(rows, units, choice)
    for_folds = [one._for_folds if one in kernels else one for one in candidates]
    if outer is not None:
        selection = combined_in_folds(model, selection, for_folds, outer)
        quiet = nearly_noiseless(selection.in_folds, rows.outcome)
        for_folds = candidates if quiet else for_folds
    elif compares and model._stacks:
        selection = stacked_by_fit(model, selection)
    return selection, for_folds


def _with_kernels(candidates: Sequence[Any]) -> list[Any]:
    """The candidates that have a kernel; the others are estimators of scikit-learn."""
    return [candidate for candidate in candidates if hasattr(candidate, "_tried_on")]


def _checked(model: Any, rows: Rows) -> Rows:
    """The rows, with numbers of their groups and a seed."""
    X, n, least = rows.X, len(rows.train), 3 if model._tunes else 2
    if isinstance(X, RowBlocks):
        X.check_finite()
        if any(one._problem.landmarks_for(X) is None for one in model._of_kernels):
            X = rows_in_memory(X)
    numbers = group_numbers(gathered(rows.groups), X.shape[0], model.cv)
    grouped = rows.groups is not None
    if model._tunes and not (is_grouped(numbers) or isinstance(X, RowBlocks)):
        warn_of_duplicates(X[rows.train])
    if n < least:
        words = {2: "Leave-one-out needs two", 3: "Tuning with leave-one-out needs three"}
        raise ValueError(
            f"{words[least]} samples of non-zero weight or more, got {n} sample"
            f"{'s' * (n != 1)}: give more{', or mu=...' if least == 3 else ''}."
        )
    seed = check_random_state(model.random_state).randint(2**31 - 1)
    options = {"grouped": grouped, "seed": seed, "weighs": model_takes_weights(model)}
    checked = replace(rows, X=X, groups=numbers, **options)
    return replace(checked, selection_weight=model._selection_weight(checked))


def _options(model: Any, rows: Rows, units: Units) -> dict[str, Any]:
    """Options of an objective of the rows."""
    return {
        "sample_weight": rows.own(rows.fit_weight),
        "selection_weight": rows.own(rows.selection_weight),
        "fit_intercept": model.fit_intercept,
        "units": units,
    }


def _compares(model: Any, X: Matrix | RowBlocks, kernels: Sequence[Any]) -> bool:
    """True if candidates are compared other than by the values that tuned them."""
    whole = all(one._problem.landmarks_for(X) is None for one in kernels)
    return bool(model._stacks or (whole and not _all_on_grid(kernels)))


def _all_on_grid(kernels: Sequence[Any]) -> bool:
    """True if the candidates with a kernel are compared on grids."""
    return bool(kernels) and all(one._on_grid for one in kernels)


def cost_on(model: Any, X: Matrix | RowBlocks) -> tuple[float, float]:
    """Floating-point operations of a fit to rows, with its fits in folds, very roughly.

    And the arrays of the size of the kernel matrix that it has in memory at once.
    """
    candidates = model._candidates_for(X)
    kernels = _with_kernels(candidates)
    operations = float(sum(one._problem.operations_for(X) for one in kernels))
    few = X.shape[0] <= MOST_IN_FOLDS
    if len(candidates) > 1 and few and _compares(model, X, kernels):
        operations *= 1 + SHARE_IN_FOLDS * CHOICE_FOLDS * (1 - 1 / CHOICE_FOLDS) ** 3
    return operations, max((one._problem.arrays_for(X) for one in kernels), default=0.0)


def remedies_of_time(model: Any) -> list[str]:
    """Settings that make a fit faster."""
    ways = ["fewer candidates"] * (len(model._candidates) > 1)
    if any(one._can_have_landmarks for one in model._of_kernels):
        of = "" if model in model._of_kernels else " of the candidates"
        ways.append(f"fewer landmarks{of} (n_landmarks=...)")
    return ways


def _estimator_on(
    rows: Rows,
    X: Matrix | RowBlocks,
    estimator: Any,
    outer: Units | None,
    **options: Any,
) -> Tried:
    """An estimator of scikit-learn as it is, on the rows of a fit, compared in the folds."""
    targets, zeta = rows.own(rows.targets), options.pop("sample_weight")
    classes = np.unique(rows.own(rows.y)) if rows.outcome.decides else None
    zeta = zeta * (len(zeta) / zeta.sum())
    member = EstimatorMember(
        *(1.0, estimator, classes, targets.shape[1:]),
        keeps_shares=outer is not None and rows.outcome.decides and rows.weighs,
        by_groups=rows.grouped,
    )
    check_fit(estimator, unequal(zeta), rows.own(rows.groups) if rows.grouped else None)
    if outer is not None:
        options["units"] = outer
    options |= {"sample_weight": zeta, "criterion": "press"}
    criterion = partial(GivenCriterion, X, targets, **options)
    return Tried(estimator, "press", lambda _: criterion(member=member), scan)


def repeats_in_closed_form(recipe: Any, fitted: Fitted) -> bool:
    """True if a fitted model repeats its choice in closed form: a grid on all rows."""
    if recipe._stacks or isinstance(fitted.rows.X, RowBlocks | None):
        return False
    kernels, leading = recipe._of_kernels, fitted.leading
    only = len(kernels) == len(recipe._candidates) and _all_on_grid(kernels)
    whole = leading is not None and leading.landmarks is None
    return only and whole and Rounds.can_take(fitted.units_of_fit)


def chosen_in_rounds(recipe: Any, fitted: Fitted, rows: Rows) -> Nested:
    """Choices among the points of a grid without every unit, from one factorization each."""
    units = fitted.units_of_fit
    X, y = training_rows(rows.X, rows.train, fitted.pairwise), rows.own(rows.targets)
    check_memory(len(rows.train), GRID)
    warn_of_time(_ROUNDS * fitted.seconds, n_jobs=1)
    rounds = Rounds(y, units, classes=rows.outcome.decides)
    for one in recipe._candidates_for(X):
        tried = one._tried_on(rows, X, **_options(recipe, rows, units))
        rounds.scan(tried.objective_of(as_kernel(one.kernel)))
    return rounds.nested(rows.train, rows.own(rows.weight), rows.loss)
