"""Prediction intervals from the outputs of leave-one-out models at new points.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np
import numpy.typing as npt

from looms._checks import check_share
from looms._classes import rounding
from looms._typing import Array
from looms._words import one_line

_SHARE = 1e-10  # of all weights, that rounding can add or take


def jackknife_plus(
    loo_residuals: npt.ArrayLike,
    loo_predictions: npt.ArrayLike,
    confidence_level: float,
    *,
    loo_scales: npt.ArrayLike | None = None,
    scales: npt.ArrayLike | None = None,
    density_ratio: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    rounding_error: npt.ArrayLike | None = None,
) -> Array:
    r"""Jackknife+ prediction intervals, from exact order statistics.

    With 1 − α = `confidence_level`, r = `loo_residuals` and F = `loo_predictions`, the interval at
    new point t goes

    - from the ⌊α (n + 1)⌋-th smallest of F_ti − |r_i| over i
    - to the ⌈(1 − α) (n + 1)⌉-th smallest of F_ti + |r_i| [B21 eq. 6],

    or, if locally scaled, has s_ti |r_i| / s_i in place of |r_i|, with s_i = `loo_scales` and
    s_ti = `scales`. Scales below the rounding error, which are zero as far as can be told, count as
    equal to it. Ends are rounded outwards, so that no target that is inside in exact arithmetic is
    outside.

    For new points that are distributed otherwise, with w, v_t = `density_ratio`, the upper end is
    the least F_ti + |r_i| up to which lie (1 − α) (Σ_i w_i + v_t) or more of the weights w, and the
    lower end likewise from above: the weighted jackknife+, JAW [PLS22]. An end is infinite
    where Σ_i w_i is less than that.

    Parameters
    ----------
    loo_residuals : (n,) or (n, t) y_i − f⁽⁻ⁱ⁾(x_i).
    loo_predictions : (m, n) or (m, n, t) f⁽⁻ⁱ⁾(x_t), in units of the residuals.
    confidence_level : nominal 1 − α, between 0 and 1.
    loo_scales : shaped like the residuals, positive: scale of the noise at x_i, from a model
        trained without sample i.
    scales : shaped like the predictions, positive: scale at x_t, from the same models.
    density_ratio : (n,) and (m,) or None, nonnegative: density of the new points' distribution
        over that of the samples, at each sample and each new point, up to a common factor.
    rounding_error : number or (t,), that of residuals, predictions and scales, in their units. By
        default n ε times the largest finite |r_i|, which ill-conditioned models may exceed. That of
        an end is at least n ε times its size.

    Returns
    -------
    intervals : (m, 2) or (m, t, 2), with the lower and upper ends in the last axis.

    Raises
    ------
    ValueError
        If the confidence level is not between 0 and 1, shapes do not agree, only one of
        `loo_scales` and `scales` is given, ratios are negative or all zero, some end is not a
        number, or there are fewer than 1 / α − 1 samples, so that the interval would be infinite.

    Notes
    -----
    If the n samples and the new one are exchangeable, and models and scales come from a
    rule that is fixed beforehand and symmetric in the samples, the interval contains the new
    target with probability at least 1 − 2α [B21 theorem 1], most often about 1 − α. O(m n t).
    With the true ratios that holds if the new one is distributed otherwise, but has the same
    distribution of targets at every point [PLS22]; O(m n t log n).

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 6.0])             # each model is the mean of the others
    >>> means = (y.sum() - y) / 2
    >>> jackknife_plus(y - means, means[None], confidence_level=0.5)
    array([[1., 6.]])
    >>> ratio = [2.0, 4.0, 1.0], [0.5]
    >>> jackknife_plus(y - means, means[None], confidence_level=0.5, density_ratio=ratio)
    array([[2., 5.]])
    """
    r, F = _checked_arrays(loo_residuals, loo_predictions)
    required_rank(confidence_level, len(r))  # an error before others
    half, error = np.abs(r), error_of(r, rounding_error)
    if loo_scales is not None or scales is not None:
        if loo_scales is None or scales is None:
            raise ValueError("loo_scales and scales belong together: give both, or neither.")
        s, S = np.asarray(loo_scales, dtype=np.float64), np.asarray(scales, dtype=np.float64)
        if s.shape != r.shape or S.shape != F.shape:
            raise ValueError(
                "loo_scales must be shaped like loo_residuals and scales like loo_predictions, but "
                f"they have shapes {s.shape} and {S.shape}, not {r.shape} and {F.shape}."
            )
        if not (s.min(initial=np.inf) > 0 and S.min(initial=np.inf) > 0):
            raise ValueError("loo_scales and scales must be positive.")
        with np.errstate(over="ignore"):  # the largest that the errors of all three allow
            half = (half + error) / np.maximum(s - error, error) * (S + error)
    return intervals_of_ends(F - half, F + half, confidence_level, error, density_ratio)


def intervals_of_ends(
    lower: Array,
    upper: Array,
    confidence_level: float,
    error: npt.ArrayLike = 0.0,
    density_ratio: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Array:
    """Jackknife+ intervals from the ends that each sample's model and residual give.

    ``lower`` and ``upper`` are (m, n) or (m, n, t), with a column for each of the n samples. An
    increasing function applied to all ends transforms the intervals in the same way. ``error`` is
    as for `outwards`, ``density_ratio`` as for `jackknife_plus`; ValueError for an end that is not
    a number.
    """
    n = lower.shape[1]
    rank = required_rank(confidence_level, n)
    _check_numbers(lower, upper)
    if density_ratio is not None:
        ratio = checked_ratio(density_ratio, n, len(lower))
        ends = -_bound(-lower, confidence_level, *ratio), _bound(upper, confidence_level, *ratio)
        return outwards(*ends, error, n)
    ends = order_statistic(lower, n + 1 - rank, 1), order_statistic(upper, rank, 1)
    return outwards(*ends, error, n)


def checked_ratio(
    density_ratio: tuple[npt.ArrayLike, npt.ArrayLike], n: int, m: int
) -> tuple[Array, Array]:
    """Ratios at n samples and m new points; ValueError for what are none."""
    if not isinstance(density_ratio, tuple | list | np.ndarray) or len(density_ratio) != 2:
        raise ValueError(
            "density_ratio must be a pair of arrays, as looms.density_ratio returns, of training "
            f"and new rows, got {one_line(density_ratio)}."
        )
    w, v = (np.asarray(values, dtype=np.float64) for values in density_ratio)
    if w.shape != (n,) or v.shape != (m,):
        raise ValueError(
            f"density_ratio must have a number for each of {n} training rows and each of {m} new "
            f"rows, but has shapes {w.shape} and {v.shape}."
        )
    both = np.concatenate([w, v])
    if not ((both >= 0) & np.isfinite(both)).all() or not w.any():
        raise ValueError(
            "density_ratio must be finite and not negative, and positive for some training row."
        )
    return w, v


def _bound(ends: Array, share: float, w: Array, v: Array) -> Array:
    """Least end up to which lies a ``share`` of the weights, of which v_t are at infinity.

    ``ends`` are (m, n) or (m, n, t); shares that are reached up to rounding are reached.
    """
    order = np.argsort(ends, axis=1)
    total = (w.sum() + v).reshape(-1, *[1] * (ends.ndim - 1))
    reached = np.cumsum(w[order], axis=1) >= (share - _SHARE) * total
    first = np.take_along_axis(order, reached.argmax(axis=1, keepdims=True), axis=1)
    bound = np.take_along_axis(ends, first, axis=1)[:, 0]
    return np.where(reached.any(axis=1), bound, np.inf)


def outwards(lower: Array, upper: Array, error: npt.ArrayLike, n: int) -> Array:
    """Intervals with ends rounded outwards, (m, 2) or (m, t, 2).

    Parameters
    ----------
    lower, upper : (m,) or (m, t) ends, with errors by rounding.
    error : number or (t,), such errors, in units of the ends; relative ones are at least n ε.
    n : number of samples.
    """
    ends = np.stack([lower, upper], axis=-1)
    width = np.maximum(np.asarray(error)[..., None], rounding(n) * np.abs(ends))
    width = np.where(np.isfinite(ends), width, 0.0)
    return np.asarray(ends + width * [-1.0, 1.0])


def jackknife_minmax(
    loo_residuals: npt.ArrayLike,
    loo_predictions: npt.ArrayLike,
    confidence_level: float,
    *,
    rounding_error: npt.ArrayLike | None = None,
) -> Array:
    r"""Jackknife-minmax prediction intervals, from exact order statistics.

    They go from min_i F_ti − q to max_i F_ti + q, where q is the ⌈(1 − α) (n + 1)⌉-th smallest
    of |r_i| [B21 section 2.2], r = `loo_residuals` and F = `loo_predictions`. Ends are rounded
    outwards.

    Parameters, returns, errors and cost are as for `jackknife_plus`.

    Notes
    -----
    The interval contains the new target with probability at least 1 − α [B21 theorem 4], under
    the conditions of `jackknife_plus`, and contains the interval of `jackknife_plus`.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 6.0])             # each model is the mean of the others
    >>> means = (y.sum() - y) / 2
    >>> jackknife_minmax(y - means, means[None], confidence_level=0.5)
    array([[-1.5,  7. ]])
    """
    r, F = _checked_arrays(loo_residuals, loo_predictions)
    _check_numbers(r, F)
    q = order_statistic(np.abs(r), required_rank(confidence_level, len(r)), 0)
    return outwards(F.min(axis=1) - q, F.max(axis=1) + q, error_of(r, rounding_error), len(r))


def required_rank(confidence_level: float, n: int) -> int:
    """Rank ⌈confidence_level (n + 1)⌉, at most n, of the sorted score that bounds a new one.

    Products that are whole up to rounding, such as 0.55 · 100, count as whole.

    Raises
    ------
    ValueError
        If the confidence level is not between 0 and 1, or n is too small for it.
    """
    check_share(confidence_level, "confidence_level")
    k = max(1, ceil(round(float(confidence_level) * (n + 1), 9)))
    if k > n:
        least = ceil(round(1 / (1 - float(confidence_level)), 9)) - 1
        raise ValueError(
            f"A confidence level of {float(confidence_level):g} needs {least} training rows or "
            f"more, got {n}: give more, or ask for {floor(1000 * n / (n + 1)) / 1000:g} at most."
        )
    return k


def order_statistic(values: Array, k: int, axis: int) -> Array:
    """k-th smallest value along an axis."""
    return np.asarray(np.take(np.partition(values, k - 1, axis=axis), k - 1, axis=axis))


def error_of(scores: Array, rounding_error: npt.ArrayLike | None) -> Array:
    """Rounding error of scores or residuals, in their units, () or (t,).

    By default n ε times the largest finite one.
    """
    if rounding_error is not None:
        return np.asarray(rounding_error, dtype=np.float64)
    finite = np.where(np.isfinite(scores), np.abs(scores), 0.0)
    return np.asarray(rounding(len(scores)) * finite.max(axis=0))


def _check_numbers(*arrays: Array) -> None:
    """ValueError for NaN, which has no place in an order."""
    if any(np.isnan(values.max(initial=-np.inf)) for values in arrays):
        raise ValueError("An end is not a number: residuals or predictions have NaN.")


def _checked_arrays(
    loo_residuals: npt.ArrayLike, loo_predictions: npt.ArrayLike
) -> tuple[Array, Array]:
    r = np.asarray(loo_residuals, dtype=np.float64)
    F = np.asarray(loo_predictions, dtype=np.float64)
    if r.ndim not in (1, 2) or F.shape[1:] != r.shape or F.ndim != r.ndim + 1:
        raise ValueError(
            "loo_residuals must have shape (n_samples,) or (n_samples, n_targets), and "
            "loo_predictions (n_new,) + that shape, one column per leave-one-out model, but they "
            f"have shapes {r.shape} and {F.shape}."
        )
    return r, F
