"""A fitted machine as a dict of plain values, from which a report is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np

from looms._version import __version__
from looms._words import count
from looms.assessment._result import Assessment
from looms.copies import copy_groups
from looms.estimators import Certificate
from looms.estimators._in_pipelines import parts_of
from looms.estimators._search import SelectingMachine
from looms.report._cautions import cautions_of_report
from looms.report._facts import Facts, facts_of
from looms.report._samples import groups_left_out, samples
from looms.report._selection import candidate_scores, n_choice_folds, score_name
from looms.report.displays.features import ImportanceDisplay
from looms.report.figures import error_by_class, headline, held_out, outer
from looms.report.model import (
    Model,
    parameter_name,
    relevances,
)
from looms.report.text import clean, plain, words

#: Version of summary.schema.json; it increases if a key changes its meaning or is removed.
SCHEMA = 3
#: Largest numbers of rows in the tables.
MOST_CLASSES, MOST_CANDIDATES, MOST_PARAMETERS = 30, 50, 15
MOST_FEATURES = 60


def summary(
    estimator: Any,
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Everything a report says about a fitted machine, as a dict that JSON can hold.

    Parameters
    ----------
    estimator : fitted looms machine, or pipeline that ends in one
    X : the training samples, default=None
        The index of a data frame names the samples; otherwise they are numbered from 0.
    y : the training targets, default=None
        The name of a series is the name of the target.
    groups : the labels of the groups that the machine was fitted with, default=None
        They name the groups; otherwise each is named after its first sample.
    assessment : Assessment, default=None
        Result of `looms.assess`: the honest outer estimate.
    title : str, default=None
    notes : sequence of str, default=()
        Remarks on the data, for example on columns that are dates, to add to the cautions.

    Returns
    -------
    summary : dict
        Numbers that are not finite are None. Its keys, which `looms.report.summary_schema`
        describes, are ``schema``, ``title``, ``date``, ``looms_version``, ``task``; the ``data``;
        what was ``asked``; what was ``chosen`` from the ``candidates``, ``n_candidates`` in all, by
        which ``score``; ``loo``, figures of held-out predictions; the ``assessment`` by outer
        splits; the ``headline``; the ``features``, ``samples`` and ``groups`` that matter; the
        ``certificate`` of held-out outputs; ``cautions``.

    Raises
    ------
    TypeError
        If the estimator contains no looms machine, or the assessment is of another kind of task.
    ValueError
        If the number of rows of ``X``, ``y`` or ``groups`` is not that of the training samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV
    >>> from looms.report import summary
    >>> data = load_iris(as_frame=True)
    >>> fit = summary(LSSVMClassifierCV().fit(data.data, data.target), y=data.target)
    >>> fit["task"], fit["data"]["n_samples"], fit["data"]["target"]
    ('classification', 150, 'target')
    """
    return summarized(facts_of(estimator, X, y, assessment, groups), title, notes)


