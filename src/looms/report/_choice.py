"""Of a summary: what was asked for, and what was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms.optimise import Outcome
from looms.report._axes import clean
from looms.report._model import Model, candidate_names, score_name
from looms.report._relevance import parameter_name

MOST_CANDIDATES, MOST_PARAMETERS = 50, 15


def asked(model: Model) -> list[dict[str, str]]:
    parameters = model.machine.get_params(deep=False)
    return [{"name": name, "value": _text(value)} for name, value in parameters.items()]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return clean(value if isinstance(value, str) else repr(value))


def chosen(model: Model) -> dict[str, Any]:
    machine: Any = model.machine
    bounds = {met.name: met.remark for met in _tuning(machine, "at_bounds") or ()}
    free = machine.kernel_.hyperparameters
    parameters = [
        {
            "name": parameter_name(model, h.name),
            "value": h.value,
            "bound": bounds.get(h.name),
        }
        for h in sorted(free, key=lambda h: -h.value if "[" in h.name else -np.inf)
    ]
    found = {
        "kernel": type(machine.kernel_).__name__,
        "criterion": None,
        "reason": "The hyper-parameters were given.",
        "parameters": parameters[:MOST_PARAMETERS],
        "n_parameters": len(parameters),
        "mu": machine.mu_,
        "mu_bound": bounds.get("mu"),
        "threshold": model.threshold if len(model.classes) == 2 else None,
        "criterion_value": _tuning(machine, "value"),
        "criterion_error": _tuning(machine, "standard_error"),
        "n_evaluations": _tuning(machine, "n_evaluations"),
        "n_measured": _tuning(machine, "n_measured"),
        "outcome": None,
        "outcome_text": None,
        "n_stages": None,
    }
    if hasattr(machine, "selection_"):
        kernel, criterion = candidate_names(machine)[machine.best_index_]
        outcome: Outcome = machine.selection_.outcome
        found |= {
            "kernel": kernel,
            "criterion": criterion,
            "reason": _reason(model),
            "outcome": _outcome(outcome),
            "outcome_text": outcome.value,
            "n_stages": len({n for n, _ in machine.selection_.stages}),
        }
    return found


def _tuning(machine: Any, name: str) -> Any:
    return getattr(machine.selection_, name) if hasattr(machine, "selection_") else None


def _reason(model: Model) -> str:
    machine: Any = model.machine
    n = len(machine.candidates_)
    if n == 1:
        return "It was the only candidate; its hyper-parameters minimise the criterion."
    return f"Of {n} candidates it has the smallest leave-one-out {score_name(machine)[0]}."


def _outcome(outcome: Outcome) -> str:
    return outcome.name.lower().replace("_", " ")


def candidates(model: Model) -> list[dict[str, Any]]:
    machine: Any = model.machine
    if not hasattr(machine, "candidates_"):
        return []
    rows = [
        {
            "kernel": kernel,
            "criterion": criterion,
            "value": candidate.value,
            "standard_error": candidate.standard_error,
            "score": candidate.score if model.classification else np.sqrt(candidate.score),
            "n_evaluations": candidate.n_evaluations,
            "seconds": candidate.seconds,
            "outcome": _outcome(candidate.outcome),
            "chosen": k == machine.best_index_,
        }
        for k, ((kernel, criterion), candidate) in enumerate(
            zip(candidate_names(machine), machine.candidates_, strict=False)
        )
    ]
    return sorted(rows, key=lambda row: row["score"])[:MOST_CANDIDATES]
