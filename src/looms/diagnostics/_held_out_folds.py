"""Held-out residuals and scores of a fitted machine for folds that it was not fitted with.

With P and α of docs/references.md, rows G that are held out together have the residuals
e_G = (P_GG)⁻¹ α_G, so every further partition of the rows costs a few small systems.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import is_classifier

from looms._classes import class_indices
from looms._scores import class_scores, number_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.estimators._least_squares import LeastSquaresMachine
from looms.held_out import HeldOut
from looms.lssvm._sets import sets_of
from looms.lssvm._system import targets_as_columns
from looms.lssvm.low_rank import triangular_product
from looms.scores import area_within
from looms.selection._decisions import Decided, Decisions


def residuals_of_folds(machine: LeastSquaresMachine, folds: AnyArray) -> Array:
    """Held-out residuals y − f of each row of the fit, for several partitions of these rows.

    Parameters
    ----------
    machine : fitted machine that keeps its rows, of any kind; the residuals of a stack are the
        weighted sums of those of its members, for its weights sum to one.
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
    For each member n³ flops for P, and 2 Σ |G|³ / 3 for each partition; an n×n matrix at a time.
    """
    residuals: Array = np.zeros(())
    with blas_threads(folds.shape[1]):
        for share, P, alpha in _projections(machine):
            own = np.tile(alpha / P.diagonal()[:, None], (len(folds), 1, 1))
            for e, labels in zip(own, folds, strict=True):
                for G in sets_of(labels):  # of one size
                    e[G] = np.linalg.solve(P[G[:, :, None], G[:, None, :]], alpha[G])
            residuals = residuals + share * own
    return residuals


def _projections(machine: LeastSquaresMachine) -> Iterator[tuple[float, Array, Array]]:
    """Weight, P and α, (n, n) and (n, t), of each member of a machine."""
    if machine.landmarks_ is not None:
        yield 1.0, *_projection_on_landmarks(machine)
    elif not machine.members_:
        models = machine.leave_one_out_models().models
        yield 1.0, models.P, targets_as_columns(models.fit.alpha)
    for one in machine.members_:
        models = machine._models_of(one.kernel, one.mu, None).models
        yield one.weight, models.P, targets_as_columns(models.fit.alpha)


def _projection_on_landmarks(machine: LeastSquaresMachine) -> tuple[Array, Array]:
    """n μ P = ζ − ζ T Tᵀ ζ and n μ α = ζ (y − f) of a machine on landmarks; n² m flops."""
    solution, blocks = machine._low_rank_solution()
    K = solution.landmarks.cross(blocks.rows(np.arange(len(solution.h))))
    zeta = solution.fit.sample_weight
    T = triangular_product(solution.V, K) * zeta
    P = -(T.T @ T)
    P[np.diag_indices(len(zeta))] += zeta
    return P, zeta[:, None] * solution.residuals


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
        area = area_within(HeldOut(y, outputs, weight), folds, tie)
        scores = class_scores(labels, made.wrong, area, weight, losses=made.losses)
    else:
        scores = number_scores(y, outputs[None], weight)
    return {name: value for name, (value, _) in scores.items()}
