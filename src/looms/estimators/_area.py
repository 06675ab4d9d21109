"""Held-out outputs that scores compare, of a machine of rows in blocks."""

from __future__ import annotations

from looms._classes import class_indices
from looms._typing import Array
from looms.blocks import RowBlocks
from looms.estimators._folds import folds_of_area
from looms.lssvm import NotPositiveDefiniteError
from looms.selection._candidates import Choice
from looms.units import Units


def outputs_of_choice(
    blocks: RowBlocks, choice: Choice, units: Units, *, fit_intercept: bool
) -> tuple[Units, Array]:
    """Units, and outputs without them, that scores are of, while the rows are still at hand.

    These are the folds of the criterion. If it held out rows or groups, which cannot be compared
    under one machine, they are ten folds, unless a class has too few rows for that, or the machine
    without some fold cannot be fitted.
    """
    fit = choice.fit
    folds = None
    if units.unit != "fold":
        folds = folds_of_area(class_indices(fit.y), units.clusters)
    if folds is None:
        return units, fit.mean_held_out.outputs
    left_out = fit.member.left_out(blocks, fit.y, fit.sample_weight, fit_intercept)
    tens = Units.of_numbers(folds, units.clusters)
    try:
        outputs = left_out.outputs(tens)
    except NotPositiveDefiniteError:
        return units, fit.mean_held_out.outputs
    return tens, outputs[0].reshape(fit.y.shape)
