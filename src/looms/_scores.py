"""Scores of outputs against targets, with standard errors; from arrays alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from looms._classes import tie_width
from looms._typing import AnyArray, Array
from looms._words import estimate_text
from looms.criteria import mean_class_error, standard_error
from looms.kernels._samples import variances

#: A sum of deviations that is zero but for rounding.
_NOTHING = 1e-12
#: Scores that count rows.
_COUNTS = {"accuracy", "balanced_accuracy"}
#: Value and standard error of each score; NaN where there is none.
ValuesAndErrors = dict[str, tuple[float, float]]


class Shown(NamedTuple):
    """Name of a score for readers, its direction, and its format.

    Scores are better when greater; losses and errors when smaller. The format is in percent, with
    three decimals, or in significant digits.
    """

    name: str
    smaller_is_better: bool = False
    unit: Literal["%", ".3f", ""] = ""


#: Every score by its key, which is that of scikit-learn's scorer where one exists.
SCORES = {
    "accuracy": Shown("accuracy", unit="%"),
    "balanced_accuracy": Shown("balanced accuracy", unit="%"),
    "roc_auc": Shown("ROC AUC", unit=".3f"),
    "log_loss": Shown("log loss", smaller_is_better=True),
    "brier": Shown("Brier score", smaller_is_better=True),
    "mean_rank_error": Shown("mean rank error", smaller_is_better=True),
    "quadratic_kappa": Shown("quadratic kappa", unit=".3f"),
    "ranked_probability": Shown("ranked probability score", smaller_is_better=True),
    "rmse": Shown("RMSE", smaller_is_better=True),
    "mae": Shown("MAE", smaller_is_better=True),
    "r2": Shown("R²", unit=".3f"),
}


def scale_of(key: str, value: float) -> float:
    """The size that decides how many decimals of a score are shown: 1 for shares, areas and R²."""
    return 1.0 if key in SCORES and SCORES[key].unit else value


def range_of(key: str) -> tuple[float, float]:
    """Least and largest possible value of a score; infinite if there is none, or none is known."""
    if key not in SCORES:
        return -np.inf, np.inf
    if SCORES[key].smaller_is_better:
        return 0.0, np.inf
    return (0.0 if key in (*_COUNTS, "roc_auc") else -np.inf), 1.0


def intervals_of(scores: ValuesAndErrors, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Confidence interval of each score, value ± z s.e. within its range.

    Examples
    --------
    >>> intervals_of({"accuracy": (0.9, 0.1), "r2": (0.1, 0.1)})
    {'accuracy': (0.704..., 1.0), 'r2': (-0.095..., 0.295...)}
    """
    z = float(ndtri((1.0 + level) / 2.0))
    return {
        name: tuple(np.clip([value - z * error, value + z * error], *range_of(name)).tolist())
        for name, (value, error) in scores.items()
    }


def score_with_error(key: str, value: float, error: float) -> str:
    """A score and its standard error as text; of shares, areas and R² at most four decimals."""
    if scale_of(key, np.nan) == 1.0:
        value, error = round(value, 4) + 0.0, round(error, 4) if error < 0.01 else error
    return estimate_text(value, error)


