"""Values of the samples by their place, the extreme ones named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.diagnostics import case_deletion
from looms.report._axes import axes_for, ink, label_axes, plain_frame, short
from looms.report._left_out import residual_sizes
from looms.report._model import Model, model_of
from looms.report._residuals import spread_out

#: What can be drawn, and what it is called at its axis.
KINDS = {
    "rms_change": "r.m.s. change of other outputs",
    "largest_change": "largest change of another output",
    "criterion_change": "change of the criterion",
    "leverage": "leverage",
    "surprise": "standardised leave-one-out residual",
    "residual": "size of the leave-one-out residual",
}


class CaseDeletionDisplay:
    """Index plot of a value of every sample, with the largest ones named.

    Parameters
    ----------
    value : ndarray of shape (n_samples,)
        What is drawn; large is remarkable.
    names : sequence of str
        Of the samples.
    value_name : str
        What the value is.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(self, *, value: Array, names: Any, value_name: str) -> None:
        self.value = np.asarray(value)
        self.names = names
        self.value_name = value_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        kind: str = "rms_change",
        names: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """What leaving out each sample of a fitted machine does, or how it surprises.

        Parameters
        ----------
        estimator : machine of looms, or pipeline that ends in one
            Fitted.
        kind : str, default="rms_change"
            "rms_change", "largest_change", "criterion_change", "leverage" or "surprise" of
            `looms.diagnostics.case_deletion`; or "residual", the size of the leave-one-out
            residual, for classes how far the output falls short of the label ±1 (of several
            targets the root of the sum of squares), which takes no time.
        names : sequence, default=None
            Of the training samples; their positions, from 0, unless given.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : CaseDeletionDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(estimator, kind=kind, names=names).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any, *, kind: str = "rms_change", names: Any = None) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = model_of(estimator)
        if kind not in KINDS:
            raise ValueError(f"Unknown kind {kind!r}; known are {', '.join(KINDS)}.")
        of_model = residual_sizes if kind == "residual" else _of_deletion(kind)
        value = of_model(model)
        names = [str(k) for k in range(len(value))] if names is None else list(names)
        if len(names) != len(value):
            raise ValueError(f"There are {len(value)} samples and {len(names)} names.")
        return cls(value=value, names=names, value_name=KINDS[kind])

    def plot(self, ax: Any = None, *, n_named: int = 6, max_points: int = 2000) -> Self:
        """Draw a stem a sample.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.
        n_named : int, default=6
            So many of the largest are marked, and named where the names have room.
        max_points : int, default=2000
            Of more samples the largest and an even choice of the others are drawn.

        Returns
        -------
        self : CaseDeletionDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        place = _first(self.names) + np.arange(len(self.value))
        size = np.where(np.isfinite(self.value), np.abs(self.value), 0.0)
        shown = spread_out(size, max_points)
        ax.vlines(place[shown], 0, self.value[shown], color="C0", linewidth=0.8, alpha=0.75)
        largest = np.argsort(-size, kind="stable")[:n_named]
        largest = largest[size[largest] > 0]
        ax.plot(place[largest], self.value[largest], "o", color="C1", markersize=4)
        for k in _apart(largest / len(place), size[largest]):
            right = largest[k] < 0.7 * len(place)
            ax.annotate(
                short(self.names[largest[k]], 16),
                (place[largest[k]], self.value[largest[k]]),
                textcoords="offset points",
                xytext=(5 if right else -5, 2),
                ha="left" if right else "right",
                fontsize="small",
                parse_math=False,
            )
        ax.axhline(0, color=ink(), linewidth=0.6)
        label_axes(ax, "sample", self.value_name)
        ax.margins(x=0.02, y=0.12)
        if np.nanmin(self.value) >= 0:
            ax.set_ylim(bottom=0)
        plain_frame(ax)
        return self


def _of_deletion(kind: str) -> Callable[[Model], Array]:
    return lambda model: np.asarray(getattr(case_deletion(model.machine), kind))


def _first(names: Any) -> int:
    """Where the count of the samples begins: by their names if these count them, else 0."""
    first, last = str(names[0]), str(names[-1])
    counted = first.isdecimal() and last == str(int(first) + len(names) - 1)
    return int(first) if counted else 0


def _apart(x: Array, size: Array) -> list[int]:
    """Those of some points, by size, whose names do not lie on one before; x from 0 to 1."""
    kept: list[int] = []
    for k in range(len(x)):
        near = (abs(x[k] - x[j]) < 0.12 and size[j] - size[k] < 0.05 * size[0] for j in kept)
        if not any(near):
            kept.append(k)
    return kept
