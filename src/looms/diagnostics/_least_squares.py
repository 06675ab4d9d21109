"""All outputs of a least-squares machine without each sample, from one factorisation."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.diagnostics._problem import Problem
from looms.estimators import LSSVMClassifier
from looms.estimators._loo_models import machine_models


def is_least_squares(problem: Problem) -> bool:
    """Whether the machine is a least-squares one, and its sample does not change with refits."""
    return type(problem.machine) is LSSVMClassifier


def least_squares_outputs(problem: Problem) -> tuple[Array, Array]:
    """Outputs of the machine, (n,), and of those without sample i for sample j, (n, n) at i, j.

    The ridge λ stays as it is while a sample is left out, as in ``loo_``. Two classes.
    """
    models = machine_models(clone(problem.machine).fit(problem.X, problem.y)).models
    outputs = models.fit.y - models.ridge * models.fit.alpha
    return outputs, outputs + models.changes().T


def least_squares_predictions(problem: Problem) -> tuple[AnyArray, AnyArray]:
    """Class of each sample by the machine, and by the one without it; any number of classes."""
    machine = clone(problem.machine).fit(problem.X, problem.y)
    chosen = class_indices(machine.loo_.outputs, machine.threshold_)
    return np.asarray(machine.predict(problem.X)), np.asarray(problem.classes[chosen])
