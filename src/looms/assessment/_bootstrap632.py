"""Bootstrap estimate .632+ of Efron & Tibshirani (1997)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from looms._advice import setting
from looms._typing import AnyArray, Array
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import Rows
from looms.estimators._metrics import Scorer, own_name, scorer_takes_weights

#: One score, or one of each resample.
S = TypeVar("S", float, Array)

#: Number of resamples that a standard error needs.
LEAST = 20


def _shares(values: AnyArray, classes: AnyArray, weight: Array) -> Array:
    """Share of each class among values."""
    return np.array([np.average(values == label, weights=weight) for label in classes])


def _error(y: AnyArray, predicted: AnyArray, weight: Array) -> float:
    # Σ_k p_k (1 − q_k), their eq. (27), for any number of classes
    p, q = (_shares(values, np.unique(y), weight) for values in (y, predicted))
    return float(np.sum(p * (1.0 - q)))


def _balanced_error(y: AnyArray, predicted: AnyArray, weight: Array) -> float:
    return float(np.mean(1.0 - _shares(predicted, np.unique(y[weight > 0]), weight)))


def _variance(values: AnyArray, weight: Array) -> float:
    mean = np.average(values, weights=weight)
    return float(np.average((values - mean) ** 2, weights=weight))


def _squared(y: AnyArray, predicted: AnyArray, weight: Array) -> float:
    # mean over all pairs (i, j) of (y_i − f_j)²
    between = np.average(y, weights=weight) - np.average(predicted, weights=weight)
    return _variance(y, weight) + _variance(predicted, weight) + float(between**2)


class KnownScore(NamedTuple):
    """Score for which .632+ is defined.

    none : error expected if the targets have nothing to do with the predictions.
    loss : loss of a row, if the error is computed from a mean over rows.
    complement : True if the score is one minus the error.
    """

    none: Callable[[AnyArray, AnyArray, Array], float]
    loss: Callable[[AnyArray, AnyArray], AnyArray] | None
    complement: bool


def _square(y: AnyArray, predicted: AnyArray) -> AnyArray:
    return (y - predicted) ** 2


#: By name.
KNOWN = {
    "balanced_accuracy": KnownScore(_balanced_error, np.not_equal, True),
    "accuracy": KnownScore(_error, np.not_equal, True),
    "roc_auc": KnownScore(lambda *parts: 0.5, None, True),
    "rmse": KnownScore(lambda *parts: float(np.sqrt(_squared(*parts))), _square, False),
    "r2": KnownScore(lambda y, f, w: _squared(y, f, w) / _variance(y, w), _square, True),
}


def error_of(name: str, score: S) -> S:
    """Error from a score, or score from an error, by name: the value or one minus the value."""
    return 1.0 - score if KNOWN[name].complement else score


def check_defined(names: Mapping[str, Scorer], y: npt.ArrayLike) -> None:
    """Raise ValueError unless .632+ is defined for all these scores of these targets."""
    if np.ndim(y) != 1:
        raise ValueError("The .632+ bootstrap takes one target; assess each by itself.")
    unknown = [
        name for name, scorer in names.items() if name not in KNOWN or own_name(scorer) != name
    ]
    if unknown:
        raise ValueError(
            f"The .632+ bootstrap needs the score of predictions without information, which is "
            f"known for {', '.join(KNOWN)} under these names, not for "
            f"{', '.join(unknown)}; give those as {setting('scoring')}, or use "
            f"{setting('method', 'shuffle')}."
        )


def no_information(
    scorers: Mapping[str, Scorer],
    y: npt.ArrayLike,
    predicted: npt.ArrayLike,
    weight: Array | None = None,
) -> dict[str, float]:
    """No-information score by name, in units of the score; weighted where the scorer is."""
    y, predicted = np.asarray(y), np.asarray(predicted)
    return {
        name: error_of(name, KNOWN[name].none(y, predicted, _weight_of(scorer, weight, len(y))))
        for name, scorer in scorers.items()
    }


def _weight_of(scorer: Scorer, weight: Array | None, n: int) -> Array:
    taken = weight is not None and scorer_takes_weights(scorer)
    return np.ones(n) if weight is None or not taken else weight


class OutOfBag(NamedTuple):
    """Leave-one-out bootstrap score and its standard error."""

    score: float
    standard_error: float


def out_of_bag(
    scorers: Mapping[str, Scorer],
    y: npt.ArrayLike,
    weight: Array | None,
    resamples: Sequence[tuple[Rows, Rows, SplitResult]],
    groups: AnyArray | None = None,
) -> dict[str, OutOfBag]:
    r"""Leave-one-out bootstrap scores by name.

    .. math:: e_1 = \frac{1}{n} \sum_i E_i, \quad
        E_i = \frac{\sum_b I_i^b \, L(y_i, f_b(x_i))}{\sum_b I_i^b},

    where :math:`I_i^b` is 1 if resample b left sample i out, else 0, and L is 1 for a wrong
    class and 0 for a right one, or the squared error. A balanced rate takes the outer mean
    within each class and then over the classes; "rmse" is its root; "r2" divides it by the
    variance of y. An area under a curve is not a mean over samples, so it is averaged over the
    resamples.

    The standard error comes from the nonparametric delta method. It is the square root of
    :math:`\sum_i D_i^2` with

    .. math:: D_i = c_i (E_i - e_1) + \sum_b (N_i^b - 1) \, t_b, \quad
        t_b = \sum_j c_j \frac{I_j^b (L_j^b - E_j)}{\sum_b I_j^b},

    where :math:`N_i^b` is how often i was drawn, and :math:`c_i` the derivative of the score with
    respect to :math:`E_i`, 1/n for a plain mean. The first term is from testing on i, the second
    from training on i. The sum is reduced by the average contribution of a limited number of
    resamples, :math:`\sum_i \mathrm{var}_b((N_i^b - 1) t_b)`, but not below the first term.

    Source: Efron & Tibshirani (1997), sections 3 and 5; samples that are in every resample do
    not count. Correction for the number of resamples: Wager, Hastie & Efron (2014), Confidence
    intervals for random forests, JMLR 15. For the area under a curve the standard error is the
    standard deviation over resamples, which tends to be large.

    Parameters
    ----------
    scorers : scorers by name; those that take weights are weighted.
    y : (n_samples,) targets.
    weight : (n_samples,) weights of the outer mean, or None.
    resamples : for each, the rows that were drawn, the other rows, and the result.
    groups : (n_samples,) group of each row, if whole groups were drawn; the groups, not the rows,
        are then independent.

    Returns
    -------
    scores : scores by name, in units of the score. The error is NaN for fewer than `LEAST`
        resamples.
    """
    y = np.asarray(y)
    n, n_resamples = len(y), len(resamples)
    groups = np.arange(n) if groups is None else groups
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    drawn = np.array([np.bincount(train, minlength=n) for train, _, _ in resamples])
    left_out = drawn == 0
    n_left_out = left_out.sum(axis=0)
    rows = np.flatnonzero(n_left_out)
    scores: dict[str, OutOfBag] = {}
    for name, scorer in scorers.items():
        values = [result.scores[name] for _, _, result in resamples]
        score = float(np.mean(values))
        error = float(np.std(values, ddof=1)) if n_resamples >= LEAST else float("nan")
        if (loss_of := KNOWN[name].loss) is not None:
            loss = np.zeros((n_resamples, n))
            for b, (_, test, result) in enumerate(resamples):
                loss[b, test] = loss_of(y[test], np.asarray(result.predictions))
            E = loss[:, rows].sum(axis=0) / n_left_out[rows]
            w = _weight_of(scorer, weight, n)[rows]
            e1, c, deviation = _summary(name, y[rows], E, w)
            score = float(error_of(name, e1))
            if n_resamples >= LEAST:
                tested = np.bincount(group[rows], c * deviation, minlength=len(first))
                t = (left_out[:, rows] * (loss[:, rows] - E)) @ (c / n_left_out[rows])
                products = (drawn[:, first] - 1.0) * t[:, None]
                noise = n_resamples * np.var(products, axis=0, ddof=1).sum()
                variance = np.sum((tested + products.sum(axis=0)) ** 2) - noise
                error = float(np.sqrt(max(variance, np.sum(tested**2))))
        scores[name] = OutOfBag(score, error)
    return scores


def _summary(name: str, y: AnyArray, E: Array, weight: Array) -> tuple[float, Array, Array]:
    """Score of the mean losses E, its derivatives, and the deviations of E from their mean."""
    if name == "balanced_accuracy":
        labels = np.unique(y[weight > 0])
        c, deviation = np.zeros(len(y)), np.zeros(len(y))
        for m in (y == label for label in labels):
            c[m] = weight[m] / weight[m].sum() / len(labels)
            deviation[m] = E[m] - np.average(E[m], weights=weight[m])
        return float(c @ E), c, deviation
    c = weight / weight.sum()
    mean = float(c @ E)
    deviation = E - mean
    if name == "rmse":
        root = float(np.sqrt(mean))
        return root, c / (2.0 * root) if root else c, deviation
    if name == "r2":
        variance = _variance(y, weight)
        squares = (y - np.average(y, weights=weight)) ** 2
        return mean / variance, c / variance, deviation - mean / variance * (squares - variance)
    return mean, c, deviation


def plus_632(name: str, apparent: float, out_of_bag: S, none: float) -> Array:
    r""".632+ estimate.

    .. math::
        \hat{R} = \frac{e_1' - \bar e}{\gamma - \bar e}, \quad e_1' = \min(e_1, \gamma), \qquad
        .368 \bar e + .632 e_1 + (e_1' - \bar e)
        \frac{.368 \cdot .632 \hat R}{1 - .368 \hat R}

    Source: Efron & Tibshirani (1997), eqs. (24), (31), (32); :math:`\bar e` is the apparent
    error, :math:`e_1` the out-of-bag error, :math:`\gamma` the no-information error rate, and
    :math:`\hat R` the relative overfitting rate, 0 unless :math:`e_1` and :math:`\gamma` exceed
    :math:`\bar e`.

    Parameters
    ----------
    name : name of the score; accuracies, AUC and R² enter as one minus the score.
    apparent : score of a fit to all rows on those rows.
    out_of_bag : score or scores of the rows outside a resample.
    none : score of predictions without information.

    Returns
    -------
    estimate : estimate in units of the score, of the shape of `out_of_bag`.

    Examples
    --------
    >>> bool(np.isclose(plus_632("accuracy", 1.0, 0.5, 0.5), 0.5))    # 1-NN on noise
    True
    """
    e, e1, gamma = (error_of(name, np.asarray(s)) for s in (apparent, out_of_bag, none))
    clipped = np.minimum(e1, gamma)
    overfits = (e1 > e) & (gamma > e)
    R = np.where(overfits, (clipped - e) / np.where(gamma > e, gamma - e, 1.0), 0.0)
    estimate = 0.368 * e + 0.632 * e1 + (clipped - e) * 0.368 * 0.632 * R / (1.0 - 0.368 * R)
    return error_of(name, np.asarray(estimate))


def standard_error_632(name: str, apparent: float, out_of_bag: OutOfBag, none: float) -> float:
    r"""Standard error of the .632+ estimate.

    The standard error of the out-of-bag error times the derivative of the .632+ error with
    respect to the out-of-bag error. The apparent error is assumed to vary in proportion, the
    no-information error not at all.

    This is the delta method of Efron & Tibshirani (1997), section 5. Scaling by the ratio of the
    two errors would ignore that the relative overfitting rate varies too, which for a nearest
    neighbor is a quarter of the standard error.

    Parameters
    ----------
    name, apparent, none : as for `plus_632`.
    out_of_bag : score and its standard error.
    """
    e, e1 = error_of(name, apparent), error_of(name, out_of_bag.score)
    if e1 == 0:
        return out_of_bag.standard_error
    step = 1e-6
    low, high = (
        plus_632(name, error_of(name, k * e), error_of(name, k * e1), none)
        for k in (1.0 - step, 1.0 + step)
    )
    return float(abs(high - low) / (2.0 * step * abs(e1)) * out_of_bag.standard_error)
