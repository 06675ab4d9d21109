"""Scores of held-out predictions, with standard errors.

Held-out outputs lean away from the class of their own row, and more so the larger the ridge, so
that of pure noise their error rate and the area under their ROC curve are no guess's. These scores
are of `balanced` outputs, and the area is that of pairs of rows, each pair under one machine
that has seen neither [docs/references.md, Pairs].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.calibration import class_probabilities
from looms.calibration._calibrators import Calibrator
from looms.criteria import mean_class_error, standard_error
from looms.kernels._samples import variances
from looms.lssvm._fold_pairs import balanced_residuals, fold_of_rows, residuals_without
from looms.lssvm._folds import HeldOutBlocks, Repetition
from looms.lssvm._system import targets_as_columns
from looms.selection._fold_pairs import fold_pairs, pair_auc

__all__ = ["class_scores", "number_scores"]

#: Value and standard error of each score; NaN where there is none.
Scores = dict[str, tuple[float, float]]


def class_scores(
    labels: AnyArray,
    predicted: AnyArray,
    auc: tuple[float, float],
    weight: Array,
    groups: AnyArray | None = None,
    probabilities: Array | None = None,
) -> Scores:
    """Error rates, area under the ROC curve and log loss of held-out predictions.

    Parameters
    ----------
    labels, predicted : (n,) class indices.
    auc : value and standard error.
    weight : (n,) nonnegative.
    groups : (n,) numbers, the same for rows that count as one draw; each row by itself unless
        given.
    probabilities : (n, n_classes), or None.

    Returns
    -------
    scores : "error", "ber", "auc" and, of probabilities, "log_loss". Standard errors are over
        draws of as many rows, or groups, the machine given; those of error rates are of
        (wrong + 1) / (n + 2), in each class, so that no error among n is no certainty.

    Examples
    --------
    >>> import numpy as np
    >>> labels, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0])
    >>> class_scores(labels, predicted, (0.5, 0.2), np.ones(4))["ber"][0]
    0.5
    """
    wrong = labels != predicted
    present = np.unique(labels[weight > 0])
    rates = np.array([np.average(wrong[labels == k], weights=weight[labels == k]) for k in present])
    sizes = np.array([effective_size(weight * (labels == k), groups) for k in present])
    error = np.average(wrong, weights=weight)
    size = np.asarray(effective_size(weight, groups))
    scores = {
        "error": (float(error), float(np.sqrt(_variance(error, size)))),
        "ber": (
            mean_class_error(labels, wrong, weight),
            float(np.sqrt(_variance(rates, sizes).sum()) / len(present)),
        ),
        "auc": auc,
    }
    if probabilities is not None:
        own = np.maximum(probabilities[np.arange(len(labels)), labels], np.finfo(np.float64).eps)
        scores["log_loss"] = _mean(-np.log(own), weight, groups)
    return scores


def number_scores(
    y: Array, outputs: Array, weight: Array, groups: AnyArray | None = None
) -> Scores:
    """Root mean square error, mean absolute error and R² of held-out outputs.

    Parameters
    ----------
    y, outputs : (n,) or (n, t). Of several targets the root of the mean square over all, and the
        mean of absolute error and R².
    weight, groups : as for `class_scores`.

    Returns
    -------
    scores : "rmse" and "mae" in units of the targets, and "r2", against the weighted variance.

    Examples
    --------
    >>> import numpy as np
    >>> round(number_scores(np.array([1.0, 3.0]), np.array([2.0, 3.0]), np.ones(2))["r2"][0], 3)
    0.5
    """
    y, residuals = targets_as_columns(y), targets_as_columns(y - outputs)
    mean, error = _mean(np.mean(residuals**2, axis=1), weight, groups)
    rmse = float(np.sqrt(mean))
    share, total = weight / weight.sum(), variances(y, weight)
    explained = 1.0 - (share @ residuals**2)[total > 0] / total[total > 0]
    return {
        "rmse": (rmse, error / (2 * rmse) if rmse > 0 else 0.0),
        "mae": _mean(np.mean(np.abs(residuals), axis=1), weight, groups),
        "r2": (float(explained.mean()) if len(explained) else float("nan"), float("nan")),
    }


def balanced(
    P: Array, alpha: Array, y: Array, part: Repetition, weight: Array, mu: float
) -> tuple[Array, tuple[float, float]]:
    """Balanced held-out outputs of a machine, and its leave-pair-out area with standard error.

    Parameters
    ----------
    P : (n, n) M⁻¹ − η ηᵀ / Ση, both triangles valid.
    alpha : (n,) or (n, t) dual coefficients.
    y : targets ±1, shaped like ``alpha``.
    part : rows that are held out, each by itself or with its group.
    weight : (n,) nonnegative.
    mu : regularization, for messages.

    Returns
    -------
    outputs : shaped like ``y``.
    auc : of several classes the mean over one against the rest.
    """
    Y, alpha = targets_as_columns(y), targets_as_columns(alpha)
    folds = part.folds
    single = [(g,) for g in range(len(folds))]
    e = HeldOutBlocks(P.diagonal(), (part,), lambda G: P[np.ix_(G, G)], mu).solve(alpha)[0]
    residuals = balanced_residuals(residuals_without(P, alpha, folds, single, mu), Y, folds, weight)
    pairs, outputs = fold_pairs(Y, fold_of_rows(folds, len(Y))), []
    for block, of_pairs in residuals_without(P, alpha, folds, pairs, mu):
        for (g, h), column in zip(pairs[block], of_pairs.transpose(1, 0, 2), strict=True):
            rows = np.concatenate([folds[g], folds[h]])
            outputs.append(Y[rows] - column[rows])
    auc = pair_auc(Y, Y - e, folds, pairs, outputs, weight)
    return (Y - residuals).reshape(y.shape), auc


def folded(
    P: Array, alpha: Array, y: Array, parts: Sequence[Repetition], weight: Array, mu: float
) -> tuple[Array, tuple[float, float]]:
    """Held-out outputs of large folds, and the area under the curve within folds with its error.

    Rows of one fold are compared under one machine that has seen neither. Arguments as for
    `balanced`; both are means over repetitions, in some of which a row may be in no fold.
    """
    Y, alpha = targets_as_columns(y), targets_as_columns(alpha)
    blocks = HeldOutBlocks(P.diagonal(), parts, lambda G: P[np.ix_(G, G)], mu)
    outputs = blocks.outputs(Y, blocks.solve(alpha))
    areas = [
        pair_auc(Y, f, part.folds, [], [], weight) for part, f in zip(parts, outputs, strict=True)
    ]
    area, error = np.nanmean(areas, axis=0)
    return np.nanmean(outputs, axis=0).reshape(y.shape), (float(area), float(error))


def decided(
    outputs: Array, threshold: float, calibrator: Calibrator | None
) -> tuple[AnyArray, Array | None]:
    """Class indices of outputs above a threshold, and their probabilities, if any."""
    probabilities = None if calibrator is None else class_probabilities(calibrator, outputs)
    return class_indices(outputs, threshold), probabilities


def effective_size(weight: Array, groups: AnyArray | None = None) -> float:
    """Number of samples of one weight that say as much: (Σ w)² / Σ W², W by group."""
    return float((weight.sum() / standard_error(weight, groups)) ** 2)


def _variance(rate: Array, n: Array) -> Array:
    smoothed = (rate * n + 1) / (n + 2)
    return np.asarray(smoothed * (1 - smoothed) / n)


def _mean(values: Array, weight: Array, groups: AnyArray | None) -> tuple[float, float]:
    """Weighted mean and its standard error; that of unit weights is s / √n."""
    share, n = weight / weight.sum(), effective_size(weight, groups)
    mean = float(share @ values)
    freedom = n / (n - 1) if n > 1 + 1e-9 else np.nan
    return mean, standard_error(np.sqrt(freedom) * share * (values - mean), groups)
