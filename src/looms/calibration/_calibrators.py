"""Calibrators by name, fitted to leave-one-out outputs; class probabilities from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from looms._typing import Array
from looms.calibration._beta import fit_beta
from looms.calibration._isotonic import fit_isotonic
from looms.calibration._sigmoid import fit_increasing_sigmoid, fit_sigmoids, increasing
from looms.leave_one_out import LeaveOneOut

_BLOCK = 1 << 20  # weights held at a time, a row for each sample left out


@runtime_checkable
class Calibrator(Protocol):
    """What turns outputs into probabilities: `Sigmoid`, `Isotonic`, `Beta` or another."""

    def probability(self, outputs: npt.ArrayLike, /) -> Array:
        """Probability of the positive class for outputs of any shape."""


#: What fits a calibrator to outputs, labels ±1 and weights.
Fitter = Callable[[Array, Array, Array], Calibrator]

#: Calibrations by name; all give probabilities that do not decrease with the output.
CALIBRATIONS: dict[str, Fitter] = {
    "sigmoid": fit_increasing_sigmoid,
    "isotonic": fit_isotonic,
    "beta": fit_beta,
}


def as_calibration(calibration: Any) -> Fitter:
    """The function that a name stands for.

    Raises
    ------
    ValueError
        For an unknown name, with the known ones.
    """
    if not isinstance(calibration, str) or calibration not in CALIBRATIONS:
        known = ", ".join(CALIBRATIONS)
        raise ValueError(f"Unknown calibration {calibration!r}; known are {known}.")
    return CALIBRATIONS[calibration]


def fit_calibrators(loo: LeaveOneOut, calibration: str = "sigmoid") -> tuple[Calibrator, ...]:
    """Calibrators for new samples, from all leave-one-out outputs.

    A leave-one-out output comes from a model that did not see its sample, as the output of a
    new sample does, and no sample has to be kept aside for it.

    Parameters
    ----------
    loo : labels ±1: (n,) or (n, 1) for two classes, (n, k) for k one-against-rest columns.
        Samples of weight zero take no part.
    calibration : "sigmoid" (Platt's, not decreasing), "isotonic" or "beta".

    Returns
    -------
    calibrators : one for two classes, else one a column, for `class_probabilities`.

    Raises
    ------
    ValueError
        For an unknown name, labels that are not ±1 or outputs that are not finite.

    Examples
    --------
    >>> loo = LeaveOneOut([-1, -1, 1, 1], [-0.8, 0.1, -0.1, 0.9])
    >>> class_probabilities(fit_calibrators(loo), [-1.0, 1.0]).round(2)
    array([[0.75, 0.25],
           [0.26, 0.74]])
    """
    fit = as_calibration(calibration)
    n = loo.n_samples
    targets, outputs = loo.y.reshape(n, -1), loo.outputs.reshape(n, -1)
    return tuple(
        fit(outputs[:, j], targets[:, j], loo.sample_weight) for j in range(targets.shape[1])
    )


def class_probabilities(calibrators: Sequence[Calibrator], outputs: npt.ArrayLike) -> Array:
    """Probabilities of all classes.

    Parameters
    ----------
    calibrators : one for two classes, k for k.
    outputs : (m,) or (m, 1) for two classes, (m, k) for k, in the unit that the calibrators
        were fitted to.

    Returns
    -------
    probabilities : (m, 2) with the positive class last, or (m, k): the one-against-rest
        probabilities over their sum. Rows sum to one.

    Raises
    ------
    ValueError
        If there is not one calibrator for each column.
    """
    f = np.asarray(outputs, dtype=np.float64)
    f = f.reshape(len(f), -1)
    if f.shape[1] != len(calibrators):
        raise ValueError(
            f"There must be one calibrator for each column of outputs, but there are "
            f"{len(calibrators)} for {f.shape[1]}."
        )
    return normalised(np.column_stack([c.probability(f[:, j]) for j, c in enumerate(calibrators)]))


def normalised(probabilities: Array) -> Array:
    """(m, 2) from (m, 1) of the positive class, (m, k) of sum one from k one-against-rest ones."""
    if probabilities.shape[1] == 1:
        return np.hstack([1.0 - probabilities, probabilities])
    total = probabilities.sum(axis=1, keepdims=True)
    uniform = np.full_like(probabilities, 1.0 / probabilities.shape[1])
    return np.asarray(np.divide(probabilities, total, out=uniform, where=total > 0))


def loo_probabilities(loo: LeaveOneOut, calibration: str = "sigmoid") -> Array:
    """Probabilities of the training samples, each from calibrators that did not see it.

    Row i is what the calibrators of the other samples give for the leave-one-out output of
    sample i. Scores of it are honest about the calibration; those of
    ``class_probabilities(fit_calibrators(loo), loo.outputs)``, where its own label helped, are
    not. The other leave-one-out outputs come from models that did see sample i, and
    hyper-parameters chosen on the same outputs flatter the scores as always.

    Parameters
    ----------
    loo, calibration : as for `fit_calibrators`.

    Returns
    -------
    probabilities : (n, 2) or (n, k). Samples of weight zero, which no calibrator saw, have the
        probabilities of new samples.

    Raises
    ------
    ValueError
        As `fit_calibrators`, or if only one sample has positive weight.

    Notes
    -----
    The sigmoid: O(n²) a Newton step, all samples at once. The others: n fits, O(n² log n).
    """
    fit = as_calibration(calibration)
    n = loo.n_samples
    if np.count_nonzero(loo.sample_weight) < 2:
        raise ValueError("Leaving a sample out of a calibration needs two of positive weight.")
    targets, outputs = loo.y.reshape(n, -1), loo.outputs.reshape(n, -1)
    seen = np.flatnonzero(loo.sample_weight > 0)
    columns = np.empty(outputs.shape)
    for j, (y, f) in enumerate(zip(targets.T, outputs.T, strict=True)):
        if len(seen) < n:
            columns[:, j] = fit(f, y, loo.sample_weight).probability(f)
        weight = loo.sample_weight[seen]
        left_out = _sigmoid_without_each if calibration == "sigmoid" else _without_each(fit)
        columns[seen, j] = left_out(f[seen], y[seen], weight)
    return normalised(columns)


def _sigmoid_without_each(f: Array, y: Array, weight: Array) -> Array:
    n = len(f)
    p = np.empty(n)
    step = max(1, _BLOCK // n)
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        others = np.tile(weight, (len(rows), 1))
        others[np.arange(len(rows)), rows] = 0.0
        slopes, intercepts = fit_sigmoids(np.broadcast_to(f, others.shape), y, others)
        for i, slope, intercept in zip(rows, slopes, intercepts, strict=True):
            p[i] = increasing(slope, intercept, y, others[i - start]).probability(f[i])
    return p


def _without_each(fit: Fitter) -> Callable[[Array, Array, Array], Array]:
    def probabilities(f: Array, y: Array, weight: Array) -> Array:
        others = np.full(len(f), True)
        p = np.empty(len(f))
        for i in range(len(f)):
            others[i] = False
            p[i] = fit(f[others], y[others], weight[others]).probability(f[i])
            others[i] = True
        return p

    return probabilities
