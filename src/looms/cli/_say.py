"""What is written where: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from looms._files import advice_on, write_whole
from looms.cli._errors import InputError


def note(message: str) -> None:
    """Say something on stderr, so that stdout can be piped."""
    typer.echo(f"Note: {' '.join(message.split())}", err=True)


def warning(message: str) -> None:
    """Say on stderr what makes a result doubtful."""
    typer.echo(f"Warning: {' '.join(message.split())}", err=True)


def say_cautions(cautions: Sequence[Mapping[str, str]]) -> None:
    """Say cautions of `looms.report`, the serious ones as warnings."""
    for each in cautions:
        # Isolates around a name, for the order of words in a page; in a line quotes show it.
        text = each["text"].replace("\u2068", "'").replace("\u2069", "'")
        (warning if each["level"] == "serious" else note)(text)


@contextmanager
def warnings_as_notes(instead: Mapping[str, str] | None = None) -> Iterator[None]:
    """Collect warnings, and say each once at the end.

    ``instead`` has what the command line says for words of Python.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(w.message) for w in caught):
        for word, other in (instead or {}).items():
            message = message.replace(word, other)
        note(message)


def to_stdout(text: str) -> None:
    """Write a result."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_output(path: Path, data: bytes) -> None:
    """Write a result to a file, whole or not at all."""
    try:
        write_whole(path, data)
    except OSError as error:
        advice = advice_on(error, "name another file")
        raise InputError(f"{path} cannot be written ({error.strerror}); {advice}") from None
