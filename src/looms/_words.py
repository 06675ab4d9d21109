"""Counts and lists of names in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def count(n: int, what: str) -> str:
    """A number of things, in the plural where there is not one."""
    return f"{n} {what}{'s' * (n != 1)}"


def listed(names: Iterable[object], most: int = 5, quoted: Callable[[str], str] = repr) -> str:
    """Names in quotation marks, those beyond the most counted."""
    shown = [quoted(str(name)) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
