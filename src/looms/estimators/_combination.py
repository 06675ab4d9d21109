"""The best of several candidates, or a stack of them, by rows that each was tuned without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from looms._classes import class_factors, class_indices
from looms._typing import AnyArray, Array
from looms.estimators._folds import (
    CHOICE_FOLDS,
    tuned_without,
    unfitted,
)
from looms.estimators._selection import Selection
from looms.estimators._tuned_in_folds import TunedInFolds
from looms.estimators._warnings import warn_of_no_stack
from looms.held_out import HeldOut
from looms.selection._stack import stacking_weights


def combined(
    machine: Any, selection: Selection, candidates: Sequence[tuple[Any, Any]]
) -> Selection:
    """The best candidate, or a stack, by rows that each candidate was tuned without.

    ``candidates`` are their kernels and criteria. Machines without each fold are combined in the
    same way by the rows of the other folds. The selection stays as it is if there is one candidate,
    or if three folds cannot be made.
    """
    choice, rows = selection.choice, selection.rows
    if sum(fit is not None for _, fit in choice.machines) < 2:
        return selection
    try:
        outer = rows.outer_units(machine.cv, CHOICE_FOLDS)
    except ValueError as error:
        if machine._is_stack:
            warn_of_no_stack(str(error).rstrip("."))
        return selection
    evaluated = [k for k, (_, fit) in enumerate(choice.machines) if fit is not None]
    machines = [
        unfitted(machine, kernel=candidates[k][0], criterion=candidates[k][1], combine="best")
        for k in evaluated
    ]
    in_folds = [
        TunedInFolds.of(each, outer, rows.X, rows.train)
        for each in tuned_without(
            machine, machines, outer, rows.train, rows.data, rows.inner_units(machine.cv)
        )
    ]
    y, outputs = choice.fit.y, np.array([each.outputs for each in in_folds])
    sizes = [len(choice.candidates[k].params) or np.inf for k in evaluated]
    probable = getattr(machine, "calibration", None) is not None

    def compared(some: AnyArray) -> tuple[Array, Array]:
        """Weights of the candidates by some rows, and their losses on these."""
        factor, places = np.ones(len(some)), rows.train[some]
        if is_classifier(machine):
            factor = class_factors(class_indices(y), rows.own(rows.weight), some)
        losses = [rows.score(HeldOut(y[some], f[some]), some, factor).value for f in outputs]
        if machine._is_stack:
            own = factor * rows.fit_weight[places]
            shares = stacking_weights(y[some], outputs[:, some], own, labeled=probable)
        else:  # of equal ones the simplest
            shares = np.zeros(len(losses))
            shares[min(range(len(losses)), key=lambda k: (losses[k], sizes[k]))] = 1.0
        return shares, np.array(losses)

    of_folds = [compared(np.flatnonzero(own))[0] for own in outer.stays(np.arange(outer.n_units))]
    tuned = TunedInFolds.stacked(in_folds, np.array(of_folds))
    weights, losses = np.zeros((2, len(choice.candidates)))
    losses += np.inf
    weights[evaluated], losses[evaluated] = compared(np.arange(len(y)))
    choice = choice.combined(weights, losses, rows.score(HeldOut(y, tuned.outputs)))
    rules = tuned.rules(choice.fit.y, rows) if rows.classes else None
    nested = tuned.nested(rows, choice.fit.y, rules, whole=False)
    return replace(selection, choice=choice, nested=nested, tuned=tuned)
