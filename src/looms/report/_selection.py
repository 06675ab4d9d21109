"""Selection of a fitted machine: the scores of its candidates, and the rows held out."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from looms._typing import Array
from looms.estimators._search import SelectingMachine, chosen_criterion
from looms.optimize import Outcome
from looms.threshold import BalancedError
from looms.units import Units

#: Names of the methods, by what is held out at a time.
METHODS = {
    "sample": "leave-one-out",
    "group": "leave-one-group-out",
    "fold": "cross-validation",
}


def unit_of(machine: Any) -> str:
    """What the figures of a machine hold out at a time: "sample", "group" or "fold"."""
    units: Units = machine._units if machine.nested_ is None else machine.nested_.units
    return units.unit


def chosen_by(machine: Any) -> str:
    """What the criterion of a machine holds out at a time: "sample", "group" or "fold"."""
    units: Units = machine._units
    return units.unit


def n_choice_folds(machine: Any) -> int:
    """Number of folds that compare candidates, each tuned without them; 0 if none do.

    Candidates are then compared by the held-out outputs that the criterion judged.
    """
    compared = getattr(machine, "choice_units_", None)
    return 0 if compared is None else int(compared.n_units)


def combined_by_rest(machine: Any) -> bool:
    """True if ``nested_`` uses the folds that compared candidates, combined by the other folds.

    Otherwise ``nested_``, if any, repeated the whole choice without the sample.
    """
    nested = machine.nested_
    return nested is not None and not nested.whole


def candidate_scores(machine: SelectingMachine) -> Array:
    """The score by which candidates were compared, in the units of `score_name`."""
    scores = np.array([candidate.score for candidate in machine.candidates_])
    return scores if is_classifier(machine) else np.sqrt(scores)


def on_grid(machine: Any) -> bool:
    """True if the hyper-parameters are points of a grid.

    Candidates are then compared by the criterion itself, unless folds compare them.
    """
    tuning = getattr(machine, "selection_", None)
    return tuning is not None and tuning.outcome is Outcome.GRID


def score_name(machine: Any) -> tuple[str, str]:
    """Name of the candidates' score, and its key among the figures, if it has one."""
    if not is_classifier(machine):
        return "root mean square error", "rmse"
    threshold = machine.threshold
    if on_grid(machine) and not n_choice_folds(machine):
        return str(chosen_criterion(machine)), ""
    if threshold in (None, "ber") or isinstance(threshold, Real | BalancedError):
        return "balanced error rate", "ber"
    name = threshold if isinstance(threshold, str) else getattr(threshold, "__name__", None)
    return f"loss of {name or repr(threshold)}", ""
