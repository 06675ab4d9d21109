"""Receiver operating characteristic and precision–recall of leave-one-out outputs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from looms._typing import AnyArray, Array
from looms.report._axes import axes_for, ink, plain_frame, plain_legend, short
from looms.report._model import Model, model_of

#: Classes with a curve of their own; the largest ones, where there are more.
MOST_CURVES = 10

Curves = dict[str, tuple[Array, Array]]


class RocDisplay:
    """Receiver operating characteristic of leave-one-out outputs, with the threshold chosen.

    For two classes one curve, for more one for each against the rest.

    Parameters
    ----------
    curves : dict of str to (false positive rate, true positive rate)
        By the label of the class; of many classes the ten largest.
    areas : dict of str to float
        Area under each.
    chosen : (false positive rate, true positive rate) or None
        Of the threshold of the machine, for two classes.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import LSSVMClassifier
    >>> from looms.report import RocDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LSSVMClassifier("linear").fit(X / X.std(axis=0), y)
    >>> {k: round(v, 3) for k, v in RocDisplay.from_estimator(model).areas.items()}
    {'1': 0.994}
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, *, curves: Curves, areas: dict[str, float], chosen: tuple[float, float] | None
    ) -> None:
        self.curves = curves
        self.areas = areas
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """The curves of a fitted classifier.

        Parameters
        ----------
        estimator : classifier of looms, or pipeline that ends in one
            Fitted.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : RocDisplay
            Drawn. Samples count by their weight.
        """
        return cls.compute(estimator).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = _classifier(cls, estimator)
        pairs = one_against_rest(model)
        chosen = None
        if len(model.classes) == 2:
            ((positive, output, weight),) = pairs.values()
            above = output > model.threshold
            chosen = _share(above, weight * ~positive), _share(above, weight * positive)
        return cls(
            curves={k: roc_curve(y, f, sample_weight=w)[:2] for k, (y, f, w) in pairs.items()},
            areas={
                k: float(roc_auc_score(y, f, sample_weight=w)) for k, (y, f, w) in pairs.items()
            },
            chosen=chosen,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves and, for two classes, the threshold.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.

        Returns
        -------
        self : RocDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        ax.plot([0, 1], [0, 1], color=ink(), linewidth=0.6, linestyle=":")
        _draw(ax, self.curves, self.areas, self.chosen, "AUC", "lower right")
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        return self


class PrecisionRecallDisplay:
    """Precision against recall of leave-one-out outputs, with the threshold chosen.

    For two classes one curve, for more one for each against the rest.

    Parameters
    ----------
    curves : dict of str to (recall, precision)
        By the label of the class; of many classes the ten largest.
    areas : dict of str to float
        Average precision of each.
    chosen : (recall, precision) or None
        Of the threshold of the machine, for two classes; None also where nothing is above it.
    shares : dict of str to float
        Of the samples in each class: the precision of a guess.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        curves: Curves,
        areas: dict[str, float],
        chosen: tuple[float, float] | None,
        shares: dict[str, float],
    ) -> None:
        self.curves = curves
        self.areas = areas
        self.chosen = chosen
        self.shares = shares

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """The curves of a fitted classifier.

        Parameters
        ----------
        estimator : classifier of looms, or pipeline that ends in one
            Fitted.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : PrecisionRecallDisplay
            Drawn. Samples count by their weight.
        """
        return cls.compute(estimator).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = _classifier(cls, estimator)
        pairs = one_against_rest(model)
        chosen = None
        if len(model.classes) == 2:
            ((positive, output, weight),) = pairs.values()
            above = output > model.threshold
            if above.any():
                chosen = _share(above, weight * positive), _share(positive, weight * above)
        curves, areas = {}, {}
        for label, (y, f, w) in pairs.items():
            precision, recall, _ = precision_recall_curve(
                y, f, sample_weight=w, drop_intermediate=True
            )
            curves[label] = recall, precision
            areas[label] = float(average_precision_score(y, f, sample_weight=w))
        return cls(
            curves=curves,
            areas=areas,
            chosen=chosen,
            shares={k: _share(y, w) for k, (y, _, w) in pairs.items()},
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves and, for two classes, the threshold.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.

        Returns
        -------
        self : PrecisionRecallDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        if len(self.shares) == 1:
            ax.axhline(*self.shares.values(), color=ink(), linewidth=0.6, linestyle=":")
        _draw(ax, self.curves, self.areas, self.chosen, "AP", "lower left")
        ax.set(xlabel="recall", ylabel="precision")
        return self


def one_against_rest(model: Model) -> dict[str, tuple[AnyArray, Array, Array]]:
    """Membership, leave-one-out output and weight of the samples that have one, by class.

    Of two classes the second's; of many those shown.
    """
    seen = model.seen
    y, outputs, weight = model.loo.y[seen], model.loo.outputs[seen], model.loo.sample_weight[seen]
    if y.ndim == 1:
        return {model.classes[1]: (y > 0, outputs, weight)}
    sizes = (y > 0).sum(axis=0)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CURVES])
    return {model.classes[k]: (y[:, k] > 0, outputs[:, k], weight) for k in largest}


def _share(which: AnyArray, weight: Array) -> float:
    """Of the weight, that of some samples."""
    return float(weight[which].sum() / weight.sum())


def _classifier(display: type, estimator: Any) -> Model:
    model = model_of(estimator)
    if not model.classification:
        raise TypeError(f"{display.__name__} is of classifiers; ResidualsDisplay of regressors.")
    return model


def _draw(
    ax: Any,
    curves: Curves,
    areas: dict[str, float],
    chosen: tuple[float, float] | None,
    area_name: str,
    legend_place: str,
) -> None:
    for k, (label, (x, y)) in enumerate(curves.items()):
        name = f"class {short(label, 20)}: {area_name} {areas[label]:.3f}"
        colour = "C0" if len(curves) == 1 else f"C{k}"
        ax.plot(x, y, color=colour, label=name, linewidth=1.5)
    if chosen is not None:
        ax.plot(*chosen, "o", color="C1", markersize=7, label="threshold chosen")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    plain_frame(ax)
    plain_legend(ax, loc=legend_place, fontsize="small", frameon=False)
