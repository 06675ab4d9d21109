"""Increasing transforms of regression targets, and predictions on the scale of the targets.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from looms._typing import Array
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
    """

    least: float
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]

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
    "sqrt": TargetTransform(0.0, np.sqrt, lambda z: np.maximum(z, 0.0) ** 2),
    "log": TargetTransform(0.0, np.log, _bounded_exp),
    "log1p": TargetTransform(0.0, np.log1p, lambda z: np.maximum(_bounded_exp(z) - 1.0, 0.0)),
}


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
    means : (m,) in units of the target; the outputs themselves if nothing is transformed.

    Notes
    -----
    O(m n), in blocks of 8 MB.

    Examples
    --------
    >>> residuals_of_one = HeldOut([1.0, 3.0], [2.0, 2.0])
    >>> smeared_means(TARGET_TRANSFORMS["sqrt"], np.array([2.0]), residuals_of_one)
    array([5.])
    """
    if transform is TARGET_TRANSFORMS["none"]:
        return outputs
    used = held_out.sample_weight > 0
    residuals, weight = held_out.residuals[used], held_out.sample_weight[used]
    share, step = weight / weight.sum(), max(1, _NUMBERS // len(residuals))
    blocks = [outputs[start : start + step] for start in range(0, len(outputs), step)]
    means = [transform.inverse(block[:, None] + residuals) @ share for block in blocks]
    return np.concatenate([np.empty(0), *means])


def means_without_own(transform: TargetTransform, outputs: Array, held_out: HeldOut) -> Array:
    """`smeared_means` for the output of each row, with the residuals of the other rows, (n,)."""
    if transform is TARGET_TRANSFORMS["none"]:
        return outputs
    weight, total = held_out.sample_weight, held_out.sample_weight.sum()
    own = weight * transform.inverse(outputs + held_out.residuals)
    rest = total * smeared_means(transform, outputs, held_out) - own
    return np.asarray(rest / (total - weight))
