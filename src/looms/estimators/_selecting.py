"""The selection among candidates on the rows of a fit, from its checks to the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.utils import check_random_state

from looms._memory import GRID, check_memory
from looms._typing import Matrix
from looms.blocks import RowBlocks, rows_in_memory
from looms.dask._blocks import gathered
from looms.estimators._callbacks import CallbackWatcher
from looms.estimators._estimator_member import check_estimators, estimator_problem
from looms.estimators._fit_routing import model_takes_weights
from looms.estimators._folds import SHARE_IN_FOLDS, nearly_noiseless
from looms.estimators._one_kernel import (
    LeastSquares,
    candidate_of,
    has_kernel,
    model_of_folds,
    problem_of,
)
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
from looms.kernels._samples import training_rows
from looms.selection._candidates import choose
from looms.selection._nested import Nested, Rounds
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
    kernels = _kernel_models(candidates)
    for candidate in kernels:
        candidate_of(candidate).check(rows.outcome.labeled)
    estimators = [candidate for candidate in candidates if candidate not in kernels]
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
    problems = [
        problem_of(candidate, rows, X, **options)
        if candidate in kernels
        else estimator_problem(candidate, rows, X, outer, **options)
        for candidate in candidates
    ]
    watcher.begins(len(problems))
    by_value = _compares_grids(kernels)
    choice = choose(problems, loss_of=rows.loss, watcher=watcher, by_value=by_value)
    selection = Selection(rows, units, choice)
    for_folds = [model_of_folds(one) if one in kernels else one for one in candidates]
    if outer is not None:
        selection = combined_in_folds(model, selection, for_folds, outer)
        quiet = nearly_noiseless(selection.in_folds, rows.outcome)
        for_folds = candidates if quiet else for_folds
    elif compares and model._stacks:
        selection = stacked_by_fit(model, selection)
    return selection, for_folds


def _kernel_models(candidates: Sequence[Any]) -> list[Any]:
    """The candidates that have a kernel; the others are estimators of scikit-learn."""
    return [candidate for candidate in candidates if has_kernel(candidate)]


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
    whole = all(candidate_of(one).landmarks_for(X) is None for one in kernels)
    return bool(model._stacks or (whole and not _compares_grids(kernels)))


def _compares_grids(kernels: Sequence[Any]) -> bool:
    """True if the candidates with a kernel are compared on grids."""
    return bool(kernels) and all(candidate_of(one).on_grid for one in kernels)


def cost_on(model: Any, X: Matrix | RowBlocks) -> tuple[float, float]:
    """Floating-point operations of a fit to rows, with its fits in folds, very roughly.

    And the arrays of the size of the kernel matrix that it has in memory at once.
    """
    candidates = model._candidates_for(X)
    kernels = _kernel_models(candidates)
    operations = float(sum(candidate_of(one).operations_for(X) for one in kernels))
    few = X.shape[0] <= MOST_IN_FOLDS
    if len(candidates) > 1 and few and _compares(model, X, kernels):
        operations *= 1 + SHARE_IN_FOLDS * CHOICE_FOLDS * (1 - 1 / CHOICE_FOLDS) ** 3
    return operations, max((candidate_of(one).arrays_for(X) for one in kernels), default=0.0)


def remedies_of_time(model: Any) -> list[str]:
    """Settings that make a fit faster."""
    ways = ["fewer candidates"] * (len(model._candidates) > 1)
    if any(candidate_of(one).may_have_landmarks for one in model._kernel_candidates):
        of = "" if model in model._kernel_candidates else " of the candidates"
        ways.append(f"fewer landmarks{of} (n_landmarks=...)")
    return ways


def repeats_in_closed_form(recipe: Any, fitted: Fitted) -> bool:
    """True if a fitted model repeats its choice in closed form: a grid on all rows."""
    if recipe._stacks or isinstance(fitted.rows.X, RowBlocks | None):
        return False
    kernels, leading = recipe._kernel_candidates, fitted.leading
    only = len(kernels) == len(recipe._candidates) and _compares_grids(kernels)
    whole = leading is not None and leading.landmarks is None
    return only and whole and Rounds.can_take(fitted.units_of_fit)


def chosen_in_rounds(recipe: Any, fitted: Fitted, rows: Rows) -> Nested:
    """Choices among the points of a grid without every unit, from one factorization each."""
    units = fitted.units_of_fit
    X, y = training_rows(rows.X, rows.train, fitted.pairwise), rows.own(rows.targets)
    check_memory(len(rows.train), GRID)
    warn_of_time(_ROUNDS * fitted.seconds, n_jobs=1)
    rounds = Rounds(y, units, rows.outcome)
    for one in recipe._candidates_for(X):
        problem = problem_of(one, rows, X, **_options(recipe, rows, units))
        assert isinstance(problem.candidate, LeastSquares)  # which alone has grids
        rounds.scan(problem.candidate.objective(problem))
    return rounds.nested(rows.train, rows.own(rows.weight), rows.loss)
