"""Facts of a fitted machine, computed once for the dict and the pictures of its report."""

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

#: Most samples for which the effect of each is computed: n³ flops and some n×n arrays; on m
#: landmarks the largest n m², some seconds.
MOST_DELETIONS, MOST_ON_LANDMARKS = 1500, 3e9


@dataclass(frozen=True, eq=False)
class Facts:
    """A fitted machine and what is computed once about it, for the dict and the pictures.

    Attributes
    ----------
    estimator, model : the estimator as given, and the machine in it.
    names, named_by : names of the samples, and a sentence on where they come from.
    target : name of the target, if it has one.
    importance : None for a kernel matrix, or if rows are not kept.
    deletion : None for many samples, for fewer than three samples or groups, or if rows are not
        kept.
    probabilities : (n_samples, n_classes) of held-out outputs; None without a calibration.
    assessment : of outer splits, if it was given.
    certificate : None for many samples, unless made before, or if rows are not kept.
    """

    estimator: Any
    model: Model
    names: list[str]
    named_by: str
    target: str | None
    importance: ImportanceDisplay | None
    deletion: CaseDeletion | None
    probabilities: Array | None
    assessment: Assessment | None
    certificate: Certificate | None


def facts_of(
    estimator: Any, X: Any, y: Any, assessment: Assessment | None, groups: Any = None
) -> Facts:
    """Facts of a fitted machine, for the arguments of `summary`."""
    model = model_of(estimator)
    _check(model, {"X": X, "y": y, "groups": groups}, assessment)
    machine, kept = model.machine, model.rows is not None
    names, named_by = _names(X, model.held_out.n_samples)
    target = getattr(y, "name", None) if getattr(y, "ndim", 1) == 1 else None
    calibration = getattr(machine, "calibration", None)
    n, m = model.n_with_weight, model.n_landmarks
    few = kept and (n <= MOST_DELETIONS if m is None else n * m**2 <= MOST_ON_LANDMARKS)
    certificate = getattr(machine, "certificate_", None)
    return Facts(
        estimator=estimator,
        model=model,
        names=names,
        named_by=f"Samples are {named_by}.",
        target=None if target is None else clean(target),
        importance=ImportanceDisplay.compute(estimator) if kept and not model.pairwise else None,
        deletion=_deletion(model, groups, names) if few else None,
        probabilities=None if calibration is None else probabilities_of(model, calibration),
        assessment=assessment,
        certificate=certificate or (copy(machine).certify() if few else None),
    )


def _check(model: Model, data: dict[str, Any], assessment: Assessment | None) -> None:
    """Refuse data, or an assessment, that cannot be those of the machine."""
    n = model.held_out.n_samples
    for name, values in data.items():
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
            f"assessment must be a result of looms.assess, got {type(assessment).__name__}."
        )
    if assessment is not None and assessment.classification not in (None, model.classification):
        kinds = {True: "a classifier", False: "a regressor"}
        raise TypeError(
            f"The assessment is of {kinds[not model.classification]}, but the machine is "
            f"{kinds[model.classification]}: give the assessment of the same estimator."
        )


def _names(X: Any, n: int) -> tuple[list[str], str]:
    """Names of n samples, from the index of a data frame if any, and how they are named."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "tolist"):  # a list has an index, too
        return list(map(str, range(n))), "numbered from 0, in the order of training"
    by = "as in the index" if index.name is None else f"by their {clean(index.name)}"
    return [clean(name) for name in index.tolist()], f"called {by}"


def _deletion(model: Model, groups: Any, names: list[str]) -> CaseDeletion | None:
    """Effect of leaving out each sample, or group; None for fewer than three of them."""
    labels = model.units.clusters if groups is None else np.asarray(groups)
    if len(set(labels[model.has_weight].tolist())) < 3:
        return None
    criterion = chosen_criterion(model.machine)
    if isinstance(as_criterion(criterion), WMW):
        criterion = "press"  # a criterion of pairs costs n² for each of the n samples
    deletion = case_deletion(model.machine, groups=groups, criterion=criterion)
    if groups is not None:
        return deletion
    firsts = np.unique(deletion.group, return_index=True)[1]
    return replace(deletion, labels=np.array([names[k] for k in firsts]))
