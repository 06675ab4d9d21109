"""Figures of merit of predictions, whether leave-one-out or of new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from looms._classes import class_indices
from looms._typing import AnyArray
from looms.calibration import brier_score, log_loss
from looms.cli._threshold import threshold_of
from looms.leave_one_out import LeaveOneOut
from looms.threshold import Cost

#: Name of the mean over the classes of the area of each against the rest.
MEAN_AREA = "mean AUC, each class against the rest"


def loo_figures(loo: LeaveOneOut, task: str, threshold: float) -> dict[str, float]:
    """Figures of leave-one-out outputs; every sample counts as one."""
    if task == "regression":
        return regression_figures(loo.y, loo.outputs)
    truth, predicted = class_indices(loo.y), class_indices(loo.outputs, threshold)
    classes = np.arange(2 if loo.y.ndim == 1 else loo.y.shape[1])
    return classification_figures(truth, predicted, loo.outputs, classes)


def classification_figures(
    y: AnyArray, predicted: AnyArray, decision: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Error rate, balanced error rate and area under the ROC curve.

    Parameters
    ----------
    y, predicted : (n_samples,) labels.
    decision : (n_samples,) for two classes, the second being positive, or (n_samples, n_classes).
    classes : (n_classes,) labels in the order of the decision values.

    Returns
    -------
    figures : "error", "BER" and "AUC". BER is the mean over the classes in ``y`` of the error
        rate in the class. For several classes `MEAN_AREA` is in place of AUC, the mean of the
        areas of each class against the rest. NaN for an AUC without both kinds of samples.
    """
    wrong = y != predicted
    rates = [wrong[y == label].mean() for label in np.unique(y)]
    name = "AUC"
    if decision.ndim == 1:
        areas = [_auc(y == classes[1], decision)]
    else:
        name = MEAN_AREA
        both = [_auc(y == label, decision[:, k]) for k, label in enumerate(classes)]
        areas = [area for area in both if not np.isnan(area)] or [float("nan")]
    return {
        "error": float(wrong.mean()),
        "BER": float(np.mean(rates)),
        name: float(np.mean(areas)),
    }


def probability_figures(
    y: AnyArray, probabilities: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Log loss and Brier score.

    Parameters
    ----------
    y : (n_samples,) labels.
    probabilities : (n_samples, n_classes).
    classes : (n_classes,) labels in the order of the probabilities.

    Returns
    -------
    figures : "log loss" and "Brier", which of two classes is that of one. NaN if a label is none
        of the classes: it has no probability.
    """
    codes = np.where(y[:, None] == classes, 1.0, -1.0)
    if (codes < 0).all(axis=1).any():
        return {"log loss": float("nan"), "Brier": float("nan")}
    codes = codes[:, 1] if len(classes) == 2 else codes
    truth = LeaveOneOut(codes, np.zeros(codes.shape))
    return {
        "log loss": log_loss(truth, probabilities),
        "Brier": brier_score(truth, probabilities),
    }


def threshold_figures(loo: LeaveOneOut, threshold: float, rule: str) -> dict[str, float]:
    """What a threshold was put for, by leave-one-out; every sample counts as one.

    Parameters
    ----------
    loo : of two classes.
    threshold : above it a sample is taken for positive.
    rule : a form of ``--threshold``.

    Returns
    -------
    figures : "recall" and "precision" of the positive class (NaN where none is taken for
        positive), and "F1" or "cost" (of a row) before them where the rule is of it.
    """
    truth, taken = loo.y > 0, loo.outputs > threshold
    hits, missed = int((truth & taken).sum()), int((truth & ~taken).sum())
    alarms = int((~truth & taken).sum())
    figures = {
        "recall": hits / (hits + missed),
        "precision": hits / (hits + alarms) if hits + alarms else float("nan"),
    }
    if rule == "f1":
        return {"F1": 2 * hits / (2 * hits + alarms + missed)} | figures
    wanted = threshold_of(rule)
    if isinstance(wanted, Cost):
        total = alarms * wanted.false_positive + missed * wanted.false_negative
        return {"cost": total / len(truth)} | figures
    return figures


def regression_figures(y: AnyArray, predicted: AnyArray) -> dict[str, float]:
    """Root mean square error, mean absolute error, and the share of the variance explained."""
    residuals = y - predicted
    total = np.sum((y - y.mean()) ** 2)
    return {
        "RMSE": float(np.sqrt(np.mean(residuals**2))),
        "MAE": float(np.mean(np.abs(residuals))),
        "R2": float(1.0 - np.sum(residuals**2) / total) if total > 0 else float("nan"),
    }


def confusion(
    y: AnyArray, predicted: AnyArray, labels: list[Any]
) -> tuple[list[Any], list[list[int]]]:
    """Labels, and how often each (row) was predicted as each (column)."""
    index = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(counts, ([index[v] for v in y.tolist()], [index[v] for v in predicted.tolist()]), 1)
    return labels, counts.tolist()


def _auc(positive: AnyArray, decision: AnyArray) -> float:
    if positive.all() or not positive.any():
        return float("nan")
    return float(roc_auc_score(positive, decision))
