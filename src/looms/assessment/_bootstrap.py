"""The .632+ bootstrap of Efron & Tibshirani (1997)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from looms.assessment._scoring import takes_weights

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
    unknown = [name for name in names if name not in NO_INFORMATION]
    if unknown:
        raise ValueError(
            f"The .632+ bootstrap needs the score of predictions without information, which is "
            f"known for {', '.join(NO_INFORMATION)}, not for {', '.join(unknown)}; give those as "
            'scoring, or use method="shuffle".'
        )


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
