"""Curves of the classes: receiver operating characteristic, precision–recall, reliability."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn import metrics

from looms._advice import setting
from looms._typing import AnyArray, Array
from looms.calibration import fit_calibrator, loo_probabilities, recalibration
from looms.calibration._calibrators import class_probabilities
from looms.calibration._net_benefit import NetBenefit, net_benefit
from looms.calibration._recalibration import Recalibration, SmoothCurve, smooth_reliability
from looms.calibration._scores import ReliabilityCurve, reliability_curve
from looms.calibration._sigmoid import positive_class
from looms.report.displays.base import ModelDisplay, diagonal, ink, unit_square
from looms.report.model import Reported, model_of
from looms.report.text import short

#: Most classes with a curve of their own; the largest ones, if there are more.
MOST_CURVES = 10
#: For each calibration, the largest squared number of samples (times classes, if more than two) for
#: which every probability comes from a calibrator that did not see its sample: about a second.
_MOST_LEFT_OUT = {"sigmoid": 1500**2, "isotonic": 1500**2, "beta": 300**2}


#: Where each class is, and its probability, by the label.
Columns: TypeAlias = dict[str, tuple[AnyArray, Array]]


@dataclass(eq=False, repr=False, kw_only=True)
class ClassCurves(ModelDisplay):
    """A curve for each class against the rest, drawn by a scikit-learn display.

    Parameters
    ----------
    predictions : dict of str to (positive, output, weight)
        By class label, each of shape (n_samples,); the ten largest of many classes.
    threshold : float or None
        Threshold of the outputs for two classes.
    """

    predictions: dict[str, tuple[AnyArray, Array, Array]]
    threshold: float | None = None

    #: The scikit-learn display, its score, and the score's name in the legend.
    curve: ClassVar[Any]
    score: ClassVar[Callable[..., float]]
    score_name: ClassVar[str]

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """The curves of a fitted classifier; samples count by their weight.

        Of two classes the curve is that of the positive one, of ``pos_label``.
        The outputs are means over the pairs of samples, or folds, of different classes in which a
        sample is left out. Outputs with a single sample held out are biased away from its own
        class, and on noise have an area below a half. So the area agrees with the leave-pair-out
        area of ``evaluate`` within its error. If the tuning was repeated without every fold, each
        fold has its own threshold, and none is marked. n³ flops.
        """
        model, shown = _classifier_of(cls, estimator)
        if not model.outcome.labeled:
            raise TypeError(f"{cls.__name__} is for classes without order; use ReliabilityDisplay.")
        _, f, weight = map(model.scored, model.scores.predictions)
        codes = model.scored(model.codes)
        columns = np.column_stack([-f, f]) if f.ndim == 1 else f
        predictions = {model.classes[k]: (codes == k, columns[:, k], weight) for k in shown}
        if f.ndim == 2 or model.nested:
            return cls(predictions=predictions)
        threshold = float(model.fitted.rule.threshold)
        return cls(predictions=predictions, threshold=threshold if shown == [1] else -threshold)

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
            Classes; the second in sorted order is the positive one.
        y_score : array-like of shape (n_samples,)
            Outputs, large for the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        threshold : float, default=None
            Threshold to mark on the curve.
        ax : for `plot`
        """
        label, positive = positive_class(y_true, "y_true")
        weight = np.ones(len(positive)) if sample_weight is None else np.asarray(sample_weight)
        predictions = {label: (positive, np.asarray(y_score, float), weight)}
        return cls(predictions=predictions, threshold=threshold).plot(ax)

    @property
    def areas(self) -> dict[str, float]:
        """Area under the curve of each class; the average precision for precision–recall."""
        score = type(self).score
        return {k: float(score(y, f, sample_weight=w)) for k, (y, f, w) in self.predictions.items()}

    @property
    def chosen(self) -> tuple[float, float] | None:
        """Place of the threshold on the curve; None without one, or with nothing above it."""
        if self.threshold is None:
            return None
        ((positive, output, weight),) = self.predictions.values()
        above = output > self.threshold
        return self._place(positive, above, weight) if above.any() else None

    @staticmethod
    @abstractmethod
    def _place(positive: AnyArray, above: AnyArray, weight: Array) -> tuple[float, float]:
        """The point of the curve at which the samples ``above`` are predicted positive."""

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
    """Receiver operating characteristic of held-out outputs, with the chosen threshold.

    There is one curve for two classes; for more, one for each class against the rest. ``chosen``
    has the false and true positive rates at the threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier
    >>> from looms.report import RocDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier("linear", mu=1e-3).fit(X / X.std(axis=0), y)
    >>> {k: round(v, 3) for k, v in RocDisplay.from_estimator(model).areas.items()}
    {'1': 0.994}
    """

    legend_place = "lower right"
    curve, score, score_name = metrics.RocCurveDisplay, metrics.roc_auc_score, "AUC"

    @staticmethod
    def _place(positive: AnyArray, above: AnyArray, weight: Array) -> tuple[float, float]:
        return _share(above, weight * ~positive), _share(above, weight * positive)

    def _draw(self, ax: Any) -> None:
        diagonal(ax)
        super()._draw(ax)
        ax.set(xlabel="false positive rate", ylabel="true positive rate")


