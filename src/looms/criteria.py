"""Model selection criteria of leave-one-out outputs.

Every criterion is a mean over samples, by their weights, and over targets where there are
several (the one-against-rest columns of a multi-class problem). Smaller is better. With labels
t = ±1 and outputs f the leave-one-out margin is t f, and t r = 1 − t f.

Those in `DIFFERENTIABLE` have a gradient and guide the search; the error rates are
steps, for the choice among tuned candidates and for reports.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from looms._checks import check_known
from looms._classes import class_indices
from looms._typing import AnyArray, Array

__all__ = [
    "PRESS",
    "WMW",
    "CrossEntropy",
    "Hinge",
    "SmoothedError",
    "SquaredHinge",
    "balanced_error_rate",
    "error_rate",
]

_BLOCK = 1 << 20  # pairs of samples held at a time


class Evaluation(NamedTuple):
    """Value of a criterion with its standard error and derivative.

    value : the criterion J.
    standard_error : of J as an estimate from a sample.
    slope : ∂J/∂f, shaped like the outputs.
    """

    value: float
    standard_error: float
    slope: Array


class Criterion(ABC):
    """Base class of differentiable criteria."""

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
        groups : (n,) nonnegative integers, the same for rows that were held out together, whose
            losses make one error; each row by itself unless given.
        """


class PointwiseCriterion(Criterion):
    """Criterion that is a weighted mean of one loss a sample and target."""

    @abstractmethod
    def loss(self, y: Array, f: Array) -> tuple[Array, Array]:
        """Loss of outputs ``f`` for targets ``y`` and its derivative in ``f``, elementwise."""

    def evaluate(
        self, y: Array, outputs: Array, sample_weight: Array, groups: AnyArray | None = None
    ) -> Evaluation:
        losses, slopes = self.loss(y, outputs)
        weight = sample_weight / sample_weight.sum()
        by_sample = losses if losses.ndim == 1 else losses.mean(axis=1)
        value = float(weight @ by_sample)
        error = standard_error(weight * (by_sample - value), groups)
        share = weight if losses.ndim == 1 else weight[:, None] / losses.shape[1]
        return Evaluation(value, error, share * slopes)


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

    A pair counts with the product of its sample weights. [G06] prints the opposite
    sign, which is the AUC itself. For several targets: the mean over them.

    Parameters
    ----------
    steepness : slope of the step, per unit of difference of two outputs.

    Raises
    ------
    ValueError
        By `evaluate`, if a class is missing or has no weight.

    Notes
    -----
    O(n₊ n₋) in time, in blocks of about 10⁶ pairs. The standard error is that of a
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
        )

    def _one_target(self, y: Array, f: Array, weight: Array, groups: AnyArray | None) -> Evaluation:
        positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
        if not (weight[positive].any() and weight[negative].any()):
            raise ValueError("WMW compares two classes: each needs a sample of positive weight.")
        w_pos = weight[positive] / weight[positive].sum()
        w_neg = weight[negative] / weight[negative].sum()
        f_pos, f_neg = f[positive], f[negative]
        slope = np.empty_like(f)
        placement_pos = np.empty_like(f_pos)
        placement_neg = np.zeros_like(f_neg)
        slope_neg = np.zeros_like(f_neg)
        step = max(1, _BLOCK // len(f_neg))
        for start in range(0, len(f_pos), step):
            part = slice(start, start + step)
            swapped = expit(self.steepness * (f_neg - f_pos[part, None]))
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
        return Evaluation(value, standard_error(deviations, groups), slope)


def standard_error(deviations: Array, groups: AnyArray | None = None) -> float:
    r"""Standard error of a sum over samples, from their centered contributions.

    .. math:: \sqrt{\sum_g \bigl(\sum_{i \in g} d_i\bigr)^2}

    Parameters
    ----------
    deviations : (n,) the d_i.
    groups : (n,) nonnegative integers, the same for samples that come together, as copies do;
        each by itself unless given.
    """
    drawn = deviations if groups is None else np.bincount(groups, weights=deviations)
    return float(np.sqrt(np.sum(drawn**2)))


def error_rate(
    y: npt.ArrayLike,
    outputs: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.0,
) -> float:
    """Weighted error rate of held-out outputs for ±1 targets.

    Parameters
    ----------
    y : ±1 targets; (n,) or (n, 1) for two classes, (n, k) for k, one against the rest.
    outputs : held-out outputs, shaped like the targets; of k classes the largest wins.
    sample_weight : (n,) nonnegative; ones unless given.
    threshold : outputs above it are positive; two classes only.

    Returns
    -------
    rate : in [0, 1].

    Examples
    --------
    >>> error_rate([1, -1, 1], [0.3, -0.2, -0.9], sample_weight=[1, 1, 2])
    0.5
    """
    wrong = class_indices(np.asarray(y)) != class_indices(np.asarray(outputs), threshold)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    return float(np.average(wrong, weights=weight))


def balanced_error_rate(
    y: npt.ArrayLike,
    outputs: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.0,
) -> float:
    """Mean over classes of the weighted error rate in the class (BER) [C06 I-A].

    Arguments as for `error_rate`. A class without weight does not count.

    Examples
    --------
    >>> y, outputs = [1, 1, 1, -1], [0.3, -0.2, 0.9, -0.5]
    >>> error_rate(y, outputs), round(balanced_error_rate(y, outputs), 4)
    (0.25, 0.1667)
    """
    labels = class_indices(np.asarray(y))
    return mean_class_error(
        labels, labels != class_indices(np.asarray(outputs), threshold), sample_weight
    )


def mean_class_error(
    labels: npt.NDArray[np.intp], wrong: AnyArray, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Mean over classes of the weighted share of wrong decisions in the class.

    Parameters
    ----------
    labels : (n,) class indices. A class without weight does not count.
    wrong : (n,) bool.
    sample_weight : (n,) nonnegative; ones unless given.
    """
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
    mass = np.bincount(labels, weights=weight)
    present = mass > 0
    rates = np.bincount(labels, weights=weight * wrong)[present] / mass[present]
    return float(rates.mean())


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
        For an unknown name, with the known ones.
    TypeError
        For anything else.
    """
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str):
        check_known(criterion, "criterion", DIFFERENTIABLE)
        return DIFFERENTIABLE[criterion]
    raise TypeError(f"A criterion is a name or a looms.criteria object, got {criterion!r}.")
