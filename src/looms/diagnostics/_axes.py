"""Axes to draw on."""

from __future__ import annotations

from typing import Any

from looms._optional import require


def axes_or_new(ax: Any, display: Any) -> Any:
    """``ax`` itself, or those of a new figure of pyplot."""
    if ax is not None:
        return ax
    plt = require("matplotlib.pyplot", f"{type(display).__name__}.plot", extra="plot")
    return plt.subplots()[1]
