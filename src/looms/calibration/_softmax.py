"""Softmax of the outputs of several classes, with one slope and a constant for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from looms._typing import Array
from looms.calibration._sigmoid import positive_labels
from looms.held_out import ReadOnly

#: A share of a probability above all rounding of it, by which ties are broken.
TIES = 8 * np.finfo(np.float64).eps
#: Times the outputs: a threshold that none of them reaches.
OUT_OF_REACH = 2.0**10

_FLAT = 1e-8  # slope in standard units; thresholds would have no digits left for the outputs
_MAX_ITERATIONS = 100
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Softmax(ReadOnly):
    """Probabilities of k classes, exp(slope f_k + constants_k) over their sum.

    Parameters
    ----------
    slope : per unit of output; not negative, so that the probability of a class does not fall
        as its output rises.
    constants : (k,), read-only; only differences count.

    Examples
    --------
    >>> softmax = Softmax(2.0, [1.0, 0.0, -1.0])
    >>> softmax.probability([[-1.0, 0.5, -0.5]]).round(3)
    array([[0.114, 0.844, 0.042]])
    """

    slope: float
    constants: Array

    def thresholds(self, outputs: npt.ArrayLike) -> Array:
        """Thresholds (k,): the largest output minus threshold belongs to the most probable class.

        They are −constants / slope. If the slope is zero, one class is always the most probable,
        and the thresholds of the others are out of reach of ``outputs``, of any shape.

        Examples
        --------
        >>> Softmax(2.0, [1.0, 0.0, -1.0]).thresholds(0.0)
        array([-0.5, -0. ,  0.5])
        """
        if self.slope > 0:
            return np.asarray(-self.constants / self.slope)
        none = OUT_OF_REACH * (float(np.abs(np.asarray(outputs)).max()) or 1.0)
        return np.where(np.arange(len(self.constants)) == self.constants.argmax(), 0.0, none)

    def probability(self, outputs: npt.ArrayLike) -> Array:
        """Probability of each class for outputs (m, k)."""
        f = np.asarray(outputs, dtype=np.float64)
        # The very differences that decide, so that no rounding is between them and decisions.
        d = f - self.thresholds(f) if self.slope > 0 else np.broadcast_to(self.constants, f.shape)
        with np.errstate(over="ignore"):  # an infinite exponent is probability 0
            p = np.exp((self.slope or 1.0) * (d - d.max(axis=1, keepdims=True)))
        p[np.arange(len(p)), d.argmax(axis=1)] += TIES
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def fit_softmax(outputs: npt.ArrayLike, targets: npt.ArrayLike, sample_weight: Array) -> Softmax:
    r"""Maximum-likelihood softmax with smoothed targets.

    Minimizes over a slope a ≥ 0 and constants b, with log p_ik = a f_ik + b_k − log Σ_j exp(...),

    .. math:: -\sum_i w_i \sum_k t_{ik} \log p_{ik}

    where t is (n_c + 1)/(n_c + 2) for the class c of the sample, and the other classes share the
    rest evenly. As these fall short of 1 and 0, a minimum exists even for separable outputs and
    for classes of one sample. For two classes with outputs ∓f it is the sigmoid of `fit_sigmoid`
    [P99, LLW07] with twice the slope.

    Parameters
    ----------
    outputs : (n, k) finite, in any unit.
    targets : (n, k) with +1 for the class of the sample, -1 for the others.
    sample_weight : (n,) nonnegative. The counts n_c are sums of weights scaled to mean one over
        the samples with positive weight; the others are ignored.

    Raises
    ------
    ValueError
        If outputs are not finite, or targets are not as above.

    Notes
    -----
    Newton's method with backtracking over k + 1 parameters, O(n k²) per step. The loss is convex:
    if its minimum has a negative slope, the best allowed slope is zero.

    Examples
    --------
    >>> y = 2 * np.eye(3)[[0, 1, 2, 2]] - 1
    >>> softmax = fit_softmax(0.5 * y, y, np.ones(4))
    >>> softmax.slope > 0, bool(softmax.constants.argmax() == 2)
    (True, True)
    """
    f, onehot, weight = _checked(outputs, targets, sample_weight)
    g, center, spread = _standardized(f, weight)
    return _softmax(_minimizer(g, onehot, weight), center, spread)


def softmax_without_each(outputs: Array, targets: Array, weight: Array) -> Array:
    """Probabilities (n, k) of each sample from the softmax of the others; weights are positive."""
    f, onehot, weight = _checked(outputs, targets, weight)
    g, center, spread = _standardized(f, weight)
    of_all = _minimizer(g, onehot, weight)
    p, rest = np.empty(f.shape), weight.copy()
    for i in range(len(f)):
        rest[i] = 0.0
        p[i] = _softmax(_minimizer(g, onehot, rest, of_all), center, spread).probability(f[[i]])[0]
        rest[i] = weight[i]
    return p


def _checked(
    outputs: npt.ArrayLike, targets: npt.ArrayLike, weight: Array
) -> tuple[Array, Array, Array]:
    """Outputs, 1 for the class of each sample and 0 elsewhere, and weights, where positive."""
    f, y = np.asarray(outputs, dtype=np.float64), np.asarray(targets)
    onehot = positive_labels(y)
    weighted = weight > 0
    if not (onehot.sum(axis=1) == 1).all():
        raise ValueError("labels must be +1 in one column of each row: the class of the sample.")
    if not np.isfinite(f[weighted]).all():
        raise ValueError("outputs must be finite, but some are not.")
    return f[weighted], onehot[weighted].astype(np.float64), weight[weighted] / weight.max()


def _standardized(f: Array, weight: Array) -> tuple[Array, Array, float]:
    """Outputs minus row means, which no softmax needs, and ``center``, in units of ``spread``."""
    largest = max(float(np.abs(f).max()), 1e-290)  # below that a slope is no number
    g = f / largest
    g -= g.mean(axis=1, keepdims=True)
    center = weight @ g / weight.sum()
    g -= center
    spread = float(np.sqrt(weight @ np.square(g).mean(axis=1) / weight.sum()))
    if spread < 1e-14:  # equal outputs but for rounding: the slope stays zero
        return np.zeros(g.shape), center * largest, largest
    return g / spread, center * largest, spread * largest


def _softmax(x: Array, center: Array, spread: float) -> Softmax:
    slope = float(x[0]) / spread
    constants = x[1:] - slope * center
    return Softmax(slope, constants - constants.mean())


def _minimizer(g: Array, onehot: Array, weight: Array, start: Array | None = None) -> Array:
    """Slope, not negative, and constants of the least loss for standardized outputs."""
    k = g.shape[1]
    weight = weight * (np.count_nonzero(weight) / weight.sum())
    mass = weight @ onehot
    targets = np.tile((1 / (mass + 2) / (k - 1))[:, None], (1, k))  # of each class, in rows
    np.fill_diagonal(targets, (mass + 1) / (mass + 2))
    total, goal = mass.sum(), mass @ targets
    linear = np.concatenate([[np.sum(targets * (onehot.T @ (weight[:, None] * g)))], goal])
    log_goal = np.log(goal / total)
    x = np.concatenate([[0.0], log_goal]) if start is None else start
    loss, p = _loss(x, g, weight, linear)
    for _ in range(_MAX_ITERATIONS):
        wp = weight[:, None] * p
        away = g - np.einsum("ik,ik->i", p, g)[:, None]
        gradient = np.concatenate([[np.einsum("ik,ik->", wp, g)], wp.sum(axis=0)]) - linear
        hessian = np.empty((k + 1, k + 1))
        hessian[0, 0] = np.einsum("ik,ik,ik->", wp, away, away)
        hessian[0, 1:] = hessian[1:, 0] = np.einsum("ik,ik->k", wp, away)
        # No probability depends on the mean of the constants: a curvature there holds it.
        hessian[1:, 1:] = np.diag(wp.sum(axis=0)) - p.T @ wp + total / k**2
        hessian.flat[:: k + 2] += 1e-12 * total
        step = -np.linalg.solve(hessian, gradient)
        decrement = -float(gradient @ step)
        slack = 1e-13 * abs(loss)  # differences of the loss below it are rounding
        length = 1.0
        for _ in range(_HALVINGS):
            tried, tried_p = _loss(x + length * step, g, weight, linear)
            if tried <= loss - 1e-4 * length * decrement + slack:
                break
            length /= 2
        else:
            break
        x, loss, p = x + length * step, tried, tried_p
        if decrement <= 1e-22 * total:  # that step has ended at full precision
            break
    if x[0] > _FLAT:
        return x
    # Classes of equal weight but for rounding are equal, and decide for none.
    level = np.where(log_goal > log_goal.max() - 1e-12, log_goal.max(), log_goal)
    return np.concatenate([[0.0], level])


def _loss(x: Array, g: Array, weight: Array, linear: Array) -> tuple[float, Array]:
    """Loss at slope and constants, and the probabilities there."""
    z = x[0] * g + x[1:]
    top = z.max(axis=1, keepdims=True)
    e = np.exp(z - top)
    total = e.sum(axis=1, keepdims=True)
    return float(weight @ (top + np.log(total))[:, 0] - x @ linear), e / total
