"""Increasing transforms of regression targets, and predictions on the scale of the targets.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from looms._scores import mean_and_error
from looms._typing import AnyArray, Array
from looms.held_out import HeldOut

_LARGEST_LOG = np.log(np.finfo(np.float64).max)


@dataclass(frozen=True)
class TargetTransform:
    """An increasing function of the target, z = g(y).

    Attributes
    ----------
    least : smallest target allowed; inverses are never below it.
    forward, inverse : g, and its inverse, which treats values below the range of g as its end.
    factors : pairs of functions a, b such that the inverse of u + v is Σ a(u) b(v) above ``end``,
        and zero below it; none if nothing is transformed.
    end : end of the range of g.
    """

    least: float
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    factors: tuple[tuple[Callable[[Array], Array], Callable[[Array], Array]], ...] = ()
    end: float = -np.inf

    @property
    def keeps_scale(self) -> bool:
        """True if g leaves the targets as they are; the inverse may end at the range."""
        return self.forward is np.array

    def takes(self, y: Array) -> bool:
        """True if the function is finite for all targets."""
        if y.min() < self.least:
            return False
        with np.errstate(divide="ignore"):
            return bool(np.isfinite(self.forward(y)).all())


def _bounded_exp(z: Array) -> Array:
    return np.asarray(np.exp(np.minimum(z, _LARGEST_LOG)))


#: By name, the simplest first.
TARGET_TRANSFORMS = {
    "none": TargetTransform(-np.inf, np.array, np.array),
    "sqrt": TargetTransform(
        0.0,
        np.sqrt,
        lambda z: np.maximum(z, 0.0) ** 2,
        ((np.square, np.ones_like), (lambda u: 2.0 * u, np.array), (np.ones_like, np.square)),
        0.0,
    ),
    "log": TargetTransform(0.0, np.log, _bounded_exp, ((_bounded_exp, np.exp),)),
    "log1p": TargetTransform(
        0.0,
        np.log1p,
        lambda z: np.maximum(_bounded_exp(z) - 1.0, 0.0),
        ((_bounded_exp, np.exp), (np.ones_like, lambda v: -np.ones_like(v))),
        0.0,
    ),
}
#: "none" of targets that other transforms admit, too: what is below zero is zero.
NONNEGATIVE = TargetTransform(0.0, np.array, lambda z: np.maximum(z, 0.0))


def best_transform(
    y: Array, predicted: Mapping[str, Array], weight: Array, groups: AnyArray | None = None
) -> tuple[str, dict[str, float]]:
    """Transform of nonnegative targets to fit, and the held-out error of each.

    The one with the smallest error; in the place of "none" with predictions below zero, the best
    of the others if its mean squared error exceeds that of "none" by no more than one standard
    error of the paired difference.

    Parameters
    ----------
    y : (n,) nonnegative.
    predicted : by name of the transform, (n_repetitions, n) held-out predictions, NaN if a row is
        not held out. Those below zero count as zero, as in the model.
    weight : (n,) positive.
    groups : (n,) numbers, equal for rows that count as one draw; by default each row is one.

    Returns
    -------
    name, errors : the transform, and the root mean square errors by name, in units of ``y``.

    Examples
    --------
    >>> y, weight = np.array([0.0, 1.0, 2.0, 8.0]), np.ones(4)
    >>> plain = [[-0.5, 1.5, 2.0, 6.0]]
    >>> best_transform(y, {"none": plain, "sqrt": [[0.5, 1.0, 1.5, 6.0]]}, weight)[0]
    'sqrt'
    >>> best_transform(y, {"none": plain, "sqrt": [[1.5, 3.0, 3.5, 6.0]]}, weight)[0]
    'none'
    """
    squares = {
        name: np.nanmean((y - np.maximum(each, 0.0)) ** 2, axis=0)
        for name, each in predicted.items()
    }
    means = {name: float(np.average(each, weights=weight)) for name, each in squares.items()}
    best = min(means, key=means.__getitem__)
    if best == "none" and np.less(predicted[best], 0.0).any():
        other = min((name for name in means if name != best), key=means.__getitem__)
        excess, error = mean_and_error(squares[other] - squares[best], weight, groups)
        best = other if excess <= error else best
    return best, {name: float(np.sqrt(mean)) for name, mean in means.items()}


def smeared_means(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    r"""Mean of the target given the output of a model of the transformed target.

    .. math:: E[y \mid f] \approx \sum_j w_j\, g^{-1}(f + r_j) / \sum_j w_j

    This is the smearing estimate, which assumes no distribution [D83]. Here it uses residuals of
    held-out outputs: those of the fit are too small.

    Parameters
    ----------
    outputs : (m,) on the transformed scale.
    held_out : targets and outputs on the transformed scale; rows of weight zero take no part.

    Returns
    -------
    means : (m,) in units of the target; the outputs themselves if nothing is transformed, within
        its range.

    Notes
    -----
    O((m + n) log n): residuals in order of size, and sums over those above each place.

    Examples
    --------
    >>> residuals_of_one = HeldOut([1.0, 3.0], [2.0, 2.0])
    >>> smeared_means(TARGET_TRANSFORMS["sqrt"], np.array([2.0]), residuals_of_one)
    array([5.])
    """
    if transform.keeps_scale:
        return transform.inverse(outputs)
    used = held_out.sample_weight > 0
    residuals, weight = held_out.residuals[used], held_out.sample_weight[used]
    order = np.argsort(residuals)
    largest, share = residuals[order[-1]], weight[order] / weight.sum()
    below, outputs = residuals[order] - largest, outputs + largest  # so that no factor overflows
    first, means = np.searchsorted(below, transform.end - outputs, side="right"), 0.0 * outputs
    for of_output, of_residual in transform.factors:
        sums = np.cumsum((share * of_residual(below))[::-1])[::-1]
        means += of_output(outputs) * np.append(sums, 0.0)[first]
    return np.maximum(means, 0.0)


def means_without_own(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    """`smeared_means` for the output of each row, with the residuals of the other rows, (n,)."""
    if transform.keeps_scale:
        return transform.inverse(outputs)
    weight, total = held_out.sample_weight, held_out.sample_weight.sum()
    own = weight * transform.inverse(outputs + held_out.residuals)
    rest = total * smeared_means(transform, outputs, held_out) - own
    return np.asarray(np.maximum(rest, 0.0) / (total - weight))
