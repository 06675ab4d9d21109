"""Choices that are repeated without each fold of an evaluation, and what they predict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from looms._memory import GRID, check_memory
from looms.blocks import RowBlocks
from looms.estimators._folds import nearly_noiseless, tested_rows, tuned_without
from looms.estimators._one_kernel import LeastSquares, problem_of
from looms.estimators._selection import compares_grids
from looms.estimators._warnings import warn_of_time
from looms.fitted._fitted import Fitted
from looms.fitted._rows import OUTER_FOLDS, OUTER_FOLDS_OF_SEVERAL, Rows
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.selection._nested import InnerFolds, Nested
from looms.tables import TablePreprocessor
from looms.units import Units

#: Time of a fit without a fold of an evaluation, relative to that to all rows: 0.2 to 0.6.
_TIME_OF_SEVERAL = 0.4
#: Times of a grid that its choices without every row take.
_GRID_AGAIN = 4.0


def chosen_anew(estimator: Any) -> Nested:
    """Predictions by models that were chosen without the rows.

    In closed form for points of a grid, otherwise by models tuned anew in folds; with the columns
    and a transform of the target prepared anew, if there are any.

    Raises
    ------
    ValueError
        If the selection cannot be repeated, folds cannot be made, or no model can be tuned without
        one; with advice.
    """
    fitted: Fitted = estimator.fitted_
    recipe = fitted.recipe
    if fitted.tuned_before:
        raise ValueError(
            "The hyper-parameters were tuned before rows were removed or added, and that "
            "tuning cannot be repeated: fit the self-tuning model anew to these rows, or "
            "use evaluate(nested=False), whose scores are optimistic."
        )
    of_tables = fitted.columns is not None or not fitted.outcome.plain
    if of_tables and fitted.table is None:
        raise ValueError(
            "Nested evaluation repeats the fit, but a copied, pickled or saved model does not hold "
            "the training rows: call evaluate() before, or use evaluate(nested=False)."
        )
    rows = replace(fitted.rows, X=fitted.table if of_tables else fitted.X)
    if not of_tables and _repeats_in_closed_form(recipe, fitted):
        return _chosen_from_grid(recipe, fitted, rows)
    if isinstance(fitted.columns, TablePreprocessor):  # cells decide on it one by one
        kinds = fitted.columns.kinds_
        recipe = clone(recipe).set_params(preprocess=clone(fitted.columns).set_params(kinds=kinds))
    try:
        outer, rows = evaluation_folds(recipe.cv, fitted, rows)
        share = _TIME_OF_SEVERAL if len(fitted.candidates) > 1 else 1.0
        warn_of_time(outer.n_units * share * fitted.seconds, estimator.n_jobs)
        folds = outer, rows, recipe.cv, fitted.units_of_fit
        models = tuned_without(estimator, recipe, *folds, estimator.n_jobs)
    except ValueError as error:
        raise ValueError(
            f"{error}{' Or give fewer windows.' * fitted.units_of_fit.forward} "
            "evaluate(nested=False) scores the held-out predictions of the fit instead."
        ) from error
    outcome, y = rows.outcome, rows.own(fitted.held_out_predicted.y)
    predicted, kept = np.empty(y.shape), list[Any]()
    residuals = None if outcome.plain else np.empty(y.shape)
    for model, tested, rest, X in tested_rows(models, outer, rows):
        outputs = model.outputs_of_table(X) if of_tables else model.outputs(X)
        predicted[tested] = model.predicted(outcome.tied(outputs, model.tie))
        if residuals is not None:
            of_fold: Any = model.outcome
            residuals[tested] = of_fold.function.forward(y[tested]) - outputs
        members = (member.among(rest, len(y)) for member in model.members)
        kept.append(model if of_tables else tuple(members))
    return Nested.of_folds(
        outer,
        HeldOut(y, predicted, rows.own(rows.score_weight)),
        outcome,
        [model.rule for model in models] if outcome.decides else None,
        kept,
        max(model.tie for model in (models if not of_tables else [fitted, *models])),
        own_residuals=residuals,
    )


def _repeats_in_closed_form(recipe: Any, fitted: Fitted) -> bool:
    """True if a fitted model repeats its choice in closed form: a grid on all rows."""
    if recipe._stacks or isinstance(fitted.rows.X, RowBlocks | None):
        return False
    kernels, leading = recipe._kernel_candidates, fitted.leading
    only = len(kernels) == len(recipe._candidates) and compares_grids(kernels)
    whole = leading is not None and leading.landmarks is None
    return only and whole and InnerFolds.can_take(fitted.units_of_fit)


def _chosen_from_grid(recipe: Any, fitted: Fitted, rows: Rows) -> Nested:
    """Choices among the points of a grid without every unit, from one factorization each."""
    units = fitted.units_of_fit
    X, y = training_rows(rows.X, rows.train, fitted.pairwise), rows.own(rows.targets)
    check_memory(len(rows.train), GRID)
    warn_of_time(_GRID_AGAIN * fitted.seconds, n_jobs=1)
    choice = InnerFolds(y, units, rows.outcome)
    for one in recipe._candidates_for(X):
        problem = problem_of(one, rows, X, units, recipe.fit_intercept)
        assert isinstance(problem.candidate, LeastSquares)  # which alone has grids
        choice.scan(problem.candidate.objective(problem))
    return choice.nested(rows.own(rows.score_weight), rows.loss)


def evaluation_folds(cv: Any, fitted: Fitted, rows: Rows) -> tuple[Units, Rows]:
    """Outer folds of an evaluation, and the rows with their seed; ValueError for too few rows."""
    most = OUTER_FOLDS
    if len(fitted.candidates) > 1:  # others than those that compared the candidates
        quiet = nearly_noiseless(fitted.in_folds, fitted.outcome)
        most = OUTER_FOLDS if quiet else OUTER_FOLDS_OF_SEVERAL
        rows = replace(rows, seed=rows.seed + 1)
    return rows.outer_units(cv, fitted.units_of_fit, most), rows
