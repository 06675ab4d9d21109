"""Of a summary: which features and which samples matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._classes import class_indices
from looms.diagnostics import CaseDeletion
from looms.report._facts import Facts
from looms.report._importance import Importance
from looms.report._left_out import margins, predicted_labels, residual_sizes
from looms.report._model import Model
from looms.report._relevance import relevances

#: Rows of the tables.
MOST_FEATURES, MOST_SURPRISING, MOST_INFLUENTIAL = 60, 20, 10


def features(model: Model, importance: Importance) -> dict[str, Any]:
    """What each column of the table is worth."""
    relevance = relevances(model)
    by_source: dict[str, float] = {}
    if relevance is not None:
        for source, share in zip(model.sources, relevance, strict=True):
            by_source[source] = by_source.get(source, 0.0) + float(share)
    found = zip(importance.names, importance.value, importance.standard_error, strict=True)
    rows = [
        {
            "name": name,
            "importance": value,
            "standard_error": error,
            "relative": value / importance.press if importance.press > 0 else None,
            "relative_error": error / importance.press if importance.press > 0 else None,
            "relevance": by_source.get(name),
        }
        for name, value, error in found
    ]
    return {
        "rows": rows[:MOST_FEATURES],
        "n_features": importance.n_columns,
        "n_samples": importance.n_samples,
    }


def samples(facts: Facts) -> dict[str, Any]:
    """Samples of the largest residuals, and the most influential ones not among them."""
    model = facts.model
    size = residual_sizes(model)
    order = np.argsort(-size, kind="stable")[: min(MOST_SURPRISING, model.seen.sum())].tolist()
    moved = None if facts.deletion is None else facts.deletion.rms_change
    if moved is not None:
        by_change = np.argsort(-moved, kind="stable")[: min(MOST_INFLUENTIAL, model.seen.sum())]
        order += [k for k in by_change.tolist() if k not in order]
    said = _labels(model) if model.classification else _numbers(model)
    rows = [
        {
            "name": facts.names[k],
            **{name: None if values is None else values[k] for name, values in said.items()},
            "residual": size[k],
            **_deletion_of(facts.deletion, k),
        }
        for k in order
    ]
    return {
        "rows": rows,
        "n_samples": int(model.seen.sum()),
        "named_by": facts.named_by,
        "criterion": None if facts.deletion is None else facts.deletion.criterion,
    }


def _labels(model: Model) -> dict[str, Any]:
    loo, labels = model.loo, class_indices(model.loo.y)
    own = loo.outputs if loo.y.ndim == 1 else loo.outputs[np.arange(len(labels)), labels]
    return {
        "target": [model.classes[k] for k in labels],
        "output": own,
        "predicted": [model.classes[k] for k in predicted_labels(model)],
        "margin": margins(model),
    }


def _numbers(model: Model) -> dict[str, Any]:
    """Of several targets no single one can stand for a sample."""
    one = model.loo.y.ndim == 1
    return {
        "target": model.loo.y if one else None,
        "output": model.loo.outputs if one else None,
        "predicted": None,
        "margin": None,
    }


def _deletion_of(deletion: CaseDeletion | None, k: int) -> dict[str, Any]:
    names = ("surprise", "rms_change", "criterion_change", "leverage")
    return {name: None if deletion is None else getattr(deletion, name)[k] for name in names}
