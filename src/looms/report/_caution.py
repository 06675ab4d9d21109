"""A caution: what a report shows to be distrusted."""

from __future__ import annotations

from typing import TypedDict


class Caution(TypedDict):
    """A caution; its level is "serious" or "note"."""

    level: str
    title: str
    text: str


def serious(title: str, text: str) -> Caution:
    return Caution(level="serious", title=title, text=text)


def note(title: str, text: str) -> Caution:
    return Caution(level="note", title=title, text=text)
