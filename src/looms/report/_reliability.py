"""How often what had a probability did happen, from leave-one-out outputs."""

from __future__ import annotations

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
from looms.leave_one_out import LeaveOneOut
from looms.report._axes import axes_for, ink, plain_frame, plain_legend, short
from looms.report._curves import MOST_CURVES
from looms.report._model import Model, model_of

#: By calibration the squared number of samples, times classes but for two, up to which every
#: probability comes from a calibrator that did not see its sample: what takes about a second.
_MOST_LEFT_OUT = {"sigmoid": 1500**2, "isotonic": 1500**2, "beta": 300**2}


class ReliabilityDisplay:
    """Shares of positive samples against their probabilities.

    For two classes the reliability of the second's probability, for more a curve for each.

    Parameters
    ----------
    curves : dict of str to looms.calibration.ReliabilityCurve
        By the label of the class; of many classes the ten largest.
    calibration : str
        What made probabilities of the outputs.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.

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

    ax_: Any
    figure_: Any

    def __init__(self, *, curves: dict[str, ReliabilityCurve], calibration: str) -> None:
        self.curves = curves
        self.calibration = calibration

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        calibration: str | None = None,
        n_bins: int = 10,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Probabilities from the leave-one-out outputs of a fitted classifier.

        Parameters
        ----------
        estimator : classifier of looms, or pipeline that ends in one
            Fitted.
        calibration : {"sigmoid", "isotonic", "beta"}, default=None
            What makes probabilities of outputs; that of the machine unless given, and
            "sigmoid" where it has none.
        n_bins : int, default=10
            Bins of about the same number of samples.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.

        Notes
        -----
        Up to 1500 samples of two classes, 1500 / √k of k, for "beta" 300 and 300 / √k, every
        probability comes from a calibrator that did not see its sample; with more, where that
        hardly matters, from one that saw all.
        """
        return cls.compute(estimator, calibration=calibration, n_bins=n_bins).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any, *, calibration: str | None = None, n_bins: int = 10) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = model_of(estimator)
        if not model.classification:
            raise TypeError(f"{cls.__name__} is of classifiers; ResidualsDisplay of regressors.")
        calibration = calibration or getattr(model.machine, "calibration", None) or "sigmoid"
        probabilities = probabilities_of(model, calibration)
        return cls(curves=curves_of(model, probabilities, n_bins), calibration=calibration)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves; for two classes with 95 % intervals of the shares.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.

        Returns
        -------
        self : ReliabilityDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        ax.plot([0, 1], [0, 1], color=ink(), linewidth=0.6, linestyle=":")
        for k, (label, curve) in enumerate(self.curves.items()):
            name = f"class {short(label, 20)}"
            ax.plot(curve.probability, curve.share, "-o", color=f"C{k}", markersize=4, label=name)
            if len(self.curves) == 1:
                low, high = _wilson(curve)
                ax.vlines(curve.probability, low, high, color=f"C{k}", linewidth=1, alpha=0.6)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set(xlabel="probability", ylabel="share")
        plain_frame(ax)
        plain_legend(ax, loc="upper left", fontsize="small", frameon=False)
        return self


def curves_of(model: Model, probabilities: Array, n_bins: int = 10) -> dict[str, ReliabilityCurve]:
    """Reliability of the second of two classes, or of each of the largest ones."""
    y = model.loo.y.reshape(model.loo.n_samples, -1)
    largest = np.sort(np.argsort(-(y > 0).sum(axis=0), kind="stable")[:MOST_CURVES])
    columns = {1: 0} if y.shape[1] == 1 else {int(k): int(k) for k in largest}
    weight = model.loo.sample_weight
    return {
        model.classes[k]: reliability_curve(
            y[:, column], probabilities[:, k], weight, n_bins=n_bins
        )
        for k, column in columns.items()
    }


def probabilities_of(model: Model, calibration: str) -> Array:
    """Probability of every class for the leave-one-out outputs, (n_samples, n_classes)."""
    weight = model.machine.fit_weight_  # as the machine's own calibrator
    loo = LeaveOneOut(model.loo.y, model.loo.outputs, weight)
    if loo.n_samples * loo.y.size <= _MOST_LEFT_OUT[calibration]:
        return loo_probabilities(loo, calibration)
    return class_probabilities(fit_calibrator(loo, calibration), loo.outputs)


def _wilson(curve: ReliabilityCurve, z: float = 1.96) -> Any:
    """Ends of Wilson's score interval of every share."""
    n, p = curve.count, curve.share
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
