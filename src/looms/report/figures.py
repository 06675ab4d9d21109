"""Figures of merit in a report: leave-one-out, outer splits, and the headline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from looms._classes import class_indices
from looms.assessment._result import Assessment
from looms.calibration import brier_score, log_loss
from looms.report._scores import FIGURES, guess_rmse, loo_scores
from looms.report.facts import Facts
from looms.report.model import Model, predicted_labels

MOST_CONFUSED = 12


def leave_one_out(facts: Facts) -> dict[str, Any]:
    """Figures of the leave-one-out outputs and of their probabilities, and the confusion."""
    model, probabilities = facts.model, facts.probabilities
    scores = loo_scores(model)
    if probabilities is not None:
        unknown = float("nan")
        scores["log_loss"] = log_loss(model.loo, probabilities), unknown
        scores["brier"] = brier_score(model.loo, probabilities), unknown
    figures = []
    for key, (value, error) in scores.items():
        name, smaller_is_better = FIGURES[key]
        row = {"key": key, "name": name, "value": value, "standard_error": error}
        figures.append(row | {"smaller_is_better": smaller_is_better})
    confusion = None
    if model.classification and len(model.classes) <= MOST_CONFUSED:
        counts = confusion_matrix(
            class_indices(model.loo.y),
            predicted_labels(model),
            labels=range(len(model.classes)),
            sample_weight=model.loo.sample_weight if model.weighted else model.seen.astype(int),
        )
        confusion = {
            "labels": model.classes,
            "counts": counts.tolist(),
            "weighted": model.weighted,
        }
    return {"figures": figures, "confusion": confusion}


def outer(assessment: Assessment) -> dict[str, Any]:
    """Scores of outer splits."""
    names = ("value", "standard_error", "low", "high", "loo", "optimism_error", "smaller_is_better")
    scores = []
    for key in assessment.scores:
        figures = assessment.figures(key)
        row = {"key": key, "name": FIGURES.get(key, (key, False))[0]}
        row |= {name: getattr(figures, name) for name in names}
        scores.append(row | {"optimism": figures.flattered_by})
    return {
        "method": assessment.method,
        "n_splits": len(assessment.splits),
        "n_failed": len(assessment.failures),
        "estimator": assessment.estimator,
        "scores": scores,
    }


def headline(model: Model, assessment: Assessment | None) -> dict[str, Any]:
    """The figure on top: of outer splits where there are any, else of leave-one-out."""
    key = "ber" if model.classification else "rmse"
    scores = loo_scores(model)
    guess = 1 - 1 / len(model.classes) if model.classification else guess_rmse(model)
    if assessment is None:
        value, error = scores[key]
        return {
            "key": key,
            "name": FIGURES[key][0],
            "value": value,
            "low": max(0.0, value - 1.96 * error),
            "high": min(1.0 if model.classification else np.inf, value + 1.96 * error),
            "honest": False,
            "loo": value,
            "guess": guess,
        }
    shown = key if key in assessment.scores else assessment.scores[0]
    figures = assessment.figures(shown)
    # Of several targets the splits have the mean of the errors, not the root of their squares.
    same = model.classification or model.loo.y.ndim == 1
    return {
        "key": shown,
        "name": FIGURES.get(shown, (shown, False))[0],
        "value": figures.value,
        "low": figures.low,
        "high": figures.high,
        "honest": True,
        "loo": scores.get(shown, (None, None))[0] if same else figures.loo,
        "guess": guess if same and shown == key else None,
    }
