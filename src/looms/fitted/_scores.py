"""Scores of a fitted model, by its held-out predictions or by choices made without the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from looms._classes import class_indices
from looms._scores import ValuesAndErrors, class_scores, number_scores
from looms._threads import blas_threads
from looms._typing import Array
from looms.fitted._fitted import Fitted
from looms.held_out import HeldOut
from looms.scores import (
    Scores,
    area_within,
    held_out_decisions,
    kind_of_nested,
    kind_of_units,
)
from looms.selection._decisions import Decided, Decisions
from looms.selection._nested import Nested


def held_out_scores(model: Fitted) -> Scores:
    """Scores of the held-out predictions of the fit: optimistic, if it was tuned on them.

    They are computed once.
    """
    known: Scores | None = model.computed.get("scores")
    if known is not None:
        return known
    scores = scored(model, _fold_predictions(model))
    if model.in_folds is not None and model.transforms:
        kind = f"{scores.kind}; the transform was chosen on all rows: optimistic"
        scores = replace(scores, kind=kind, optimistic=True)
    model.computed["scores"] = scores
    return scores


def _fold_predictions(model: Fitted) -> Nested | None:
    """``in_folds`` with predictions in units of the target."""
    in_folds = model.in_folds
    if in_folds is None or model.held_out_predicted is model.held_out:
        return in_folds
    predicted = HeldOut(*(values[in_folds.rows] for values in model.held_out_predicted))
    return replace(in_folds, held_out=predicted, own_residuals=in_folds.held_out.residuals)


def scored(model: Fitted, nested: Nested | None) -> Scores:
    """Scores of choices made without each row, or of the held-out predictions of the fit."""
    pairs, decisions = (_decision_scores if model.outcome.decides else _number_scores)(
        model, nested
    )
    y, outputs, weight = model.held_out_predicted
    rows, outputs = model.rows.train, outputs.copy()
    if decisions is not None:
        outputs[rows] = decisions.outputs
    elif nested is not None:
        outputs[rows] = nested.held_out.outputs
    optimistic = nested is None and model.tuned
    if nested is None:
        units = model.units_of_fit if model.scored_in is None else model.scored_in[0]
        kind = kind_of_units(units, optimistic=optimistic)
    else:
        units = nested.units
        kind = kind_of_nested(nested, stacked=model.candidate_weights is not None)
    held_out, passes = HeldOut(y, outputs, weight), len(units.passes)
    return Scores(pairs, kind, optimistic, held_out, rows, decisions, nested, passes)


def _number_scores(model: Fitted, nested: Nested | None) -> tuple[ValuesAndErrors, None]:
    y, _, weight = (model.rows.own(values) for values in model.held_out_predicted)
    outputs = model.repetitions() if nested is None else nested.held_out.outputs[None]
    return number_scores(y, outputs, weight, model.units_of_fit.scored_together), None


def _decision_scores(model: Fitted, nested: Nested | None) -> tuple[ValuesAndErrors, Decisions]:
    rows = model.rows
    weight, labels = rows.own(rows.weight), class_indices(rows.own(rows.targets))
    known = None if nested is None else nested.of_classes
    decisions, area = known or decided(model, weight)
    together = model.units_of_fit.scored_together
    return class_scores(
        labels, decisions.wrong, area, weight, together, decisions.losses
    ), decisions


def decided(model: Fitted, weight: Array) -> tuple[Decisions, tuple[float, Array]]:
    """Decisions on held-out outputs at the values chosen, and the area under the ROC curve.

    With the area comes what each row adds to its deviation. It compares held-out rows under one
    model that has seen neither; ``weight``, (m,), has the weights of the rows of the fit.
    """
    rows = model.rows
    y = rows.own(rows.targets)
    if model.scored_in is None:
        with blas_threads(len(y)):
            return held_out_decisions(
                model.left_out, model.units_of_fit, weight, model.rule, y.shape
            )
    units, outputs = model.scored_in
    decided_at_once = Decided.of(np.arange(len(y)), outputs, model.rule)
    area = area_within(HeldOut(y, outputs, weight), units, model.tie)
    return Decisions.of([decided_at_once], class_indices(y)), area
