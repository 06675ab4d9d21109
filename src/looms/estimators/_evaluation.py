"""Choices that are repeated without each fold of an evaluation, and what they predict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from looms._typing import Array
from looms.estimators._fit_routing import model_takes_weights
from looms.estimators._folds import kernel_columns, nearly_noiseless, tuned_without
from looms.estimators._selecting import chosen_in_rounds, repeats_in_closed_form
from looms.estimators._selection import TunedInFolds
from looms.estimators._warnings import warn_of_time
from looms.fitted._fitted import Fitted
from looms.fitted._rows import OUTER_FOLDS, OUTER_FOLDS_OF_SEVERAL, Rows, rows_at
from looms.held_out import HeldOut
from looms.selection._nested import Nested
from looms.tables import TablePreprocessor
from looms.units import Units

#: Time of a fit without a fold of an evaluation, relative to that to all rows: 0.2 to 0.6.
_TIME_OF_SEVERAL = 0.4


def chosen_anew(estimator: Any) -> Nested:
    """Predictions by models that were chosen without the rows; ValueError if too few.

    In closed form for points of a grid, otherwise by models tuned anew in folds; with the columns
    and a transform of the target prepared anew, if there are any.
    """
    fitted: Fitted = estimator.fitted_
    recipe = fitted.recipe
    if fitted.tuned_before:
        raise ValueError(
            "The hyper-parameters were tuned before rows were removed or added, and that "
            "tuning cannot be repeated: fit the self-tuning model anew to these rows, or "
            "use evaluate(nested=False), whose scores are optimistic."
        )
    if recipe is None:
        raise ValueError(
            "cv was an iterator of folds, and the fit has used it up: give a list, or use "
            "evaluate(nested=False)."
        )
    if fitted.columns is not None or not fitted.outcome.plain:
        return _tables_anew(estimator, fitted)
    rows = replace(fitted.rows, X=fitted.X, weighs=model_takes_weights(recipe))
    if repeats_in_closed_form(recipe, fitted):
        return chosen_in_rounds(recipe, fitted, rows)
    outer, models = _tuned_in_outer_folds(estimator, recipe, fitted, rows)
    rules = [model.rule for model in models] if rows.outcome.decides else None
    tuned = TunedInFolds.of(models, outer, rows)
    return tuned.nested(rows, rows.own(rows.targets), rules, whole=True)


def _tables_anew(estimator: Any, fitted: Fitted) -> Nested:
    """By models that are fitted anew without each fold, their columns prepared anew."""
    recipe = clone(fitted.recipe)
    if fitted.table is None:
        raise ValueError(
            "Nested evaluation repeats the fit, but a pickled or saved model does not hold the "
            "training rows: call evaluate() before saving, or use evaluate(nested=False)."
        )
    if isinstance(fitted.columns, TablePreprocessor):  # cells decide on it one by one
        kinds = fitted.columns.kinds_
        recipe.set_params(preprocess=clone(fitted.columns).set_params(kinds=kinds))
    rows = replace(fitted.rows, X=fitted.table)
    outer, models = _tuned_in_outer_folds(estimator, recipe, fitted, rows)
    train, y, outcome = rows.train, rows.y, rows.outcome
    of_fit = fitted.held_out_predicted
    predicted = np.empty((len(train), *of_fit.y.shape[1:]))
    residuals: Array | None = None if outcome.decides else np.empty(predicted.shape)
    for model, tested, left in zip(models, outer.tested_by, outer, strict=True):
        table = kernel_columns(model, rows_at(rows.X, train[tested]), np.delete(train, left))
        outputs = model.outputs_of_table(table)
        predicted[tested] = model.predicted(outcome.tied(outputs, model.tie))
        if residuals is not None:
            residuals[tested] = model.outcome.residuals(y[train[tested]], outputs)
    held_out = HeldOut(rows.own(of_fit.y), predicted, rows.own(rows.weight))
    rules = [model.rule for model in models] if outcome.decides else None
    tie = max(model.tie for model in (fitted, *models))
    return Nested.of_folds(
        train, outer, held_out, outcome, rules, models, tie, own_residuals=residuals
    )


def _tuned_in_outer_folds(
    estimator: Any, model: Any, fitted: Fitted, rows: Rows
) -> tuple[Units, list[Fitted]]:
    """Outer folds of an evaluation, and a model tuned anew without each of them.

    Parameters
    ----------
    estimator : that is evaluated.
    model : from `unfitted`.
    fitted : model of the ``rows``.

    Raises
    ------
    ValueError
        If the folds cannot be made, or no model can be tuned without one; with advice.
    """
    folds = model.cv, fitted.units_of_fit
    try:
        outer, rows = evaluation_folds(model.cv, fitted, rows)
        share = _TIME_OF_SEVERAL if len(fitted.candidates) > 1 else 1.0
        warn_of_time(outer.n_units * share * fitted.seconds, estimator.n_jobs)
        (models,) = tuned_without(estimator, [model], outer, rows, *folds, estimator.n_jobs)
    except ValueError as error:
        raise ValueError(
            f"{error} evaluate(nested=False) scores the held-out predictions of the fit instead."
        ) from error
    return outer, models


def evaluation_folds(cv: Any, fitted: Fitted, rows: Rows) -> tuple[Units, Rows]:
    """Outer folds of an evaluation, and the rows with their seed; ValueError for too few rows."""
    most = OUTER_FOLDS
    if len(fitted.candidates) > 1:  # others than those that compared the candidates
        quiet = nearly_noiseless(fitted.in_folds, fitted.outcome)
        most = OUTER_FOLDS if quiet else OUTER_FOLDS_OF_SEVERAL
        rows = replace(rows, seed=rows.seed + 1)
    return rows.outer_units(cv, fitted.units_of_fit, most), rows
