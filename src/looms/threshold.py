"""Threshold of a two-class model for any metric, from its leave-one-out outputs.

A rule defines a loss of the decisions, and `find_threshold` minimizes it on the leave-one-out
outputs. The minimum is an optimistic estimate of performance.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from looms._advice import setting
from looms._typing import AnyArray, Array
from looms.held_out import HeldOut

__all__ = ["Cost", "FBeta", "find_threshold", "ordinal_thresholds"]

_ROUNDING = 1e-12  # losses that differ by the rounding of cumulative sums alone are equal


def _check(value: Any, name: str, low: float, high: float) -> None:
    """Raise ValueError unless ``value`` is a finite number above ``low`` and at most ``high``."""
    if not (isinstance(value, Real) and np.isfinite(float(value)) and low < float(value) <= high):
        bounds = "finite" if low == -np.inf else f"above {low:g}"
        bounds += "" if high == np.inf else f" and at most {high:g}"
        raise ValueError(f"{name} must be a number, {bounds}, got {value!r}.")


class Counts(NamedTuple):
    """Weighted counts at every cut, from the lowest to the highest.

    true_positive, false_positive, false_negative, true_negative : (n_cuts,) sums of weights.
    """

    true_positive: Array
    false_positive: Array
    false_negative: Array
    true_negative: Array


class ThresholdRule(ABC):
    """Base class of rules, each a loss of the decisions at a threshold."""

    #: Rules count by weights; a metric may not.
    takes_weight = True

    @property
    def loss_name(self) -> str:
        """Name of the loss, in few words."""
        return "loss"

    @abstractmethod
    def losses(self, counts: Counts) -> tuple[Array, ...]:
        """Loss at every cut, smaller is better; further arrays break ties."""


@dataclass(frozen=True)
class BalancedError(ThresholdRule):
    """Rule for the lowest balanced error rate [G06], which is the loss.

    Examples
    --------
    >>> loo = HeldOut([-1, -1, -1, 1], [-0.9, -0.7, -0.8, -0.5])
    >>> threshold, rate = find_threshold(loo, BalancedError())
    >>> round(threshold, 12), rate
    (-0.6, 0.0)
    """

    loss_name = "balanced error"

    def losses(self, counts: Counts) -> tuple[Array, ...]:
        tp, fp, fn, tn = counts
        return (0.5 * (fn / (tp + fn) + fp / (fp + tn)),)


@dataclass(frozen=True)
class FBeta(ThresholdRule):
    """Rule for the highest F score of the positive class; the loss is 1 − F.

    Parameters
    ----------
    beta : positive; recall is treated as beta times as important as precision.

    Examples
    --------
    >>> loo = HeldOut([-1, 1, -1, 1], [-0.9, -0.7, 0.2, 0.5])
    >>> round(find_threshold(loo, FBeta(beta=2.0))[0], 12)  # takes both positives
    -0.8
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        _check(self.beta, "beta", 0.0, np.inf)

    @property
    def loss_name(self) -> str:
        return f"1 - F{self.beta:g}"

    def losses(self, counts: Counts) -> tuple[Array, ...]:
        tp, fp, fn, _ = counts
        return (1.0 - (1 + self.beta**2) * tp / ((1 + self.beta**2) * tp + self.beta**2 * fn + fp),)


@dataclass(frozen=True)
class Cost(ThresholdRule):
    """Rule for the lowest expected cost; the loss is the mean cost per sample.

    The positive class of an estimator is its ``pos_label``, by default the later label in order.

    Parameters
    ----------
    false_positive, false_negative, true_positive, true_negative : cost of each kind of decision,
        in any unit; gains are negative costs.

    Examples
    --------
    >>> loo = HeldOut([-1, 1, -1, 1], [-0.9, -0.7, 0.2, 0.5])
    >>> round(find_threshold(loo, Cost(false_positive=5.0))[0], 12)
    0.35
    """

    false_positive: float = 1.0
    false_negative: float = 1.0
    true_positive: float = 0.0
    true_negative: float = 0.0
    loss_name = "cost per row"

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative", "true_positive", "true_negative"):
            _check(getattr(self, name), name, -np.inf, np.inf)

    def losses(self, counts: Counts) -> tuple[Array, ...]:
        tp, fp, fn, tn = counts
        cost = tp * self.true_positive + fp * self.false_positive
        cost = cost + fn * self.false_negative + tn * self.true_negative
        return (cost / (tp + fp + fn + tn),)


