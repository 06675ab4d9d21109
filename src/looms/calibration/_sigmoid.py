"""Platt's sigmoid from outputs to probabilities, for one set of outputs or many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from looms._advice import setting
from looms._checks import gaps_in
from looms._typing import Array

_BLOCK = 1 << 18  # outputs held at a time, in half a dozen temporaries
_MAX_ITERATIONS = 200
_HALVINGS = 40


@dataclass(frozen=True)
class Sigmoid:
    """Probability of the positive class, 1 / (1 + exp(slope f + intercept)) [P99, LLW07].

    Parameters
    ----------
    slope : per unit of output; negative if the probability increases with the output.
    intercept : log-odds of the negative class at f = 0.
    """

    slope: float
    intercept: float

    def probability(self, outputs: npt.ArrayLike) -> Array:
        """Probability of the positive class for outputs of any shape.

        Examples
        --------
        >>> Sigmoid(-2.0, 0.0).probability([0.0, 1.0]).round(3)
        array([0.5  , 0.881])
        """
        f = np.asarray(outputs, dtype=np.float64)
        with np.errstate(over="ignore"):  # an infinite exponent is probability 0 or 1
            return np.asarray(expit(-(self.slope * f + self.intercept)))


def fit_sigmoid(
    outputs: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> Sigmoid:
    r"""Maximum-likelihood sigmoid with Platt's targets.

    Minimizes over slope and intercept, with p_i = 1/(1 + exp(slope f_i + intercept)),

    .. math:: -\sum_i w_i \left[ t_i \log p_i + (1 - t_i) \log(1 - p_i) \right]

    where t_i is (n₊ + 1)/(n₊ + 2) for positive and 1/(n₋ + 2) for negative samples. As these
    fall short of 1 and 0, a minimum exists even for separable outputs [P99, LLW07 eq. 2 and 3].

    Parameters
    ----------
    outputs : (n,) finite, in any unit. Leave-one-out outputs give probabilities for new
        samples; outputs for training samples are too far apart.
    labels : (n,) -1 and +1. With one class only, the sigmoid is constant.
    sample_weight : (n,) nonnegative, ones by default; only ratios count. The counts n₊ and n₋
        are sums of weights scaled to mean one over the samples with positive weight; samples of
        weight zero are ignored.

    Returns
    -------
    sigmoid : Sigmoid
        Its slope is positive if the probability decreases with the output.

    Raises
    ------
    ValueError
        If outputs are not finite, labels are not ±1, or weights are negative, not finite or all
        zero.

    Notes
    -----
    Newton's method with backtracking [LLW07 Algorithm 1], without its ridge. The 2×2 system
    is solved around the mean of the outputs under the weights of the Hessian, which loses no
    digits to outputs far from zero. It takes a handful of passes over the outputs.

    Examples
    --------
    >>> sigmoid = fit_sigmoid([-1.0, -0.2, 0.1, 1.0], [-1, 1, -1, 1])
    >>> sigmoid.slope < 0
    True
    >>> sigmoid.probability([-2.0, 2.0]).round(2)
    array([0.15, 0.86])
    """
    f, positive, weight = checked_sample(outputs, labels, sample_weight)
    slopes, intercepts = fit_sigmoids(f[None], np.where(positive, 1, -1), weight)
    return Sigmoid(float(slopes[0]), float(intercepts[0]))


def fit_sigmoids(
    outputs: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> tuple[Array, Array]:
    """Slopes and intercepts of `fit_sigmoid` for many rows of outputs at once.

    Parameters
    ----------
    outputs : (m, n) with a row for each sigmoid; ``np.broadcast_to`` repeats one vector.
    labels : (n,) -1 and +1, the same for all rows; not checked.
    sample_weight : (n,) for all rows, or (m, n); ones by default. Samples of weight zero are
        held out of their row, including its counts and so its targets. Not checked.

    Returns
    -------
    slopes, intercepts : (m,) each.

    Raises
    ------
    ValueError
        If outputs are not finite.

    Notes
    -----
    Rows are processed in blocks: beside the arguments this takes a few megabytes of memory
    for rows of a few thousand outputs.

    Examples
    --------
    The sigmoid without each sample in turn:

    >>> import numpy as np
    >>> f, y = np.array([-1.0, -0.2, 0.1, 1.0]), np.array([-1, 1, -1, 1])
    >>> slopes, _ = fit_sigmoids(np.broadcast_to(f, (4, 4)), y, 1 - np.eye(4))
    >>> bool(np.isclose(slopes[3], fit_sigmoid(f[:3], y[:3]).slope))
    True
    """
    outputs = np.asarray(outputs, dtype=np.float64)
    positive = np.asarray(labels) > 0
    weight = np.broadcast_to(1.0 if sample_weight is None else sample_weight, outputs.shape)
    slopes, intercepts = np.empty(len(outputs)), np.empty(len(outputs))
    step = max(1, _BLOCK // outputs.shape[1])
    for start in range(0, len(outputs), step):
        rows = slice(start, start + step)
        block = outputs[rows]
        if not np.isfinite(block).all():
            raise ValueError("outputs must be finite, but some are not.")
        slopes[rows], intercepts[rows] = _fit_rows(block, positive, weight[rows])
    return slopes, intercepts


def fit_increasing_sigmoid(
    outputs: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> Sigmoid:
    """Maximum-likelihood sigmoid among those that do not decrease with the output.

    It is that of `fit_sigmoid` if its slope is negative, and constant otherwise. The
    leave-one-out outputs of a model that predicts a mean decrease with the label of the sample
    left out, because that label is missing from the mean. A decreasing sigmoid would invert the
    predictions.

    Parameters and errors are as for `fit_sigmoid`.

    Examples
    --------
    >>> sigmoid = fit_increasing_sigmoid([1.0, 0.9, -1.0, -1.1], [-1, -1, 1, 1])
    >>> sigmoid.slope, sigmoid.probability(7.0)
    (0.0, array(0.5))
    """
    f, positive, weight = checked_sample(outputs, labels, sample_weight)
    slopes, intercepts = fit_increasing_sigmoids(f[None], np.where(positive, 1, -1), weight[None])
    return Sigmoid(float(slopes[0]), float(intercepts[0]))


def fit_increasing_sigmoids(
    outputs: Array, labels: npt.ArrayLike, sample_weight: Array
) -> tuple[Array, Array]:
    """Slopes and intercepts of `fit_increasing_sigmoid` for many rows, as in `fit_sigmoids`."""
    slopes, intercepts = fit_sigmoids(outputs, labels, sample_weight)
    falling = np.flatnonzero(slopes > 0)
    targets, weight = platt_targets(np.asarray(labels) > 0, sample_weight[falling])
    mean = half_but_for_rounding(np.average(targets, axis=-1, weights=weight))
    slopes[falling], intercepts[falling] = 0.0, np.log((1.0 - mean) / mean)
    return slopes, intercepts


def half_but_for_rounding(p: Array) -> Array:
    """Probabilities, with exactly ½ where they differ from it by rounding only."""
    return np.where(np.abs(p - 0.5) < 1e-12, 0.5, p)


def checked_sample(
    outputs: Any, labels: Any, sample_weight: Any, name: str = "outputs"
) -> tuple[Array, npt.NDArray[np.bool_], Array]:
    """Checked outputs, by their ``name``, ``labels == 1`` and weights of the samples with positive
    weight."""
    f = np.asarray(outputs, dtype=np.float64)
    positive = positive_labels(labels)
    given = np.ones(positive.shape) if sample_weight is None else sample_weight
    weight = np.asarray(given, dtype=np.float64)
    shapes = f.shape, positive.shape, weight.shape
    if f.ndim != 1 or len(set(shapes)) > 1:
        raise ValueError(
            f"{name}, labels and weights must be columns of one length, but have shapes {shapes}."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"{setting('sample_weight')} must be finite and not negative.")
    weighted = weight > 0
    if not weighted.any():
        raise ValueError(f"{setting('sample_weight')} must be positive for at least one sample.")
    if not np.isfinite(f[weighted]).all():
        raise ValueError(f"{name} must be finite, but some are not.")
    return f[weighted], positive[weighted], weight[weighted]


def platt_targets(positive: npt.NDArray[np.bool_], weight: Array) -> tuple[Array, Array]:
    """Targets of the likelihood and the weights scaled to mean one, along the last axis.

    Parameters
    ----------
    positive : (n,) whether each sample is of the positive class.
    weight : (..., n) nonnegative weights, some of them positive.
    """
    weight = weight / weight.max(axis=-1, keepdims=True)  # so that no sum overflows
    counted = np.count_nonzero(weight, axis=-1, keepdims=True)
    weight = weight * (counted / weight.sum(axis=-1, keepdims=True))
    n_positive = weight[..., positive].sum(axis=-1, keepdims=True)
    n_negative = weight[..., ~positive].sum(axis=-1, keepdims=True)
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    return targets, weight


def positive_labels(labels: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """True for labels +1; ValueError unless they are -1 and +1."""
    labels = np.asarray(labels)
    positive = np.asarray(labels == 1)
    if not (positive | (labels == -1)).all():
        raise ValueError("labels must be -1 and +1; encode the classes as these.")
    return positive


def positive_class(labels: npt.ArrayLike, name: str) -> tuple[str, npt.NDArray[np.bool_]]:
    """The second of two sorted classes, and where it is; ValueError for others than two."""
    if gaps_in(labels).any():
        raise ValueError(f"{name} must have no gaps: leave such rows out.")
    classes = np.unique(np.asarray(labels))
    if len(classes) != 2:
        raise ValueError(f"{name} must have two classes, but has {len(classes)}.")
    return str(classes[1]), np.asarray(np.asarray(labels) == classes[1])


class _Rows(NamedTuple):
    """Standardized outputs, targets and weights of several sigmoids, a row each."""

    outputs: Array
    targets: Array
    weight: Array

    def chosen(self, rows: npt.NDArray[np.bool_]) -> _Rows:
        return self if rows.all() else _Rows(*(array[rows] for array in self))

    def z(self, x: Array) -> Array:
        """Log-odds of the negative class for slopes and intercepts x, (m, 2)."""
        return np.asarray(x[:, :1] * self.outputs + x[:, 1:])

    def loss(self, x: Array) -> Array:
        """(m,) t z + log(1 + exp(-z)), summed."""
        z = self.z(x)
        # The logarithm of the larger of 1 and exp(-z) apart, that of the ratio beside it.
        losses = self.targets * z + np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))
        return np.asarray(np.einsum("ij,ij->i", self.weight, losses))


def _fit_rows(outputs: Array, positive: npt.NDArray[np.bool_], weight: Array) -> tuple[Array, ...]:
    """Slopes and intercepts for one block of rows."""
    targets, weight = platt_targets(positive, weight)
    total = weight.sum(axis=1)
    # Below that a slope is no number: such outputs are equal.
    largest = np.maximum(np.abs(outputs * (weight > 0)).max(axis=1), 1e-290)
    g = outputs / largest[:, None]
    g = np.where(weight > 0, g, 0.0)
    center = np.einsum("ij,ij->i", weight, g) / total
    g -= center[:, None]
    spread = np.sqrt(np.einsum("ij,ij,ij->i", weight, g, g) / total)
    spread[spread < 1e-14] = 1.0  # equal outputs but for rounding: the slope stays zero
    g /= spread[:, None]
    slope, intercept = _newton(_Rows(g, targets, weight)).T
    slope = slope / spread
    return slope / largest, intercept - slope * center


def _newton(rows: _Rows) -> Array:
    """Slope and intercept of least loss of each row, (m, 2), by Newton's method."""
    total = rows.weight.sum(axis=1)
    mean_target = np.einsum("ij,ij->i", rows.weight, rows.targets) / total
    x = np.column_stack([np.zeros(len(total)), np.log((1.0 - mean_target) / mean_target)])
    moving, loss = np.full(len(total), True), rows.loss(x)
    for _ in range(_MAX_ITERATIONS):
        part, start, before = rows.chosen(moving), x[moving], loss[moving]
        z = part.z(start)
        p = expit(-z)
        difference = part.weight * (part.targets - p)
        curvature = part.weight * p * expit(z)
        mass = curvature.sum(axis=1) + np.finfo(float).tiny
        center = np.einsum("ij,ij->i", curvature, part.outputs) / mass
        g = part.outputs - center[:, None]
        # About that center the Hessian is diagonal.
        variance = np.einsum("ij,ij,ij->i", curvature, g, g)
        gradient_slope = np.einsum("ij,ij->i", difference, g)
        gradient_level = difference.sum(axis=1)
        flat = variance <= 1e-28 * mass
        step_slope = np.where(flat, 0.0, -gradient_slope / np.where(flat, 1.0, variance))
        step_level = -gradient_level / mass
        step = np.column_stack([step_slope, step_level - center * step_slope])
        decrement = -(gradient_slope * step_slope + gradient_level * step_level)
        # Backtracking, by steps that are halved where they do not lower the loss enough.
        end, reached, waiting = start.copy(), before.copy(), np.full(len(start), True)
        slack = 1e-13 * np.abs(before)  # differences of the loss below it are rounding
        for halving in range(_HALVINGS):
            length = 0.5**halving
            tried = start[waiting] + length * step[waiting]
            value = part.chosen(waiting).loss(tried)
            enough = value <= (before - 1e-4 * length * decrement + slack)[waiting]
            accepted = np.flatnonzero(waiting)[enough]
            end[accepted], reached[accepted] = tried[enough], value[enough]
            waiting[accepted] = False
            if not waiting.any():
                break
        x[moving], loss[moving] = end, reached
        # A step of so small a decrement ends at full precision.
        moving[moving] = ~waiting & (decrement > 1e-22 * total[moving])
        if not moving.any():
            break
    return x
