"""What a report computes once, for its dict and for its pictures."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from looms._typing import Array
from looms.assessment._result import Assessment
from looms.criteria import WMW, as_criterion
from looms.diagnostics import CaseDeletion, case_deletion
from looms.report._axes import clean
from looms.report._importance import Importance, feature_importance
from looms.report._model import Model, model_of
from looms.report._reliability import probabilities_of
from looms.report._training import chosen_criterion

#: Samples up to which leaving out each is looked at: n³ flops and some n×n arrays.
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
    importance: Importance | None
    deletion: CaseDeletion | None
    probabilities: Array | None
    assessment: Assessment | None


def facts_of(estimator: Any, X: Any, y: Any, assessment: Assessment | None) -> Facts:
    """Compute what a report says of a fitted machine.

    Raises
    ------
    TypeError
        If there is no machine of looms in the estimator, or the assessment is none, or one of
        the other task.
    ValueError
        If ``X`` or ``y`` are not those that it was fitted to, by their number.
    """
    model = model_of(estimator)
    for name, values in (("X", X), ("y", y)):
        _check_rows(model, name, values)
    if assessment is not None and not isinstance(assessment, Assessment):
        raise TypeError(
            f"assessment must be what looms.assess gives, got {type(assessment).__name__}."
        )
    _check_task(model, assessment)
    target = getattr(y, "name", None) if getattr(y, "ndim", 1) == 1 else None
    names, named_by = _sample_names(model, X)
    return Facts(
        estimator=estimator,
        model=model,
        names=names,
        named_by=named_by,
        target=None if target is None else clean(target),
        importance=None if model.pairwise else feature_importance(estimator),
        deletion=_deletion(model),
        probabilities=_probabilities(model),
        assessment=assessment,
    )


def _probabilities(model: Model) -> Array | None:
    calibration = getattr(model.machine, "calibration", None)
    return None if calibration is None else probabilities_of(model, calibration)


def _deletion(model: Model) -> CaseDeletion | None:
    n = int((model.loo.sample_weight > 0).sum())
    if not 3 <= n <= MOST_DELETIONS:
        return None
    criterion = chosen_criterion(model.machine)
    # A criterion of pairs costs n² for each of the n samples.
    pairs = isinstance(as_criterion(criterion), WMW)
    # Of a copy, so that the n×n matrix that it makes does not stay with the user's machine.
    return case_deletion(copy(model.machine), criterion="press" if pairs else criterion)


def _check_rows(model: Model, name: str, values: Any) -> None:
    if values is None:
        return
    n = values.shape[0] if hasattr(values, "shape") else len(values)
    if n != model.loo.n_samples:
        raise ValueError(
            f"{name} has {n} rows, but the machine was fitted to {model.loo.n_samples}: give the "
            f"{name} that it was fitted to."
        )


def _check_task(model: Model, assessment: Assessment | None) -> None:
    if assessment is None or assessment.classification in (None, model.classification):
        return
    kinds = {True: "a classifier", False: "a regressor"}
    raise TypeError(
        f"The assessment is of {kinds[not model.classification]}, the machine is "
        f"{kinds[model.classification]}: give the assessment of the same estimator."
    )


def _sample_names(model: Model, X: Any) -> tuple[list[str], str]:
    """Names of the samples from the index of a data frame, else their positions; and which."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(index, "tolist"):
        names = [str(k) for k in range(model.loo.n_samples)]
        return names, "Samples are numbered from 0, in the order of training."
    by = "as in the index" if index.name is None else f"by their {clean(index.name)}"
    return [clean(name) for name in index.tolist()], f"Samples are called {by}."
