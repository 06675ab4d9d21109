"""Area under the ROC curve of machines of many rows, within folds of the rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.blocks import RowBlocks
from looms.estimators._fits import projection_of
from looms.estimators._folds import folds_of_area
from looms.held_out import HeldOut
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm.left_out import Linear
from looms.scores import area_within
from looms.selection._candidates import Choice
from looms.units import Units


def outputs_in_folds(
    y: Array, groups: AnyArray, without: Callable[[AnyArray], Array]
) -> Array | None:
    """Outputs of each row by the machine without its fold, at the values chosen.

    None if there are no folds, or the machine without some fold cannot be fitted.

    Parameters
    ----------
    y : labels.
    groups : (n,) numbers, equal for rows of one group.
    without : function of (n,) fold numbers; returns the output of each row by the machine without
        its fold, shaped like ``y``.
    """
    folds = folds_of_area(class_indices(y), groups)
    try:
        return None if folds is None else without(folds)
    except NotPositiveDefiniteError:
        return None


def outputs_of_choice(
    blocks: RowBlocks, choice: Choice, groups: AnyArray, *, fit_intercept: bool
) -> Array | None:
    """`outputs_in_folds` of the chosen machine, while its rows are still at hand."""
    fit, best = choice.fit, choice.best
    projection = projection_of(
        best.kernel, blocks, fit.y, best.mu, fit.sample_weight, fit_intercept, fit.landmarks
    )

    def without(folds: AnyArray) -> Array:
        outputs = Linear(projection).outputs(Units.of_numbers(folds))
        return np.asarray(outputs[0].reshape(fit.y.shape))

    return outputs_in_folds(fit.y, groups, without)


def area_in_folds(
    y: Array, outputs: Array | None, weight: Array, groups: AnyArray, tie: float
) -> tuple[float, Array]:
    """Area over pairs of rows in one fold, and what each row adds to its deviation.

    ``outputs`` are those of `outputs_in_folds`; if None, the area is NaN.
    """
    folds = folds_of_area(class_indices(y), groups)
    if outputs is None or folds is None:
        return float("nan"), np.full(len(y), np.nan)
    return area_within(HeldOut(y, outputs, weight), Units.of_numbers(folds), tie)