def summary_schema() -> dict[str, Any]:
    """JSON schema of `looms.report.summary`, draft 2020-12.

    Returns
    -------
    schema : dict
        A description of every key. To validate, use a package such as jsonschema.

    Examples
    --------
    >>> from looms.report import summary_schema
    >>> summary_schema()["properties"]["task"]
    {'enum': ['classification', 'regression']}
    """
    text = files("looms.report").joinpath("summary.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def summarized(facts: Facts, title: str | None, notes: Sequence[str]) -> dict[str, Any]:
    """The dict of `summary`."""
    model, assessment = facts.model, facts.assessment
    task = "classification" if model.classification else "regression"
    if title is None:
        title = task.capitalize() + (f" of {facts.target}" if facts.target is not None else "")
    names = [clean(name) for name, _ in parts_of(facts.estimator).steps]
    asked, machine = model.machine.get_params(deep=False), model.selecting
    if model.units.grouped:
        n_groups = int(model.units.clusters.max()) + 1
        asked["groups"] = f"{n_groups} of {count(model.held_out.n_samples, 'sample')}"
    report: dict[str, Any] = plain(
        {
            "schema": SCHEMA,
            "title": clean(title),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "looms_version": __version__,
            "task": task,
            "data": _data(model, names, facts.target),
            "asked": [{"name": name, "value": _text(v)} for name, v in asked.items()],
            "chosen": _chosen(model),
            "candidates": [] if machine is None else _candidates(machine),
            "n_candidates": 0 if machine is None else len(machine.candidates_),
            "score": dict(zip(("name", "key"), score_name(model.machine), strict=True))
            | {"method": model.candidates_by},
            "loo": held_out(model, facts.probabilities),
            "assessment": None if assessment is None else outer(assessment),
            "headline": headline(model, assessment),
            "features": None if model.pairwise else _features(model, facts.importance),
            "samples": samples(model, facts.deletion, facts.names, facts.named_by),
            "groups": groups_left_out(facts.deletion),
            "certificate": _certificate(facts.certificate),
            "cautions": cautions_of_report(
                facts.estimator, model, facts.certificate, assessment, names, notes
            ),
        }
    )
    return report


def _data(model: Model, steps: list[str], target: str | None) -> dict[str, Any]:
    y, n_replicates, classes = model.held_out.y, None if model.rows is None else 0, []
    if not model.pairwise and model.rows is not None:
        counts = np.bincount(copy_groups(model.rows))
        n_replicates = counts[counts > 1].sum()
    if model.classification:
        n, error = error_by_class(model)
        largest = np.argsort(-n, kind="stable")[:MOST_CLASSES]
        classes = [{"label": model.classes[k], "n": n[k], "error": error[k]} for k in largest]
    return {
        "n_samples": model.held_out.n_samples,
        "n_landmarks": model.n_landmarks,
        "n_features": model.machine.n_features_in_,
        "n_columns": len(model.columns),
        "named": model.named,
        "n_replicates": n_replicates,
        "n_weight_zero": model.held_out.n_samples - model.n_with_weight,
        "steps": steps,
        "target": target,
        "n_targets": 1 if y.ndim == 1 or model.classification else y.shape[1],
        "classes": classes,
        "n_classes": len(model.classes),
    }


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return clean(value if isinstance(value, str) else repr(value))


def _chosen(model: Model) -> dict[str, Any]:
    machine, selecting = model.machine, model.selecting
    kernel, criterion, tuning = type(machine.kernel_).__name__, None, None
    members: list[dict[str, Any]] = []
    bounds, reason = {}, "The hyper-parameters were given."
    if selecting is not None:
        tuning = selecting.selection_
        bounds = {met.name: met.remark for met in tuning.at_bounds}
        best = selecting.candidates_[selecting.best_index_]
        kernel, criterion = best.kernel_name, str(best.criterion)
        n, score = len(selecting.candidates_), score_name(machine)[0]
        n_folds, members = n_choice_folds(machine), _members(selecting)
        reason = "It was the only candidate; its hyper-parameters minimize the criterion."
        if members:
            reason = (
                f"Of {n} candidates, {len(members)} are stacked: the weighted sum of their outputs "
                f"best predicts the samples of {n_folds} folds, each by machines tuned without it."
            )
        elif n > 1:
            least = f"{model.chosen_by} {score}"
            if n_folds:
                least = f"{score} in {n_folds} folds, each predicted by machines tuned without it"
            reason = f"Of {n} candidates, it has the smallest {least}."
    scales_last = sorted(
        machine.kernel_.hyperparameters,
        key=lambda h: -np.inf if h.feature is None else -(h.value or 0.0),
    )
    return {
        "kernel": kernel,
        "criterion": criterion,
        "reason": reason,
        "members": members,
        "parameters": [
            {"name": parameter_name(model, h), "value": h.value, "bound": bounds.get(h.name)}
            for h in scales_last[:MOST_PARAMETERS]
        ],
        "n_parameters": len(scales_last),
        "mu": machine.mu_,
        "mu_bound": bounds.get("mu"),
        "threshold": model.threshold if len(model.classes) == 2 else None,
        "criterion_value": tuning and tuning.value,
        "criterion_error": tuning and tuning.standard_error,
        "n_evaluations": tuning and tuning.n_evaluations,
        "n_measured": tuning and tuning.n_measured,
        "outcome": tuning and words(tuning.outcome.name),
        "outcome_text": tuning and tuning.outcome.value,
        "n_stages": tuning and len({n for n, _ in tuning.stages}),
    }


def _members(machine: SelectingMachine) -> list[dict[str, Any]]:
    """Machines of a stack, the largest first; empty for a single machine."""
    shares = machine.candidate_weights_
    if shares is None:
        return []
    return [
        {"kernel": one.kernel_name, "criterion": str(one.criterion), "weight": share, "mu": one.mu}
        for one, share in sorted(
            zip(machine.candidates_, shares.tolist(), strict=True), key=lambda pair: -pair[1]
        )
        if share > 0
    ]


def _candidates(machine: SelectingMachine) -> list[dict[str, Any]]:
    names = ("value", "standard_error", "n_evaluations", "seconds")
    shares = machine.candidate_weights_
    taken = np.arange(len(machine.candidates_)) == machine.best_index_
    weights = [None] * len(taken) if shares is None else shares
    rows = [
        {
            "kernel": candidate.kernel_name,
            "criterion": str(candidate.criterion),
            **{name: getattr(candidate, name) for name in names},
            "score": score,
            "outcome": words(candidate.outcome.name),
            "weight": weights[k],
            "chosen": taken[k] if shares is None else shares[k] > 0,
        }
        for k, (candidate, score) in enumerate(
            zip(machine.candidates_, candidate_scores(machine), strict=True)
        )
    ]
    return sorted(rows, key=lambda row: row["score"])[:MOST_CANDIDATES]


def _certificate(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    names = ("difference", "relative", "bound", "verdict", "holds", "condition", "solver")
    return {
        "n_rows": len(certificate.rows),
        **{name: getattr(certificate, name) for name in names},
    }


def _features(model: Model, importance: ImportanceDisplay | None) -> dict[str, Any] | None:
    relevance, columns = relevances(model), model.columns
    if importance is None:
        if relevance is None:
            return None
        names = sorted(columns, key=lambda name: -relevance[columns[name]].sum())
        nothing = np.full(len(names), np.nan)
        importance = ImportanceDisplay(
            names=names,
            value=nothing,
            standard_error=nothing,
            press=np.nan,
            n_samples=model.n_landmarks or 0,
            n_columns=len(names),
        )
    press = importance.press
    rows = [
        {
            "name": name,
            "importance": value,
            "standard_error": error,
            "relative": value / press if press > 0 else None,
            "relative_error": error / press if press > 0 else None,
            "relevance": None if relevance is None else relevance[columns[name]].sum(),
        }
        for name, value, error in zip(
            importance.names, importance.value, importance.standard_error, strict=True
        )
    ]
    return {
        "rows": rows[:MOST_FEATURES],
        "n_features": importance.n_columns,
        "n_samples": importance.n_samples,
    }