@dataclass(frozen=True)
class AtLeast(ThresholdRule):
    """Rule for the highest recall with at least a given precision, or the reverse.

    The loss is one minus the rate that is to be high. If no threshold reaches ``least``, it is 1
    plus what is missing. Among equal losses the higher ``rate`` wins.

    Parameters
    ----------
    rate : "recall" or "precision", which has a least value.
    least : of that rate for the positive class (``pos_label`` of an estimator), in (0, 1].

    Examples
    --------
    >>> loo = HeldOut([-1, 1, -1, 1], [-0.9, -0.7, 0.2, 0.5])
    >>> threshold, loss = find_threshold(loo, AtLeast("precision", 0.9))
    >>> round(threshold, 12), loss  # a recall of one half
    (0.35, 0.5)
    >>> threshold, loss = find_threshold(loo, AtLeast("recall", 1.0))
    >>> round(1 - loss, 4)  # the precision
    0.6667
    """

    rate: Literal["recall", "precision"]
    least: float

    def __post_init__(self) -> None:
        _check(self.least, self.rate, 0.0, 1.0)

    @property
    def loss_name(self) -> str:
        return f"1 - {'precision' if self.rate == 'recall' else 'recall'}"

    def losses(self, counts: Counts) -> tuple[Array, ...]:
        tp, fp, fn, _ = counts
        recall, called = tp / (tp + fn), tp + fp
        precision = np.divide(tp, called, out=np.zeros_like(tp), where=called > 0)
        rate, opposite = (recall, precision) if self.rate == "recall" else (precision, recall)
        met = rate >= self.least - _ROUNDING
        return np.where(met, 1.0 - opposite, 1.0 + self.least - rate), -rate


@dataclass(frozen=True)
class Metric:
    """Rule for the best value of any function of labels and predictions.

    The loss is the value of the function, or its negative.

    Parameters
    ----------
    function : function of ``(y_true, y_pred)``, both ±1, and of ``sample_weight`` if it takes
        that, such as those in ``sklearn.metrics``. It is called for every cut, n times, whereas
        the other rules of this module take one pass.
    greater_is_better : False for losses.

    Examples
    --------
    >>> from sklearn.metrics import matthews_corrcoef
    >>> loo = HeldOut([-1, 1, -1, 1], [-0.9, -0.7, 0.2, 0.5])
    >>> threshold, loss = find_threshold(loo, Metric(matthews_corrcoef))
    >>> round(-loss, 4)
    0.5774
    """

    function: Callable[..., float]
    greater_is_better: bool = True

    @property
    def takes_weight(self) -> bool:
        """True if the function takes ``sample_weight``."""
        return "sample_weight" in signature(self.function).parameters

    def loss(self, y: AnyArray, predicted: AnyArray, weight: Array) -> float:
        """Loss of predictions for the samples with positive weight."""
        options: dict[str, Any] = {}
        if self.takes_weight:
            options["sample_weight"] = weight
        elif np.ptp(weight) > 0:
            raise ValueError(
                f"{self.function!r} takes no sample_weight, but the samples have different "
                "weights; give a metric that does."
            )
        value = float(self.function(y, predicted, **options))
        if not np.isfinite(value):
            raise ValueError(
                f"{self.function!r} gives {value} for a threshold, not a finite number."
            )
        return -value if self.greater_is_better else value


#: Rules by name.
RULES: dict[str, ThresholdRule] = {"balanced": BalancedError(), "f1": FBeta()}


def threshold_rule(threshold: Any) -> ThresholdRule | Metric:
    """Rule from a name, such as "balanced", "recall=0.9" or "cost=1:5", an object or a function.

    Raises
    ------
    ValueError
        For anything else; the message lists what is known.

    Examples
    --------
    >>> from looms.threshold import threshold_rule
    >>> threshold_rule("cost=1:5")
    Cost(false_positive=1.0, false_negative=5.0, true_positive=0.0, true_negative=0.0)
    """
    if isinstance(threshold, ThresholdRule | Metric):
        return threshold
    if isinstance(threshold, str):
        if threshold in RULES:
            return RULES[threshold]
        name, _, texts = threshold.partition("=")
        numbers: list[float] = []
        with suppress(ValueError):
            numbers = [float(text) for text in texts.split(":")]
        match name, numbers:
            case ("recall" | "precision") as rate, [least]:
                return AtLeast(rate, least)
            case "cost", [false_positive, false_negative]:
                for value in (false_positive, false_negative):
                    _check(value, "each cost", 0.0, np.inf)
                return Cost(false_positive, false_negative)
    elif callable(threshold) and not isinstance(threshold, type):
        return Metric(threshold)
    names = ", ".join(map(repr, [*RULES, "recall=0.9", "precision=0.8", "cost=1:5"]))
    others = ", an object of looms.threshold, and a metric of (y_true, y_pred)"
    raise ValueError(
        f"Unknown {setting('threshold')} {threshold!r}; known are a probability between 0 and 1, "
        f"{names}{setting('rules', text=others)}."
    )


