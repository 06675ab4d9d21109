"""Held-out residuals and scores of a fitted machine for folds that it was not fitted with.

With P and α of docs/references.md, rows G that are held out together have the residuals
e_G = (P_GG)⁻¹ α_G, so every further partition of the rows costs a few small systems.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import is_classifier

from looms._classes import class_indices
from looms._scores import class_scores, number_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.estimators._least_squares import LeastSquaresMachine
from looms.held_out import HeldOut
from looms.scores import area_within
from looms.selection._decisions import Decided, Decisions
from looms.units import Units


def residuals_of_folds(machine: LeastSquaresMachine, folds: AnyArray) -> Array:
    """Held-out residuals y − f of each row of the fit, for several partitions of these rows.

    Parameters
    ----------
    machine : fitted machine that keeps its rows.
    folds : (n_partitions, n) fold of each row of positive weight.

    Returns
    -------
    residuals : (n_partitions, n, t) with landmarks and the ridge n μ / ζ held.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the machine without some fold is singular.

    Notes
    -----
    For each member of the machine n³ flops for P, and Σ |G|³ / 3 for each partition.
    """
    with blas_threads(folds.shape[1]):
        left_out = machine.left_out()
        outputs = [left_out.outputs(Units.of_numbers(each))[0] for each in folds]
    return np.asarray(left_out.y - np.array(outputs))


def scores_of_folds(
    machine: LeastSquaresMachine, folds: AnyArray, residuals: Array
) -> dict[str, float]:
    """Scores as in ``scores_``, at the threshold and calibration of the machine.

    The area under the ROC curve compares rows of one fold.

    Parameters
    ----------
    machine : fitted machine.
    folds : (n,) fold of each row of positive weight.
    residuals : (n, t) of `residuals_of_folds`.
    """
    train = np.flatnonzero(machine.fit_weight_)
    y, weight = machine.loo_.y[train], machine.loo_.sample_weight[train]
    outputs = y - residuals.reshape(y.shape)
    if is_classifier(machine):
        labels, rule = class_indices(y), vars(machine)
        rows = np.arange(len(y))
        tie = machine._tie
        decided = Decided.of(rows, outputs, rule["threshold_"], rule["calibrator_"], tie)
        made = Decisions.of([decided], labels)
        area = area_within(HeldOut(y, outputs, weight), Units.of_numbers(folds), tie)
        scores = class_scores(labels, made.wrong, area, weight, losses=made.losses)
    else:
        scores = number_scores(y, outputs[None], weight)
    return {name: value for name, (value, _) in scores.items()}
