"""From exceptions to one line on stderr and an exit code."""

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
#: Arguments of Python in messages of other rooms, which are options here.
_ARGUMENT = re.compile(
    r"\b(?:(sep|decimal|encoding|sheet|format|store|copies|threshold|class_weight|groups|search|rank"
    r"|nested)=(?:\.\.\.|(['\"])([^'\"]+)\2)|(max_bytes)\b)"
)
#: Format characters that join letters and change nothing else.
_JOINERS = "\u200c\u200d"


class InputError(ValueError):
    """Input that cannot be used; the message says why, and what to do."""


@contextmanager
def reported() -> Iterator[None]:
    """End the program with one line instead of a traceback.

    With the environment variable LOOMS_TRACEBACK the traceback comes too: of an unexpected error,
    and of an error that another one was the cause of.
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
    """Send what is left of the output nowhere, so that its end does not fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """Write a line to stderr, arguments of Python in it as the options of the command line."""
    line = _ARGUMENT.sub(_option, " ".join(message.split()))
    typer.echo(visible(line), err=True)


def _option(argument: re.Match[str]) -> str:
    name = (argument[1] or argument[4]).removeprefix("class_").replace("_", "-")
    return f"--{name} {argument[3] or ''}".rstrip()


def visible(text: str, keep: str = "") -> str:
    """Text with what a terminal obeys instead of showing it as escapes, such as ``\\x1b``.

    Control characters, line separators, marks that turn the direction of writing and other
    format characters, and halves of characters; those to ``keep`` stay.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS + keep
        else c
        for c in text
    )