def find_threshold(loo: HeldOut, rule: Any = "balanced") -> tuple[float, float]:
    """Threshold with the smallest loss on leave-one-out outputs, and that loss.

    Outputs above the threshold are positive. The threshold lies midway between two neighboring
    outputs, or beyond all of them by 1 if every sample is predicted as one class. Among equally
    good thresholds it is the one nearest to zero or, if nothing separates better, the one above all
    outputs.

    Parameters
    ----------
    loo : (n,) labels ±1, both present with positive weight; samples of weight zero are ignored.
    rule : "balanced", "f1", "recall=0.9", "precision=0.8" or "cost=1:5" with numbers of your own,
        `FBeta`, `Cost`, or a function of ``(y_true, y_pred[, sample_weight])`` for which larger is
        better.

    Returns
    -------
    threshold : in units of the outputs.
    loss : loss of the rule at the threshold. It is optimistic, because the threshold
        was tuned on it.

    Raises
    ------
    ValueError
        If there is more than one target or only one class, outputs are not finite, the rule is
        unknown or gives NaN, or a metric is not finite.

    Notes
    -----
    O(n log n), or n calls of a function. scikit-learn's TunedThresholdClassifierCV computes a curve
    for each test split, so it cannot hold out single samples.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> loo = KernelClassifier("linear", mu=1e-3).fit(X[:, :2], y).loo_
    >>> threshold, loss = find_threshold(loo, FBeta(2.0))
    >>> threshold < find_threshold(loo, Cost(false_positive=5, false_negative=1))[0]
    True
    """
    rule = threshold_rule(rule)
    if loo.y.ndim != 1:
        raise ValueError("A threshold needs two classes; for more, the largest output decides.")
    weighted = np.flatnonzero(loo.sample_weight > 0)  # the others must not place the cuts
    order = weighted[np.argsort(loo.outputs[weighted], kind="stable")]
    f, weight, positive = loo.outputs[order], loo.sample_weight[order], loo.y[order] > 0
    if not np.isfinite(f).all():
        raise ValueError("A threshold needs finite outputs, but some are not finite.")
    if not (positive.any() and (~positive).any()):
        raise ValueError("A threshold needs samples of both classes.")
    midway = 0.5 * (f[:-1] + f[1:])
    midway = np.where(midway < f[1:], midway, f[:-1])  # neighbors among floating-point numbers
    cuts = np.concatenate([[f[0] - 1.0], midway, [f[-1] + 1.0]])
    distinct = np.flatnonzero(np.concatenate([[True], f[:-1] < f[1:], [True]]))
    if isinstance(rule, Metric):
        rank, labels = np.arange(len(f)), np.where(positive, 1, -1)
        predictions = (np.where(rank >= cut, 1, -1) for cut in distinct)
        losses = (np.array([rule.loss(labels, predicted, weight) for predicted in predictions]),)
    else:
        # Sums from either end, so that a class all on one side counts zero on the other exactly.
        by_class = [weight * side for side in (positive, ~positive)]
        below = [np.append(0.0, np.cumsum(w))[distinct] for w in by_class]
        above = [np.append(np.cumsum(w[::-1])[::-1], 0.0)[distinct] for w in by_class]
        losses = rule.losses(Counts(*above, *below))
        if any(np.isnan(loss).any() for loss in losses):
            raise ValueError(
                f"{rule!r} gives NaN for a threshold; give a number for every cut, and the worst "
                "one where none is defined."
            )
    best = np.arange(len(distinct))
    for loss in losses:
        best = best[loss[best] <= loss[best].min() + _ROUNDING]
    cuts = cuts[distinct]
    inner = best[(best > 0) & (best < len(cuts) - 1)]
    chosen = inner[np.argmin(np.abs(cuts[inner]))] if len(inner) else best[-1]
    return float(cuts[chosen]), float(losses[0][chosen])


def ordinal_thresholds(held_out: HeldOut) -> Array:
    """Thresholds between ordered classes with the smallest absolute error on held-out outputs.

    Each threshold separates class j from those below it, as for two classes. Together these
    decisions minimize the mean distance between the assigned class and the true class, whatever
    the distances between neighboring classes. Among equally good thresholds each is the one nearest
    to the middle of its two classes.

    Parameters
    ----------
    held_out : numbers of the classes in order, and outputs of a regression on them.

    Returns
    -------
    thresholds : (n_classes - 1,), nondecreasing; an output belongs to the class
        ``np.searchsorted(thresholds, output)``.

    Examples
    --------
    >>> ordinal_thresholds(HeldOut([0, 0, 1, 1, 2], [0.1, 0.3, 0.5, 1.1, 1.3])).round(3)
    array([0.4, 1.2])
    """
    y, outputs, weight = held_out
    levels, cuts = np.unique(y), []
    for level, middle in zip(levels[1:], (levels[1:] + levels[:-1]) / 2, strict=True):
        above = HeldOut(np.where(y >= level, 1.0, -1.0), outputs - middle, weight)
        cuts.append(middle + find_threshold(above, Cost())[0])
    return np.sort(cuts)  # of equal losses they may cross
