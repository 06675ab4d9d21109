"""Facts of a report, computed once for its dict and its pictures."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from looms._typing import Array
from looms.assessment._result import Assessment
from looms.criteria import WMW, as_criterion
from looms.diagnostics import CaseDeletion, case_deletion
from looms.report.displays.features import ImportanceDisplay
from looms.report.displays.reliability import probabilities_of
from looms.report.model import Model, chosen_criterion, model_of
from looms.report.text import clean

#: Samples up to which each is left out once more: n³ flops and some n×n arrays.
MOST_DELETIONS = 1500


@dataclass(frozen=True, eq=False)
class Facts:
    """A fitted machine and what was computed about it.

    Attributes
    ----------
    estimator : the machine, or the pipeline that ends in it.
    model : the machine with names for its features.
    names : of the samples.
    named_by : a sentence on what these names are.
    target : name of the target, or None.
    importance : of the columns; None for a kernel matrix, which has none.
    deletion : of each sample; None for more than `MOST_DELETIONS`, or fewer than three.
    probabilities : (n_samples, n_classes) by the machine's calibration, of its leave-one-out
        outputs; None where it has none.
    assessment : of outer splits, or None.
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


def facts_of(estimator: Any, X: Any, y: Any, assessment: Assessment | None) -> Facts:
    """Facts of a fitted machine.

    Raises
    ------
    TypeError
        If there is no machine of looms in the estimator, or the assessment is none, or one of
        the other task.
    ValueError
        If ``X`` or ``y`` are not those that it was fitted to, by their number.
    """
    model = model_of(estimator)
    n = model.loo.n_samples
    for name, values in (("X", X), ("y", y)):
        if values is None:
            continue
        n_rows = values.shape[0] if hasattr(values, "shape") else len(values)
        if n_rows != n:
            raise ValueError(
                f"{name} has {n_rows} rows, but the machine was fitted to {n}: give the {name} "
                "that it was fitted to."
            )
    if assessment is not None:
        if not isinstance(assessment, Assessment):
            raise TypeError(
                f"assessment must be what looms.assess gives, got {type(assessment).__name__}."
            )
        if assessment.classification not in (None, model.classification):
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
    if 3 <= model.seen.sum() <= MOST_DELETIONS:
        criterion = chosen_criterion(model.machine)
        if isinstance(as_criterion(criterion), WMW):
            criterion = "press"  # a criterion of pairs costs n² for each of the n samples
        # Of a copy, so that the n×n matrix that it makes does not stay with the user's machine.
        deletion = case_deletion(copy(model.machine), criterion=criterion)
    return Facts(
        estimator=estimator,
        model=model,
        names=names,
        named_by=f"Samples are {named_by}.",
        target=None if target is None else clean(target),
        importance=None if model.pairwise else ImportanceDisplay.compute(estimator),
        deletion=deletion,
        probabilities=None if calibration is None else probabilities_of(model, calibration),
        assessment=assessment,
    )
