"""Of a summary: how good the machine is."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms.assessment import Assessment
from looms.assessment._result import _standard_error
from looms.assessment._scoring import SMALLER_IS_BETTER
from looms.calibration import brier_score, log_loss
from looms.report._facts import Facts
from looms.report._model import Model
from looms.report._scores import FIGURES, loo_scores
from looms.report._surprise import predicted_labels
from looms.report._training import labels_of

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
    counts = np.zeros([len(model.classes)] * 2, dtype=int)
    np.add.at(counts, (labels_of(model.loo.y), predicted_labels(model)), 1)
    return {"labels": model.classes, "counts": counts.tolist()}


def outer(assessment: Assessment) -> dict[str, Any]:
    scores = []
    for key in assessment.scores:
        loo = assessment._loo(key)
        low, high = assessment._limits(key, 0.95)
        optimism = assessment._optimism(key)[0]
        scores.append(
            {
                "key": key,
                "name": FIGURES.get(key, (key, False))[0],
                "value": assessment._estimate(key),
                "standard_error": _standard_error(assessment._values(key)),
                "low": low,
                "high": high,
                "loo": float(np.mean(loo)) if len(loo) else None,
                "optimism": -optimism if key in SMALLER_IS_BETTER else optimism,
                "smaller_is_better": key in SMALLER_IS_BETTER,
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
        "high": value + 1.96 * error,
        "honest": False,
        "loo": value,
        "guess": 1 - 1 / len(model.classes) if model.classification else np.std(model.loo.y),
    }
    if assessment is not None:
        key = key if key in assessment.scores else assessment.scores[0]
        low, high = assessment._limits(key, 0.95)
        found |= {
            "key": key,
            "name": FIGURES.get(key, (key, False))[0],
            "value": assessment._estimate(key),
            "low": low,
            "high": high,
            "honest": True,
            "loo": loo_scores(model).get(key, (None, None))[0],
            "guess": found["guess"] if key == found["key"] else None,
        }
    return found