class PrecisionRecallDisplay(ClassCurves):
    """Precision against recall of held-out outputs, with the chosen threshold.

    There is one curve for two classes; for more, one for each class against the rest. ``chosen``
    has recall and precision at the threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier
    >>> from looms.report import PrecisionRecallDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier("linear", mu=1e-3).fit(X / X.std(axis=0), y)
    >>> display = PrecisionRecallDisplay.from_estimator(model)
    >>> recall, precision = display.chosen
    >>> bool(recall > 0.9), bool(precision > 0.9)
    (True, True)
    """

    legend_place = "lower left"
    curve, score = metrics.PrecisionRecallDisplay, metrics.average_precision_score
    score_name = "AP"

    @staticmethod
    def _place(positive: AnyArray, above: AnyArray, weight: Array) -> tuple[float, float]:
        return _share(above, weight * positive), _share(positive, weight * above)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the samples in each class: the precision of the baseline."""
        return {label: _share(y, weight) for label, (y, _, weight) in self.predictions.items()}

    def _draw(self, ax: Any) -> None:
        if len(self.predictions) == 1:
            ax.axhline(*self.shares.values(), color=ink(), linewidth=0.6, linestyle=":")
        super()._draw(ax)
        ax.set(xlabel="recall", ylabel="precision")


def _share(members: AnyArray, weight: Array) -> float:
    """Weighted share of some samples."""
    return float(np.average(members, weights=weight))


def _classifier_of(display: type, estimator: Any) -> tuple[Reported, list[int]]:
    """The classifier in a fitted estimator, and the classes to show.

    These are the positive one of two classes, or the largest of more. TypeError for a regressor.
    """
    model = model_of(estimator)
    if not model.outcome.decides:
        raise TypeError(f"{display.__name__} is for classifiers; use ResidualsDisplay.")
    if len(model.classes) == 2:
        return model, [0 if model.outcome.positive_first else 1]
    sizes = np.bincount(model.scored(model.codes), minlength=len(model.classes))
    return model, np.sort(np.argsort(-sizes, kind="stable")[:MOST_CURVES]).tolist()


class ProbabilityDisplay(ModelDisplay):
    """A display of the probabilities of classes, of a model or given ones."""

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the display of probabilities of two classes.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes; the second in sorted order is the positive one.
        y_prob : array-like of shape (n_samples,)
            Probabilities of the positive class.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Equal for samples that count as one draw in standard errors and bands.
        ax : for `plot`
        **options
            Such as ``n_bins`` or ``thresholds``, as for `compute`.
        """
        label, positive = positive_class(y_true, "y_true")
        columns = {label: (positive, np.asarray(y_prob, dtype=float))}
        return cls.of_columns(columns, sample_weight, groups, **options).plot(ax)

    @classmethod
    @abstractmethod
    def of_columns(cls, columns: Columns, weight: Any, groups: Any) -> Self:
        """The display, without drawing it, of where each class is and its probability."""


