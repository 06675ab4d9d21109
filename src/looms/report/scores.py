"""Scores: of held-out predictions with standard errors, of outer splits, and the headline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from looms._scores import SCORES, ValuesAndErrors, mean_and_error
from looms._typing import AnyArray, Array
from looms.assessment._result import Assessment
from looms.calibration._scores import brier_score
from looms.criteria import standard_error
from looms.estimators._warnings import settings_for_rare_classes
from looms.folds import left_out_with
from looms.kernels._samples import variances
from looms.lssvm._system import targets_as_columns
from looms.report.model import Reported
from looms.report.text import unit_words

#: Most classes for which there is a confusion matrix.
MOST_CONFUSED = 12
#: A class is seldom predicted if its predictions are fewer than this share of its samples, of
#: which there are at least so many.
_SELDOM, _FEWEST_OF_SELDOM = 0.6, 5
#: Two classes are unequal if one has more than so many times the rows of the other.
_UNEQUAL = 2
#: A model with at most this fraction of the errors of the baseline needs no remedy.
_GOOD = 0.5


def recall_by_class(model: Reported) -> tuple[AnyArray, Array]:
    """Number of samples of positive weight in each class, and the share that is found."""
    k, weight = len(model.classes), model.scored(model.fitted.rows.weight)
    labels = model.scored(model.codes)
    right = np.bincount(labels, weights=weight * (1.0 - model.decisions.wrong), minlength=k)
    mass = np.bincount(labels, weights=weight, minlength=k)
    with np.errstate(invalid="ignore"):
        return np.bincount(labels, minlength=k), np.asarray(right / mass)


def seldom_predicted(model: Reported) -> tuple[int, int, int] | None:
    """The class predicted most seldom for its size, the number of predictions, and its size.

    None if no class is predicted much less often than it occurs, by more than twice the standard
    error if errors fell evenly on both sides: √(missed + false), from sums over samples that are
    held out together.
    """
    k, predicted = len(model.classes), model.decisions.predicted
    labels = model.scored(model.codes)
    n, n_predicted = (np.bincount(codes, minlength=k) for codes in (labels, predicted))
    together = model.scored(model.fitted.units.scored_together)
    missing = (labels == np.arange(k)[:, None]) - 1.0 * (predicted == np.arange(k)[:, None])
    error = np.array([standard_error(each, together) for each in missing])
    seldom = (n_predicted < _SELDOM * n) & (n - n_predicted > 2 * error)
    seldom &= n >= _FEWEST_OF_SELDOM
    if not seldom.any():
        return None
    worst = int(np.where(seldom, n_predicted / np.maximum(n, 1), np.inf).argmin())
    return worst, int(n_predicted[worst]), int(n[worst])


def is_good(model: Reported) -> bool:
    """True if the held-out errors are so far below those of the baseline that no remedy is due."""
    scores, baselines = model.scores, model.scores.baselines
    if model.outcome.decides:
        return 1 - scores["accuracy"] <= _GOOD * (1 - baselines["accuracy"])
    return scores["rmse"] <= _GOOD * baselines["rmse"]


def gain_over_mean(model: Reported) -> tuple[float, float]:
    """Share by which squared errors are smaller than those of the mean, and its standard error.

    The mean of the targets leaves out the row too, and those held out with it. Of several targets,
    the mean of the shares.
    """
    own, units, held_out = model.fitted.rows.own, model.fitted.units, model.scores.predictions
    y, residuals = (own(targets_as_columns(v)) for v in (held_out.y, held_out.residuals))
    weight, groups = own(model.fitted.rows.weight), own(units.scored_together)
    share = (weight / weight.sum())[:, None]
    of_others = []
    for part in units.codes[:, model.fitted.rows.train]:
        number = left_out_with(part)
        together = np.zeros((number.max() + 1, 1 + y.shape[1]))
        np.add.at(together, number[number >= 0], np.hstack([share, share * y])[number >= 0])
        mean = (share.T @ y - together[number, 1:]) / (1 - together[number, :1])
        of_others.append(np.where(part[:, None] >= 0, mean, np.nan))  # none where a row stays
    varies = variances(y, weight) > 0
    if not varies.any():
        return 0.0, 0.0
    weight = own(held_out.sample_weight)  # of rows that count
    share = (weight / weight.sum())[:, None]
    of_mean = np.nanmean((y - of_others) ** 2, axis=0)[:, varies]
    of_model, total = residuals[:, varies] ** 2, (share * of_mean).sum(axis=0)
    left = (share * of_model).sum(axis=0) / total
    # Contributions to 1 − Σ w e² / Σ w d², to first order.
    moved = ((left * of_mean - of_model) / total).mean(axis=1)
    return float((1 - left).mean()), mean_and_error(moved, weight, groups)[1]


def gain_over_shares(model: Reported) -> tuple[float, float]:
    """How much smaller the log loss is than that of the shares of the classes, and its standard
    error, from the differences in each row."""
    losses = model.decisions.losses
    assert losses is not None  # with probabilities
    labels, weight = map(model.scored, (model.codes, model.fitted.rows.weight))
    shares = np.bincount(labels, weights=weight) / weight.sum()
    gains = -np.log(shares[labels]) - losses
    return mean_and_error(gains, weight, model.scored(model.fitted.units.scored_together))


def _score(key: str, value: float, error: float, baseline: float) -> dict[str, Any]:
    return {
        "key": key,
        "name": SCORES[key].name,
        "value": value,
        "standard_error": error,
        "baseline": baseline,
        "smaller_is_better": SCORES[key].smaller_is_better,
    }


def brier(model: Reported, probabilities: Array) -> dict[str, Any]:
    """Brier score of held-out probabilities, as one of the scores."""
    value = brier_score(model.scores.predictions, probabilities)
    return _score("brier", value, float("nan"), model.scores._baselines["brier"])


def held_out(model: Reported) -> dict[str, Any]:
    """Scores of held-out predictions, how these were made, and the confusion matrix."""
    baselines = model.scores.baselines
    scores = [_score(key, *pair, baselines[key]) for key, pair in scores_in_order(model).items()]
    confusion = None
    if model.outcome.decides and len(model.classes) <= MOST_CONFUSED:
        order = model.outcome.in_order.tolist()
        weight = model.scored(model.fitted.rows.weight)
        weighted = bool(np.ptp(weight) > 0)
        counts = confusion_matrix(
            model.scored(model.codes),
            model.decisions.predicted,
            labels=order,
            sample_weight=weight if weighted else None,
        )
        labels = [model.classes[k] for k in order]
        confusion = {"labels": labels, "counts": counts.tolist(), "weighted": weighted}
    return {
        "scores": scores,
        "confusion": confusion,
        "method": model.method,
        "unit": model.unit,
        "nested": model.nested is not None,
        "repeated": model.repeated_without(unit_words(model.unit)) if model.nested else None,
    }


def _name(key: str) -> str:
    return SCORES[key].name if key in SCORES else key


def outer(assessment: Assessment) -> dict[str, Any]:
    """Scores of outer splits."""
    names = ("value", "standard_error", "low", "high", "loo", "optimism_error", "smaller_is_better")
    scores = []
    for key in assessment.scores:
        estimate = assessment.estimate(key)
        row = {"key": key, "name": _name(key)}
        row |= {name: getattr(estimate, name) for name in names}
        scores.append(row | {"optimism": estimate.signed_optimism})
    return {
        "method": assessment.method,
        "n_splits": len(assessment.splits),
        "n_failed": len(assessment.failures),
        "estimator": assessment.estimator,
        "groups_kept_together": assessment.grouped,
        "scores": scores,
    }


def judged_by_risk(model: Reported) -> bool:
    """True for two unequal classes with probabilities, of which the more probable one is predicted.

    Seldom is a rare class the more probable one, so that the balanced accuracy is near ½ even where
    the probabilities are right.
    """
    if len(model.classes) != 2 or "log_loss" not in model.scores:
        return False
    sizes = recall_by_class(model)[0]
    settings = settings_for_rare_classes(model.outcome, 2)
    return bool(settings) and sizes.max() > _UNEQUAL * sizes.min()


def headline_key(model: Reported) -> str:
    """Key of the score on top."""
    if judged_by_risk(model):
        return "log_loss"
    return str(model.outcome.headline)


def scores_in_order(model: Reported) -> ValuesAndErrors:
    """The scores with their standard errors; log loss and area come first where they judge."""
    scores = model.scores.with_errors
    first = ("log_loss", "roc_auc") if judged_by_risk(model) else ()
    return {key: scores[key] for key in first} | scores


def quotes_splits(model: Reported, assessment: Assessment | None) -> bool:
    """True if the scores to report are those of outer splits, not of the model of all samples."""
    if assessment is None or not model.nested:
        return assessment is not None
    key = headline_key(model)
    same = model.outcome.decides or model.held_out.y.ndim == 1
    if not same or key not in assessment.scores:
        return True
    return not model.scores.with_errors[key][1] < assessment.estimate(key).standard_error


def headline(model: Reported, assessment: Assessment | None) -> dict[str, Any]:
    """The score on top: from outer splits if any, otherwise from held-out predictions.

    Of outer splits and a choice repeated without each fold, the one of smaller standard error. A
    log loss has the area under the ROC curve beside it.
    """
    key = headline_key(model)
    scores = model.scores.with_errors
    classes = model.outcome.decides
    baseline: float | None = model.scores.baselines[key]
    from_splits = quotes_splits(model, assessment)
    if assessment is None or not from_splits:
        value, error = scores[key]
        most = 1.0 if key == "balanced_accuracy" else np.inf
        low: float | None = max(0.0, value - 2.0 * error)
        high: float | None = min(most, value + 2.0 * error)
        loo: float | None = value
        area = scores.get("roc_auc", (None, None))[0]
    else:
        # Of several targets the splits have the mean of the errors, not the root of their squares.
        same = classes or model.held_out.y.ndim == 1
        headline = key
        key = key if key in assessment.scores else assessment.scores[0]
        estimate = assessment.estimate(key)
        value, low, high = estimate.value, estimate.low, estimate.high
        loo = scores.get(key, (None, None))[0] if same else estimate.loo
        baseline = baseline if same and key == headline else None
        known = "roc_auc" in assessment.scores
        area = assessment.estimate("roc_auc").value if known else None
    return {
        "key": key,
        "name": _name(key),
        "value": value,
        "low": low,
        "high": high,
        "optimistic": assessment is None and model.scores.optimistic,
        "outer": from_splits,
        "loo": loo,
        "baseline": baseline,
        "roc_auc": area if key == "log_loss" else None,
    }
