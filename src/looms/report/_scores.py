"""Figures of merit of leave-one-out outputs, with their standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from looms._typing import AnyArray, Array
from looms.report._model import Model
from looms.report._surprise import predicted_labels
from looms.report._training import labels_of

#: Name, and whether smaller is better, of each figure; the first of each task is the headline.
FIGURES = {
    "ber": ("balanced error rate", True),
    "error": ("error rate", True),
    "auc": ("area under the ROC curve", False),
    "log_loss": ("log loss of the probabilities", True),
    "brier": ("Brier score of the probabilities", True),
    "rmse": ("root mean square error", True),
    "mae": ("mean absolute error", True),
    "r2": ("R², share of variance explained", False),
}


def loo_scores(model: Model) -> dict[str, tuple[float, float]]:
    """Value and standard error of every figure of the task; every sample counts as one.

    A standard error is that of the figure over draws of as many samples, the machine
    given; NaN where it is not computed. That the machine was chosen by these outputs is
    not in it. For rates of errors it is that of (wrong + 1) / (n + 2), in each class, so
    that no error among n is no certainty.
    """
    if model.classification:
        return _of_classes(model)
    return _of_regression(model.loo.y.ravel(), model.loo.outputs.ravel())


def error_by_class(model: Model) -> tuple[AnyArray, Array]:
    """Number of samples of each class, and the share of them that are given another one."""
    labels = labels_of(model.loo.y)
    n = np.bincount(labels, minlength=len(model.classes))
    wrong = np.bincount(
        labels, weights=labels != predicted_labels(model), minlength=len(model.classes)
    )
    with np.errstate(invalid="ignore"):
        return n, np.asarray(wrong / n)


def _of_classes(model: Model) -> dict[str, tuple[float, float]]:
    n, rate = error_by_class(model)
    rate, n = rate[n > 0], n[n > 0]
    total = float(np.sum(rate * n) / n.sum())
    by_class = _variance(rate, n)
    return {
        "ber": (float(rate.mean()), float(np.sqrt(by_class.sum()) / len(n))),
        "error": (total, float(np.sqrt(_variance(total, n.sum())))),
        "auc": _areas(model.loo.y, model.loo.outputs),
    }


def _variance(rate: Any, n: Any) -> Any:
    smoothed = (rate * n + 1) / (n + 2)
    return smoothed * (1 - smoothed) / n


def _areas(y: Array, outputs: Array) -> tuple[float, float]:
    if y.ndim == 1:
        return area_under_curve(outputs[y > 0], outputs[y <= 0])
    areas = [area_under_curve(f[t > 0], f[t <= 0])[0] for t, f in zip(y.T, outputs.T, strict=True)]
    return float(np.nanmean(areas)), float("nan")


def area_under_curve(positive: Array, negative: Array) -> tuple[float, float]:
    """Area under the ROC curve of two sets of outputs, ties counting half, and its standard error.

    The standard error is that of DeLong, DeLong & Clarke-Pearson (1988), from the share of
    the other class that each output is above; O(n log n) by ranks.
    """
    m, n = len(positive), len(negative)
    if not (m and n):
        return float("nan"), float("nan")
    ranks = rankdata(np.concatenate([positive, negative]))
    above = (ranks[:m] - rankdata(positive)) / n
    below = 1.0 - (ranks[m:] - rankdata(negative)) / m
    area = float(above.mean())
    if min(m, n) < 2:
        return area, float("nan")
    return area, float(np.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))


def _of_regression(y: Array, outputs: Array) -> dict[str, tuple[float, float]]:
    residuals = y - outputs
    squares = residuals**2
    n, mean = len(y), float(squares.mean())
    rmse = float(np.sqrt(mean))
    spread = float(squares.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    total = float(np.sum((y - y.mean()) ** 2))
    absolute = np.abs(residuals)
    return {
        "rmse": (rmse, spread / (2 * rmse) if rmse > 0 else 0.0),
        "mae": (float(absolute.mean()), float(absolute.std(ddof=1) / np.sqrt(n))),
        "r2": (1.0 - n * mean / total if total > 0 else float("nan"), float("nan")),
    }


def guess_error(model: Model) -> float:
    """Error rate of always saying the largest class."""
    labels: Any = labels_of(model.loo.y)
    return 1.0 - float(np.bincount(labels).max() / len(labels))