def class_scores(
    labels: AnyArray,
    wrong: Array,
    auc: tuple[float, Array],
    weight: Array,
    groups: AnyArray | None = None,
    losses: Array | None = None,
) -> ValuesAndErrors:
    """Accuracies, area under the ROC curve and log loss of held-out predictions.

    Parameters
    ----------
    labels : (n,) class indices.
    wrong : (n,) 1 for a row that was assigned a wrong class, or the share of such decisions.
    auc : the area, and the contribution of each row to its deviation, (n,).
    weight : (n,) nonnegative.
    groups : (n,) numbers, equal for rows that count as one draw; by default each row is its own
        group.
    losses : (n,) −log p of the class of the row, or None.

    Returns
    -------
    scores : "accuracy", "balanced_accuracy", "roc_auc" and "log_loss". Standard errors are over
        draws of as many rows, or groups, for given models. Those of accuracies are by `error_of`;
        that of an area is at least 1 / (2 √(n₊ n₋)), a mean over classes of `n_draws`: where n₊ and
        n₋ normal outputs have an area of 1, the true one falls short by no more (root mean square).
        Models that share most of their rows err together, so over draws of the training rows the
        scores vary more: benchmarks/results/standard_errors.csv.

    Examples
    --------
    >>> import numpy as np
    >>> labels, wrong = np.array([0, 0, 0, 1]), np.array([0.0, 0.0, 0.0, 1.0])
    >>> class_scores(labels, wrong, (0.5, np.zeros(4)), np.ones(4))["balanced_accuracy"][0]
    0.5
    """
    of_class = [weight * (labels == k) for k in np.unique(labels[weight > 0])]
    area, deviations = auc
    area_error = np.nan
    if len(of_class) > 1:
        n_inside = [n_draws(deviations * (w > 0), w, groups) for w in of_class]
        n_outside = [n_draws(deviations * (w == 0), weight - w, groups) for w in of_class]
        least = np.mean(0.5 / np.sqrt(np.multiply(n_inside, n_outside)))
        area_error = float(np.maximum(_error_of_sum(deviations, weight, groups), least))
    scores = {
        "accuracy": _accuracy(wrong, weight, groups),
        "balanced_accuracy": (
            1.0 - mean_class_error(labels, wrong, weight),
            error_of(wrong, of_class, groups),
        ),
        "roc_auc": (area, area_error),
    }
    if losses is not None:
        scores["log_loss"] = mean_and_error(losses, weight, groups)
    return scores


def _accuracy(wrong: Array, weight: Array, groups: AnyArray | None) -> tuple[float, float]:
    """Share of right decisions, and its standard error."""
    return 1.0 - float(np.average(wrong, weights=weight)), error_of(wrong, [weight], groups)


def number_scores(
    y: Array, outputs: Array, weight: Array, groups: AnyArray | None = None
) -> ValuesAndErrors:
    """Root mean square error, mean absolute error and R² of held-out outputs.

    Parameters
    ----------
    y : (n,) or (n, t). For several targets, the result is the root of the mean square over all,
        and the mean of absolute errors and R².
    outputs : (n_repetitions, n) or (n_repetitions, n, t), NaN if a row is not held out. Errors
        are averaged over repetitions.
    weight, groups : as for `class_scores`.

    Returns
    -------
    scores : "rmse" and "mae" in units of the targets, and "r2" relative to the weighted variance.

    Examples
    --------
    >>> import numpy as np
    >>> round(number_scores(np.array([1.0, 3.0]), np.array([[2.0, 3.0]]), np.ones(2))["r2"][0], 3)
    0.5
    """
    residuals = (y - outputs).reshape(len(outputs), len(y), -1)
    y = y.reshape(len(y), -1)
    squares = np.nanmean(residuals**2, axis=0)
    mean, error = mean_and_error(squares.mean(axis=1), weight, groups)
    rmse = float(np.sqrt(mean))
    share, total = weight / weight.sum(), variances(y, weight)
    varies, r2 = total > 0, (np.nan, np.nan)
    if varies.any():
        gain = (share[:, None] * ((y - share @ y) ** 2 - squares))[:, varies] / total[varies]
        # Contributions to R² = 1 − Σ w e² / Σ w (y − m)², to first order.
        explained = (1.0 - gain.sum(axis=0)) * share[:, None] * (y - share @ y)[:, varies] ** 2
        moved = (explained - share[:, None] * squares[:, varies]) / total[varies]
        r2 = float(gain.sum(axis=0).mean()), _error_of_sum(moved.mean(axis=1), weight, groups)
    return {
        "rmse": (rmse, error / (2 * rmse) if rmse > 0 else 0.0),
        "mae": mean_and_error(np.nanmean(np.abs(residuals), axis=0).mean(axis=1), weight, groups),
        "r2": r2,
    }


