"""Candidates of a model, the one chosen, and the reason."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from looms.estimators._encoding import decides_one_class
from looms.kernels._names import is_estimator
from looms.report.model import Reported, parameter_name

#: Most hyper-parameters in the table.
MOST_PARAMETERS = 15


def candidates(model: Reported) -> list[dict[str, Any]]:
    """Models that were tried, in order."""
    tried, losses, shares = model.fitted.candidates, model.candidate_losses, model.shares
    return [
        {
            "kernel": one.kernel_name,
            "criterion": str(one.criterion),
            "value": one.value,
            "standard_error": one.standard_error,
            "n_evaluations": one.n_evaluations,
            "seconds": one.seconds,
            "loss": losses[k],
            "outcome": one.stop_reason.value,
            "weight": None if shares is None else shares[k],
            "chosen": k == model.best if shares is None else shares[k] > 0,
        }
        for k, one in enumerate(tried)
    ]


def chosen(model: Reported) -> dict[str, Any]:
    """The model that was taken, and why."""
    fitted, tuning, tried = model.fitted, model.tuning, model.fitted.candidates
    bounds = {met.name: met.remark for met in tuning.at_bounds} if tuning else {}
    members = _members(model)
    reason = "The hyper-parameters were given."
    if tried:
        n, loss, n_folds = len(tried), model.loss.name, model.n_choice_folds
        reason = "It was the only candidate; its hyper-parameters minimize the criterion."
        if model.shares is not None:
            predicted = f"the rows of {n_folds} folds, each by models tuned without it"
            predicted = predicted if n_folds else "the rows, each by models without it"
            how = "a stack of all gave it all the weight: no weighted sum of their outputs better"
            if members:
                how = f"{len(members)} are stacked: the weighted sum of their outputs best"
            reason = f"Of {n} candidates, {how} predicts {predicted}."
        elif n > 1:
            least = f"{model.chosen_by} {loss}"
            if n_folds:
                least = f"{loss} in {n_folds} folds, each predicted by models tuned without it"
            reason = f"Of {n} candidates, it has the smallest {least}."
    given = bool(tried) and is_estimator(tried[model.best].kernel)
    scales_last = sorted(
        [] if given else model.kernel.hyperparameters,
        key=lambda h: -np.inf if h.feature is None else -(h.value or 0.0),
    )
    transform, threshold = model.outcome.transform, fitted.rule.threshold
    supports = [one.support for one in fitted.kernel_members if hasattr(one, "support")]
    return {
        "kernel": tried[model.best].kernel_name if tried else type(model.kernel).__name__,
        "criterion": str(model.fitted.criterion) if tried else None,
        "reason": reason,
        "members": members,
        "transform": transform,
        "transforms": [
            {"name": name, "error": error, "chosen": name == transform}
            for name, error in model.fitted.transforms.items()
        ],
        "parameters": [
            {
                "name": parameter_name(model, h),
                "feature": None if h.feature is None else model.features.names[h.feature],
                "value": h.value,
                "bound": bounds.get(h.name),
            }
            for h in scales_last[:MOST_PARAMETERS]
        ],
        "n_parameters": len(scales_last),
        "mu": None if given or fitted.leading is None else fitted.leading.mu,
        "mu_bound": bounds.get("mu"),
        "n_support": len(np.unique(np.concatenate(supports))) if supports else None,
        "threshold": threshold if len(model.classes) == 2 else None,
        "probability": _probability_of_threshold(model),
        "one_class": len(model.classes) == 2
        and decides_one_class(threshold, model.held_out.outputs),
        "criterion_value": tuning and tuning.value,
        "criterion_error": tuning and tuning.standard_error,
        "n_evaluations": tried[model.best].n_evaluations if tuning and tried else None,
        "n_measured": tuning and tuning.n_measured,
        "outcome": tuning and tuning.stop_reason.value,
        "outcome_text": tuning and str(tuning.stop_reason),
        "n_stages": tuning and len({n for n, _ in tuning.stages}),
    }


def _probability_of_threshold(model: Reported) -> float | None:
    """Probability of the positive class of two from which it is predicted."""
    rule, outcome = model.fitted.rule, model.outcome
    if rule.calibrator is None or len(model.classes) != 2:
        return None
    if isinstance(outcome.threshold, Real):
        return float(outcome.threshold)
    both = outcome.probabilities(np.array([rule.threshold]), rule)[0]
    return float(both[0 if outcome.positive_first else 1])


def _members(model: Reported) -> list[dict[str, Any]]:
    """Models of a stack, the largest first; empty for a single one."""
    if model.shares is None or not model.stacked:
        return []
    weighed = zip(model.fitted.candidates, model.shares.tolist(), strict=True)
    return [
        {"kernel": one.kernel_name, "criterion": str(one.criterion), "weight": share, "mu": one.mu}
        for one, share in sorted(weighed, key=lambda pair: -pair[1])
        if share > 0
    ]
