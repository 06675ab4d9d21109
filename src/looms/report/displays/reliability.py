"""Reliability of probabilities: observed frequency against predicted probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.calibration import (
    class_probabilities,
    fit_calibrator,
    loo_probabilities,
    reliability_curve,
)
from looms.calibration._reliability import ReliabilityCurve
from looms.held_out import HeldOut
from looms.report.displays.base import MachineDisplay, diagonal, unit_square
from looms.report.displays.curves import classifier_of, largest_classes
from looms.report.model import Model
from looms.report.text import short

#: By calibration the squared number of samples, times classes but for two, up to which every
#: probability comes from a calibrator that did not see its sample: what takes about a second.
_MOST_LEFT_OUT = {"sigmoid": 1500**2, "isotonic": 1500**2, "beta": 300**2}


@dataclass(eq=False, repr=False, kw_only=True)
class ReliabilityDisplay(MachineDisplay):
    """Shares of positive samples against their probabilities.

    For two classes the reliability of the second's probability, with 95 % intervals of the
    shares; for more a curve for each.

    Parameters
    ----------
    curves : dict of str to looms.calibration.ReliabilityCurve
        By the label of the class; of many classes the ten largest.
    calibration : str
        What made probabilities of the outputs.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import LSSVMClassifier
    >>> from looms.report import ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LSSVMClassifier("linear").fit(X / X.std(axis=0), y)
    >>> display = ReliabilityDisplay.from_estimator(model, n_bins=5)
    >>> bool(display.curves["1"].calibration_error < 0.03)
    True
    """

    curves: dict[str, ReliabilityCurve]
    calibration: str
    legend_place = "upper left"

    @classmethod
    def compute(cls, estimator: Any, *, calibration: str | None = None, n_bins: int = 10) -> Self:
        """Reliability of probabilities from the leave-one-out outputs of a fitted classifier.

        Parameters
        ----------
        calibration : {"sigmoid", "isotonic", "beta"}, default=None
            What makes probabilities of outputs; that of the machine unless given, and
            "sigmoid" where it has none.
        n_bins : int, default=10
            Bins of about the same number of samples.

        Notes
        -----
        Up to 1500 samples of two classes, 1500 / √k of k, for "beta" 300 and 300 / √k, every
        probability comes from a calibrator that did not see its sample; with more, where that
        hardly matters, from one that saw all.
        """
        model = classifier_of(cls, estimator)
        calibration = calibration or getattr(model.machine, "calibration", None) or "sigmoid"
        return cls.of_probabilities(
            model, probabilities_of(model, calibration), calibration, n_bins=n_bins
        )

    @classmethod
    def of_probabilities(
        cls, model: Model, probabilities: Array, calibration: str, *, n_bins: int = 10
    ) -> Self:
        """Reliability of the probabilities of every class, (n_samples, n_classes)."""
        y = model.loo.y.reshape(model.loo.n_samples, -1)
        columns = {1: 0} if y.shape[1] == 1 else {int(k): int(k) for k in largest_classes(y)}
        weight = model.loo.sample_weight
        curves = {
            model.classes[k]: reliability_curve(
                y[:, column], probabilities[:, k], weight, n_bins=n_bins
            )
            for k, column in columns.items()
        }
        return cls(curves=curves, calibration=calibration)

    def _draw(self, ax: Any) -> None:
        diagonal(ax)
        for k, (label, curve) in enumerate(self.curves.items()):
            name = f"class {short(label, 20)}"
            ax.plot(curve.probability, curve.share, "-o", color=f"C{k}", markersize=4, label=name)
            if len(self.curves) == 1:
                low, high = _wilson(curve)
                ax.vlines(curve.probability, low, high, color=f"C{k}", linewidth=1, alpha=0.6)
        unit_square(ax)
        ax.set(xlabel="probability", ylabel="share")


def probabilities_of(model: Model, calibration: str) -> Array:
    """Probability of every class for the leave-one-out outputs, (n_samples, n_classes)."""
    weight = model.machine.fit_weight_  # as the machine's own calibrator
    loo = HeldOut(model.loo.y, model.loo.outputs, weight)
    if loo.n_samples * loo.y.size <= _MOST_LEFT_OUT[calibration]:
        return loo_probabilities(loo, calibration)
    return class_probabilities(fit_calibrator(loo, calibration), loo.outputs)


def _wilson(curve: ReliabilityCurve, z: float = 1.96) -> tuple[Array, Array]:
    """Ends of Wilson's score interval of every share."""
    n, p = curve.count, curve.share
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