def ordered_scores(
    ranks: Array,
    shares: Array,
    weight: Array,
    groups: AnyArray | None = None,
    ranked: Array | None = None,
    losses: Array | None = None,
) -> ValuesAndErrors:
    r"""Scores of held-out predictions of ordered classes.

    Parameters
    ----------
    ranks : (n,) from 0.
    shares : (n, k) share of the decisions that give each rank.
    weight, groups, losses : as for `class_scores`.
    ranked : (n,) ranked probability scores, or None: the sum over ranks j < k - 1 of the squared
        difference of the probability of a rank up to j, and 1 if it is up to j, else 0.

    Returns
    -------
    scores : "accuracy"; "mean_rank_error", the mean distance of predicted from true ranks;
        "quadratic_kappa", 1 − E(r − c)² / E(r − c')² with c' independent of r as c is distributed;
        with probabilities "ranked_probability" and "log_loss".

    Examples
    --------
    >>> import numpy as np
    >>> scores = ordered_scores(np.array([0.0, 1, 2, 2]), np.eye(3)[[0, 1, 1, 2]], np.ones(4))
    >>> scores["mean_rank_error"][0], round(scores["quadratic_kappa"][0], 3)
    (0.25, 0.8)
    """
    places, own = np.arange(shares.shape[1]), (np.arange(len(ranks)), ranks.astype(int))
    wrong, away = 1.0 - shares[own], np.abs(ranks[:, None] - places)
    share = weight / weight.sum()
    mean, square = shares @ places, shares @ places**2
    moments = np.array([ranks, ranks**2, mean, square])
    r, r2, c, c2 = means = moments @ share
    squares = ((shares * away**2).sum(axis=1)) @ share
    expected = r2 + c2 - 2 * r * c
    scores = {
        "accuracy": _accuracy(wrong, weight, groups),
        "mean_rank_error": mean_and_error((shares * away).sum(axis=1), weight, groups),
        "quadratic_kappa": (float("nan"), float("nan")),
    }
    if expected > 0:
        # Contributions to 1 − E(r − c)² / E(r − c')², to first order.
        of_squares = (shares * away**2).sum(axis=1) - squares
        of_expected = np.array([-2 * c, 1.0, -2 * r, 1.0]) @ (moments - means[:, None])
        moved = share * (squares / expected * of_expected - of_squares) / expected
        value = float(1.0 - squares / expected)
        scores["quadratic_kappa"] = value, _error_of_sum(moved, weight, groups)
    if ranked is not None:
        scores["ranked_probability"] = mean_and_error(ranked, weight, groups)
    if losses is not None:
        scores["log_loss"] = mean_and_error(losses, weight, groups)
    return scores


def ranked_probability_scores(ranks: AnyArray, probabilities: Array) -> Array:
    """(n,) ranked probability score of the probabilities of each rank, (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> ranked_probability_scores(np.array([0, 2]), np.array([[1.0, 0, 0], [0, 0.5, 0.5]])).tolist()
    [0.0, 0.25]
    """
    up_to = np.cumsum(probabilities, axis=1)
    excess = up_to - (ranks[:, None] <= np.arange(probabilities.shape[1]))
    return np.asarray((excess**2).sum(axis=1))


def ordered_baselines(ranks: Array, weight: Array, shares: Array | None = None) -> dict[str, float]:
    """The scores of `ordered_scores`, and "brier", of the shares of the classes alone.

    The largest class for all rows, the median class ("mean_rank_error"), and the shares as
    probabilities. Parameters are those of `class_baselines`.

    Examples
    --------
    >>> import numpy as np
    >>> baselines = ordered_baselines(np.array([0.0, 1, 2, 2]), np.ones(4))
    >>> baselines["mean_rank_error"], baselines["ranked_probability"]
    (0.75, 0.4375)
    """
    codes = ranks.astype(int)
    if shares is None:
        shares = _same_for_all(class_shares_of(codes, weight), codes)
    medians = (np.cumsum(shares, axis=1) >= 0.5).argmax(axis=1)
    ranked = ranked_probability_scores(codes, shares)
    return class_baselines(codes, weight, shares) | {
        "mean_rank_error": float(np.average(np.abs(ranks - medians), weights=weight)),
        "quadratic_kappa": 0.0,
        "ranked_probability": float(np.average(ranked, weights=weight)),
    }


