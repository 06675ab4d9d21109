"""Base classes of all displays, which compute, store and draw; and the style of the drawings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from inspect import signature
from textwrap import fill
from typing import Any, ClassVar, Self

import numpy as np

from looms._optional import require
from looms._typing import Array
from looms._words import one_line
from looms.report.text import short

#: Labels of a legend for which there is room among the curves.
_MOST_LABELS = 2
#: Characters in a line of the label of an axis, and of an attribute that is shown.
_LINE, _PART = {"x": 56, "y": 40}, 50


class Display(ABC):
    """Computed numbers as attributes, drawn by `plot`.

    Attributes
    ----------
    ax_, figure_ : axes and figure of the drawing, once it is made.
    """

    ax_: Any
    figure_: Any
    #: Place of the legend, if something drawn has a label.
    legend_place: ClassVar[str] = "best"

    def __repr__(self) -> str:
        parts = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        texts = (f"{name}={one_line(value, _PART)}" for name, value in parts.items())
        return f"{type(self).__name__}({', '.join(texts)})"

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on; by default those of a new figure.
        **options
            Options of the drawing, which the class describes.

        Returns
        -------
        self : Display
            The display, with ``ax_`` and ``figure_``.
        """
        if ax is None:
            pyplot = require("matplotlib.pyplot", f"{type(self).__name__}.plot", "plot")
            _, ax = pyplot.subplots(layout="compressed")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax, **options)
        ax.spines[["top", "right"]].set_visible(False)
        if ax.get_legend_handles_labels()[0]:
            legend = ax.legend(**self._legend(ax), fontsize="small", frameon=False)
            for text in (*legend.get_texts(), legend.get_title()):
                text.set_parse_math(False)
        return self

    def _legend(self, ax: Any) -> dict[str, Any]:
        """Place of the legend: beside several curves, if the layout makes room for it."""
        n_labels = len(ax.get_legend_handles_labels()[0])
        if n_labels > _MOST_LABELS and ax.figure.get_layout_engine() is not None:
            return {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        return {"loc": self.legend_place}

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes; a subclass may take options."""


class ModelDisplay(Display):
    """A display that needs only a fitted model and its training samples."""

    @classmethod
    @abstractmethod
    def compute(cls, *arguments: Any, **options: Any) -> Self:
        """The display of a fitted model, without drawing it; a subclass may take options."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, *arguments: Any, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the display of a fitted model, and draw it.

        Parameters
        ----------
        estimator : estimator
            A fitted looms model, or a pipeline that ends in one.
        ax : matplotlib axes, default=None
            Axes to draw on; by default those of a new figure.
        **options
            Options of `compute` and of the drawing.

        Returns
        -------
        display : Display
            The display, drawn; `compute` does not draw, and needs no matplotlib.
        """
        of_compute = {k: options.pop(k) for k in signature(cls.compute).parameters if k in options}
        return cls.compute(estimator, *arguments, **of_compute).plot(ax, **options)


def ink() -> Any:
    """Color of lines that guide the eye: the color of the text, in any style."""
    return require("matplotlib", "A display", "plot").rcParams["text.color"]


def numbers_of(names: Sequence[str]) -> Array | None:
    """The numbers that all names are, such as wavelengths; None if some are not, or are alike."""
    try:
        numbers = np.array([float(name) for name in names])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() and len(set(numbers)) == len(names) else None


def label_ticks(ax: Any, names: Sequence[str], **options: int) -> None:
    """Label the rows of an axis, the first on top; a dollar sign does not start a formula.

    ``options`` are those of `short`.
    """
    places = range(len(names))
    ax.set_yticks(places, labels=[short(name, **options) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def label_axes(ax: Any, x: str, y: str | None = None) -> None:
    """Label the axes, long labels in lines; a dollar sign does not start a formula.

    Beside names of rows, that of x ends where the axis does, and may begin below the names.
    """
    place = "center" if ax.spines["left"].get_visible() else "right"
    ax.set_xlabel(fill(x, _LINE["x"]), loc=place, parse_math=False)
    if y is not None:
        ax.set_ylabel(fill(y, _LINE["y"]), parse_math=False)


def unit_square(ax: Any) -> None:
    """Both axes from 0 to 1, of equal length."""
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")


def diagonal(ax: Any, low: float = 0.0, high: float = 1.0) -> None:
    """The line on which both axes are equal."""
    ax.plot([low, high], [low, high], color=ink(), linewidth=0.6, linestyle=":")
