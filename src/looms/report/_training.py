"""The training problem of a fitted machine once more, on some of its samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray
from looms.estimators._weights import class_weights
from looms.kernels._samples import training_rows
from looms.report._model import Model
from looms.selection import Objective

#: Of every class, so many samples are kept where there are as many.
_FEW = 5


def sampled_rows(model: Model, size: int, random_state: Any) -> AnyArray:
    """Rows of positive weight, at most about ``size`` of them, classes in proportion."""
    seen = np.flatnonzero(model.loo.sample_weight > 0)
    if len(seen) <= size:
        return seen
    rng = np.random.RandomState(random_state)
    if not model.classification:
        return np.sort(rng.choice(seen, size, replace=False))
    labels = class_indices(model.loo.y)[seen]
    chosen = []
    for label in np.unique(labels):
        members = seen[labels == label]
        quota = max(round(size * len(members) / len(seen)), min(_FEW, len(members)))
        chosen.append(rng.choice(members, quota, replace=False))
    return np.sort(np.concatenate(chosen))


def training_objective(model: Model, rows: AnyArray, X: Any = None) -> Objective:
    """The criterion that the machine was chosen by, on some of its samples.

    Parameters
    ----------
    model : of a fitted machine.
    rows : indices of training samples.
    X : the samples of these rows; those that the machine was fitted to unless given.
    """
    machine: Any = model.machine
    loo = machine.loo_
    selection_weight = loo.sample_weight
    groups = model.groups
    if model.classification:
        selection_weight = selection_weight * class_weights(
            getattr(machine, "selection_weight", None),
            class_indices(loo.y),
            machine.classes_,
            loo.sample_weight,
            "selection_weight",
        )
    return Objective(
        training_rows(machine.X_fit_, rows, model.pairwise) if X is None else X,
        loo.y[rows],
        kernel=machine.kernel_,
        criterion=chosen_criterion(machine),
        sample_weight=machine.fit_weight_[rows],
        selection_weight=selection_weight[rows],
        groups=None if groups is None else groups[rows],
        # As it was fitted: the parameter may have been set anew since.
        fit_intercept=getattr(machine, "fit_intercept_", machine.fit_intercept),
    )


def chosen_criterion(machine: Any) -> Any:
    """The criterion of the candidate taken; PRESS for a machine that was given its values."""
    if not hasattr(machine, "candidates_"):
        return "press"
    return machine.candidates_[machine.best_index_].criterion
