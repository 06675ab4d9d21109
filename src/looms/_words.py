"""Text for counts, numbers and names."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from looms._advice import short

#: Marks that change the direction of writing.
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_OF_FILES = ContextVar("tables are files", default=False)


@contextmanager
def rows_of_files() -> Iterator[None]:
    """Rows are those of files here, which people count from 1 after any header."""
    before = _OF_FILES.set(True)
    try:
        yield
    finally:
        _OF_FILES.reset(before)


def row_name(values: Any, row: int) -> str:
    """A row in messages: by its label in the index of pandas, else by its number from 0.

    Of files, whose index counts from 0, it is the number from 1: see `rows_of_files`.
    """
    index: Any = getattr(values, "index", None)  # of a list it is a method
    label = index[row] if hasattr(index, "tolist") else row
    return f"data row {label + 1}" if _OF_FILES.get() else f"row {clean(label)}"


def count(n: int, what: str) -> str:
    """A number of things, in the plural unless there is one."""
    return f"{n} {what}{'s' * (n != 1)}"


def listed(names: Iterable[object], most: int = 5, quoted: Callable[[str], str] = repr) -> str:
    """Names in quotation marks, with a count of those beyond ``most``."""
    shown = [quoted(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def one_line(thing: object, most: int = 150) -> str:
    """Representation in one line of at most so many characters, with few numbers of an array."""
    with np.printoptions(threshold=6, edgeitems=2):
        return short(repr(thing), most)


def digits(value: float, n: int) -> str:
    """A number with n significant digits; without an exponent from 1e-4 to a million."""
    rounded = f"{value:.{n}g}"
    return f"{float(rounded):.0f}" if 10**n <= abs(float(rounded)) < 1e6 else rounded


def estimate_text(value: float, error: float = math.nan) -> str:
    """A number, with its standard error if there is one; a dash for no number."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}"
    if not math.isfinite(error):
        return text
    return f"{text} ± {digits(error, 2) if abs(value) < 1e6 else f'{error:.2g}'}"


def score_text(value: float, scale: float | None = None) -> str:
    """Text with four decimals below ten, as for rates, else with four significant digits.

    What belongs to a score, as its standard error does, has as many decimals as the one it is
    ``scale``.
    """
    size = abs(value if scale is None else scale)
    if not math.isfinite(value):
        return "–"
    if size == 0 or 1e-3 <= size < 10:
        text = f"{value:.4f}"
    elif not 10 <= size < 1e6:
        return f"{value:.4g}"
    else:
        text = f"{value:.{max(0, 3 - math.floor(math.log10(size)))}f}"
    return text if float(text) else text.removeprefix("-")


def interval_text(low: float, high: float, scale: float | None = None) -> str:
    """Both ends of an interval of a score; a dash without them."""
    return "–" if math.isnan(low) else f"{score_text(low, scale)} to {score_text(high, scale)}"


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Lines of a table: columns at these places at the left, by default the first, the others at
    the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if k in left else str.rjust for k in range(len(widths))]
    lines = (zip(sides, row, widths, strict=True) for row in rows)
    return ["   ".join(side(cell, n) for side, cell, n in line).rstrip() for line in lines]


def clean(text: object) -> str:
    """A name on one line: runs of blanks and unprintable characters become one space.

    Marks that change the direction of writing are left out, so that a name in any script
    does not affect the text around it.
    """
    characters = (
        " " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c
        for c in str(text)
        if c not in _DIRECTIONS
    )
    return " ".join("".join(characters).split()) or "(empty)"
