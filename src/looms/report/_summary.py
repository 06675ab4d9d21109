"""A fit as a dict of plain values: what a report is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from looms._version import __version__
from looms.assessment._result import Assessment
from looms.report._axes import clean
from looms.report._cases import features, samples
from looms.report._cautions import all_cautions
from looms.report._choice import asked, candidates, chosen
from looms.report._facts import Facts, facts_of
from looms.report._fit_cautions import n_replicates
from looms.report._model import Model, score_name
from looms.report._quality import headline, leave_one_out, outer
from looms.report._scores import error_by_class

#: Version of the schema; a new one where a key changes its meaning or goes.
SCHEMA = 2
MOST_CLASSES = 30


def summary(
    estimator: Any,
    *,
    X: Any = None,
    y: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    """All that a report says of a fitted machine, as a dict that JSON can hold.

    Parameters
    ----------
    estimator : machine of looms, or pipeline that ends in one
        Fitted.
    X : the training samples, default=None
        Of a data frame, the index names the samples; otherwise they are numbered from 0.
    y : the training targets, default=None
        Of a series, the name is that of the target.
    assessment : Assessment, default=None
        Of `looms.assess`: the honest outer estimate.
    title : str, default=None
        Of the report.

    Returns
    -------
    summary : dict
        Numbers that are not finite are None. Keys:

        schema
            Version of this list, 2.
        title, date, looms_version
            Text; the date in ISO format.
        task
            "classification" or "regression".
        data
            ``n_samples``, ``n_features`` (of the machine), ``n_columns`` (that they were made
            of), ``named`` (whether the features have names), ``n_replicates``,
            ``n_weight_zero``, ``steps`` (before the machine), ``target`` (its name or None),
            ``n_targets``, ``classes``: a list of ``label``, ``n``, ``error`` (leave-one-out),
            the largest first, and ``n_classes``; for a regression ``classes`` is empty.
        asked
            List of ``name``, ``value``: parameters of the machine.
        chosen
            ``kernel``, ``criterion``, ``reason``, ``parameters``: a list of ``name``,
            ``value``, ``bound`` (what it means if it is at one, else None), and
            ``n_parameters``; ``mu``, ``mu_bound``, ``threshold`` (None unless there are two
            classes), ``criterion_value``, ``criterion_error``, ``n_evaluations`` of the searches,
            ``n_measured`` between them, ``outcome``, ``outcome_text``, ``n_stages``. What concerns
            a search is None for a machine that was given its hyper-parameters.
        candidates
            List of ``kernel``, ``criterion``, ``value``, ``standard_error``, ``score``,
            ``n_evaluations``, ``seconds``, ``outcome``, ``chosen``, the best score first.
        n_candidates
            Their number.
        score
            ``name`` of what the candidates competed by, and ``key`` of the figure that it is,
            empty if it is none.
        loo
            ``figures``: list of ``key``, ``name``, ``value``, ``standard_error``,
            ``smaller_is_better``; and ``confusion``: None, or ``labels``, ``counts``
            (rows are the true class) and ``weighted`` (whether these are sums of weights).
        assessment
            None, or ``method``, ``n_splits``, ``n_failed``, ``estimator``, and ``scores``: list
            of ``key``, ``name``, ``value``, ``standard_error``, ``low``, ``high``, ``loo``,
            ``optimism`` (positive: leave-one-out flatters), ``optimism_error`` and
            ``smaller_is_better``; the first and last are None where nobody says which way is
            better.
        headline
            ``key``, ``name``, ``value``, ``low``, ``high`` (of 95 % intervals), ``honest``
            (whether it comes from outer splits), ``loo``, ``guess`` (of a machine that knows
            no features: equal odds, or the mean of the targets).
        features
            ``rows``: list of ``name``, ``importance`` (rise of PRESS without it),
            ``standard_error``, ``relative`` and ``relative_error`` (both over PRESS),
            ``relevance`` (share, None unless ARD); ``n_features`` in all, ``n_samples`` they were
            computed on. For a kernel matrix None.
        samples
            ``rows``: list of ``name``, ``target``, ``output``, ``predicted`` and ``margin``
            (None for a regression), ``residual`` (its size; of classes by how much the output
            falls short of the label), and of `looms.diagnostics.case_deletion` ``surprise``,
            ``rms_change``, ``criterion_change``, ``leverage`` (None for many samples): the
            largest residuals, then the most influential samples that are not among them;
            ``n_samples`` that have a weight, ``named_by``: what their names are, and the
            ``criterion`` of the change.
        cautions
            List of ``level`` ("serious" or "note"), ``title``, ``text``.

    Raises
    ------
    TypeError
        If there is no machine of looms in the estimator.
    ValueError
        If ``X`` or ``y`` are not those that it was fitted to, by their number.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV
    >>> from looms.report import summary
    >>> data = load_iris(as_frame=True)
    >>> found = summary(LSSVMClassifierCV().fit(data.data, data.target), y=data.target)
    >>> found["task"], found["data"]["n_samples"], found["data"]["target"]
    ('classification', 150, 'target')
    """
    return summarised(facts_of(estimator, X, y, assessment), title)


def summarised(facts: Facts, title: str | None) -> dict[str, Any]:
    """The dict of `summary`."""
    model, assessment = facts.model, facts.assessment
    steps = _steps(facts.estimator)
    importance = facts.importance
    found = {
        "schema": SCHEMA,
        "title": _title(model, facts.target) if title is None else clean(title),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "task": "classification" if model.classification else "regression",
        "data": _data(model, steps, facts.target),
        "asked": asked(model),
        "chosen": chosen(model),
        "candidates": candidates(model),
        "n_candidates": len(getattr(model.machine, "candidates_", [])),
        "score": dict(zip(("name", "key"), score_name(model.machine), strict=True)),
        "loo": leave_one_out(facts),
        "assessment": None if assessment is None else outer(assessment),
        "headline": headline(model, assessment),
        "features": None if importance is None else features(model, importance),
        "samples": samples(facts),
        "cautions": all_cautions(facts.estimator, model, assessment, steps=steps),
    }
    plain: dict[str, Any] = _plain(found)
    return plain


def _title(model: Model, target: str | None) -> str:
    task = "Classification" if model.classification else "Regression"
    return task if target is None else f"{task} of {target}"


def _steps(estimator: Any) -> list[str]:
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return []
    return [clean(name) for name, step in estimator.steps[:-1] if step not in (None, "passthrough")]


def _data(model: Model, steps: list[str], target: str | None) -> dict[str, Any]:
    y = model.loo.y
    classes: list[dict[str, Any]] = []
    if model.classification:
        n, error = error_by_class(model)
        order = np.argsort(-n, kind="stable")[:MOST_CLASSES]
        classes = [{"label": model.classes[k], "n": n[k], "error": error[k]} for k in order]
    return {
        "n_samples": model.loo.n_samples,
        "n_features": model.machine.n_features_in_,
        "n_columns": len(dict.fromkeys(model.sources)),
        "named": model.named,
        "n_replicates": n_replicates(model, model.machine.X_fit_),
        "n_weight_zero": (model.loo.sample_weight == 0).sum(),
        "steps": steps,
        "target": target,
        "n_targets": 1 if y.ndim == 1 or model.classification else y.shape[1],
        "classes": classes,
        "n_classes": len(model.classes),
    }


def _plain(value: Any) -> Any:
    """The same in types that JSON has; what is not finite as None."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
