"""Axes of the plots of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from looms._optional import require
from looms._typing import AnyArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None, result: object) -> Axes:
    """``ax`` itself, or the axes of a new figure of pyplot."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", f"{type(result).__name__}.plot", extra="plot")
    new: Axes = pyplot.subplots()[1]
    return new


def positions(names: AnyArray) -> AnyArray:
    """Places of samples on an axis, (n,): their names if these count up, else 0 to n − 1."""
    count = np.arange(len(names))
    if len(names) and np.issubdtype(names.dtype, np.integer):
        counted: AnyArray = names[0] + count
        return counted if np.array_equal(names, counted) else count
    return count
