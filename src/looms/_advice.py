"""Advice in messages: parameters to set, in the words of who is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

UNSET = object()
#: Most characters of a value.
LONGEST = 150


def short(value: object, most: int = LONGEST) -> str:
    """Text of a value on one line of at most so many characters."""
    shown = " ".join(str(value).split())
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


class Advice(NamedTuple):
    """What to set or to do, in messages.

    Attributes
    ----------
    parameter : name of a parameter, or of what is to be done.
    value : of the parameter; `UNSET` without one.
    text : words in Python, if they are not the parameter with its value.
    """

    parameter: str
    value: Any
    text: str | None

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        if self.value is UNSET:
            return self.parameter
        return f"{self.parameter}={'...' if self.value is ... else short(repr(self.value))}"


_RENDERED = ContextVar[Callable[[Advice], str]]("words for advice")


@contextmanager
def advice_in(words: Callable[[Advice], str]) -> Iterator[None]:
    """Advice is in these words here, as on the command line."""
    before = _RENDERED.set(words)
    try:
        yield
    finally:
        _RENDERED.reset(before)


def words_for_advice() -> Callable[[Advice], str]:
    """Function that gives advice in the words of who is told here."""
    return _RENDERED.get(str)


def setting(parameter: str, value: Any = UNSET, text: str | None = None) -> str:
    """A parameter to set, ``parameter=value``, or what else to do, in the words of who is told.

    Examples
    --------
    >>> from looms._advice import advice_in, setting
    >>> setting("threshold", 0.5)
    'threshold=0.5'
    >>> setting("cv", list(range(10**4)))[-9:]
    ', 38, ...'
    >>> with advice_in(lambda one: f"--{one.parameter} {one.value}"):
    ...     setting("threshold", 0.5)
    '--threshold 0.5'
    """
    return words_for_advice()(Advice(parameter, value, text))
