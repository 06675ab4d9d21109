"""What is computed of a fitted machine once, for the dict and the pictures of its report."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from looms._typing import Array
from looms.assessment._result import Assessment
from looms.criteria import WMW, as_criterion
from looms.diagnostics import CaseDeletion, case_deletion
from looms.estimators import Certificate
from looms.estimators._search import chosen_criterion
from looms.report.displays.classes import probabilities_of
from looms.report.displays.features import ImportanceDisplay
from looms.report.model import Model, model_of
from looms.report.text import clean

#: Samples up to which each is left out once more: n³ flops and some n×n arrays; on m landmarks n m²
#: up to which they are, some seconds.
MOST_DELETIONS, MOST_ON_LANDMARKS = 1500, 3e9


@dataclass(frozen=True, eq=False)
class Facts:
    """A fitted machine and what is computed of it once, for the dict and the pictures."""

    estimator: Any
    model: Model
    names: list[str]  # of the samples
    named_by: str  # a sentence on what these are
    target: str | None
    importance: ImportanceDisplay | None  # None for a kernel matrix, or rows that are not kept
    deletion: (
        CaseDeletion | None
    )  # None of a stack, for many samples, or fewer than three, or groups, or rows not kept
    probabilities: Array | None  # of held-out outputs; None without a calibration
    assessment: Assessment | None
    certificate: Certificate | None  # None for many samples, unless made before, or rows not kept


def facts_of(
    estimator: Any, X: Any, y: Any, assessment: Assessment | None, groups: Any = None
) -> Facts:
    """Facts of a fitted machine, for the arguments of `summary`."""
    model = model_of(estimator)
    n = model.held_out.n_samples
    for name, values in (("X", X), ("y", y), ("groups", groups)):
        if values is None:
            continue
        n_rows = values.shape[0] if hasattr(values, "shape") else len(values)
        if n_rows != n:
            raise ValueError(
                f"{name} has {n_rows} rows, but the machine was fitted to {n}: give the {name} "
                "that it was fitted to."
            )
    if not isinstance(assessment, Assessment | None):
        raise TypeError(
            f"assessment must be what looms.assess gives, got {type(assessment).__name__}."
        )
    if assessment is not None and assessment.classification not in (None, model.classification):
        kinds = {True: "a classifier", False: "a regressor"}
        raise TypeError(
            f"The assessment is of {kinds[not model.classification]}, the machine is "
            f"{kinds[model.classification]}: give the assessment of the same estimator."
        )
    names, named_by = list(map(str, range(n))), "numbered from 0, in the order of training"
    index: Any = getattr(X, "index", None)
    if hasattr(index, "tolist"):  # a list has an index, too
        names = [clean(name) for name in index.tolist()]
        by = "as in the index" if index.name is None else f"by their {clean(index.name)}"
        named_by = f"called {by}"
    target = getattr(y, "name", None) if getattr(y, "ndim", 1) == 1 else None
    calibration = getattr(model.machine, "calibration", None)
    deletion = None
    units = np.arange(n)[model.has_weight].tolist()
    if groups is not None or model.groups is not None:
        labels = np.asarray(model.groups if groups is None else groups)
        units = labels[model.has_weight].tolist()
    m, criterion = model.n_landmarks, None
    few = len(units) <= MOST_DELETIONS if m is None else len(units) * m**2 <= MOST_ON_LANDMARKS
    if few and not model.stacked and model.rows is not None and len(set(units)) >= 3:
        if m is None:
            criterion = chosen_criterion(model.machine)
            if isinstance(as_criterion(criterion), WMW):
                criterion = "press"  # a criterion of pairs costs n² for each of the n samples
        deletion = case_deletion(model.machine, groups=groups, criterion=criterion)
        if groups is None and deletion.groups is not None:
            firsts = np.unique(deletion.group, return_index=True)[1]
            deletion = replace(deletion, groups=np.array([names[k] for k in firsts]))
    return Facts(
        estimator=estimator,
        model=model,
        names=names,
        named_by=f"Samples are {named_by}.",
        target=None if target is None else clean(target),
        importance=None
        if model.pairwise or model.rows is None
        else ImportanceDisplay.compute(estimator),
        deletion=deletion,
        probabilities=None if calibration is None else probabilities_of(model, calibration),
        assessment=assessment,
        certificate=getattr(model.machine, "certificate_", None)
        or (copy(model.machine).certify() if few and model.rows is not None else None),
    )
