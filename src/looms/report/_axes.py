"""What displays share: axes to draw on, colours of the style in force, text as it is."""

from __future__ import annotations

import unicodedata
from typing import Any

from looms._optional import require

#: Characters of a name that are shown in a picture.
LONGEST_NAME = 28
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def axes_for(display: Any, ax: Any) -> Any:
    """``ax``, or that of a new figure; kept as ``ax_`` and ``figure_`` of the display."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", f"{type(display).__name__}.plot", "plot")
        _, ax = pyplot.subplots(layout="constrained")
    display.ax_ = ax
    display.figure_ = ax.figure
    return ax


def ink() -> Any:
    """Colour of lines that guide the eye: that of the text, whatever the style."""
    return require("matplotlib", "A display", "plot").rcParams["text.color"]


def clean(text: Any) -> str:
    """A name on one line: blanks and what cannot be printed become one space.

    Marks that turn the direction of writing are left out, so that a name in any script
    leaves the text around it alone.
    """
    kept = (
        " " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c
        for c in str(text)
        if c not in _DIRECTIONS
    )
    return " ".join("".join(kept).split()) or "(empty)"


def isolated(text: Any) -> str:
    """A name for the middle of a sentence, whose order of words it does not change."""
    return f"\u2068{clean(text)}\u2069"


def short(text: Any, longest: int = LONGEST_NAME) -> str:
    """`clean`, and cut at the end where it is too long."""
    name = clean(text)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def label_ticks(ax: Any, places: Any, names: Any, axis: str = "y") -> None:
    """Names at the ticks; a dollar sign in one is a dollar sign and no formula."""
    setter = ax.set_yticks if axis == "y" else ax.set_xticks
    setter(places, labels=[short(name) for name in names], parse_math=False)


def label_axes(ax: Any, x: str, y: str | None = None) -> None:
    """What the axes are; a name of the user's in it is a name and no formula."""
    ax.set_xlabel(x, parse_math=False)
    if y is not None:
        ax.set_ylabel(y, parse_math=False)


def bars(ax: Any, values: Any, names: Any, errors: Any = None) -> None:
    """Named horizontal bars, the first on top."""
    places = range(len(values))
    ax.barh(places, values, height=0.62, color="C0")
    if errors is not None:
        ax.errorbar(values, places, xerr=errors, fmt="none", ecolor=ink(), elinewidth=0.8)
    label_ticks(ax, places, names)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def plain_legend(ax: Any, **options: Any) -> None:
    """A legend whose names are names and no formulas."""
    for text in ax.legend(**options).get_texts():
        text.set_parse_math(False)


def plain_frame(ax: Any) -> None:
    """No lines on top and at the right."""
    ax.spines[["top", "right"]].set_visible(False)
