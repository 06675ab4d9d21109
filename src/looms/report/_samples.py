"""Samples and groups that a report names."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._typing import AnyArray, Array
from looms.diagnostics._case_deletion import CaseDeletion
from looms.report.model import Reported, residual_sizes
from looms.report.text import clean

MOST_SURPRISING, MOST_INFLUENTIAL = 20, 10


def samples(
    model: Reported, deletion: CaseDeletion | None, names: list[str], named_by: str
) -> dict[str, Any]:
    """Samples with the largest residuals, and the most influential others, `for_their_class`.

    ``deletion`` is that of the model, or None.
    """
    loo, n = model.held_out, model.n
    size = residual_sizes(model)
    shown = _largest(for_their_class(model, size), min(MOST_SURPRISING, n)).tolist()
    of_each = deletion if deletion is not None and deletion.unit == "sample" else None
    if of_each is not None:
        changes = for_their_class(model, of_each.rms_change)
        by_change = _largest(changes, min(MOST_INFLUENTIAL, n))
        shown += [k for k in by_change.tolist() if k not in shown]
    values: dict[str, Any] = dict.fromkeys(("target", "output", "predicted", "margin"))
    if model.outcome.decides:
        labels, places = model.codes, np.arange(loo.n_samples)
        classes = np.array(model.classes, dtype=object)
        values["target"] = classes[labels]
        values["output"] = loo.outputs if loo.y.ndim == 1 else loo.outputs[places, labels]
        outcome, of_rule = model.outcome, (loo.outputs, model.fitted.rule)
        values["predicted"] = classes[outcome.indices(*of_rule)]
        values["margin"] = outcome.decision_margins(*of_rule)[places, labels]
    elif loo.y.ndim == 1:  # of several targets no single one can stand for a sample
        values["target"], values["output"] = loo.y, loo.outputs
    values["residual"] = size
    for name in ("surprise", "rms_change", "criterion_change"):
        values[name] = None if of_each is None else getattr(of_each, name)
    values["leverage"] = None if deletion is None else deletion.leverage
    rows = [
        {"name": names[k]}
        | {name: None if column is None else column[k] for name, column in values.items()}
        for k in shown
    ]
    return {
        "rows": rows,
        "n_samples": n,
        "named_by": named_by,
        "by_kernels": "" if deletion is None else deletion.by_kernels.removeprefix(", "),
        "criterion": None if of_each is None else of_each.criterion,
    }


def for_their_class(model: Reported, values: Array) -> Array:
    """Values of the samples relative to the root mean square in their class, if it is large.

    Those of a class where it is below that of all samples are relative to the latter, so that a
    class without errors has no large values.
    """
    labels, squares = model.codes, values**2
    usual = np.full(len(values), np.nanmean(squares))
    for label in np.unique(model.fitted.rows.own(labels)):
        members = labels == label
        usual[members] = np.maximum(usual[members], np.nanmean(squares[members]))
    return np.asarray(values / np.sqrt(np.where(usual > 0, usual, 1.0)))


def _largest(values: Array, n: int) -> AnyArray:
    return np.argsort(-values, kind="stable")[:n]


def groups_left_out(deletion: CaseDeletion | None) -> dict[str, Any] | None:
    """The groups that change the model most; None if none are left out."""
    if deletion is None or deletion.unit == "sample":
        return None
    most = deletion.most_influential(MOST_INFLUENTIAL)
    columns = ["n_samples", "residual", "surprise", "rms_change", "criterion_change"]
    rows = most[columns].to_dict("records")
    return {
        "rows": [
            {"name": clean(name)} | row for name, row in zip(most.index.tolist(), rows, strict=True)
        ],
        "n_groups": int(np.isfinite(deletion.rms_change).sum()),
        "criterion": deletion.criterion,
    }