@dataclass(eq=False, repr=False, kw_only=True)
class ReliabilityDisplay(ProbabilityDisplay):
    """Shares of positive samples against their probabilities.

    For two classes it shows the reliability of the positive one's probability, with 95 % intervals
    of the shares, and a smooth curve with a pointwise 95 % band, a logistic regression on a spline
    of three knots, or five from 500 samples, which misses narrower bumps; for more, a curve for
    each class.

    Parameters
    ----------
    curves : dict of str to ReliabilityCurve
        By class label; the ten largest of many classes. With arrays ``probability``, ``share``,
        ``weight``, ``count`` and ``edges`` of the bins.
    recalibrations : dict of str to Recalibration
        What `looms.calibration.recalibration` returns, of the same classes, each against the rest.
    smooth : SmoothCurve or None
        What `looms.calibration.smooth_reliability` returns, of the positive one of two classes.
    calibration : str or None
        Method that turned outputs into probabilities; None for given ones.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier
    >>> from looms.report import ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier("linear", mu=1e-3).fit(X / X.std(axis=0), y)
    >>> display = ReliabilityDisplay.from_estimator(model, n_bins=5)
    >>> bool(display.curves["1"].calibration_error < 0.03)
    True
    """

    curves: dict[str, ReliabilityCurve]
    recalibrations: dict[str, Recalibration]
    smooth: SmoothCurve | None = None
    calibration: str | None = None
    legend_place = "upper left"

    @property
    def errors(self) -> dict[str, float]:
        """Mean distance of each curve from the diagonal."""
        return {label: curve.calibration_error for label, curve in self.curves.items()}

    @classmethod
    def compute(
        cls,
        estimator: Any,
        *,
        calibration: str | None = None,
        n_bins: int = 10,
        probabilities: Array | None = None,
    ) -> Self:
        """Reliability of probabilities from the held-out outputs of a fitted classifier.

        Parameters
        ----------
        calibration : {"sigmoid", "isotonic", "beta"}, default=None
            Method that turns outputs into probabilities; by default that of the model, or
            "sigmoid" if it has none.
        n_bins : int, default=10
            Number of bins, each with about the same number of samples.
        probabilities : ndarray of shape (n_samples, n_classes), default=None
            Probabilities of this calibration, if they are known.

        Notes
        -----
        For up to 1500 samples of two classes, or 1500 / √k of k classes (300 and 300 / √k for
        "beta"), every probability comes from a calibrator that did not see its sample; for more
        samples, where this hardly matters, from one that saw all.
        """
        model, shown = _classifier_of(cls, estimator)
        p = probabilities_of(model, calibration) if probabilities is None else probabilities
        if p is None:
            p = calibrated(model, "sigmoid")
        calibration = calibration or model.outcome.calibration or "sigmoid"
        return cls.of_columns(*_of_rows(model, shown, p), n_bins, calibration)

    @classmethod
    def of_columns(
        cls,
        columns: Columns,
        weight: Any,
        groups: Any,
        n_bins: int = 10,
        calibration: str | None = None,
    ) -> Self:
        of_class = {label: (2 * y - 1, p, weight) for label, (y, p) in columns.items()}
        one = next(iter(of_class.values())) if len(columns) == 1 else None
        return cls(
            curves={k: reliability_curve(*each, n_bins=n_bins) for k, each in of_class.items()},
            recalibrations={k: recalibration(*each, groups) for k, each in of_class.items()},
            smooth=None if one is None else smooth_reliability(*one, groups),
            calibration=calibration,
        )

    def _draw(self, ax: Any) -> None:
        diagonal(ax)
        if self.smooth is not None:
            at, share, *band = vars(self.smooth).values()
            ax.plot(at, share, color="C1", linewidth=1.2, label="smooth, with 95 % band")
            ax.fill_between(at, *band, color="C1", alpha=0.2, linewidth=0)
        for k, (label, curve) in enumerate(self.curves.items()):
            name = f"class {short(label, 20)}"
            ax.plot(curve.probability, curve.share, "-o", color=f"C{k}", markersize=4, label=name)
            if len(self.curves) == 1:
                low, high = _wilson(curve)
                ax.vlines(curve.probability, low, high, color=f"C{k}", linewidth=1, alpha=0.6)
        unit_square(ax)
        ax.set(xlabel="probability", ylabel="share")


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionCurveDisplay(ProbabilityDisplay):
    """Net benefit of decisions by the probabilities of two classes, at each threshold.

    Beside it are those of treating all rows and of treating none. Whoever would treat from a
    probability t on takes t / (1 - t) true positives for as bad as one false positive [VE06].

    Parameters
    ----------
    label : str
        The positive class.
    benefit : NetBenefit
        What `looms.calibration.net_benefit` returns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier
    >>> from looms.report import DecisionCurveDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier("linear", mu=1e-3).fit(X / X.std(axis=0), y)
    >>> benefit = DecisionCurveDisplay.compute(model, thresholds=[0.2, 0.5]).benefit
    >>> benefit.value.round(2), benefit.of_all.round(2)
    (array([0.61, 0.6 ]), array([0.53, 0.25]))
    """

    label: str
    benefit: NetBenefit
    legend_place = "upper right"

    @classmethod
    def compute(
        cls, estimator: Any, *, thresholds: Any = None, probabilities: Array | None = None
    ) -> Self:
        """Net benefit of held-out probabilities, pooled over the rows, as counts add up.

        Parameters
        ----------
        estimator : estimator
            Fitted to two classes, with probabilities.
        thresholds : array-like of shape (n_thresholds,), default=None
            Probabilities in [0, 1); by default 90 of them, to where hardly any row is treated.
        probabilities : ndarray of shape (n_samples, n_classes), default=None
            Those of the rows, if they are known.
        """
        model, shown = _classifier_of(cls, estimator)
        if len(model.classes) != 2:
            raise TypeError(
                f"{cls.__name__} is for two classes, and there are {len(model.classes)}: draw one "
                "against the rest by from_predictions."
            )
        p = probabilities_of(model) if probabilities is None else probabilities
        if p is None:
            raise _without_probabilities()
        return cls.of_columns(*_of_rows(model, shown, p), thresholds)

    @classmethod
    def of_columns(cls, columns: Columns, weight: Any, groups: Any, thresholds: Any = None) -> Self:
        ((label, (y, p)),) = columns.items()
        benefit = net_benefit(2 * y - 1, p, weight, groups, thresholds=thresholds)
        return cls(label=label, benefit=benefit)

    @property
    def better(self) -> Array:
        """Thresholds at which it is above all and none by more than two standard errors."""
        benefit = self.benefit
        return np.asarray(benefit.threshold[benefit.gain > 2 * benefit.gain_error])

    def _draw(self, ax: Any) -> None:
        t, value, error, of_all, *_ = vars(self.benefit).values()
        half = 1.96 * np.nan_to_num(error)
        ax.plot(t, of_all, color=ink(), linewidth=1, linestyle="--", label="treat all")
        ax.axhline(0.0, color=ink(), linewidth=1, linestyle=":", label="treat none")
        ax.plot(t, value, color="C0", label=f"class {short(self.label, 20)}, with 95 % band")
        ax.fill_between(t, value - half, value + half, color="C0", alpha=0.2, linewidth=0)
        top = 1.05 * float(max((value + half).max(), of_all.max()))
        ax.set(ylim=(-0.2 * top, top), xlabel="threshold of the probability", ylabel="net benefit")


