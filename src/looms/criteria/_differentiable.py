"""Differentiable criteria, which guide the search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from looms._checks import check_known
from looms._typing import AnyArray, Array

_BLOCK = 1 << 16  # pairs of samples at a time, as many as stay near the processor


class Evaluation(NamedTuple):
    """Value of a criterion, with its standard error and derivative.

    Attributes
    ----------
    value : the criterion J.
    standard_error : standard error of J as an estimate from a sample.
    slope : ∂J/∂f, shaped like the outputs.
    deviations : (n,) contribution of each row to the deviation of J from its mean, with which the
        difference between two settings is judged; None if unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.criteria import PRESS
    >>> PRESS().evaluate(np.array([1.0, 3.0]), np.array([2.0, 2.0]), np.ones(2)).slope
    array([ 1., -1.])
    """

    value: float
    standard_error: float
    slope: Array
    deviations: Array | None = None


class Criterion(ABC):
    """Base class of differentiable criteria.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.criteria import Criterion, PRESS
    >>> isinstance(PRESS(), Criterion)
    True
    >>> PRESS().evaluate(np.array([1.0, 3.0]), np.array([2.0, 3.0]), np.ones(2)).value
    0.5
    """

    #: Whether targets must be labels ±1.
    needs_labels: bool = True

    @abstractmethod
    def evaluate(
        self, y: Array, outputs: Array, sample_weight: Array, groups: AnyArray | None = None
    ) -> Evaluation:
        """Value, standard error and slope.

        Parameters
        ----------
        y : (n,) or (n, t) targets.
        outputs : held-out outputs, shaped like the targets.
        sample_weight : (n,) nonnegative, with a positive sum; only ratios count.
        groups : (n,) nonnegative integers, equal for rows that were held out together, whose
            losses count as one in the standard error; by default each row is its own group.
        """

    def values(self, Y: Array, outputs: Array, weight: Array) -> Array:
        """Values for b models on the same rows, each with its own outputs and weights, (b,).

        Parameters
        ----------
        Y : (n, t) targets.
        outputs : (n, b, t) outputs; for rows of weight zero, any finite number.
        weight : (n, b) nonnegative, with positive sums.
        """
        counted = weight.T > 0
        return np.array(
            [
                self.evaluate(Y[rows], outputs[rows, b], weight[rows, b]).value
                for b, rows in enumerate(counted)
            ]
        )


class PointwiseCriterion(Criterion):
    """Criterion that is a weighted mean of a loss for each sample and target.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.criteria import PRESS, PointwiseCriterion
    >>> issubclass(PRESS, PointwiseCriterion)
    True
    >>> PRESS().loss(np.array([1.0]), np.array([3.0]))  # and its derivative in the output
    (array([4.]), array([4.]))
    """

    @abstractmethod
    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        """Loss of outputs ``f`` for targets ``y``, and its derivative in ``f``, elementwise."""

    def evaluate(
        self, y: Array, outputs: Array, sample_weight: Array, groups: AnyArray | None = None
    ) -> Evaluation:
        losses, slopes = self.loss(y, outputs)
        weight = sample_weight / sample_weight.sum()
        by_sample = losses if losses.ndim == 1 else losses.mean(axis=1)
        value = float(weight @ by_sample)
        deviations = weight * (by_sample - value)
        share = weight if losses.ndim == 1 else weight[:, None] / losses.shape[1]
        return Evaluation(value, standard_error(deviations, groups), share * slopes, deviations)

    def values(self, Y: Array, outputs: Array, weight: Array) -> Array:
        losses = self.loss(Y[:, None], outputs)[0].mean(axis=2)
        return np.asarray(np.einsum("nb,nb->b", weight, losses) / weight.sum(axis=0))


@dataclass(frozen=True)
class PRESS(PointwiseCriterion):
    """Mean squared leave-one-out residual, ζ r² (Allen's PRESS over n) [C06 II-G].

    Examples
    --------
    >>> from looms import HeldOut
    >>> PRESS().evaluate(*HeldOut([1.0, 3.0], [0.0, 1.0])).value
    2.5
    """

    needs_labels = False

    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        r = y - f
        return r**2, -2.0 * r


@dataclass(frozen=True)
class Hinge(PointwiseCriterion):
    """Mean hinge loss of the leave-one-out margins, ζ [1 − t f]₊ [C06 II-G].

    Examples
    --------
    >>> from looms import HeldOut
    >>> Hinge().evaluate(*HeldOut([1.0, -1.0], [0.5, 0.5])).value
    1.0
    """

    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        violation = np.maximum(1.0 - y * f, 0.0)
        return violation, -y * (violation > 0)


@dataclass(frozen=True)
class SquaredHinge(PointwiseCriterion):
    """Mean squared hinge loss of the leave-one-out margins, ζ [1 − t f]₊² [C06 II-G].

    Examples
    --------
    >>> from looms import HeldOut
    >>> SquaredHinge().evaluate(*HeldOut([1.0, -1.0], [0.5, 0.5])).value
    1.25
    """

    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        violation = np.maximum(1.0 - y * f, 0.0)
        return violation**2, -2.0 * y * violation


@dataclass(frozen=True)
class SmoothedError(PointwiseCriterion):
    """Leave-one-out error rate with a logistic step, ζ σ(−steepness t f) [C06 eq. 20].

    Parameters
    ----------
    steepness : slope of the step, per unit of output. At the default 10 a margin of
        0.2 counts 0.12 of an error, one of −0.2 counts 0.88.

    Examples
    --------
    >>> from looms import HeldOut
    >>> loo = HeldOut([1.0, -1.0], [0.9, 0.4])
    >>> round(SmoothedError(steepness=1e3).evaluate(*loo).value, 12)  # one of two is wrong
    0.5
    """

    steepness: float = 10.0

    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        error = expit(-self.steepness * y * f)
        return error, -self.steepness * y * error * (1.0 - error)


@dataclass(frozen=True)
class CrossEntropy(PointwiseCriterion):
    """Mean logistic loss of the leave-one-out margins, ζ log(1 + exp(−steepness t f)) [G06].

    Parameters
    ----------
    steepness : log-odds per unit of output. An LS-SVM output estimates 2p − 1, whose
        log-odds 2 artanh f have slope 2 at f = 0: the default.

    Examples
    --------
    >>> from looms import HeldOut
    >>> value = CrossEntropy().evaluate(*HeldOut([1.0, -1.0], [0.0, 0.0])).value
    >>> bool(np.isclose(value, np.log(2)))
    True
    """

    steepness: float = 2.0

    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        z = -self.steepness * y * f
        return np.logaddexp(0.0, z), -self.steepness * y * expit(z)


@dataclass(frozen=True)
class WMW(Criterion):
    """Smoothed 1 − AUC: mean of σ(steepness (f_j − f_i)), i positive, j negative [C06, G06].

    The weight of a pair is the product of its sample weights. [G06] prints the opposite
    sign, which gives the AUC itself. Several targets are averaged.

    Parameters
    ----------
    steepness : slope of the step, per unit of difference between two outputs.

    Raises
    ------
    ValueError
        By `evaluate`, if a class is missing or has no weight.

    Notes
    -----
    O(n₊ n₋) in time, in blocks of pairs. The standard error is that of a
    two-sample U statistic (DeLong, DeLong & Clarke-Pearson 1988).

    Examples
    --------
    >>> from looms import HeldOut
    >>> loo = HeldOut([1.0, -1.0, -1.0], [0.5, 0.8, -0.3])
    >>> round(WMW(steepness=1e3).evaluate(*loo).value, 12)  # one of two pairs is swapped
    0.5
    """

    steepness: float = 10.0

    def evaluate(
        self, y: Array, outputs: Array, sample_weight: Array, groups: AnyArray | None = None
    ) -> Evaluation:
        columns = zip(y.reshape(len(y), -1).T, outputs.reshape(len(y), -1).T, strict=True)
        results = [self._one_target(t, f, sample_weight, groups) for t, f in columns]
        slope = np.column_stack([r.slope for r in results]) / len(results)
        return Evaluation(
            float(np.mean([r.value for r in results])),
            float(np.mean([r.standard_error for r in results])),
            slope.reshape(y.shape),
            np.mean([np.asarray(r.deviations) for r in results], axis=0),
        )

    def values(self, Y: Array, outputs: Array, weight: Array) -> Array:
        values = np.zeros((Y.shape[1], weight.shape[1]))
        for value, y, f in zip(values, Y.T, outputs.transpose(2, 1, 0), strict=True):
            positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
            w_pos, w_neg = _shares(weight.T[:, positive]), _shares(weight.T[:, negative])
            step = max(1, _BLOCK // (len(positive) * len(negative)))
            for start in range(0, len(f), step):
                part = slice(start, start + step)
                swapped = self._swapped(f[part, positive], f[part, negative])
                placement = (swapped @ w_neg[part, :, None])[..., 0]
                value[part] = np.einsum("bi,bi->b", placement, w_pos[part])
        return np.asarray(values.mean(axis=0))

    def _swapped(self, f_pos: Array, f_neg: Array) -> Array:
        """Logistic steps, (..., n_pos, n_neg), of all pairs of outputs (..., n_pos), (..., n_neg).

        By exponentials, several at a time; where one overflows the pair is in order.
        """
        steps = f_pos[..., :, None] - f_neg[..., None, :]
        steps *= self.steepness
        with np.errstate(over="ignore"):
            np.exp(steps, out=steps)
        steps += 1.0
        return np.reciprocal(steps, out=steps)

    def _one_target(self, y: Array, f: Array, weight: Array, groups: AnyArray | None) -> Evaluation:
        positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
        w_pos, w_neg = _shares(weight[positive]), _shares(weight[negative])
        f_pos, f_neg = f[positive], f[negative]
        slope = np.empty_like(f)
        placement_pos = np.empty_like(f_pos)
        placement_neg = np.zeros_like(f_neg)
        slope_neg = np.zeros_like(f_neg)
        step = max(1, _BLOCK // len(f_neg))
        for start in range(0, len(f_pos), step):
            part = slice(start, start + step)
            swapped = self._swapped(f_pos[part], f_neg)
            placement_pos[part] = swapped @ w_neg
            placement_neg += w_pos[part] @ swapped
            swapped *= 1.0 - swapped
            slope[positive[part]] = -self.steepness * w_pos[part] * (swapped @ w_neg)
            slope_neg += w_pos[part] @ swapped
        slope[negative] = self.steepness * w_neg * slope_neg
        value = float(w_pos @ placement_pos)
        deviations = np.empty_like(f)
        deviations[positive] = w_pos * (placement_pos - value)
        deviations[negative] = w_neg * (placement_neg - value)
        return Evaluation(value, standard_error(deviations, groups), slope, deviations)


def _shares(weight: Array) -> Array:
    """Weights of the samples of one class, on the last axis, over their sum."""
    total = weight.sum(axis=-1, keepdims=True)
    if not (total > 0).all():
        raise ValueError("WMW compares two classes: each needs a sample with positive weight.")
    return np.asarray(weight / total)


def standard_error(deviations: Array, groups: AnyArray | None = None) -> float:
    r"""Standard error of a sum over samples, from their centered contributions.

    .. math:: \sqrt{\sum_g \bigl(\sum_{i \in g} d_i\bigr)^2}

    Parameters
    ----------
    deviations : (n,) the d_i.
    groups : (n,) nonnegative integers, equal for samples that count as one, such as copies;
        by default each sample is its own group.
    """
    drawn = deviations if groups is None else np.bincount(groups, weights=deviations)
    return float(np.sqrt(np.sum(drawn**2)))


#: Differentiable criteria by name, at their default parameters.
DIFFERENTIABLE: dict[str, Criterion] = {
    "press": PRESS(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "smoothed_error": SmoothedError(),
    "wmw": WMW(),
    "cross_entropy": CrossEntropy(),
}


def as_criterion(criterion: Any) -> Criterion:
    """Criterion from a name or an object.

    Raises
    ------
    ValueError
        For an unknown name; the message lists the known ones.
    TypeError
        For anything else.
    """
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str):
        check_known(criterion, "criterion", DIFFERENTIABLE)
        return DIFFERENTIABLE[criterion]
    raise TypeError(f"A criterion is a name or a looms.criteria object, got {criterion!r}.")
