"""Increasing transforms of regression targets, and predictions on the scale of the targets.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from looms import _html
from looms._typing import Array
from looms._words import count, with_error
from looms.held_out import HeldOut

_NUMBERS = 1 << 20  # in an array of a block
_LARGEST_LOG = np.log(np.finfo(np.float64).max)


@dataclass(frozen=True)
class TargetTransform:
    """An increasing function of the target, z = g(y).

    Attributes
    ----------
    least : smallest target allowed; inverses are never below it.
    forward, inverse : g, and its inverse, which treats values below the range of g as its end.
    log_derivative : log g'(y).
    """

    least: float
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    log_derivative: Callable[[Array], Array]

    def takes(self, y: Array, density: bool = False) -> bool:
        """True if the function is finite for all targets, and its derivative too if ``density``."""
        if y.min() < self.least:
            return False
        with np.errstate(divide="ignore"):
            values = [self.forward(y)] + density * [self.log_derivative(y)]
        return bool(np.isfinite(values).all())


def _bounded_exp(z: Array) -> Array:
    return np.asarray(np.exp(np.minimum(z, _LARGEST_LOG)))


#: By name, the simplest first.
TARGET_TRANSFORMS = {
    "none": TargetTransform(-np.inf, np.array, np.array, np.zeros_like),
    "sqrt": TargetTransform(
        0.0,
        np.sqrt,
        lambda z: np.maximum(z, 0.0) ** 2,
        lambda y: -np.log(2.0 * np.sqrt(y)),
    ),
    "log": TargetTransform(0.0, np.log, _bounded_exp, lambda y: -np.log(y)),
    "log1p": TargetTransform(
        0.0,
        np.log1p,
        lambda z: np.maximum(_bounded_exp(z) - 1.0, 0.0),
        lambda y: -np.log1p(y),
    ),
}


@dataclass(frozen=True)
class TransformCandidate:
    """Held-out figures of a transform.

    Attributes
    ----------
    name : name of the transform.
    error : root mean square error of the means, or mean absolute error of the medians.
    log_likelihood : mean log density of the targets.
    """

    name: str
    error: float
    log_likelihood: float


class TransformCandidates(list[TransformCandidate]):
    """Candidates in the order in which they were tried; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (each.name, with_error(each.error), with_error(each.log_likelihood)) for each in self
        ]
        head = ["transform", "error, less is better", "log-likelihood, more is better"]
        return _html.table(head, rows, count(len(self), "candidate"))


def smeared_means(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    r"""Mean of the target given the output of a machine of the transformed target.

    .. math:: E[y \mid f] \approx \sum_j w_j\, g^{-1}(f + r_j) / \sum_j w_j

    This is the smearing estimate, which assumes no distribution [D83]. Here it uses residuals of
    held-out outputs: those of the fit are too small.

    Parameters
    ----------
    outputs : (m,) on the transformed scale.
    held_out : targets and outputs on the transformed scale; rows of weight zero take no part.

    Returns
    -------
    means : (m,) in units of the target.

    Notes
    -----
    O(m n), in blocks of 8 MB.

    Examples
    --------
    >>> residuals_of_one = HeldOut([1.0, 3.0], [2.0, 2.0])
    >>> smeared_means(TARGET_TRANSFORMS["sqrt"], np.array([2.0]), residuals_of_one)
    array([5.])
    """
    used = held_out.sample_weight > 0
    residuals, weight = held_out.residuals[used], held_out.sample_weight[used]
    share, step = weight / weight.sum(), max(1, _NUMBERS // len(residuals))
    blocks = [outputs[start : start + step] for start in range(0, len(outputs), step)]
    means = [transform.inverse(block[:, None] + residuals) @ share for block in blocks]
    return np.concatenate([np.empty(0), *means])


def means_without_own(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    """`smeared_means` for the output of each row, with the residuals of the other rows, (n,)."""
    weight, total = held_out.sample_weight, held_out.sample_weight.sum()
    own = weight * transform.inverse(outputs + held_out.residuals)
    rest = total * smeared_means(transform, outputs, held_out) - own
    return np.asarray(rest / (total - weight))


def log_likelihood(transform: TargetTransform, y: Array, held_out: HeldOut) -> float:
    r"""Mean log density of the held-out targets, with normal residuals on the transformed scale.

    .. math:: \frac{\sum_i w_i \left[ \log g'(y_i) - r_i^2 / (2 s^2) \right]}{\sum_i w_i}
              - \frac{\log(2 \pi s^2)}{2}, \qquad s^2 = \frac{\sum_i w_i r_i^2}{\sum_i w_i}

    The derivative brings densities of all transforms to the scale of the target [BC64].

    Parameters
    ----------
    y : (n,) targets.
    held_out : on the transformed scale.

    Returns
    -------
    value : per unit of weight; infinite if the derivative is, as for "sqrt" at zero.

    Examples
    --------
    >>> y = np.array([1.0, 4.0, 9.0, 16.0])
    >>> by_root = HeldOut(np.sqrt(y), np.sqrt(y) + [0.1, -0.1, 0.1, -0.1])
    >>> plain = HeldOut(y, by_root.outputs**2)
    >>> values = [log_likelihood(TARGET_TRANSFORMS["none"], y, plain)]
    >>> values.append(log_likelihood(TARGET_TRANSFORMS["sqrt"], y, by_root))
    >>> values[0] < values[1]
    True
    """
    weight = held_out.sample_weight
    share = weight / weight.sum()
    used = weight > 0
    variance = float(share @ held_out.residuals**2)
    with np.errstate(divide="ignore"):
        jacobian = share[used] @ transform.log_derivative(y[used])
        return float(jacobian - 0.5 * np.log(2.0 * np.pi * variance) - 0.5)
