"""Receiver operating characteristic and precision–recall of leave-one-out outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import metrics

from looms._typing import AnyArray, Array
from looms.report.displays.base import MachineDisplay, diagonal, ink, unit_square
from looms.report.model import Model, model_of
from looms.report.text import short

#: Classes with a curve of their own; the largest ones, where there are more.
MOST_CURVES = 10

#: Membership in a class, output and weight, each of shape (n_samples,).
Predictions = tuple[AnyArray, Array, Array]


@dataclass(eq=False, repr=False, kw_only=True)
class ClassCurves(MachineDisplay):
    """A curve for each class against the rest, drawn by a display of scikit-learn.

    Parameters
    ----------
    predictions : dict of str to (positive, output, weight)
        By the label of the class; of many classes the ten largest.
    threshold : float or None
        Of the outputs for two classes.
    """

    predictions: dict[str, Predictions]
    threshold: float | None

    #: Display of scikit-learn, its score, and the score's name in the legend.
    curve: ClassVar[Any]
    score: ClassVar[Callable[..., float]]
    score_name: ClassVar[str]

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """The curves of a fitted classifier; samples count by their weight."""
        model = classifier_of(cls, estimator)
        seen, loo = model.seen, model.loo
        y, outputs, weight = loo.y[seen], loo.outputs[seen], loo.sample_weight[seen]
        if y.ndim == 1:
            predictions = {model.classes[1]: (y > 0, outputs, weight)}
            return cls(predictions=predictions, threshold=model.threshold)
        predictions = {
            model.classes[k]: (y[:, k] > 0, outputs[:, k], weight) for k in largest_classes(y)
        }
        return cls(predictions=predictions, threshold=None)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sample_weight: Any = None,
        threshold: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the curve of outputs for two classes.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes; the second in their order is the positive one.
        y_score : array-like of shape (n_samples,)
            Outputs, large for the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        threshold : float, default=None
            Marked on the curve.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.

        Returns
        -------
        display : Display
            Drawn.
        """
        classes, labels = np.unique(np.asarray(y_true), return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"y_true must have two classes, but has {len(classes)}.")
        weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
        predictions = {str(classes[1]): (labels == 1, np.asarray(y_score, float), weight)}
        return cls(predictions=predictions, threshold=threshold).plot(ax)

    @property
    def areas(self) -> dict[str, float]:
        """Area under the curve of each class; of precision–recall the average precision."""
        score = type(self).score
        return {k: float(score(y, f, sample_weight=w)) for k, (y, f, w) in self.predictions.items()}

    @property
    @abstractmethod
    def chosen(self) -> tuple[float, float] | None:
        """Place of the threshold on the curve."""

    def _draw(self, ax: Any) -> None:
        areas = self.areas
        for k, (label, (positive, output, weight)) in enumerate(self.predictions.items()):
            shown = self.curve.from_predictions(
                positive, output, sample_weight=weight, drop_intermediate=True, ax=ax
            )
            name = f"class {short(label, 20)}: {self.score_name} {areas[label]:.3f}"
            shown.line_.set(color=f"C{k}", linewidth=1.5, label=name)
        if self.chosen is not None:
            ax.plot(*self.chosen, "o", color="C1", markersize=7, label="threshold chosen")
        unit_square(ax)


class RocDisplay(ClassCurves):
    """Receiver operating characteristic of leave-one-out outputs, with the threshold chosen.

    For two classes one curve, for more one for each against the rest.

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

    legend_place = "lower right"
    curve, score, score_name = metrics.RocCurveDisplay, metrics.roc_auc_score, "AUC"

    @property
    def chosen(self) -> tuple[float, float] | None:
        """False and true positive rate at the threshold; None without one."""
        if self.threshold is None:
            return None
        ((positive, output, weight),) = self.predictions.values()
        above = output > self.threshold
        return _share(above, weight * ~positive), _share(above, weight * positive)

    def _draw(self, ax: Any) -> None:
        diagonal(ax)
        super()._draw(ax)
        ax.set(xlabel="false positive rate", ylabel="true positive rate")


class PrecisionRecallDisplay(ClassCurves):
    """Precision against recall of leave-one-out outputs, with the threshold chosen.

    For two classes one curve, for more one for each against the rest.
    """

    legend_place = "lower left"
    curve, score = metrics.PrecisionRecallDisplay, metrics.average_precision_score
    score_name = "AP"

    @property
    def chosen(self) -> tuple[float, float] | None:
        """Recall and precision at the threshold; None without one, or with nothing above it."""
        if self.threshold is None:
            return None
        ((positive, output, weight),) = self.predictions.values()
        above = output > self.threshold
        if not above.any():
            return None
        return _share(above, weight * positive), _share(positive, weight * above)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the samples in each class: the precision of a guess."""
        return {label: _share(y, weight) for label, (y, _, weight) in self.predictions.items()}

    def _draw(self, ax: Any) -> None:
        if len(self.predictions) == 1:
            ax.axhline(*self.shares.values(), color=ink(), linewidth=0.6, linestyle=":")
        super()._draw(ax)
        ax.set(xlabel="recall", ylabel="precision")


def classifier_of(display: type, estimator: Any) -> Model:
    """The classifier in a fitted estimator; TypeError for a regressor."""
    model = model_of(estimator)
    if not model.classification:
        raise TypeError(f"{display.__name__} is of classifiers; ResidualsDisplay of regressors.")
    return model


def largest_classes(y: Array) -> AnyArray:
    """Columns of the largest classes, in their order; y is ±1 of shape (n_samples, n_classes)."""
    order = np.argsort(-(y > 0).sum(axis=0), kind="stable")
    return np.sort(order[:MOST_CURVES])


def _share(which: AnyArray, weight: Array) -> float:
    """Share of the weight that some samples have."""
    return float(weight[which].sum() / weight.sum())
