"""Calibrators by name, fitted to leave-one-out outputs, and class probabilities from them.

For several classes the sigmoid becomes a softmax, with one slope and a constant for each class.
With the other calibrations, one calibrator serves all classes, fitted to all one-against-rest
outputs together. It never decreases, so the class of the largest output has the largest
probability; a calibrator for each class would not ensure this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from looms._checks import check_known
from looms._typing import Array
from looms.calibration._beta import fit_beta
from looms.calibration._isotonic import fit_isotonic
from looms.calibration._sigmoid import (
    Sigmoid,
    checked_sample,
    fit_increasing_sigmoid,
    fit_increasing_sigmoids,
)
from looms.calibration._softmax import (
    OUT_OF_REACH,
    TIES,
    Softmax,
    fit_softmax,
    softmax_without_each,
)
from looms.held_out import HeldOut

_BLOCK = 1 << 20  # weights held at a time, a row for each sample left out
_REACH = 2.0**26  # times the outputs: as far as a half is looked for


@runtime_checkable
class Calibrator(Protocol):
    """Map from outputs to probabilities: `Sigmoid`, `Isotonic`, `Beta`, `Softmax` or another."""

    def probability(self, outputs: npt.ArrayLike, /) -> Array:
        """Probability of the positive class for outputs of any shape; `Softmax`: all classes."""


#: What fits a calibrator to outputs, labels ±1 and weights.
Fitter = Callable[[Array, Array, Array], Calibrator]

#: Calibrations by name; all give probabilities that do not decrease with the output.
CALIBRATIONS: dict[str, Fitter] = {
    "sigmoid": fit_increasing_sigmoid,
    "isotonic": fit_isotonic,
    "beta": fit_beta,
}


def calibration_function(calibration: Any) -> Fitter:
    """Function that fits the calibrator with a given name.

    Raises
    ------
    ValueError
        For an unknown name; the message lists the known ones.
    """
    check_known(calibration, "calibration", CALIBRATIONS, " and None")
    return CALIBRATIONS[calibration]


def fit_calibrator(loo: HeldOut, calibration: str = "sigmoid") -> Calibrator:
    """Calibrator for new samples, from all leave-one-out outputs.

    A leave-one-out output comes from a model trained without its sample, just as the output
    of a new sample does, so no further samples need to be held out.

    Parameters
    ----------
    loo : leave-one-out outputs with labels ±1: (n,) or (n, 1) for two classes, (n, k) for k
        one-against-rest columns. Samples of weight zero are ignored.
    calibration : "sigmoid" (Platt's, never decreasing; for k columns a softmax), "isotonic" or
        "beta". For the last two, k columns count as n k outputs, each with the weight of its
        sample.

    Returns
    -------
    calibrator : its ``probability`` takes outputs and gives the probability of the positive class;
        that of a softmax takes (m, k) outputs and gives the probabilities of all classes. With
        "isotonic" and "beta" for k classes, divide each row by its sum.

    Raises
    ------
    ValueError
        If the name is unknown, labels are not ±1, outputs are not finite or, for the softmax,
        a row does not belong to exactly one class.

    Examples
    --------
    >>> loo = HeldOut([-1, -1, 1, 1], [-0.8, 0.1, -0.1, 0.9])
    >>> fit_calibrator(loo).probability([-1.0, 1.0]).round(2)
    array([0.25, 0.74])
    """
    fit = calibration_function(calibration)
    n_columns = loo.y.size // loo.n_samples
    if calibration == "sigmoid" and n_columns > 1:
        return fit_softmax(loo.outputs, loo.y, loo.sample_weight)
    return fit(loo.outputs.ravel(), loo.y.ravel(), np.repeat(loo.sample_weight, n_columns))


def class_probabilities(calibrator: Calibrator, outputs: npt.ArrayLike) -> Array:
    """Probabilities of all classes.

    Parameters
    ----------
    calibrator : calibrator that never decreases; a `Softmax` must have k constants.
    outputs : (m,) or (m, 1) for two classes, (m, k) for k, in the unit that the calibrator
        was fitted to.

    Returns
    -------
    probabilities : (m, 2) with the positive class last, or (m, k): those of the softmax, or the
        one-against-rest probabilities divided by their sum. Rows sum to one. With k classes the
        largest output (minus `Softmax.thresholds` for the softmax) has the largest probability;
        if the calibrator is flat there, only by a rounding.

    Examples
    --------
    >>> from looms.calibration._sigmoid import Sigmoid
    >>> class_probabilities(Sigmoid(-2.0, 1.0), [[0.9, -0.2, 0.1]]).round(2)
    array([[0.58, 0.17, 0.26]])
    """
    f = np.asarray(outputs, dtype=np.float64)
    f = f.reshape(len(f), -1)
    if isinstance(calibrator, Softmax):
        return calibrator.probability(f)
    return normalized(calibrator.probability(f), f)


def output_at(calibrator: Calibrator, outputs: npt.ArrayLike, probability: float = 0.5) -> float:
    """Largest output at which the positive class has at most some probability, by default ½.

    This is the largest number t with ``calibrator.probability(t) <= probability``. An output is
    above t if and only if its probability is above it, to the last digit.

    Parameters
    ----------
    calibrator : calibrator that never decreases.
    outputs : outputs of any shape, which give the range.
    probability : between 0 and 1.

    Returns
    -------
    threshold : in the unit of the outputs. A calibrator that is flat, or never crosses it, assigns
        all outputs to one class. The threshold is then 2¹⁰ times the largest of ``outputs`` in
        absolute value, positive if that class is the negative one.

    Notes
    -----
    Bisection: about a hundred evaluations, or a thousand if the threshold is zero.

    Examples
    --------
    >>> from looms.calibration._sigmoid import Sigmoid
    >>> output_at(Sigmoid(-4.0, 1.0), [-1.0, 1.0])
    0.25
    >>> output_at(Sigmoid(0.0, 1.0), [-1.0, 1.0])
    1024.0
    """
    size = float(np.abs(np.asarray(outputs)).max())
    high = _REACH * (1.0 + size)
    low = -high
    none = OUT_OF_REACH * (size or 1.0)
    if calibrator.probability(low) > probability:
        return -none
    if calibrator.probability(high) <= probability:
        return none
    while low < (middle := 0.5 * (low + high)) < high:
        if calibrator.probability(middle) > probability:
            high = middle
        else:
            low = middle
    return low


def normalized(probabilities: Array, outputs: Array) -> Array:
    """Probabilities (m, 2) from (m, 1) of the positive class, or (m, k) over their sum."""
    if probabilities.shape[1] == 1:
        return np.hstack([1.0 - probabilities, probabilities])
    impossible = ~probabilities.any(axis=1, keepdims=True)  # each of them, then all alike
    likely = np.where(impossible, 1.0, probabilities)
    likely[np.arange(len(outputs)), outputs.argmax(axis=1)] *= 1.0 + TIES
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def loo_probabilities(loo: HeldOut, calibration: str = "sigmoid") -> Array:
    """Probabilities of the training samples, each from a calibrator fitted without it.

    Row i combines the leave-one-out outputs of sample i with the calibrator fitted to those of the
    other samples. Unlike scores of ``class_probabilities(fit_calibrator(loo), loo.outputs)``,
    scores of these probabilities are not biased by the calibration. But the other leave-one-out
    outputs come from models trained with sample i, and scores are optimistic if hyper-parameters
    were selected on the same outputs.

    Parameters
    ----------
    loo, calibration : as for `fit_calibrator`.

    Returns
    -------
    probabilities : (n, 2) or (n, k). Samples of weight zero are treated as new samples.

    Raises
    ------
    ValueError
        As `fit_calibrator`, or if only one sample has positive weight.

    Notes
    -----
    The sigmoid takes O(n² k) per Newton step, for all samples at once. The softmax takes n fits
    of two or three steps, starting from that of all samples, O(n² k²). The others take n fits,
    O(n² k log n).

    Examples
    --------
    >>> from looms import HeldOut
    >>> loo = HeldOut([-1, -1, 1, 1], [-0.8, 0.1, -0.1, 0.9])
    >>> own = class_probabilities(fit_calibrator(loo), loo.outputs)
    >>> bool(loo_probabilities(loo)[3, 1] < own[3, 1])  # own is fitted to the label of sample 3
    True
    """
    fit = calibration_function(calibration)
    n = loo.n_samples
    if np.count_nonzero(loo.sample_weight) < 2:
        raise ValueError("Leave-one-out calibration needs two samples with positive weight.")
    targets, outputs = loo.y.reshape(n, -1), loo.outputs.reshape(n, -1)
    weighted = loo.sample_weight > 0
    p = np.empty(outputs.shape)
    if not weighted.all():
        p[~weighted] = fit_calibrator(loo, calibration).probability(outputs[~weighted])
    f, y, weight = outputs[weighted], targets[weighted], loo.sample_weight[weighted]
    if calibration == "sigmoid" and outputs.shape[1] > 1:
        p[weighted] = softmax_without_each(f, y, weight)
        return p
    without = np.empty(f.shape)
    if calibration == "sigmoid":
        checked_sample(f[:, 0], y[:, 0], weight)
        step = max(1, _BLOCK // len(f))
        for start in range(0, len(f), step):
            rows = np.arange(start, min(len(f), start + step))
            remaining = np.tile(weight, (len(rows), 1))
            remaining[np.arange(len(rows)), rows] = 0.0
            pooled = np.broadcast_to(f.ravel(), remaining.shape)
            fits = zip(*fit_increasing_sigmoids(pooled, y.ravel(), remaining), strict=True)
            for i, fitted in zip(rows.tolist(), fits, strict=True):
                without[i] = Sigmoid(*fitted).probability(f[i])
    else:
        weights = np.repeat(weight[:, None], f.shape[1], axis=1)
        remaining = np.full(len(f), True)
        for i in range(len(f)):
            remaining[i] = False
            calibrator = fit(f[remaining].ravel(), y[remaining].ravel(), weights[remaining].ravel())
            without[i] = calibrator.probability(f[i])
            remaining[i] = True
    p[weighted] = without
    return normalized(p, outputs)
