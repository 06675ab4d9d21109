"""Turns exceptions into one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from looms._files import FileError

BAD_INPUT = 2
OTHER = 1
INTERRUPTED = 130
#: Python arguments in messages of other packages, which are options here.
_ARGUMENT = re.compile(
    r"\b(?:(sep|decimal|encoding|sheet|format|store|copies|threshold|class_weight|groups|search|rank"
    r"|nested)=(?:\.\.\.|(['\"])([^'\"]+)\2)|(max_bytes)\b)"
)
#: Format characters that only join letters.
_JOINERS = "\u200c\u200d"


class InputError(ValueError):
    """Error for input that cannot be used; the message says why, and what to do."""


@contextmanager
def reported() -> Iterator[None]:
    """End the program with one line instead of a traceback.

    With the environment variable LOOMS_TRACEBACK the traceback is printed too, for unexpected
    errors and for errors with another error as their cause.
    """
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except BrokenPipeError:  # whoever read our output had enough
        _drop_output()
        raise typer.Exit(OTHER) from None
    except KeyboardInterrupt as interrupt:
        say(f"Interrupted. {interrupt}".strip())
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if error.__cause__ is not None and os.environ.get("LOOMS_TRACEBACK"):
            raise
        if isinstance(error, InputError | FileError):
            say(f"Error: {error}")
            raise typer.Exit(BAD_INPUT) from None
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _drop_output()
            say(f"Error: the output cannot be written: {error.strerror}")
            raise typer.Exit(OTHER) from None
        if isinstance(error, MemoryError):
            say(f"Error: {error or 'out of memory'}")
            raise typer.Exit(OTHER) from None
        if isinstance(error, ModuleNotFoundError):
            say(f'Error: {error.name} is not installed: pip install "looms[cli]"')
            raise typer.Exit(OTHER) from None
        if isinstance(error, ImportError):
            say(f"Error: {error}")
            raise typer.Exit(OTHER) from None
        if os.environ.get("LOOMS_TRACEBACK"):
            raise
        what = f"unexpected {type(error).__name__}: {error}"
        say(f"Error: {what} (set LOOMS_TRACEBACK=1 to see where)")
        raise typer.Exit(OTHER) from None


def _drop_output() -> None:
    """Discard the rest of the output, so that closing it does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """Write a line to stderr, with Python arguments replaced by command line options."""
    line = _ARGUMENT.sub(_option, " ".join(message.split()))
    typer.echo(visible(line), err=True)


def _option(argument: re.Match[str]) -> str:
    name = (argument[1] or argument[4]).removeprefix("class_").replace("_", "-")
    return f"--{name} {argument[3] or ''}".rstrip()


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
