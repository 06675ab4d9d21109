"""Samples by how far they lie from the models without them, and how these models differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from looms._advice import setting
from looms._checks import check_known, check_share
from looms._typing import AnyArray, Array
from looms.diagnostics import case_deletion
from looms.report.displays.base import ModelDisplay, diagonal, ink, label_axes
from looms.report.model import model_of, residual_sizes
from looms.report.text import short, unit_words

#: Values of a sample that can be drawn, and their names on the axis.
KINDS = {
    "rms_change": "r.m.s. change of other outputs",
    "largest_change": "largest change of another output",
    "criterion_change": "change of the criterion",
    "leverage": "leverage",
    "surprise": "standardized held-out residual",
    "residual": "size of the held-out residual",
}


@dataclass(eq=False, repr=False, kw_only=True)
class CaseDeletionDisplay(ModelDisplay):
    """Index plot of a value for every sample, or group, with the largest ones named.

    ``plot(n_named=6, max_points=2000)`` marks the ``n_named`` largest, and names them where there
    is room; of more than ``max_points`` samples it draws the largest and an even selection of the
    others.

    Parameters
    ----------
    value : ndarray of shape (n_samples,)
        The values; large ones are remarkable.
    names : sequence of str
        Names of the samples, or groups.
    value_name : str
        Label of the axis.
    unit : str, default="sample"
        What each value describes: "sample" or "group".

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> from looms.report import CaseDeletionDisplay
    >>> x = np.arange(12.0)
    >>> y = np.where(x == 7, 3.0, 0.1 * x)  # one mistake
    >>> model = KernelRegressor("linear", mu=1e-3).fit(x[:, None], y)
    >>> display = CaseDeletionDisplay.from_estimator(model, kind="residual")
    >>> display.names[display.value.argmax()]
    '7'
    """

    value: Array
    names: Sequence[Any]
    value_name: str
    unit: str = "sample"

    @classmethod
    def compute(
        cls, estimator: Any, *, kind: str = "rms_change", names: Any = None, groups: Any = None
    ) -> Self:
        """Effect of leaving out each sample, or group, of a fitted model, or its residual.

        Parameters
        ----------
        kind : str, default="rms_change"
            "rms_change", "largest_change", "criterion_change", "leverage" or "surprise" of
            `looms.diagnostics.case_deletion`; or "residual", the size of the held-out
            residual, which takes no time: for classes, how far the output falls short of the label
            ±1; for several targets, the root of the sum of squares.
        names : sequence, default=None
            Names of the training samples; by default their positions, from 0, or the labels of
            groups that are left out.
        groups : array-like of shape (n_samples,), default=None
            As for `looms.diagnostics.case_deletion`: "surprise" and the changes are those of
            groups if the model was fitted with groups, or if groups are given.
        """
        model = model_of(estimator)
        check_known(kind, "kind", KINDS)
        unit, labels = "sample", None
        if kind == "residual":
            value = residual_sizes(model)
        else:
            deletion = case_deletion(model.fitted, groups=groups)
            value = np.asarray(getattr(deletion, kind))
            if deletion.criterion is None and kind in ("largest_change", "criterion_change"):
                raise ValueError(f"{kind} takes every pair of samples, too many: use rms_change.")
            if kind != "leverage":
                unit, labels = deletion.unit, deletion.labels.tolist()
        names = labels if names is None else names
        names = [str(k) for k in range(len(value))] if names is None else list(names)
        if len(names) != len(value):
            raise ValueError(f"There are {len(value)} {unit}s but {len(names)} names.")
        return cls(value=value, names=names, value_name=KINDS[kind], unit=unit)

    def _draw(self, ax: Any, *, n_named: int = 6, max_points: int = 2000) -> None:
        n = len(self.value)
        first = str(self.names[0])
        last = str(self.names[-1])
        # Where names count the samples, these stand at their names.
        counted = first.isdecimal() and last == str(int(first) + n - 1)
        place = (int(first) if counted else 0) + np.arange(n)
        size = np.where(np.isfinite(self.value), np.abs(self.value), 0.0)
        shown = spread_out(size, max_points)
        ax.vlines(place[shown], 0, self.value[shown], color="C0", linewidth=0.8, alpha=0.75)
        largest = np.argsort(-size, kind="stable")[:n_named]
        largest = largest[size[largest] > 0]
        ax.plot(place[largest], self.value[largest], "o", color="C1", markersize=4)
        named: list[int] = []
        for k in largest:
            # No name on top of one before.
            if any(
                abs(k - j) < 0.12 * n and size[j] - size[k] < 0.05 * size[largest[0]] for j in named
            ):
                continue
            named.append(k)
            right = k < 0.7 * n
            ax.annotate(
                short(self.names[k], 16),
                (place[k], self.value[k]),
                textcoords="offset points",
                xytext=(5 if right else -5, 2),
                ha="left" if right else "right",
                fontsize="small",
                parse_math=False,
            )
        ax.axhline(0, color=ink(), linewidth=0.6)
        label_axes(ax, unit_words(self.unit), self.value_name)
        ax.margins(x=0.02, y=0.12)
        if np.nanmin(self.value) >= 0:
            ax.set_ylim(bottom=0)


@dataclass(eq=False, repr=False, kw_only=True)
class ResidualsDisplay(ModelDisplay):
    """Targets against leave-one-out outputs, with a band that contains a share of the targets.

    ``plot(max_points=2000)``: of more samples, those with the largest residuals and an even
    selection of the others are drawn.

    Parameters
    ----------
    target, output : ndarray of shape (n_samples,)
        Targets and the outputs of the models that did not see them.
    interval : ndarray of shape (n_samples, 2)
        Ends of an interval around each output.
    confidence_level : float
        Share of the targets that the intervals are to contain.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from looms import KernelRegressor
    >>> from looms.report import ResidualsDisplay
    >>> model = KernelRegressor(mu=1e-2).fit(*load_diabetes(return_X_y=True))
    >>> display = ResidualsDisplay.from_estimator(model, confidence_level=0.8)
    >>> low, high = display.interval.T
    >>> float(((low <= display.target) & (display.target <= high)).mean().round(2))
    0.8
    """

    target: Array
    output: Array
    interval: Array
    confidence_level: float
    legend_place = "upper left"

    @classmethod
    def compute(cls, estimator: Any, *, confidence_level: float = 0.9, target: int = 0) -> Self:
        """Leave-one-out outputs of a fitted regressor, with intervals.

        Parameters
        ----------
        confidence_level : float, default=0.9
            The interval extends on both sides of every output by the ⌈confidence_level · n⌉-th
            smallest absolute residual, with samples counted by their weight. If the
            hyper-parameters were chosen by the same residuals, it is narrower than new samples
            need.
        target : int, default=0
            Index of the target, if there are several.
        """
        model = model_of(estimator)
        if model.outcome.decides:
            raise TypeError(f"{cls.__name__} is for regressors.")
        y, outputs, weight = map(model.scored, model.scores.predictions)
        if y.ndim == 2:
            if not 0 <= target < y.shape[1]:
                raise ValueError(
                    f"{setting('target')} must be 0 to {y.shape[1] - 1}, got {target!r}."
                )
            y, outputs = y[:, target], outputs[:, target]
        return cls._interval_display(y, outputs, weight, confidence_level)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sample_weight: Any = None,
        confidence_level: float = 0.9,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw leave-one-out predictions of any regressor.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Targets, and predictions such as those of scikit-learn's `cross_val_predict`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        confidence_level : float, default=0.9
            As for `compute`.
        ax, **kwargs : for `plot`
        """
        y, outputs = np.asarray(y_true, float), np.asarray(y_pred, float)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        return cls._interval_display(y, outputs, weight, confidence_level).plot(ax, **kwargs)

    @classmethod
    def _interval_display(
        cls, y: Array, outputs: Array, weight: Array, confidence_level: float
    ) -> Self:
        check_share(confidence_level, "confidence_level")
        sizes = np.abs(y - outputs)
        order = np.argsort(sizes, kind="stable")
        share = weight / weight.sum()
        # Less by rounding, so that of equal weights the ⌈confidence_level · n⌉-th is met.
        place = int(np.searchsorted(np.cumsum(share[order]), confidence_level * (1 - 1e-12)))
        half = sizes[order[min(place, len(y) - 1)]]
        interval = np.column_stack([outputs - half, outputs + half])
        return cls(target=y, output=outputs, interval=interval, confidence_level=confidence_level)

    @property
    def residual(self) -> Array:
        """Target less output."""
        return self.target - self.output

    def _draw(self, ax: Any, *, max_points: int = 2000) -> None:
        diagonal(ax, self.output.min(), self.output.max())
        order = np.argsort(self.output, kind="stable")
        places = np.linspace(0, len(order) - 1, min(len(order), max_points))
        order = order[places.round().astype(int)]
        name = f"{100 * self.confidence_level:g} % of the held-out residuals"
        band = {"color": "C1", "alpha": 0.18, "linewidth": 0, "label": name}
        ax.fill_between(self.output[order], *self.interval[order].T, **band)
        shown = spread_out(np.abs(self.residual), max_points)
        ax.plot(self.output[shown], self.target[shown], "o", color="C0", markersize=2.5, alpha=0.6)
        ax.set(xlabel="held-out output", ylabel="target")
        ax.locator_params(axis="x", nbins=5)  # for targets of many digits


def spread_out(size: Array, most: int) -> AnyArray:
    """Indices of at most ``most`` values: half are the largest, the others spread evenly."""
    if len(size) <= most:
        return np.arange(len(size))
    order = np.argsort(-size, kind="stable")
    smaller = order[most // 2 :]
    even = smaller[np.linspace(0, len(smaller) - 1, most - most // 2).round().astype(int)]
    return np.sort(np.concatenate([order[: most // 2], even]))