def class_shares_of(labels: AnyArray, weight: Array, n_classes: int = 0) -> Array:
    """(k,) shares of the classes."""
    return np.asarray(np.bincount(labels, weights=weight, minlength=n_classes) / weight.sum())


def _same_for_all(shares: Array, rows: AnyArray) -> Array:
    """The same shares for each of some rows, without copies."""
    return np.broadcast_to(shares, (len(rows), len(shares)))


def class_baselines(
    labels: AnyArray, weight: Array, shares: Array | None = None
) -> dict[str, float]:
    """The scores of `class_scores`, and "brier", of the shares of the classes alone.

    The largest class for all rows, the same output for all, and the shares as probabilities.

    Parameters
    ----------
    labels, weight : (n,)
    shares : (n, k) of the classes, as they were known for each row; by default those of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> class_baselines(np.array([0, 0, 0, 1]), np.ones(4))["accuracy"]
    0.75
    """
    if shares is None:
        shares = _same_for_all(class_shares_of(labels, weight), labels)
    p = np.where(weight > 0, shares[np.arange(len(labels)), labels], 1.0)
    area = 0.5 if np.ptp(labels[weight > 0]) else float("nan")
    wrong = 1.0 * (shares.argmax(axis=1) != labels)
    scores = class_scores(labels, wrong, (area, np.zeros(len(p))), weight, None, -np.log(p))
    squares = np.einsum("ij,ij->i", shares, shares) - 2 * p + 1
    brier = float(np.average(squares, weights=weight)) / (2 if shares.shape[1] == 2 else 1)
    return {name: value for name, (value, _) in scores.items()} | {"brier": brier}


def means_and_medians(y: Array, weight: Array) -> Array:
    """(2, t) weighted means and medians of (n,) or (n, t) numbers."""
    y = y.reshape(len(y), -1)
    order = np.argsort(y, axis=0, kind="stable")
    half = np.cumsum(weight[order], axis=0) >= weight.sum() / 2
    medians = np.take_along_axis(y, order, axis=0)[half.argmax(axis=0), range(y.shape[1])]
    return np.stack([np.average(y, axis=0, weights=weight), medians])


def number_baselines(y: Array, weight: Array, known: Array | None = None) -> dict[str, float]:
    """The scores of `number_scores` without any columns: of the means, and of the medians (MAE).

    Parameters
    ----------
    y : (n,) or (n, t).
    weight : (n,) nonnegative.
    known : (n, 2, t) means and medians, as they were known for each row; by default those of all
        rows.

    Examples
    --------
    >>> import numpy as np
    >>> number_baselines(np.array([0.0, 0.0, 3.0]), np.ones(3))
    {'rmse': 1.414..., 'mae': 1.0, 'r2': 0.0}
    """
    y = y.reshape(len(y), -1)
    if known is None:
        mae = np.average(np.abs(y - means_and_medians(y, weight)[1]).mean(axis=1), weights=weight)
        return {"rmse": float(np.sqrt(variances(y, weight).mean())), "mae": float(mae), "r2": 0.0}
    of_means, of_medians = (number_scores(y, known[None, :, k], weight) for k in (0, 1))
    return {name: (of_medians if name == "mae" else of_means)[name][0] for name in of_means}


