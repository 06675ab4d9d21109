"""Area under the ROC curve of machines of many rows, within folds of these."""

from __future__ import annotations

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.estimators._folds import folds_of_area
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._samples import Samples, center_of, dense
from looms.lssvm import NotPositiveDefiniteError, low_rank, low_rank_folds
from looms.scores import area_within
from looms.selection._candidates import Choice


def outputs_in_folds(
    blocks: RowBlocks,
    y: Array,
    mu: float,
    zeta: Array,
    landmarks: low_rank.Landmarks,
    groups: AnyArray | None,
    *,
    fit_intercept: bool,
) -> Array | None:
    """Outputs of each row by the machine on landmarks without its fold, at the values chosen.

    None where there are no folds, or a machine without one is not to be had. Arguments as for
    `low_rank.solve`; ``groups`` are (n,) numbers, or None.
    """
    folds = folds_of_area(class_indices(y), groups)
    try:
        if folds is not None:
            return low_rank_folds.held_out_outputs(
                blocks, y, mu, zeta, landmarks, folds, fit_intercept=fit_intercept
            )
    except NotPositiveDefiniteError:
        pass
    return None


def outputs_of_choice(
    blocks: RowBlocks, choice: Choice, groups: AnyArray | None, *, fit_intercept: bool
) -> Array | None:
    """`outputs_in_folds` of the machine chosen, while its rows, which are not kept, can be had."""
    basis = Samples(choice.fit.landmarks, center=center_of(choice.fit.landmarks))
    landmarks = low_rank.Landmarks(choice.best.kernel, basis, blocks.dtype)
    return outputs_in_folds(
        *(blocks, choice.fit.y, choice.best.mu, choice.fit.sample_weight, landmarks, groups),
        fit_intercept=fit_intercept,
    )


def area_in_folds(
    y: Array, outputs: Array | None, weight: Array, groups: AnyArray | None
) -> tuple[float, Array]:
    """Area of rows of one fold, and what each row adds to its deviation.

    ``outputs`` are those of `outputs_in_folds`; without them NaN.
    """
    if outputs is None:
        return float("nan"), np.full(len(y), np.nan)
    return area_within(HeldOut(y, outputs, weight), folds_of_area(class_indices(y), groups))


def of_few_columns(
    X: Matrix, zeta: Array, kernel: Kernel, basis: Matrix | None, *, fit_intercept: bool
) -> tuple[Matrix, low_rank.Landmarks]:
    """Rows and landmarks of a machine on the samples ``basis``; of a linear one without them.

    A linear machine is that on a landmark on each axis. Its rows are taken around their mean where
    there is an intercept, which is for rounding alone.
    """
    if basis is not None:
        return X, low_rank.Landmarks(kernel, Samples(basis, center=center_of(basis)))
    rows = dense(X)
    if fit_intercept:
        rows = rows - zeta @ rows / zeta.sum()
    return rows, low_rank.Landmarks(kernel, Samples(np.eye(rows.shape[1])))
