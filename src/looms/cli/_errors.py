"""Turns exceptions into one line on stderr and an exit code."""

from __future__ import annotations

import codecs
import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer

from looms._files import FileError
from looms._optional import command_for

BAD_INPUT = 2
OTHER = 1
INTERRUPTED = 130
#: Signs of our own that not every encoding has, in signs that all have.
_PLAIN_SIGNS = str.maketrans(
    {"→": "->", "±": "+-", "−": "-", "–": "-", "…": "...", "─": "-", "×": "x", "·": "*"}
    | {"χ": "chi", "\u202f": " "}
    | dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
)
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
#: Format characters that only join letters.
_JOINERS = "\u200c\u200d"
_QUIET = ContextVar("quiet", default=False)


class InputError(ValueError):
    """Error for input that cannot be used; the message says why, and what to do."""


class OutputError(Exception):
    """Error for a result that cannot be written where it was to go; the message says what to do."""


@contextmanager
def reported() -> Iterator[None]:
    """End the program with one line instead of a traceback, with "Interrupted." on Ctrl-C.

    With the environment variable LOOMS_TRACEBACK the traceback is printed too, for unexpected
    errors and for errors with another error as their cause.
    """
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except KeyboardInterrupt as interrupt:  # of which typer would say nothing
        say(f"Interrupted. {interrupt}".strip())
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # whoever read our output had enough
        _drop_output()
        raise typer.Exit(OTHER) from None
    except Exception as error:
        traceback, code = os.environ.get("LOOMS_TRACEBACK"), OTHER
        notes = " ".join(getattr(error, "__notes__", []))
        if error.__cause__ is not None and traceback:
            raise
        match error:
            case InputError() | FileError():
                message, code = str(error), BAD_INPUT
            case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EIO):
                _drop_output()
                message = f"the output cannot be written: {error.strerror}"
            case MemoryError():
                message = str(error) or "out of memory"
            case ModuleNotFoundError():
                message = f"{error.name} is not installed: {command_for('cli')}"
            case BrokenExecutor():
                died = "a process died, perhaps of too little memory: take fewer --jobs"
                message = f"{died}. {notes}"
            case ImportError() | OutputError():
                message = str(error)
            case _ if traceback:
                raise
            case _:
                what = f"unexpected {type(error).__name__}: {error} {notes}".rstrip()
                message = f"{what} (set LOOMS_TRACEBACK=1 to see where)"
        say(f"Error: {message}")
        raise typer.Exit(code) from None


def _drop_output() -> None:
    """Discard the rest of the output, so that closing it does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Context without notes and progress, if ``quiet``."""
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """True if there are to be no notes and no progress."""
    return _QUIET.get()


def say(message: str) -> None:
    """Write a line to stderr, in the words of the command line."""
    echo(visible(" ".join(message.split())))


def echo(line: str) -> None:
    """Write a line to stderr, in the signs of its encoding."""
    typer.echo(writable(line, sys.stderr), err=True)


def visible(text: str, keep: str = "") -> str:
    """Text in which characters that a terminal would obey are escapes, such as ``\\x1b``.

    These are control characters, line separators, marks that change the writing direction and
    other format characters, and halves of characters; those to ``keep`` stay.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS + keep
        else c
        for c in text
    )


def writable(text: str, stream: Any) -> str:
    r"""Text in which the signs that the encoding of a stream lacks are others, or escapes.

    Examples
    --------
    >>> from io import BytesIO, TextIOWrapper
    >>> writable("R² 0.91 ± 2·10⁻¹² → кот", TextIOWrapper(BytesIO(), encoding="ascii"))
    'R^2 0.91 +- 2*10^-12 -> \\u043a\\u043e\\u0442'
    """
    encoding = stream.encoding or "utf-8"  # in memory there is none
    return text.encode(encoding, _IN_PLAIN_SIGNS).decode(encoding)


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    plain = _RAISED.sub(r"^\g<0>", lacking).translate(_PLAIN_SIGNS)
    return plain.encode("ascii", "backslashreplace").decode(), error.end


_IN_PLAIN_SIGNS = "looms.plain_signs"
codecs.register_error(_IN_PLAIN_SIGNS, _plain_signs)