def share_under(values: Array, others: Array, weight: Array, tie: float) -> Array:
    """Weight of the ``others`` below each value over their total; ties count half."""
    width = tie_width(values, tie)
    order = np.argsort(others, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    ordered = others[order]
    below = np.searchsorted(ordered, values - width, "left")
    up_to = np.searchsorted(ordered, values + width, "right")
    return np.asarray((total[below] + total[up_to]) / (2 * total[-1]))


def effective_size(weight: Array, groups: AnyArray | None = None) -> float:
    """Number of equally weighted samples with the same information: (Σ w)² / Σ W², W by group."""
    return float((weight.sum() / standard_error(weight, groups)) ** 2)


def n_draws(deviations: Array, weight: Array, groups: AnyArray | None = None) -> float:
    r"""Number of independent rows of equal weight whose mean would be as uncertain as this one.

    .. math:: m = 1 + n (1 - 1 / G) \sum_i d_i^2 \Big/ \sum_g \bigl(\sum_{i \in g} d_i\bigr)^2

    but at most n, for effective numbers n of rows and G of groups. Of few groups this is uncertain:
    the result is 1 / ((1 − 1/G²) / m + 1/G³), nearer to G. It is G where all deviations are zero,
    since nothing then tells whether rows of a group err together, and n if each row is its own
    group.

    Parameters
    ----------
    deviations : (n,) centered contributions of the rows to the mean.
    weight, groups : as for `class_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> d, one, groups = np.array([1.0, -1, 1, -1, -1, 1]) / 6, np.ones(6), np.arange(6) // 2
    >>> [round(n_draws(d, one, of), 1) for of in (None, groups)]
    [6.0, 5.4]
    """
    rows, drawn = effective_size(weight), effective_size(weight, groups)
    alone, together = standard_error(deviations) ** 2, standard_error(deviations, groups) ** 2
    if not alone > _NOTHING**2 or drawn <= 1 + 1e-9:
        return drawn
    m = min(rows, 1 + rows * (1 - 1 / drawn) * alone / max(together, _NOTHING**2))
    return float(1 / ((1 - drawn**-2) / m + drawn**-3))


def error_of(wrong: Array, weights: Sequence[Array], groups: AnyArray | None = None) -> float:
    """Standard error of the mean of shares of wrong decisions, each by weights of its own.

    Each share p has √(q (1 − q) / m) with m from `n_draws` and q = (p m + 1) / (m + 2), so that no
    error among m does not mean certainty. Their correlations are those of the sums over groups.

    Examples
    --------
    >>> import numpy as np
    >>> wrong = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    >>> [round(error_of(wrong, [np.ones(6)], groups), 3) for groups in (None, np.arange(6) // 2)]
    [0.198, 0.283]
    """
    numbers = np.arange(len(wrong)) if groups is None else groups
    of_groups, apart = np.zeros(numbers.max() + 1), 0.0
    for weight in weights:
        share = weight / weight.sum()
        p = share @ wrong
        deviations = share * (wrong - p)
        m = n_draws(deviations, weight, groups)
        q = (p * m + 1) / (m + 2)
        error = np.sqrt(q * (1 - q) / m)
        drawn = np.bincount(numbers, weights=deviations, minlength=len(of_groups))
        size = np.linalg.norm(drawn)
        if size > _NOTHING:
            of_groups += error * drawn / size
        else:
            apart += error**2
    return float(np.sqrt(of_groups @ of_groups + apart) / len(weights))


def mean_and_error(
    values: Array, weight: Array, groups: AnyArray | None = None
) -> tuple[float, float]:
    """Weighted mean and its standard error; with unit weights the latter is s / √n."""
    share = weight / weight.sum()
    mean = float(share @ values)
    size = float(np.abs(values).max(initial=0.0)) or 1.0  # whatever the units
    return mean, size * _error_of_sum(share * (values - mean) / size, weight, groups)


def over_training_draws(scores: ValuesAndErrors, ratio: float, variance: float) -> ValuesAndErrors:
    """Scores with standard errors over draws of the training rows, too.

    Counts of rows get the ``variance``, for they jump where a row changes sides; others the
    ``ratio``, as of `looms.fitted._training_draws.training_draws`. They are at most half the range
    of the score, the largest standard deviation of values in it.
    """
    wider = {}
    for name, (value, error) in scores.items():
        spread = np.sqrt(error**2 + variance) if name in _COUNTS else error * ratio
        low, high = range_of(name)
        wider[name] = value, float(np.minimum(spread, (high - low) / 2))
    return wider


def _error_of_sum(deviations: Array, weight: Array, groups: AnyArray | None) -> float:
    """Standard error of a sum over rows, √(n Σ d² / (m − 1)) with m from `n_draws`; NaN for m = 1.

    That is `standard_error` times √(G / (G − 1)), unless there are few groups, or groups differ by
    less than independent rows.
    """
    m = n_draws(deviations, weight, groups)
    factor = effective_size(weight) / (m - 1) if m > 1 + 1e-9 else np.nan
    return float(np.sqrt(factor) * standard_error(deviations))
