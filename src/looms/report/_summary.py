"""A fit as a dict of plain values: what a report is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from looms import __version__
from looms.assessment import Assessment
from looms.assessment._result import _standard_error
from looms.assessment._scoring import SMALLER_IS_BETTER
from looms.optimise import Outcome
from looms.report._axes import clean
from looms.report._cautions import cautions, n_replicates
from looms.report._importance import Importance, feature_importance
from looms.report._model import Model, candidate_names, model_of
from looms.report._relevance import parameter_name, relevances
from looms.report._scores import FIGURES, error_by_class, loo_scores
from looms.report._surprise import margins, predicted_labels, surprise
from looms.report._training import labels_of

#: Version of the schema; a new one where a key changes its meaning or goes.
SCHEMA = 1
#: Rows of the tables; a report says how many there are in all.
MOST_FEATURES, MOST_SAMPLES, MOST_CLASSES, MOST_CANDIDATES = 60, 30, 30, 50
MOST_PARAMETERS, MOST_CONFUSED = 60, 12


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
        Of a data frame, the index names the samples; otherwise they are numbered from 1.
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
            Version of this list, 1.
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
            ``n_parameters``; ``mu``, ``threshold`` (None unless there are two classes),
            ``criterion_value``, ``criterion_error``, ``n_evaluations``, ``outcome``,
            ``outcome_text``, ``n_stages``. What concerns a search is None for a machine that
            was given its hyper-parameters.
        candidates
            List of ``kernel``, ``criterion``, ``value``, ``standard_error``, ``score``,
            ``n_evaluations``, ``seconds``, ``outcome``, ``chosen``, the best score first.
        n_candidates
            Their number.
        loo
            ``figures``: list of ``key``, ``name``, ``value``, ``standard_error``,
            ``smaller_is_better``; and ``confusion``: None, or ``labels`` and ``counts``
            (rows are the true class).
        assessment
            None, or ``method``, ``n_splits``, ``n_failed``, ``estimator``, and ``scores``: list
            of ``key``, ``name``, ``value``, ``standard_error``, ``low``, ``high``, ``loo``,
            ``optimism`` (positive: leave-one-out flatters), ``smaller_is_better``.
        headline
            ``key``, ``name``, ``value``, ``low``, ``high`` (of 95 % intervals), ``honest``
            (whether it comes from outer splits), ``loo``, ``guess`` (of a machine that knows
            no features: equal odds, or the mean of the targets).
        features
            ``rows``: list of ``name``, ``importance`` (rise of PRESS without it),
            ``standard_error``, ``relative`` (to PRESS), ``relevance`` (share, None unless
            ARD); ``n_features`` in all, ``n_samples`` they were computed on. For a kernel
            matrix None.
        samples
            ``rows``: list of ``name``, ``target``, ``output``, ``predicted`` (None for
            regression), ``surprise``, ``margin`` (None for regression), the most surprising
            first; ``n_samples``.
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
    model = model_of(estimator)
    for name, values in (("X", X), ("y", y)):
        check_rows(model, name, values)
    importance = None if model.pairwise else feature_importance(estimator)
    steps = _steps(estimator)
    target = getattr(y, "name", None)
    found = {
        "schema": SCHEMA,
        "title": clean(title) if title is not None else _title(model, target),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "task": "classification" if model.classification else "regression",
        "data": _data(model, steps, target),
        "asked": _asked(model),
        "chosen": _chosen(model),
        "candidates": _candidates(model),
        "n_candidates": len(getattr(model.machine, "candidates_", [])),
        "loo": _loo(model),
        "assessment": None if assessment is None else _assessment(assessment),
        "headline": _headline(model, assessment),
        "features": None if importance is None else _features(model, importance),
        "samples": _samples(model, sample_names(model, X)),
        "cautions": cautions(model, assessment, steps=steps),
    }
    plain: dict[str, Any] = _plain(found)
    return plain


def check_rows(model: Model, name: str, values: Any) -> None:
    """ValueError unless there is a row for every training sample."""
    if values is None:
        return
    n = values.shape[0] if hasattr(values, "shape") else len(values)
    if n != model.loo.n_samples:
        raise ValueError(
            f"{name} has {n} rows, but the machine was fitted to {model.loo.n_samples}: give the "
            f"{name} that it was fitted to."
        )


def sample_names(model: Model, X: Any) -> list[str]:
    """Names of the samples from the index of a data frame, else their numbers from 1."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(index, "tolist") or type(index).__name__ == "RangeIndex":
        return [str(k + 1) for k in range(model.loo.n_samples)]
    return [clean(name) for name in index.tolist()]


