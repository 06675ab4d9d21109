"""The .632+ bootstrap of Efron & Tibshirani (1997)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from looms._typing import Array
from looms.assessment._scoring import OWN, takes_weights

#: Scores that are one minus an error, and the error.
COMPLEMENTS = frozenset({"auc", "roc_auc", "accuracy", "balanced_accuracy", "r2"})


def _shares(values: Any, classes: Any, weight: Any) -> Any:
    """Share of each class among values."""
    return np.array([np.average(values == label, weights=weight) for label in classes])


def _error(y: Any, predicted: Any, weight: Any) -> float:
    # Σ_k p_k (1 − q_k), their eq. (27), for any number of classes
    classes = np.unique(y)
    p, q = (_shares(values, classes, weight) for values in (y, predicted))
    return float(np.sum(p * (1.0 - q)))


def _balanced_error(y: Any, predicted: Any, weight: Any) -> float:
    q = _shares(predicted, np.unique(y if weight is None else y[weight > 0]), weight)
    return float(np.mean(1.0 - q))


def _variance(values: Any, weight: Any) -> float:
    mean = np.average(values, weights=weight)
    return float(np.average((values - mean) ** 2, weights=weight))


def _squared(y: Any, predicted: Any, weight: Any) -> float:
    # mean over all pairs (i, j) of (y_i − f_j)²
    between = np.average(y, weights=weight) - np.average(predicted, weights=weight)
    return _variance(y, weight) + _variance(predicted, weight) + float(between**2)


#: Error expected when targets have nothing to do with predictions, by the score's name.
NO_INFORMATION: dict[str, Callable[[Any, Any, Any], float]] = {
    "ber": _balanced_error,
    "balanced_accuracy": _balanced_error,
    "error": _error,
    "accuracy": _error,
    "auc": lambda y, predicted, weight: 0.5,
    "roc_auc": lambda y, predicted, weight: 0.5,
    "rmse": lambda y, predicted, weight: float(np.sqrt(_squared(y, predicted, weight))),
    "r2": lambda y, predicted, weight: _squared(y, predicted, weight) / _variance(y, weight),
}


def check_defined(names: Mapping[str, Any], y: Any) -> None:
    """ValueError unless .632+ is defined for all these scores of these targets."""
    if np.ndim(y) != 1:
        raise ValueError("The .632+ bootstrap takes one target; assess each by itself.")
    unknown = [name for name, scorer in names.items() if not _is_known(name, scorer)]
    if unknown:
        raise ValueError(
            f"The .632+ bootstrap needs the score of predictions without information, which is "
            f"known for {', '.join(NO_INFORMATION)} under these names, not for "
            f'{", ".join(unknown)}; give those as scoring, or use method="shuffle".'
        )


def _is_known(name: str, scorer: Any) -> bool:
    """Whether a scorer is what its name says, and .632+ is defined for that."""
    if name not in NO_INFORMATION:
        return False
    known = OWN.get(name) or get_scorer(name)
    parts = ("_score_func", "_sign", "_kwargs")
    return all(getattr(scorer, part, None) == getattr(known, part) for part in parts)


def no_information(
    scorers: Mapping[str, Any], y: Any, predicted: Any, weight: Any = None
) -> dict[str, float]:
    """No-information score by name, in units of the score; weighted where the scorer is."""
    y, predicted = np.asarray(y), np.asarray(predicted)
    weights = {
        n: weight if weight is not None and takes_weights(s) else None for n, s in scorers.items()
    }
    rates = {name: NO_INFORMATION[name](y, predicted, weights[name]) for name in scorers}
    return {name: 1.0 - r if name in COMPLEMENTS else r for name, r in rates.items()}


def _mean_over_classes(y: Any, loss: Array, weight: Array) -> float:
    members = [y == label for label in np.unique(y[weight > 0])]
    return float(np.mean([np.average(loss[m], weights=weight[m]) for m in members]))


def _mean(y: Any, loss: Array, weight: Array) -> float:
    return float(np.average(loss, weights=weight))


#: Error that losses of samples make up, by the score's name: of wrong classes, then of squares.
_OF_WRONG = {
    "ber": _mean_over_classes,
    "balanced_accuracy": _mean_over_classes,
    "error": _mean,
    "accuracy": _mean,
}
_OF_SQUARES: dict[str, Callable[[Any, Array, Array], float]] = {
    "rmse": lambda y, loss, weight: float(np.sqrt(_mean(y, loss, weight))),
    "r2": lambda y, loss, weight: _mean(y, loss, weight) / _variance(y, weight),
}


def out_of_bag(
    scorers: Mapping[str, Any],
    y: Any,
    weight: Array | None,
    resamples: Iterable[tuple[Any, Any, Mapping[str, float]]],
) -> dict[str, float]:
    r"""Leave-one-out bootstrap score by name: the samples have one vote each.

    .. math:: e_1 = \frac{1}{n} \sum_i
        \frac{\sum_b I_i^b \, L(y_i, f_b(x_i))}{\sum_b I_i^b},

    :math:`I_i^b` is 1 where resample b left sample i out, else 0; L is 1 for a wrong class
    and 0 for a right one, or the squared error. Of a balanced rate the outer mean is taken
    over each class, and then over the classes; of "rmse" its root; of "r2" it is divided by
    the variance of y. An area under a curve is no mean over samples: it is the mean over the
    resamples.

    Source: Efron & Tibshirani (1997), section 3; samples that no resample left out do not
    count.

    Parameters
    ----------
    scorers : by name; those that take weights are weighted.
    y : (n_samples,) targets.
    weight : (n_samples,) weights of the outer mean, or None.
    resamples : of each, the rows that it left out, their predictions, and their scores.

    Returns
    -------
    scores : by name, in units of the score.
    """
    y, resamples = np.asarray(y), list(resamples)
    scores: dict[str, float] = {}
    for name, scorer in scorers.items():
        error = _OF_WRONG.get(name) or _OF_SQUARES.get(name)
        if error is None:
            scores[name] = float(np.mean([each[name] for _, _, each in resamples]))
            continue
        total, times = np.zeros(len(y)), np.zeros(len(y))
        for rows, predicted, _ in resamples:
            f = np.asarray(predicted)
            total[rows] += y[rows] != f if name in _OF_WRONG else (y[rows] - f) ** 2
            times[rows] += 1.0
        left = times > 0
        w = np.ones(len(y)) if weight is None or not takes_weights(scorer) else weight
        e1 = error(y[left], total[left] / times[left], w[left])
        scores[name] = 1.0 - e1 if name in COMPLEMENTS else e1
    return scores


def plus_632(name: str, apparent: float, out_of_bag: Any, none: float) -> Any:
    r"""The .632+ estimate.

    .. math::
        \hat{R} = \frac{e_1' - \bar e}{\gamma - \bar e}, \quad e_1' = \min(e_1, \gamma), \qquad
        .368 \bar e + .632 e_1 + (e_1' - \bar e)
        \frac{.368 \cdot .632 \hat R}{1 - .368 \hat R}

    Source: Efron & Tibshirani (1997), eqs. (24), (31), (32); :math:`\bar e` is the
    apparent error, :math:`e_1` the out-of-bag error, :math:`\gamma` the error rate
    without information, and :math:`\hat R`, 0 unless :math:`e_1` and :math:`\gamma` exceed
    :math:`\bar e`, the relative rate of overfitting.

    Parameters
    ----------
    name : of the score; accuracies, AUC and R² enter as one minus themselves.
    apparent : score of the training data of a fit to all rows.
    out_of_bag : score or scores of the rows that a resample left out.
    none : score of predictions without information.

    Returns
    -------
    estimate : in units of the score, of the shape of `out_of_bag`.

    Examples
    --------
    >>> bool(np.isclose(plus_632("error", 0.0, 0.5, 0.5), 0.5))    # 1-NN on noise
    True
    """
    flip = name in COMPLEMENTS
    e, e1, gamma = (
        1.0 - np.asarray(s) if flip else np.asarray(s) for s in (apparent, out_of_bag, none)
    )
    clipped = np.minimum(e1, gamma)
    overfits = (e1 > e) & (gamma > e)
    R = np.where(overfits, (clipped - e) / np.where(gamma > e, gamma - e, 1.0), 0.0)
    estimate = 0.368 * e + 0.632 * e1 + (clipped - e) * 0.368 * 0.632 * R / (1.0 - 0.368 * R)
    return 1.0 - estimate if flip else estimate
