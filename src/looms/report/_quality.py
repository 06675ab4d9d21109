"""Of a summary: how good the machine is."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._classes import class_indices
from looms.assessment._result import Assessment
from looms.calibration import brier_score, log_loss
from looms.report._facts import Facts
from looms.report._left_out import predicted_labels
from looms.report._model import Model
from looms.report._scores import FIGURES, guess_rmse, loo_scores

MOST_CONFUSED = 12


def leave_one_out(facts: Facts) -> dict[str, Any]:
    """Figures of the leave-one-out outputs, and of the probabilities that they give."""
    model, probabilities = facts.model, facts.probabilities
    found = loo_scores(model)
    if probabilities is not None:
        nothing = float("nan")
        found["log_loss"] = log_loss(model.loo, probabilities), nothing
        found["brier"] = brier_score(model.loo, probabilities), nothing
    figures = [
        {
            "key": key,
            "name": FIGURES[key][0],
            "value": value,
            "standard_error": error,
            "smaller_is_better": FIGURES[key][1],
        }
        for key, (value, error) in found.items()
    ]
    return {"figures": figures, "confusion": _confusion(model)}


def _confusion(model: Model) -> dict[str, Any] | None:
    if not model.classification or len(model.classes) > MOST_CONFUSED:
        return None
    counts = np.zeros([len(model.classes)] * 2, dtype=float if model.weighted else int)
    weight = model.loo.sample_weight if model.weighted else model.seen.astype(int)
    np.add.at(counts, (class_indices(model.loo.y), predicted_labels(model)), weight)
    return {"labels": model.classes, "counts": counts.tolist(), "weighted": model.weighted}


def outer(assessment: Assessment) -> dict[str, Any]:
    scores = []
    for key in assessment.scores:
        found = assessment.figures(key)
        scores.append(
            {
                "key": key,
                "name": FIGURES.get(key, (key, False))[0],
                "value": found.value,
                "standard_error": found.standard_error,
                "low": found.low,
                "high": found.high,
                "loo": found.loo,
                "optimism": found.flattered_by,
                "optimism_error": found.optimism_error,
                "smaller_is_better": found.smaller_is_better,
            }
        )
    return {
        "method": assessment.method,
        "n_splits": len(assessment.splits),
        "n_failed": len(assessment.failures),
        "estimator": assessment.estimator,
        "scores": scores,
    }


def headline(model: Model, assessment: Assessment | None) -> dict[str, Any]:
    key = "ber" if model.classification else "rmse"
    value, error = loo_scores(model)[key]
    found = {
        "key": key,
        "name": FIGURES[key][0],
        "value": value,
        "low": max(0.0, value - 1.96 * error),
        "high": min(1.0 if model.classification else np.inf, value + 1.96 * error),
        "honest": False,
        "loo": value,
        "guess": 1 - 1 / len(model.classes) if model.classification else guess_rmse(model),
    }
    if assessment is not None:
        return found | _honest(model, assessment, found)
    return found


def _honest(model: Model, assessment: Assessment, alone: dict[str, Any]) -> dict[str, Any]:
    """What an assessment puts in the place of leave-one-out figures."""
    key = alone["key"] if alone["key"] in assessment.scores else assessment.scores[0]
    outer_figures = assessment.figures(key)
    # Of several targets the splits have the mean of the errors, not the root of their squares.
    same = model.classification or model.loo.y.ndim == 1
    return {
        "key": key,
        "name": FIGURES.get(key, (key, False))[0],
        "value": outer_figures.value,
        "low": outer_figures.low,
        "high": outer_figures.high,
        "honest": True,
        "loo": loo_scores(model).get(key, (None, None))[0] if same else outer_figures.loo,
        "guess": alone["guess"] if same and key == alone["key"] else None,
    }