def _title(model: Model, target: Any) -> str:
    task = "Classification" if model.classification else "Regression"
    return f"{task} of {clean(target)}" if target is not None else task


def _steps(estimator: Any) -> list[str]:
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return []
    return [clean(name) for name, step in estimator.steps[:-1] if step not in (None, "passthrough")]


def _data(model: Model, steps: list[str], target: Any) -> dict[str, Any]:
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
        "n_replicates": n_replicates(model),
        "n_weight_zero": (model.loo.sample_weight == 0).sum(),
        "steps": steps,
        "target": None if target is None else clean(target),
        "n_targets": 1 if y.ndim == 1 or model.classification else y.shape[1],
        "classes": classes,
        "n_classes": len(model.classes),
    }


def _asked(model: Model) -> list[dict[str, str]]:
    parameters = model.machine.get_params(deep=False)
    return [{"name": name, "value": _text(value)} for name, value in parameters.items()]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return clean(value if isinstance(value, str) else repr(value))


def _chosen(model: Model) -> dict[str, Any]:
    machine: Any = model.machine
    bounds = dict(message.split(" ", 1) for message in _tuning(machine, "at_bounds") or ())
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
    n = len(model.machine.candidates_)  # type: ignore[attr-defined]
    score = "balanced error rate" if model.classification else "mean square error"
    if n == 1:
        return "It was the only candidate; its hyper-parameters minimise the criterion."
    return f"Of {n} candidates it has the smallest leave-one-out {score}."


def _outcome(outcome: Outcome) -> str:
    return outcome.name.lower().replace("_", " ")


def _candidates(model: Model) -> list[dict[str, Any]]:
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


def _loo(model: Model) -> dict[str, Any]:
    figures = [
        {
            "key": key,
            "name": FIGURES[key][0],
            "value": value,
            "standard_error": error,
            "smaller_is_better": FIGURES[key][1],
        }
        for key, (value, error) in loo_scores(model).items()
    ]
    return {"figures": figures, "confusion": _confusion(model)}


def _confusion(model: Model) -> dict[str, Any] | None:
    if not model.classification or len(model.classes) > MOST_CONFUSED:
        return None
    counts = np.zeros([len(model.classes)] * 2, dtype=int)
    np.add.at(counts, (labels_of(model.loo.y), predicted_labels(model)), 1)
    return {"labels": model.classes, "counts": counts.tolist()}


def _assessment(assessment: Assessment) -> dict[str, Any]:
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


def _headline(model: Model, assessment: Assessment | None) -> dict[str, Any]:
    key = "ber" if model.classification else "rmse"
    value, error = loo_scores(model)[key]
    found = {
        "key": key,
        "name": FIGURES[key][0],
        "value": value,
        "low": value - 1.96 * error,
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


def _features(model: Model, importance: Importance) -> dict[str, Any]:
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
            "relevance": by_source.get(name),
        }
        for name, value, error in found
    ]
    return {
        "rows": rows[:MOST_FEATURES],
        "n_features": importance.n_columns,
        "n_samples": importance.n_samples,
    }


def _samples(model: Model, names: list[str]) -> dict[str, Any]:
    size = surprise(model)
    order = np.argsort(-size, kind="stable")[:MOST_SAMPLES]
    loo = model.loo
    if not model.classification:
        one = loo.y.ndim == 1
        rows = [
            {
                "name": names[k],
                "target": loo.y[k] if one else None,
                "output": loo.outputs[k] if one else None,
                "predicted": None,
                "surprise": size[k],
                "margin": None,
            }
            for k in order
        ]
    else:
        labels, predicted, margin = labels_of(loo.y), predicted_labels(model), margins(model)
        rows = [
            {
                "name": names[k],
                "target": model.classes[labels[k]],
                "output": loo.outputs[k] if loo.y.ndim == 1 else loo.outputs[k, labels[k]],
                "predicted": model.classes[predicted[k]],
                "surprise": size[k],
                "margin": margin[k],
            }
            for k in order
        ]
    return {"rows": rows, "n_samples": loo.n_samples}


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
