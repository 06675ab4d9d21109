"""Scores of a fitted model, by its held-out predictions or by choices made without the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from looms._scores import ValuesAndErrors, over_training_draws
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.fitted._fitted import Fitted
from looms.fitted._training_draws import training_draws
from looms.held_out import HeldOut
from looms.lssvm._system import targets_as_columns
from looms.scores import (
    Scores,
    ScoresOf,
    decisions_within,
    held_out_decisions,
    kind_of_nested,
    kind_of_units,
)
from looms.selection._decisions import Made
from looms.selection._nested import Nested


class NewScores(NamedTuple):
    """New rows with their targets, and how well a model predicts them.

    Attributes
    ----------
    values : (m,) or (m, t) of the target, labels in the spelling of the classes.
    outputs : of the model.
    weight, groups : (m,) of the rows; groups are numbers, or None.
    scores, baselines : as of `looms.scores.Scores`.
    """

    values: AnyArray
    outputs: Array
    weight: Array
    groups: AnyArray | None
    scores: ValuesAndErrors
    baselines: dict[str, float]


def new_scores(
    model: Fitted, values: AnyArray, outputs: Array, weight: Array, groups: AnyArray | None
) -> NewScores:
    """Scores of the outputs for new rows."""
    rows = values, outputs, weight, groups
    return NewScores(*rows, *model.scores_of_new(*rows))


def held_out_scores(model: Fitted) -> Scores:
    """Scores of the held-out predictions of the fit: optimistic, if it was tuned on them.

    They are computed once.
    """
    known: Scores | None = model.computed.get("scores")
    if known is not None:
        return known
    in_folds = model.in_folds
    if in_folds is not None and model.held_out_predicted is not model.held_out:
        predicted = HeldOut(*(model.rows.own(values) for values in model.held_out_predicted))
        own = in_folds.held_out.residuals
        in_folds = replace(in_folds, held_out=predicted, own_residuals=own)
    scores = scored(model, in_folds)
    if in_folds is not None and model.transforms:
        kind = f"{scores.kind}; the transform was chosen on all rows: optimistic"
        scores = replace(scores, kind=kind, optimistic=True)
    model.computed["scores"] = scores
    return scores


def scored(model: Fitted, nested: Nested | None) -> Scores:
    """Scores of choices made without each row, or of the held-out predictions of the fit."""
    rows, outcome = model.rows, model.outcome
    y, outputs, weight = model.held_out_predicted
    outputs, scored = outputs.copy(), rows.scored
    own, places = weight[scored], np.searchsorted(rows.train, scored)
    if nested is None:
        made = decided(model, rows.own(weight)) if outcome.decides else None
        units = model.units_of_fit if model.scored_in is None else model.scored_in[0]
        kind = kind_of_units(units, optimistic=model.tuned)
    else:
        made, outputs[rows.train] = nested.made, nested.held_out.outputs
        units = nested.units
        kind = kind_of_nested(nested, stacked=model.candidate_weights is not None)
    decisions = None
    if made is not None:
        outputs[rows.train], decisions = made[0].outputs, made[0].among(places)
        made = decisions, made[1] and (made[1][0], made[1][1][places])
    again = nested is None and not outcome.decides
    repeated = model.repetitions()[:, places] if again else outputs[scored][None]
    together = np.unique(model.units_of_fit.scored_together[places], return_inverse=True)[1]
    known: Array | None = None
    if units.forward:
        rests = (rows.train[stays] for stays in units.stays(np.arange(units.n_units)))
        without = [outcome.without_columns(y[rest], rows.weight[rest]) for rest in rests]
        known = np.array(without)[units.own[places]]
    draws = training_draws(model)
    compared, fold = targets_as_columns(outputs[scored]), np.zeros(len(scored), dtype=int)
    if units.in_folds and len(units.passes) == 1:
        fold = units.own[places]
    elif decisions is not None and decisions.probabilities is not None:
        compared = decisions.probabilities[:, -compared.shape[1] :]
    return Scores(
        over_training_draws(outcome.scores(y[scored], repeated, own, together, made), *draws),
        kind,
        nested is None and model.tuned,
        HeldOut(y, outputs, weight),
        scored,
        decisions,
        outcome.baselines(y[scored], own, known),
        nested,
        len(units.passes),
        _made_of=ScoresOf(outcome, repeated, together, compared, fold, draws),
    )


def decided(model: Fitted, weight: Array) -> Made:
    """Decisions on held-out outputs at the values chosen, and the area under the ROC curve.

    With the area comes what each row adds to its deviation. It compares held-out rows under one
    model that has seen neither; ``weight``, (m,), has the weights of the rows of the fit.
    """
    y, outcome = model.rows.own(model.rows.targets), model.outcome
    if model.scored_in is None:
        of_model = model.left_out, model.units_of_fit
        with blas_threads(len(y)):
            return held_out_decisions(*of_model, weight, model.rule, y.shape, outcome)
    units, outputs = model.scored_in
    return decisions_within(outcome, HeldOut(y, outputs, weight), units, model.rule)
