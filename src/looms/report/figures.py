"""Figures of merit: leave-one-out with standard errors, outer splits, and the headline."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.metrics import confusion_matrix

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.assessment._result import Assessment
from looms.calibration import brier_score, log_loss
from looms.criteria import mean_class_error, standard_error
from looms.kernels._samples import variances
from looms.report.model import Model, predicted_labels
from looms.report.text import number, percent, signed

#: Classes up to which there is a table of confusion.
MOST_CONFUSED = 12
#: A class predicted less often than this share of its samples is seldom so, if it has so many.
_SELDOM, _FEWEST_OF_SELDOM = 0.6, 5


class Figure(NamedTuple):
    """Name, direction and writing of a figure: in per cent, with three decimals, or as it is."""

    name: str
    smaller_is_better: bool = True
    unit: Literal["%", ".3f", ""] = ""


FIGURES = {
    "ber": Figure("balanced error rate", unit="%"),
    "error": Figure("error rate", unit="%"),
    "auc": Figure("area under the ROC curve", False, ".3f"),
    "log_loss": Figure("log loss of the probabilities"),
    "brier": Figure("Brier score of the probabilities"),
    "rmse": Figure("root mean square error"),
    "mae": Figure("mean absolute error"),
    "r2": Figure("R², share of variance explained", False, ".3f"),
}


def figure(value: float | None, key: str, digits: int = 4) -> str:
    """A figure of merit as text; any that is not in `FIGURES` by `number`."""
    unit = FIGURES[key].unit if key in FIGURES else ""
    if value is None or not unit:
        return number(value, digits)
    return percent(value) if unit == "%" else signed(f"{value:{unit}}")


def plus_minus(value: float | None, key: str) -> str:
    """The standard error of a figure as text, in its units, two digits."""
    if value is None:
        return ""
    is_rate = key in FIGURES and FIGURES[key].unit == "%"
    return f"± {100 * value:.1f}" if is_rate else f"± {number(value, 2)}"


def loo_scores(model: Model) -> dict[str, tuple[float, float]]:
    """Value and standard error of every figure of the task.

    Samples count by their weight, those of weight zero not at all. A standard error is that
    of the figure over draws of as many samples, the machine given; NaN where it is not
    computed. That the machine was chosen by these outputs is not in it. Samples held out together
    are drawn together. For rates of errors it is that of (wrong + 1) / (n + 2), in each class, so
    that no error among n is no certainty; n is (Σ w)² / Σ W², with W the weight of samples held
    out together. Of several targets the root of the mean square over all, and the mean of MAE
    and R².
    """
    if model.classification:
        labels, weight, groups = class_indices(model.loo.y), model.loo.sample_weight, model.groups
        wrong = labels != predicted_labels(model)
        n, rates = error_by_class(model)
        present = np.flatnonzero(n)
        sizes = np.array([effective_size(weight * (labels == k), groups) for k in present])
        error = np.sqrt(_variance(rates[present], sizes).sum()) / len(present)
        rate, size = weight @ wrong / weight.sum(), np.asarray(effective_size(weight, groups))
        return {
            "ber": (mean_class_error(labels, wrong, weight), float(error)),
            "error": (float(rate), float(np.sqrt(_variance(rate, size)))),
            "auc": _areas(model),
        }
    y, residuals, weight, groups = _by_target(model)
    mean, error = _mean(np.mean(residuals**2, axis=1), weight, groups)
    rmse = float(np.sqrt(mean))
    share, total = weight / weight.sum(), variances(y, weight)
    explained = 1.0 - (share @ residuals**2)[total > 0] / total[total > 0]
    return {
        "rmse": (rmse, error / (2 * rmse) if rmse > 0 else 0.0),
        "mae": _mean(np.mean(np.abs(residuals), axis=1), weight, groups),
        "r2": (float(explained.mean()) if len(explained) else float("nan"), float("nan")),
    }


def error_by_class(model: Model) -> tuple[AnyArray, Array]:
    """Number of samples with a weight of each class, and the share of them given another one."""
    labels = class_indices(model.loo.y)
    weight, k = model.loo.sample_weight, len(model.classes)
    wrong = np.bincount(labels, weights=weight * (labels != predicted_labels(model)), minlength=k)
    mass = np.bincount(labels, weights=weight, minlength=k)
    with np.errstate(invalid="ignore"):
        return np.bincount(labels[model.has_weight], minlength=k), np.asarray(wrong / mass)


def seldom_predicted(model: Model) -> tuple[int, int, int] | None:
    """The class predicted most seldom for what there is of it, its number predicted, and there.

    None if there is no class predicted much less often than it is there, by more than twice the
    standard error if errors fell on either side alike: √(missed + false), of samples held out
    together by their sum.
    """
    mask, groups, k = model.has_weight, model.groups, len(model.classes)
    labels, predicted = class_indices(model.loo.y)[mask], predicted_labels(model)[mask]
    n, n_predicted = (np.bincount(codes, minlength=k) for codes in (labels, predicted))
    together = None if groups is None else groups[mask]
    missing = (labels == np.arange(k)[:, None]) - 1.0 * (predicted == np.arange(k)[:, None])
    error = np.array([standard_error(each, together) for each in missing])
    seldom = (n_predicted < _SELDOM * n) & (n - n_predicted > 2 * error)
    seldom &= n >= _FEWEST_OF_SELDOM
    if not seldom.any():
        return None
    worst = int(np.where(seldom, n_predicted / np.maximum(n, 1), np.inf).argmin())
    return worst, int(n_predicted[worst]), int(n[worst])


def effective_size(weight: Array, groups: AnyArray | None = None) -> float:
    """Number of samples of one weight that say as much: (Σ w)² / Σ W², W by group."""
    return float((weight.sum() / standard_error(weight, groups)) ** 2)


def _variance(rate: Array, n: Array) -> Array:
    smoothed = (rate * n + 1) / (n + 2)
    return np.asarray(smoothed * (1 - smoothed) / n)


def _areas(model: Model) -> tuple[float, float]:
    y, outputs, weight = model.loo.y, model.loo.outputs, model.loo.sample_weight
    if y.ndim == 1:
        return area_under_curve(outputs, y > 0, weight, model.groups)
    columns = zip(y.T, outputs.T, strict=True)
    areas = [area_under_curve(f, t > 0, weight)[0] for t, f in columns]
    return float(np.nanmean(areas)), float("nan")


def area_under_curve(
    outputs: Array, positive: AnyArray, weight: Array, groups: AnyArray | None = None
) -> tuple[float, float]:
    """Area under the ROC curve of outputs, ties counting half, and its standard error.

    The standard error is that of DeLong, DeLong & Clarke-Pearson (1988), from the share of
    the other class that each output is above; O(n log n) by sorting.
    """
    above, below = positive & (weight > 0), ~positive & (weight > 0)
    if not (above.any() and below.any()):
        return float("nan"), float("nan")
    f, g, v, w = outputs[above], outputs[below], weight[above], weight[below]
    wins, losses = _share_under(f, g, w), 1.0 - _share_under(g, f, v)
    deviations = np.zeros(len(outputs))
    for members, values, part in ((above, wins, v), (below, losses, w)):
        together = None if groups is None else groups[members]
        area, deviations[members] = _mean_and_deviations(values, part, together)
    return area, standard_error(deviations, groups)


def _share_under(values: Array, others: Array, weight: Array) -> Array:
    """Weight of the ``others`` under each value, ties by half, over their total."""
    order = np.argsort(others, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    ends = (np.searchsorted(others[order], values, side) for side in ("left", "right"))
    return np.asarray(sum(total[end] for end in ends) / (2 * total[-1]))


def _mean(values: Array, weight: Array, groups: AnyArray | None) -> tuple[float, float]:
    """Weighted mean and its standard error; that of unit weights is s / √n."""
    mean, deviations = _mean_and_deviations(values, weight, groups)
    return mean, standard_error(deviations, groups)


def _mean_and_deviations(
    values: Array, weight: Array, groups: AnyArray | None
) -> tuple[float, Array]:
    share, n = weight / weight.sum(), effective_size(weight, groups)
    mean = float(share @ values)
    freedom = n / (n - 1) if n > 1 + 1e-9 else np.nan
    return mean, np.sqrt(freedom) * share * (values - mean)


def gain_over_mean(model: Model) -> tuple[float, float]:
    """Mean by which squared leave-one-out residuals are below those of the mean, and its error.

    In units of the variance of the targets, over which it is a mean; the mean of the targets
    leaves out the sample, and those held out with it, too.
    """
    y, residuals, weight, groups = _by_target(model)
    number = np.arange(len(y)) if groups is None else groups
    share = (weight / weight.sum())[:, None]
    held_out = np.zeros((number.max() + 1, 1 + y.shape[1]))
    np.add.at(held_out, number, np.hstack([share, share * y]))
    of_others = (share.T @ y - held_out[number, 1:]) / (1 - held_out[number, :1])
    spread = variances(y, weight)
    gain = ((y - of_others) ** 2 - residuals**2)[:, spread > 0] / spread[spread > 0]
    return _mean(gain.mean(axis=1), weight, groups) if gain.size else (0.0, 0.0)


def _by_target(model: Model) -> tuple[Array, Array, Array, AnyArray | None]:
    """Targets and residuals, (n, n_targets), weights and groups of the samples with a weight."""
    loo, mask, groups = model.loo, model.has_weight, model.groups
    y, residuals = (v.reshape(len(mask), -1)[mask] for v in (loo.y, loo.residuals))
    return y, residuals, loo.sample_weight[mask], None if groups is None else groups[mask]


def guess_error(model: Model) -> float:
    """Error rate of always saying the largest class."""
    weight = model.loo.sample_weight
    return 1.0 - float(np.bincount(class_indices(model.loo.y), weights=weight).max() / weight.sum())


def guess_rmse(model: Model) -> float:
    """Root mean square error of the means of the targets."""
    return float(
        np.sqrt(
            variances(model.loo.y.reshape(model.loo.n_samples, -1), model.loo.sample_weight).mean()
        )
    )


def leave_one_out(model: Model, probabilities: Array | None) -> dict[str, Any]:
    """Figures of the leave-one-out outputs and of their probabilities, and the confusion."""
    scores, loo, unknown = loo_scores(model), model.loo, float("nan")
    if probabilities is not None:
        scores["log_loss"] = log_loss(loo, probabilities), unknown
        scores["brier"] = brier_score(loo, probabilities), unknown
    figures = [
        {
            "key": key,
            "name": FIGURES[key].name,
            "value": value,
            "standard_error": spread,
            "smaller_is_better": FIGURES[key].smaller_is_better,
        }
        for key, (value, spread) in scores.items()
    ]
    confusion = None
    if model.classification and len(model.classes) <= MOST_CONFUSED:
        mask = model.has_weight
        weighted = bool(np.ptp(loo.sample_weight[mask]) > 0)
        counts = confusion_matrix(
            class_indices(loo.y),
            predicted_labels(model),
            labels=range(len(model.classes)),
            sample_weight=loo.sample_weight if weighted else mask.astype(int),
        )
        confusion = {"labels": model.classes, "counts": counts.tolist(), "weighted": weighted}
    return {"figures": figures, "confusion": confusion}


def _name(key: str) -> str:
    return FIGURES[key].name if key in FIGURES else key


def outer(assessment: Assessment) -> dict[str, Any]:
    """Scores of outer splits."""
    names = ("value", "standard_error", "low", "high", "loo", "optimism_error", "smaller_is_better")
    scores = []
    for key in assessment.scores:
        figures = assessment.figures(key)
        row = {"key": key, "name": _name(key)}
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
    guess: float | None = 1 - 1 / len(model.classes) if model.classification else guess_rmse(model)
    if assessment is None:
        value, error = scores[key]
        most = 1.0 if model.classification else np.inf
        low: float | None = max(0.0, value - 1.96 * error)
        high: float | None = min(most, value + 1.96 * error)
        loo: float | None = value
    else:
        # Of several targets the splits have the mean of the errors, not the root of their squares.
        same = model.classification or model.loo.y.ndim == 1
        headline = key
        key = key if key in assessment.scores else assessment.scores[0]
        figures = assessment.figures(key)
        value, low, high = figures.value, figures.low, figures.high
        loo = scores.get(key, (None, None))[0] if same else figures.loo
        guess = guess if same and key == headline else None
    return {
        "key": key,
        "name": _name(key),
        "value": value,
        "low": low,
        "high": high,
        "honest": assessment is not None,
        "loo": loo,
        "guess": guess,
    }
