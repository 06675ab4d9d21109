"""A caution: a reason to distrust a fitted machine or its figures."""

from __future__ import annotations

from typing import TypedDict


class Caution(TypedDict):
    """A caution of level "serious" or "note"."""

    level: str
    title: str
    text: str


def serious(title: str, text: str) -> Caution:
    return Caution(level="serious", title=title, text=text)


def note(title: str, text: str) -> Caution:
    return Caution(level="note", title=title, text=text)