def _of_rows(model: Reported, shown: list[int], p: Array) -> tuple[Columns, Array, AnyArray]:
    """Where each class shown is and its probability, weights, and groups that are one draw, of the
    rows that are scored."""
    rows, together = model.fitted.rows, model.fitted.units.scored_together
    codes, p, weight, groups = map(model.scored, (model.codes, p, rows.weight, together))
    return {model.classes[k]: (codes == k, p[:, k]) for k in shown}, weight, groups


def _without_probabilities() -> ValueError:
    how = setting("calibration", "sigmoid")
    return ValueError(f"The model has no probabilities: fit it with {how}.")


def probabilities_of(model: Reported, calibration: str | None = None) -> Array | None:
    """Probability of every class for the held-out outputs, (n_samples, n_classes).

    By default those of the model; None if it has none.
    """
    given = model.outcome.calibration
    # From a calibrator that did not see the sample.
    anew = given is not None and not model.nested and model.outcome.labeled
    if calibration in (None, given) and not anew:
        rows, decisions = model.scores.rows, model.scores.decisions
        if decisions is None or decisions.probabilities is None:
            return None
        p = np.full((model.n_samples, len(model.classes)), 1.0 / len(model.classes))
        p[rows] = decisions.probabilities
        return p
    return calibrated(model, calibration or str(given))


def calibrated(model: Reported, calibration: str) -> Array:
    """Probabilities of held-out outputs, each by a calibrator that did not see its sample if this
    takes little time."""
    if not model.outcome.labeled:
        if model.outcome.calibration is None:
            raise _without_probabilities()
        raise ValueError(
            f"{setting('calibration', calibration)} is for classes without order: use None."
        )
    held_out = model.held_out
    if held_out.n_samples * held_out.y.size <= _MOST_LEFT_OUT[calibration]:
        return loo_probabilities(held_out, calibration)
    return class_probabilities(fit_calibrator(held_out, calibration), held_out.outputs)


def _wilson(curve: ReliabilityCurve, z: float = 1.96) -> tuple[Array, Array]:
    """Ends of Wilson's score interval of every share."""
    n, p = curve.count, curve.share
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
