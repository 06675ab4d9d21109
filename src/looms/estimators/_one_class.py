"""Machines that take all samples for one class, and settings against it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from looms._classes import class_indices
from looms.estimators._callbacks import OneClassWarning, level_of_user
from looms.leave_one_out import LeaveOneOut


def settings_for_rare_classes(machine: Any, n_classes: int) -> list[str]:
    """Settings that allow for classes of unequal size; none if the machine has one of them."""
    adjusted = machine.class_weight is not None or machine.threshold not in (None, 0)
    if adjusted:
        return []
    return [*["threshold='ber'"] * (n_classes == 2), "class_weight='balanced'"]


def warn_of_one_class(machine: Any, classes: Any, loo: LeaveOneOut, threshold: float) -> None:
    """OneClassWarning if all samples, left out, are taken for one; last, as it may be an error."""
    taken = np.unique(class_indices(loo.outputs, threshold)[loo.sample_weight > 0])
    if len(taken) == 1:
        settings = settings_for_rare_classes(machine, len(classes))
        remedy = f"{', '.join(settings)} or another kernel" if settings else "another kernel"
        warnings.warn(
            f"Every training sample, left out, is taken for class {classes[taken].tolist()[0]!r}: "
            f"the machine predicts no other. Try {remedy}.",
            OneClassWarning,
            stacklevel=level_of_user(),
        )
