"""Text for counts, numbers and names."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable

#: Marks that change the direction of writing.
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def count(n: int, what: str) -> str:
    """A number of things, in the plural unless there is one."""
    return f"{n} {what}{'s' * (n != 1)}"


def listed(names: Iterable[object], most: int = 5, quoted: Callable[[str], str] = repr) -> str:
    """Names in quotation marks, with a count of those beyond ``most``."""
    shown = [quoted(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def with_error(value: float, error: float = math.nan) -> str:
    """A number, with its standard error if there is one; a dash for no number."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.4g} ± {error:.2g}" if math.isfinite(error) else f"{value:.4g}"


def clean(text: object) -> str:
    """A name on one line: runs of blanks and unprintable characters become one space.

    Marks that change the direction of writing are left out, so that a name in any script
    does not affect the text around it.
    """
    kept = (
        " " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c
        for c in str(text)
        if c not in _DIRECTIONS
    )
    return " ".join("".join(kept).split()) or "(empty)"
